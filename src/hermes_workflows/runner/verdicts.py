"""Whether an attempt counts: one place for all presets.

An answer counts when the command exited with status 0 in time, reported no error, and exactly one value in what it
said fits the type. Otherwise the attempt failed, whatever was printed: an agent that has to be killed after it
answered did not finish its work, and nobody knows what it would have said next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from ..core.encoding import Plain
from ..core.receipts import Failure
from ..core.redaction import Redactor
from ..core.values import TypeCodec
from ..errors import InvalidInput
from .candidates import NoAnswer, choose, choose_from, readable
from .presets.base import Said
from .processes import Outcome
from .protocol import AgentResponse

Status = Literal["completed", "failed", "cancelled"]

ANSWER_BYTES = 8 << 20
"""How much an agent may print at each end; the transcript keeps less."""

SHOWN = 500
_EMPTY = "the agent must print its answer on standard output (and its talk on standard error)"


@dataclass(frozen=True)
class Verdict:
    """How an attempt ended. `errors` are the reasons to send back with the next question; none if that cannot help."""

    status: Status
    output: Plain = None
    failure: Failure | None = None
    errors: tuple[str, ...] = ()
    redactions: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Judge:
    """`outcome` and `said` are None for an answer that no command gave."""

    codec: TypeCodec[Any]
    redactor: Redactor
    outcome: Outcome | None = None
    said: Said | None = None

    def verdict(self, response: AgentResponse | None, unreadable: NoAnswer | None = None) -> Verdict:
        """`response` is what the agent said in a form of its own, `unreadable` why that could not be read."""
        ending = _bad_ending(self.outcome) if self.outcome else None
        if self.outcome and self.outcome.ended == "stopped":
            return Verdict("cancelled", failure=ending)
        if response and response.error:
            kind, said = (ending.type, ending.message) if ending else ("AgentError", "the agent reports an error")
            return Verdict("failed", failure=self._failure(kind, f"{said}: {response.error}"))
        if ending:
            return Verdict("failed", failure=ending)
        if unreadable:
            return self._refused(unreadable)
        if response is None and self.outcome and not self.outcome.stdout.head.strip():
            said = f"the agent exited with status 0 and printed nothing; {_EMPTY}"
            return Verdict("failed", failure=self._failure("EmptyAnswer", said))
        return self._chosen(response)

    def _chosen(self, response: AgentResponse | None) -> Verdict:
        try:
            if response is not None:
                output = choose_from(response, self._validate)
            else:
                assert self.said is not None  # without a command there is always a response
                output = choose(self.said.printed, self._validate)
            counts: Counter[str] = Counter()
            return Verdict("completed", output=self._clean(output, counts), redactions=counts)
        except NoAnswer as refused:
            return self._refused(refused)

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

    def _refused(self, refused: NoAnswer) -> Verdict:
        reasons = [f"{path or '/'}: {reason}" for path, reason in refused.errors]
        names = ", ".join(sorted(self.outcome.stdout.redactions)) if self.outcome else ""
        if names:
            reasons.append(f"/: secrets were replaced in the answer before it was read ({names}); leave them out")
        errors = tuple(self.redactor.text(reason) for reason in reasons)
        kind = "AmbiguousAnswer" if refused.ambiguous else "InvalidAnswer"
        message = f"the answer is no {self.codec.type_name}: {'; '.join(errors[:5])}"
        return Verdict("failed", failure=self._failure(kind, message, errors), errors=errors)

    def _failure(self, kind: str, message: str, errors: Iterable[str] = ()) -> Failure:
        return failure(kind, message, self.outcome, errors)


def failure(kind: str, message: str, outcome: Outcome | None, errors: Iterable[str] = ()) -> Failure:
    """A failure of one attempt, with the first characters of both streams."""
    streams = (("stdout", outcome.stdout), ("stderr", outcome.stderr)) if outcome else ()
    details: dict[str, Any] = {
        name: readable(stream.head[: 4 * SHOWN])[:SHOWN] for name, stream in streams if stream.head
    }
    if errors := list(errors):
        details["errors"] = errors
    return Failure(type=kind, message=" ".join(message.split())[: 2 * SHOWN], details=details or None)


def _bad_ending(outcome: Outcome) -> Failure | None:
    """Why an attempt has failed before anybody looks for the answer."""
    if outcome.ended == "not_started":
        return failure("NotStarted", f"the agent could not be started: {outcome.reason}", outcome)
    if outcome.ended == "stopped":
        return failure("Cancelled", f"stopped while the agent worked: {outcome.reason}", outcome)
    if outcome.ended == "timed_out":
        return failure("Timeout", f"the agent {outcome.reason} and was killed", outcome)
    if outcome.exit_code != 0:
        how = (
            f"exited with status {outcome.exit_code}" if outcome.signal is None else f"died of signal {outcome.signal}"
        )
        last = readable(outcome.stderr.whole).strip().splitlines()[-1:]
        return failure("AgentExit", ": ".join([f"the agent {how}", *last]), outcome)
    if outcome.stdout.dropped_bytes:
        size = outcome.stdout.total_bytes
        return failure("TooLong", f"the agent printed {size:,} bytes, more than {2 * ANSWER_BYTES:,}", outcome)
    return None
