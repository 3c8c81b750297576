"""Executors: one a kind of call. Each gets a job and says how the work ended; none of them writes anything.

Adding a kind of call means adding one function to `EXECUTORS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from ..authoring.bash import BashOptions, Secret
from ..authoring.operation import VARIABLE
from ..core.encoding import Plain
from ..core.receipts import Failure
from ..errors import InvalidInput
from .agent_calls import execute_agent, from_environment
from .artifacts import execute_artifact
from .environment import clean_environment
from .failures import failure_of
from .jobs import Executed, Job, Report
from .processes import Command, Outcome, Stream, run_command
from .steps import execute_step


def execute(job: Job, report: Report) -> tuple[Executed, datetime, datetime]:
    """Run a job to its end; never raises. Returns when it started and finished, too.

    `report` is called for an attempt that failed and is followed by another.
    """
    clock = job.surroundings.clock
    started = clock.now()
    try:
        executed = EXECUTORS[job.call.kind](job, report)
    except BaseException as error:
        # A step that calls sys.exit() must not end the thread that other calls are waiting for.
        # What does not fit its type will not fit the next time either.
        failure = failure_of(error, job.surroundings.redactor)
        executed = Executed("failed", error=failure, retryable=not isinstance(error, InvalidInput))
    if job.stop.is_set() and executed.status == "failed":
        executed = Executed("cancelled", executed.output, _cancelled(job), executed.usage, executed.redactions)
    return executed, started, clock.now()


def _cancelled(job: Job) -> Failure:
    return Failure(type="Cancelled", message=f"stopped while it ran: {job.stop.reason or 'withdrawn'}")


# -- bash --------------------------------------------------------------------------------------------------------


def _execute_bash(job: Job, report: Report) -> Executed:
    options: BashOptions = job.call.spec.options
    around = job.surroundings
    secrets = from_environment([value.name for value in options.env.values() if isinstance(value, Secret)], around)
    redactor = around.redactor.extended(
        {**secrets, **{f"redact-{number}": value for number, value in enumerate(options.redact, 1)}}
    )
    given = {name: secrets[value.name] if isinstance(value, Secret) else value for name, value in options.env.items()}
    command = Command(
        argv=options.argv,
        cwd=around.root / options.cwd,
        env=clean_environment(around.environment, {VARIABLE: job.operation_id, **given}, around.rules),
        timeout=options.timeout,
    )
    outcome = run_command(command, stop=job.stop, redactor=redactor, now=around.clock.now, on_line=job.last.heard)
    redactions = outcome.stdout.redactions + outcome.stderr.redactions
    output = _bash_output(outcome)
    if outcome.ended == "exited":
        return Executed("completed", output, redactions=redactions)
    status = "cancelled" if outcome.ended == "stopped" else "failed"
    return Executed(status, output, _bash_failure(job, outcome, options), redactions=redactions)


def _bash_output(outcome: Outcome) -> Plain:
    exit_code = outcome.exit_code
    if exit_code is None and outcome.signal is not None:
        exit_code = 128 + outcome.signal  # what a shell's $? says of a command that a signal ended
    output: dict[str, Plain] = {"exit_code": exit_code}
    for name, stream in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        output.update(_stream_output(name, stream))
    return output


def _stream_output(name: str, stream: Stream) -> dict[str, Plain]:
    whole = stream.whole
    try:
        output: dict[str, Plain] = {name: whole.decode()}
    except UnicodeDecodeError:
        output = {name: whole.decode(errors="replace"), f"{name}_bytes": whole}
    if stream.total_bytes > len(stream.head) + len(stream.tail):
        output["truncated"] = True
        output[f"{name}_total_bytes"] = stream.total_bytes
        output[f"{name}_sha256"] = stream.sha256
    return output


def _bash_failure(job: Job, outcome: Outcome, options: BashOptions) -> Failure:
    if outcome.ended == "stopped":
        return _cancelled(job)
    if outcome.ended == "timed_out":
        return Failure(type="Timeout", message=f"ran over its {options.timeout:g} s and was killed, with its children")
    reason = job.surroundings.redactor.text(outcome.reason or "unknown reason")
    return Failure(type="NotStarted", message=f"could not be started: {reason}")


EXECUTORS: Mapping[str, Callable[[Job, Report], Executed]] = {
    "step": execute_step,
    "bash": _execute_bash,
    "agent": execute_agent,
    "artifact": execute_artifact,
}
