"""`always_replay`, at the end: the whole run once more in other processes, each with a hash seed of its own.

More than one, since two orders of a small set are often the same by chance.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..clock import SystemClock
from ..core.redaction import Redactor
from ..core.values import codec_for
from ..errors import InvalidInput
from ..runner.environment import clean_environment
from ..runner.processes import Command, run_command
from ..runner.stopping import StopSignal
from . import second_process
from .definitions import Origin
from .failures import HIDDEN, SAME_AGAIN, ReplayMismatch, ReplayWarning
from .replaying import ReplayedRun
from .second_process import VERDICT, RecordedRun, Request, Verdict

__tracebackhide__ = HIDDEN

HASH_SEEDS = ("1", "2", "3")
_TIMEOUT = 60.0


def replay_elsewhere(runs: Sequence[ReplayedRun], environment: Mapping[str, str]) -> None:
    """Raises ReplayMismatch; InvalidInput when the other process cannot even import the workflow.

    Warns about workflows that only this process has, and leaves them out.
    """
    found = list(_recorded(runs))
    if not found:
        return
    request = Request(found, runs[0].result.scene.root or "", dict(environment))
    with ThreadPoolExecutor(len(HASH_SEEDS)) as pool:
        verdicts = list(pool.map(lambda seed: ask(request, seed), HASH_SEEDS))
    name = runs[0].result.workflow.name
    for seed, verdict in zip(HASH_SEEDS, verdicts, strict=True):
        if verdict.failed is not None:
            raise InvalidInput(f"{name} cannot be replayed in a second process: {verdict.failed}")
        if verdict.said is not None:
            where = f"in a second process, with PYTHONHASHSEED={seed}"
            raise ReplayMismatch(f"{name} does not decide the same again, {where}: {verdict.said}\n{SAME_AGAIN}")


def _recorded(runs: Sequence[ReplayedRun]) -> Iterator[RecordedRun]:
    for run in runs:
        origin = Origin.of(run.result.workflow)
        if origin is not None:
            result = run.result
            yield RecordedRun.of(result.run_id, origin, result.receipts, run.replayed.moments)
            continue
        warnings.warn(
            f"{run.result.workflow.ref} was replayed in this process only, with one hash seed: "
            "another one cannot import it; define it at the top level of a module",
            ReplayWarning,
            stacklevel=4,
        )


def ask(request: Request, seed: str) -> Verdict:
    """What another process, with that hash seed, says to a request."""
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    outcome = run_command(
        Command(
            argv=(sys.executable, "-m", second_process.__name__),
            cwd=Path.cwd(),
            env=clean_environment(request.environment, {"PYTHONHASHSEED": seed, "PYTHONPATH": path}),
            stdin=json.dumps(codec_for(Request).to_plain(request)).encode(),
            timeout=_TIMEOUT,
        ),
        stop=StopSignal(),
        redactor=Redactor(),
        now=SystemClock().now,
    )
    *_, last = outcome.stdout.whole.decode(errors="replace").splitlines() or [""]
    if last.startswith(VERDICT):
        return codec_for(Verdict).from_plain(json.loads(last.removeprefix(VERDICT)))
    said = outcome.stderr.whole.decode(errors="replace").strip().splitlines()[-1:] or [outcome.reason or "no word"]
    return Verdict(failed=f"it ended with {said[0]}")
