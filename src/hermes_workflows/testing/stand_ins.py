"""In the place of executors: agents and commands that a test has scripted."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from ..authoring.agent import AgentOptions
from ..authoring.bash import BashOptions, BashResult
from ..core.calls import Call
from ..core.encoding import Plain
from ..core.receipts import Failure
from ..core.values import TypeCodec, plain
from ..errors import InvalidInput
from ..runner.agents import AgentAttempt
from ..runner.executors import execute
from ..runner.failures import failure_of
from ..runner.jobs import Executed, Job
from ..runner.presets.base import MODEL, TOOLS, Ask, Said
from ..runner.protocol import AgentResponse
from ..settings import Agents, AgentSettings
from .failures import HIDDEN, Unscripted
from .scripts import CommandRequest, Reply, Scripts, without_number

__tracebackhide__ = HIDDEN


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

        Raises Unscripted for an agent that the test does not know, and whatever assertion a script fails.
        """
        part = _PARTS.get(job.call.kind)
        return part(self, job) if part else None

    def _play_agent(self, job: Job) -> Played | None:
        call, options = job.call, job.call.spec.options
        assert isinstance(options, AgentOptions)
        name = str(call.request["name"])
        entry = self.agents.find(call.key, name, without_number(call.key))
        if options.mocked and (entry is None or "*" in entry):
            return None
        if entry is None:
            prompt = f" ({_short(call.request['prompt'])})" if call.request["prompt"] else ""
            raise Unscripted(f"agent call {call.key}{prompt} has no answer: give run_workflow agents={{{name!r}: …}}")
        return ScriptedAgent(self.agents, entry, options.codec).answer(job)

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


@dataclass
class ScriptedAgent:
    """A kind of agent program that is no program, for one call: all else happens as with any other.

    So what it says is judged, asked for again, counted against the budget and tried again by the same code.
    """

    scripts: Scripts
    entry: str
    codec: TypeCodec[Any]
    delay: float = 0.0
    failed: AssertionError | None = None

    install = ""

    def answer(self, job: Job) -> Played:
        attempts: list[AgentAttempt] = []
        around = replace(job.surroundings, agents=_SCRIPTED, presets={_PRESET: self})
        executed, _, _ = execute(replace(job, call=_unmocked(job.call), surroundings=around), attempts.append)
        if self.failed is not None:
            raise self.failed
        return Played(replace(executed, mock=True), self.delay, tuple(attempts))

    def enforces(self, ask: Ask) -> frozenset[str]:
        return frozenset({MODEL, TOOLS})

    def prepare(self, ask: Ask) -> AgentResponse:
        try:
            reply = self.scripts.ask(self.entry, ask.request)
        except AssertionError as failed:
            self.failed = failed
            raise
        self.delay += min(reply.delay, ask.settings.timeout)
        if reply.delay > ask.settings.timeout:
            return AgentResponse(error=f"it ran over its {ask.settings.timeout:g} s")
        if reply.error is not None:
            return AgentResponse(error=f"{type(reply.error).__name__}: {reply.error}")
        return reply.value if isinstance(reply.value, AgentResponse) else AgentResponse(output=self._plain(reply.value))

    def read(self, ask: Ask, said: Said) -> AgentResponse | None:
        raise NotImplementedError("a scripted agent starts nothing that could say something")

    def _plain(self, value: Any) -> Plain:
        """A value of the declared type, or its JSON form, whether it fits or not."""
        try:
            return self.codec.to_plain(value)
        except InvalidInput:
            return plain(value)


def _unmocked(call: Call[Any]) -> Call[Any]:
    """The call as it would be executed without its `mock_output`."""
    bare = copy(call)
    bare.spec = call.spec._replace(options=call.spec.options.unmocked())
    return bare


_PRESET = "scripted"
_SCRIPTED = Agents({"*": AgentSettings(_PRESET)}, {})


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
