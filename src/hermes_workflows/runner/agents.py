"""Asks an agent: a command that reads a JSON request on its standard input and prints its answer.

    hermes.agent-request/1 --> [command] --> hermes.agent-response/1, or just the value

An answer counts when the command exited with status 0 in time, reported no error, and exactly one value in what it
printed fits the type. Otherwise the attempt failed, whatever was printed: an agent that has to be killed after it
answered did not finish its work, and nobody knows what it would have said next.
When only the value was wrong, the agent is asked again, with its answer and the numbered reasons.
"""

from __future__ import annotations

import base64
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from ..core.encoding import Plain
from ..core.receipts import Failure, Usage
from ..core.redaction import Redactor
from ..core.values import TypeCodec
from ..errors import InvalidInput
from .candidates import NoAnswer, Printed, choose, choose_from, find_response, readable
from .processes import Command, Outcome, StopSignal, run_command
from .protocol import AgentRequest, AgentResponse, Previous

__all__ = ["AgentAttempt", "AgentCommand", "AgentOutcome", "AgentRequest", "AgentResponse", "run_agent"]

ANSWER_BYTES = 8 << 20
"""How much an agent may print; the transcript keeps less."""

_TRANSCRIPT_BYTES = 65536
_SHOWN = 500
_REPEATED = 16 * 1024

Status = Literal["completed", "failed", "cancelled"]


@dataclass(frozen=True)
class AgentCommand:
    """The configured agent. `timeout` is in seconds, for each attempt."""

    argv: tuple[str, ...]
    timeout: float = 1800.0


@dataclass(frozen=True)
class AgentAttempt:
    """One question and how it ended. `transcript` can be stored as it is; `errors` are the reasons sent back."""

    number: int
    status: Status
    started_at: datetime
    finished_at: datetime
    duration_seconds: float
    output: Plain = None
    failure: Failure | None = None
    errors: tuple[str, ...] = ()
    usage: Usage | None = None
    transcript: Mapping[str, Any] = field(default_factory=dict)
    redactions: Counter[str] = field(default_factory=Counter)
    answer: str = field(default="", repr=False)

    @property
    def repairable(self) -> bool:
        """Whether asking again, with the reasons, may help."""
        return bool(self.errors)


@dataclass(frozen=True)
class AgentOutcome:
    """How the call ended. `usage` is the sum over all attempts that reported any; `error` that of the last one."""

    status: Status
    output: Plain
    error: Failure | None
    usage: Usage | None
    attempts: tuple[AgentAttempt, ...]


# The arguments stand for ten different things that only the caller knows; a bag for them would hide that.
def run_agent(  # noqa: PLR0913
    request: AgentRequest,
    agent: AgentCommand,
    codec: TypeCodec[Any],
    *,
    stop: StopSignal,
    redactor: Redactor,
    env: Mapping[str, str],
    cwd: Path,
    now: Callable[[], datetime],
    on_attempt: Callable[[AgentAttempt], None],
    attempts: int = 3,
) -> AgentOutcome:
    """Asks until there is an answer of the wanted type, at most `attempts` times; synchronous.

    `on_attempt` gets every failed attempt that is followed by another one, before that one starts;
    the last attempt is in the outcome. Raises nothing of its own.
    """
    asking = _Asking(agent, codec, stop, redactor, env, cwd, now)
    made: list[AgentAttempt] = []
    asked = request
    while True:
        attempt = asking.ask(asked)
        made.append(attempt)
        if not attempt.repairable or len(made) >= attempts:
            break
        on_attempt(attempt)
        asked = _again(request, attempt, asked.attempt + 1)
    usages = [attempt.usage for attempt in made if attempt.usage]
    return AgentOutcome(
        status=attempt.status,
        output=attempt.output,
        error=attempt.failure,
        usage=sum(usages[1:], usages[0]) if usages else None,
        attempts=tuple(made),
    )


def _again(request: AgentRequest, refused: AgentAttempt, number: int) -> AgentRequest:
    """The same request, with what was wrong about the last answer in its prompt and in `previous`."""
    answer = refused.answer[:_REPEATED]
    reasons = "\n".join(f"{n}. {reason}" for n, reason in enumerate(refused.errors, 1))
    prompt = (
        f"{request.prompt}\n\n"
        f"Your previous answer was refused:\n{reasons}\n\n"
        f"It was:\n{answer}\n\n"
        "Answer again, with one JSON value and nothing else. It must match this JSON Schema:\n"
        f"{json.dumps(request.returns, ensure_ascii=False)}\n"
    )
    previous = Previous(output=answer, errors=refused.errors)
    return request.model_copy(update={"attempt": number, "prompt": prompt, "previous": previous})


@dataclass(frozen=True)
class _Asking:
    """What all attempts of one call share."""

    agent: AgentCommand
    codec: TypeCodec[Any]
    stop: StopSignal
    redactor: Redactor
    env: Mapping[str, str]
    cwd: Path
    now: Callable[[], datetime]

    def ask(self, request: AgentRequest) -> AgentAttempt:
        begin, started_at = time.monotonic(), self.now()
        command = Command(
            argv=self.agent.argv,
            cwd=self.cwd,
            env=self.env,
            stdin=self._line(request),
            timeout=self.agent.timeout,
            keep_bytes=ANSWER_BYTES,
        )
        outcome = run_command(command, stop=self.stop, redactor=self.redactor, now=self.now)
        verdict = self._judge(outcome)
        return AgentAttempt(
            number=request.attempt,
            status=verdict.status,
            started_at=started_at,
            finished_at=self.now(),
            duration_seconds=time.monotonic() - begin,
            output=verdict.output,
            failure=verdict.failure,
            errors=verdict.errors,
            usage=verdict.usage,
            transcript=_transcript(outcome),
            redactions=outcome.stdout.redactions + outcome.stderr.redactions + verdict.redactions,
            answer=readable(outcome.stdout.trimmed(_REPEATED).whole) if verdict.errors else "",
        )

    def _line(self, request: AgentRequest) -> bytes:
        # One line, so that an agent may read a line as well as everything.
        plain = self.redactor.plain(request.model_dump(by_alias=True))
        return json.dumps(plain, ensure_ascii=False, default=_bytes).encode("utf-8", "replace") + b"\n"

    def _judge(self, outcome: Outcome) -> _Verdict:
        printed = Printed.of(readable(outcome.stdout.head + outcome.stdout.tail))
        ending = _bad_ending(outcome)
        response, unreadable = _response(printed)
        usage = response.usage.recorded() if response and response.usage else None
        if outcome.ended == "stopped":
            return _Verdict("cancelled", failure=ending, usage=usage)
        if response and response.error:
            kind, said = (ending.type, ending.message) if ending else ("AgentError", "the agent reports an error")
            return _Verdict("failed", failure=_failure(kind, f"{said}: {response.error}", outcome), usage=usage)
        if ending:
            return _Verdict("failed", failure=ending, usage=usage)
        if unreadable:
            return self._refused(outcome, unreadable)
        try:
            counts: Counter[str] = Counter()
            output = choose_from(response, self._validate) if response else choose(printed, self._validate)
            return _Verdict("completed", output=self._clean(output, counts), usage=usage, redactions=counts)
        except NoAnswer as refused:
            return self._refused(outcome, refused, usage)

    def _validate(self, value: Plain) -> Plain:
        return self.codec.to_plain(self.codec.from_plain(value))

    def _clean(self, output: Plain, counts: Counter[str]) -> Plain:
        # The text is redacted already; what it said in escapes shows only in the value.
        clean = self.redactor.plain(output, counts)
        if not counts:
            return output
        try:
            return self._validate(clean)
        except InvalidInput as error:
            raise NoAnswer(getattr(error, "errors", None) or [("", error.message)]) from None

    def _refused(self, outcome: Outcome, refused: NoAnswer, usage: Usage | None = None) -> _Verdict:
        reasons = [f"{path or '/'}: {reason}" for path, reason in refused.errors]
        names = ", ".join(sorted(outcome.stdout.redactions))
        if names:
            reasons.append(f"/: secrets were replaced in the answer before it was read ({names}); leave them out")
        errors = tuple(self.redactor.text(reason) for reason in reasons)
        kind = "AmbiguousAnswer" if refused.ambiguous else "InvalidAnswer"
        message = f"the answer is no {self.codec.type_name}: {'; '.join(errors[:5])}"
        return _Verdict("failed", failure=_failure(kind, message, outcome, errors), usage=usage, errors=errors)


@dataclass(frozen=True)
class _Verdict:
    status: Status
    output: Plain = None
    failure: Failure | None = None
    usage: Usage | None = None
    errors: tuple[str, ...] = ()
    redactions: Counter[str] = field(default_factory=Counter)


def _response(printed: Printed) -> tuple[AgentResponse | None, NoAnswer | None]:
    try:
        return find_response(printed), None
    except NoAnswer as unreadable:
        return None, unreadable


def _bad_ending(outcome: Outcome) -> Failure | None:
    """Why an attempt has failed before anybody looks for the answer."""
    if outcome.ended == "not_started":
        return _failure("NotStarted", f"the agent could not be started: {outcome.reason}", outcome)
    if outcome.ended == "stopped":
        return _failure("Cancelled", f"stopped while the agent worked: {outcome.reason}", outcome)
    if outcome.ended == "timed_out":
        return _failure("Timeout", f"the agent {outcome.reason} and was killed", outcome)
    if outcome.exit_code != 0:
        how = (
            f"exited with status {outcome.exit_code}" if outcome.signal is None else f"died of signal {outcome.signal}"
        )
        last = readable(outcome.stderr.whole).strip().splitlines()[-1:]
        return _failure("AgentExit", ": ".join([f"the agent {how}", *last]), outcome)
    if outcome.stdout.dropped_bytes:
        size = outcome.stdout.total_bytes
        return _failure("TooLong", f"the agent printed {size:,} bytes, more than {2 * ANSWER_BYTES:,}", outcome)
    if not outcome.stdout.head.strip():
        hint = "the agent must print its answer on standard output (and its talk on standard error)"
        return _failure("EmptyAnswer", f"the agent exited with status 0 and printed nothing; {hint}", outcome)
    return None


def _failure(kind: str, message: str, outcome: Outcome, errors: Iterable[str] = ()) -> Failure:
    details: dict[str, Any] = {
        name: readable(stream.head[: 4 * _SHOWN])[:_SHOWN]
        for name, stream in (("stdout", outcome.stdout), ("stderr", outcome.stderr))
        if stream.head
    }
    if errors := list(errors):
        details["errors"] = errors
    return Failure(type=kind, message=" ".join(message.split())[: 2 * _SHOWN], details=details or None)


def _transcript(outcome: Outcome) -> dict[str, Any]:
    transcript: dict[str, Any] = {"ended": outcome.ended, "exit_code": outcome.exit_code}
    for name, stream in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        transcript[name] = stream.trimmed(_TRANSCRIPT_BYTES).whole.decode("utf-8", "replace")
        transcript[f"{name}_bytes"] = stream.total_bytes
        transcript[f"{name}_sha256"] = stream.sha256
    return transcript


def _bytes(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} is no JSON")
