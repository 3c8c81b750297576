"""In the place of executors: agents and commands that a test has scripted.

An agent's answer is held to its type as a real one's is: one that does not fit is asked for again, with the reasons.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from ..authoring.agent import AgentOptions
from ..authoring.bash import BashOptions, BashResult
from ..core.calls import Call
from ..core.encoding import Plain
from ..core.receipts import Failure
from ..core.values import TypeCodec, ValueMismatch, plain
from ..errors import InvalidInput
from ..runner.agents import AgentAttempt
from ..runner.failures import failure_of
from ..runner.jobs import Executed, Job
from ..runner.protocol import AgentRequest, Previous
from .failures import HIDDEN, Unscripted
from .scripts import CommandRequest, Reply, Scripts, without_number

__tracebackhide__ = HIDDEN

_ATTEMPTS = 3


@dataclass(frozen=True)
class Played:
    """How a scripted call ends, `delay` seconds after it was claimed; `attempts` are the answers refused before."""

    executed: Executed
    delay: float = 0.0
    attempts: tuple[AgentAttempt, ...] = ()


@dataclass(frozen=True)
class StandIns:
    agents: Scripts
    commands: Scripts

    def play(self, job: Job) -> Played | None:
        """The scripted end of a call; None when it is to be executed for real.

        Raises Unscripted for an agent that the test does not know.
        """
        part = _PARTS.get(job.call.kind)
        return part(self, job) if part else None

    def _play_agent(self, job: Job) -> Played | None:
        call, options = job.call, job.call.spec.options
        assert isinstance(options, AgentOptions)
        entry = self.agents.find(call.key, str(call.request["name"]), without_number(call.key))
        if options.mocked and (entry is None or "*" in entry):
            return None
        if entry is None:
            raise Unscripted(
                f"agent call {call.key} ({_short(call.request['prompt'])}) has no answer: "
                f"give run_workflow agents={{{call.request['name']!r}: …}}"
            )
        return _Asking(self.agents, entry, job, options).to_the_end()

    def _play_command(self, job: Job) -> Played | None:
        call, options = job.call, job.call.spec.options
        assert isinstance(options, BashOptions)
        command: Any = call.request["command"]
        text = command if isinstance(command, str) else shlex.join(command)
        entry = self.commands.find(call.key, call.spec.name, text)
        if entry is None:
            return None
        reply = self.commands.ask(entry, _command_request(job, command, options))
        if reply.delay > options.timeout:
            return Played(_timed_out(options.timeout), options.timeout)
        return Played(_command_ended(reply, job, options), reply.delay)


_PARTS: dict[str, Callable[[StandIns, Job], Played | None]] = {
    "agent": StandIns._play_agent,
    "bash": StandIns._play_command,
}


# -- agents ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Asking:
    """One call to a scripted agent, over all its attempts."""

    scripts: Scripts
    entry: str
    job: Job
    options: AgentOptions

    def to_the_end(self) -> Played:
        limit = self.options.retry.attempts if self.options.retry else _ATTEMPTS
        refused: list[AgentAttempt] = []
        timeout = inf if self.options.timeout is None else self.options.timeout
        delay, previous = 0.0, None
        while True:
            reply = self.scripts.ask(self.entry, self._request(len(refused), previous))
            delay += min(reply.delay, timeout)
            ended, reasons = self._judge(reply, timeout)
            if not reasons or len(refused) + 1 >= limit:
                return Played(ended, delay, tuple(refused))
            refused.append(self._attempt(len(refused), ended, reasons))
            previous = Previous(output=_shown(reply.value), errors=reasons)

    def _judge(self, reply: Reply, timeout: float) -> tuple[Executed, tuple[str, ...]]:
        """How an attempt ended, and the reasons when asking again may help."""
        if reply.delay > timeout:
            return _timed_out(timeout), ()
        if reply.error is not None:
            return _failed(reply.error, self.job), ()
        try:
            return self._completed(reply.value), ()
        except InvalidInput as error:
            reasons = _reasons(error)
        message = f"the answer is no {self.options.codec.type_name}: {'; '.join(reasons)}"
        failure = Failure(type="InvalidAnswer", message=message)
        return Executed("failed", error=failure, mock=True, retryable=False), reasons

    def _request(self, refused: int, previous: Previous | None) -> AgentRequest:
        call = self.job.call
        request = call.request
        return AgentRequest(
            run=self.job.run_id,
            key=call.key,
            operation_id=self.job.operation_id,
            attempt=self.job.attempt + refused,
            name=str(request["name"]),
            prompt=str(request["prompt"]),
            input=request["input"],
            model=None if request["model"] is None else str(request["model"]),
            returns=self.options.codec.json_schema,
            previous=previous,
        )

    def _completed(self, value: Any) -> Executed:
        output = self.job.surroundings.redactor.plain(_typed(value, self.options.codec))
        return Executed("completed", output, mock=True)

    def _attempt(self, refused: int, ended: Executed, reasons: tuple[str, ...]) -> AgentAttempt:
        now = self.job.surroundings.clock.now()
        return AgentAttempt(
            number=self.job.attempt + refused,
            status="failed",
            started_at=now,
            finished_at=now,
            duration_seconds=0.0,
            failure=ended.error,
            errors=reasons,
        )


def _typed(value: Any, codec: TypeCodec[Any]) -> Plain:
    """A value of the declared type, or its JSON form."""
    try:
        return codec.to_plain(value)
    except InvalidInput:
        return codec.to_plain(codec.from_plain(plain(value)))


def _reasons(error: InvalidInput) -> tuple[str, ...]:
    if isinstance(error, ValueMismatch):
        return tuple(f"{path or '/'}: {reason}" for path, reason in error.errors)
    return (error.message,)


def _shown(value: Any) -> str:
    try:
        return json.dumps(plain(value), ensure_ascii=False, default=repr)
    except InvalidInput:
        return repr(value)


def _short(text: object) -> str:
    words = " ".join(str(text).split())
    return words if len(words) <= 60 else f"{words[:59]}…"


# -- commands ----------------------------------------------------------------------------------------------------


def _command_request(job: Job, command: Any, options: BashOptions) -> CommandRequest:
    call: Call[Any] = job.call
    return CommandRequest(
        run=job.run_id,
        key=call.key,
        name=call.spec.name,
        command=command,
        cwd=options.cwd,
        env=dict(options.env),
        timeout=options.timeout,
    )


def _command_ended(reply: Reply, job: Job, options: BashOptions) -> Executed:
    if reply.error is not None:
        return replace(_failed(reply.error, job), retryable=True)
    result = _as_result(reply.value)
    output: dict[str, Plain] = {"exit_code": result.exit_code}
    for name, text, data in (
        ("stdout", result.stdout, result.stdout_bytes),
        ("stderr", result.stderr, result.stderr_bytes),
    ):
        output[name] = text
        if data != text.encode():
            output[f"{name}_bytes"] = data
    hidden = {f"redact-{number}": value for number, value in enumerate(options.redact, 1)}
    return Executed("completed", job.surroundings.redactor.extended(hidden).plain(output), mock=True)


def _as_result(value: Any) -> BashResult:
    """Text is what a command printed, a number its exit code, None a success without a word."""
    if isinstance(value, BashResult):
        return value
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return BashResult(value or 0, "", "", b"", b"")
    if isinstance(value, str):
        return BashResult(0, value, "", value.encode(), b"")
    raise Unscripted(
        f"commands: {value!r} is nothing that a command gives back; use its output as text, an exit code, a BashResult"
    )


def _failed(error: Exception, job: Job) -> Executed:
    return Executed("failed", error=failure_of(error, job.surroundings.redactor), mock=True, retryable=False)


def _timed_out(seconds: float) -> Executed:
    failure = Failure(type="Timeout", message=f"ran over its {seconds:g} s")
    return Executed("failed", error=failure, mock=True, retryable=False)
