"""How replayed runs look: as a JSON document, and as text for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..core.divergence import explain
from ..errors import Divergence, HermesError

if TYPE_CHECKING:
    from ..runner.replaying import Replay


def replays_document(done: Sequence[Replay]) -> dict[str, Any]:
    failed = sum(each.error is not None for each in done)
    return {"replays": not failed, "checked": len(done), "failed": failed, "runs": [_run(each) for each in done]}


def replays_text(done: Sequence[Replay]) -> str:
    lines = [line for each in done for line in _lines(each)]
    return "\n".join([*lines, counted(done)])


def _run(each: Replay) -> dict[str, Any]:
    return {
        "workflow_id": each.run_id,
        "remote": each.remote,
        "workflow": each.workflow,
        "commit": each.commit,
        "receipts": each.receipts,
        "replays": each.error is None,
        "open": list(each.open),
        "error": None if each.error is None else _error(each.error),
    }


def _error(error: HermesError) -> dict[str, Any]:
    return {"code": error.code, "message": error.message, "hint": error.hint} | dict(error.details or {})


def counted(done: Sequence[Replay]) -> str:
    if not done:
        return "there was no run to replay"
    failed = sum(each.error is not None for each in done)
    return f"{len(done) - failed:,} of {len(done):,} runs are decided as they were recorded"


def _lines(each: Replay) -> Iterator[str]:
    if each.error is None:
        waits = f", waits for {', '.join(each.open[:3])}" if each.open else ""
        yield f"  ok  {each.name}: {each.receipts} receipts{waits}"
        return
    said = list(explain(each.error)) if isinstance(each.error, Divergence) else [each.error.message, each.error.hint]
    yield f"BAD   {each.name}: {said[0]}"
    yield from (f"      {line}" for line in said[1:] if line)
