"""How replayed runs look in the summary of a CI job, which is Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..core.inert import inert
from ..core.markdown import cell, code_span, fence
from ..errors import Divergence
from .replays import counted

if TYPE_CHECKING:
    from ..runner.replaying import Replay

# A job's summary may have 1 MiB; nobody reads as much.
_ROWS = 200
_DIFFS = 20
_DIFF_LINES = 100
_DIFF_WIDTH = 300


def replays_markdown(done: Sequence[Replay]) -> str:
    """Everything in it that comes from runs or code is inert: it is read by a forge.

    What to do next is ours, made of ids and keys, and is to be copied as it stands.
    """
    failed = [each for each in done if each.error is not None]
    ordered = [*failed, *(each for each in done if each.error is None)]
    lines = [f"### Replay: {counted(done)}", ""]
    if ordered:
        lines += ["| run | workflow | receipts | decided |", "|---|---|---:|---|"]
        lines += [_row(each) for each in ordered[:_ROWS]]
    if len(ordered) > _ROWS:
        lines += ["", f"and {len(ordered) - _ROWS:,} more runs"]
    parts = [inert("\n".join(lines))]
    for each in failed[:_DIFFS]:
        parts.append(inert("\n".join(_failure(each))))
        if each.error is not None and each.error.hint:
            parts.append("\n".join(fence(each.error.hint, "text")))
    return "\n\n".join([*parts, ""])


def _row(each: Replay) -> str:
    return f"| {cell(each.name)} | {cell(each.workflow)} | {each.receipts:,} | {_decided(each)} |"


def _decided(each: Replay) -> str:
    if each.error is None:
        return "as recorded"
    if not isinstance(each.error, Divergence):
        return "**cannot be replayed**"
    details = each.error.details or {}
    places = [cell(str(details[name])) for name in ("key", "site") if details.get(name)]
    return " ".join(["**differently**", *(["at", ", ".join(places)] if places else [])])


def _failure(each: Replay) -> Iterator[str]:
    assert each.error is not None  # only failed ones come here
    yield f"#### {code_span(each.name)}"
    yield ""
    yield code_span(each.error.message, 500)
    lines = str((each.error.details or {}).get("request_diff") or "").splitlines()
    if lines:
        more = [f"… and {len(lines) - _DIFF_LINES} more lines"] if len(lines) > _DIFF_LINES else []
        shown = [line[:_DIFF_WIDTH] for line in lines[:_DIFF_LINES]]
        yield from ("", *fence("\n".join([*shown, *more]), "diff"))
