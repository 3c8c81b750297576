"""The other process: reads what was decided, decides it again under its own hash seed, prints a verdict.

    python -m hermes_workflows.testing.second_process < request.json

Started by elsewhere.py. Sets of texts, and whatever else hashes by address or seed, iterate in another order here.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from ..core.history import History, fold
from ..core.receipts import Author, Receipt, draft, load
from ..core.redaction import Redactor
from ..core.values import codec_for
from ..errors import HermesError
from ..runner.slices import Decider
from .definitions import Origin
from .failures import ReplayMismatch
from .replaying import replay
from .traces import Moment, Scene, difference, quiet_decider

VERDICT = "hermes-workflows-verdict: "
"""What stands before the verdict, on the last line; whatever an author's module prints comes before it."""


@dataclass(frozen=True)
class RecordedRun:
    """A run on its way to another process: receipts as files, blobs in base64, and its decisions, if they are known."""

    run_id: str
    origin: Origin
    receipts: dict[str, str]
    blobs: dict[str, str]
    moments: list[Moment]

    @classmethod
    def of(
        cls, run_id: str, origin: Origin, receipts: Iterable[Receipt], moments: Iterable[Moment] = ()
    ) -> RecordedRun:
        drafts = [(draft(each, Author("test")), each.seq) for each in receipts]
        return cls(
            run_id=run_id,
            origin=origin,
            receipts={each.path: each.render(seq).decode() for each, seq in drafts},
            blobs={sha: base64.b64encode(data).decode() for each, _ in drafts for sha, data in each.blobs.items()},
            moments=list(moments),
        )

    def history(self) -> History:
        return fold(load(path, text.encode(), self._blob) for path, text in self.receipts.items())

    def _blob(self, sha256: str) -> bytes:
        return base64.b64decode(self.blobs[sha256])


@dataclass(frozen=True)
class Request:
    """`redact` names variables of `environment` whose values are secrets."""

    runs: list[RecordedRun]
    root: str
    environment: dict[str, str]
    redact: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Verdict:
    """`said` is what does not agree, None when everything does; `failed` why nothing could be said."""

    said: str | None = None
    failed: str | None = None


def judge(request: Request) -> Verdict:
    """Decide all runs again. Never raises for what a run or its module does."""
    named = {name: value for name in request.redact if (value := request.environment.get(name))}
    scene = Scene(Redactor(named, request.environment), request.root, request.environment.get)
    decider = quiet_decider()
    try:
        for run in request.runs:
            if (said := _apart(run, scene, decider)) is not None:
                return Verdict(said)
    except ReplayMismatch as error:
        return Verdict(said=str(error))
    except HermesError as error:
        return Verdict(failed=error.message)
    finally:
        decider.close()
    return Verdict()


def _apart(run: RecordedRun, scene: Scene, decider: Decider) -> str | None:
    definition, history = run.origin.find(), run.history()
    again = replay(scene, run.run_id, definition, history, decider)
    if not run.moments:
        return None
    names = {each.seq: each.key for each in history.deliveries}
    for before, now in zip_longest(run.moments, again.moments):
        if before is None or now is None:
            return f"{run.run_id} was decided {len(run.moments)} times before and {len(again.moments)} times now"
        if (said := difference(before, now)) is not None:
            return f"after {_after(before, names)} of {run.run_id}, {said}"
    return None


def _after(moment: Moment, names: Mapping[int, str]) -> str:
    return f"the result of {names[moment.after]!r}" if moment.after in names else "the start"


def main() -> None:
    request = codec_for(Request).from_plain(json.load(sys.stdin))
    verdict: Any = codec_for(Verdict).to_plain(judge(request))
    sys.stdout.write(f"\n{VERDICT}{json.dumps(verdict)}\n")


if __name__ == "__main__":
    main()
