"""`@step(process=True)`: a function in a process of its own, which can be killed where a thread only can be left.

It prints where it likes, and its lines go to the runner's log; what it returns goes through a file.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from pathlib import Path
from typing import Any

from ..authoring.operation import executing
from ..authoring.step import Step
from ..core.encoding import Limits, Plain, decode, dumps, encode, parse
from ..core.receipts import Failure
from ..core.redaction import Redactor
from ..errors import HermesError, InvalidInput
from ..loader import Loader
from ..registry import parse as parse_registry
from .about import about
from .failures import failure_of, storable
from .jobs import Executed, Job
from .processes import Outcome, run_command
from .pythons import python

log = logging.getLogger("hermes_workflows.runner")

# Nothing becomes a blob on the way between two processes; the receipt's own limits come after it.
_WHOLE = Limits(string_bytes=sys.maxsize, receipt_bytes=sys.maxsize, blob_bytes=sys.maxsize)
_NO_ANSWER = b""


class StepProcessDied(HermesError):
    """The process of a step ended without an answer."""

    code = "step_process_died"


def run_step(job: Job, definition: Step[..., Any], arguments: Plain) -> Plain | Executed:
    """What the function returns, or how it failed. Raises TimeoutError, StepProcessDied and what stopping raises."""
    with tempfile.TemporaryDirectory(prefix="hermes-step-") as folder:
        answer = Path(folder) / "answer.json"
        told = {
            "root": str(job.surroundings.root),
            "workflow": job.workflow,
            "step": definition.ref,
            "arguments": encode(arguments, {}, limits=_WHOLE),
            "operation_id": job.operation_id,
            "answer": str(answer),
        }
        environment = job.surroundings.environment
        command = python(__name__, told, cwd=Path.cwd(), environment=environment, timeout=definition.timeout)
        outcome = run_command(
            command,
            stop=job.stop,
            redactor=job.surroundings.redactor,
            now=job.surroundings.clock.now,
            on_line=lambda stream, line: _heard(job, stream, line),
        )
        data = answer.read_bytes() if outcome.ended == "exited" and answer.exists() else _NO_ANSWER
    return _answer(data) if data else _no_answer(definition, outcome)


def _heard(job: Job, stream: str, line: str) -> None:
    job.last.heard(stream, line)
    # A thread of its own reads each stream.
    with about(job.run_id, job.call.key):
        log.info("%s", line)


def _answer(data: bytes) -> Plain | Executed:
    told: Any = decode(parse(data, max_bytes=sys.maxsize), _no_blob)
    if told["failure"] is None:
        return told["output"]  # type: ignore[no-any-return]
    return Executed("failed", error=Failure(**told["failure"]), retryable=told["retryable"])


def _no_answer(definition: Step[..., Any], outcome: Outcome) -> Plain:
    if outcome.ended == "timed_out":
        raise TimeoutError(f"{definition.ref} ran over its {definition.timeout:g} s and was killed")
    if outcome.ended == "exited":
        how = f"signal {outcome.signal}" if outcome.signal is not None else f"exit status {outcome.exit_code}"
        said = outcome.stderr.whole.decode(errors="replace").strip().splitlines()
        last = f"; the last it said: {said[-1]}" if said else ""
        raise StepProcessDied(f"the process of {definition.ref} ended with {how} and without a result{last}")
    raise StepProcessDied(f"the process of {definition.ref}: {outcome.reason or outcome.ended}")


def _no_blob(sha256: str) -> bytes:
    raise AssertionError("nothing becomes a blob between two processes")


# -- in the process of the step ----------------------------------------------------------------------------------


def main(told: Any) -> None:
    answer = _execute(told)
    Path(told["answer"]).write_bytes(dumps(encode(answer, {}, limits=_WHOLE)))


def _execute(told: Any) -> dict[str, Plain]:
    try:
        definition = _step_of(told)
        arguments: Any = decode(told["arguments"], _no_blob)
        work = definition.bind(arguments)
        with executing(told["operation_id"]):
            value = asyncio.run(work()) if definition.is_async else work()
        return {"output": definition.output_codec.to_plain(value), "failure": None}
    except BaseException as error:
        failure = storable(failure_of(error, Redactor()))
        assert failure is not None
        said: Plain = {"type": failure.type, "message": failure.message}
        return {"failure": said, "retryable": not isinstance(error, InvalidInput)}


def _step_of(told: Any) -> Step[..., Any]:
    """The step, found where its workflow's code has it."""
    root = Path(told["root"])
    Loader(parse_registry("{}", root / ".hermes" / "workflows.registry.json")).load(told["workflow"])
    module, _, qualname = told["step"].partition(":")
    found: Any = sys.modules[module]
    for name in qualname.split("."):
        found = getattr(found, name, None)
    if not isinstance(found, Step):
        raise InvalidInput(f"{told['step']} is not at the top of its module", hint="a step in a process must be")
    return found
