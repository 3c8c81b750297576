"""Asks an agent, attempt by attempt, until there is an answer of the wanted type.

    agent-request/1 --> preset --> [command] --> preset --> judge --> done, or asked again with the reasons

What differs between agent programs is in the presets, whether an attempt counts in `verdicts.py`.
When only the value was wrong, the agent is asked again, with its answer and the numbered reasons.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..core.encoding import Plain
from ..core.receipts import Failure, Usage
from ..core.redaction import Redactor
from ..core.values import TypeCodec
from ..settings import AgentSettings, Prices
from .candidates import NoAnswer, readable
from .presets import PRESETS
from .presets.base import Ask, Invocation, Preset, Said, check_enforced
from .presets.prompts import as_json, render, repair
from .processes import Command, OnLine, Outcome, StopSignal, run_command
from .protocol import AgentRequest, AgentResponse, AgentUsage, Previous
from .verdicts import ANSWER_BYTES, Judge, Status, Verdict

__all__ = ["AgentAttempt", "AgentOutcome", "AgentRequest", "AgentResponse", "World", "run_agent"]

_TRANSCRIPT_BYTES = 65536
_REPEATED = 16 * 1024
_MILLION = 1_000_000


@dataclass(frozen=True)
class World:
    """Where and with what agents run. `env` is the whole environment; `recorded` is what a replay answers from.

    `presets` are the kinds of agents there are; `on_line` hears what the agent's program prints.
    """

    cwd: Path
    env: Mapping[str, str]
    redactor: Redactor
    stop: StopSignal
    now: Callable[[], datetime]
    recorded: tuple[Mapping[str, Any], ...] = ()
    presets: Mapping[str, Preset] = field(default_factory=lambda: PRESETS)
    on_line: OnLine | None = None


@dataclass(frozen=True)
class AgentAttempt:
    """One question and how it ended. `transcript` can be stored as it is; `errors` are the reasons sent back.

    `usage` is what the agent reported, or what its tokens cost by the configured prices; `cost` says whether that is
    known. `model` is the one that answered, `session` what its program calls the conversation.
    """

    number: int
    status: Status
    started_at: datetime
    finished_at: datetime
    duration_seconds: float
    output: Plain = None
    failure: Failure | None = None
    errors: tuple[str, ...] = ()
    usage: Usage | None = None
    cost: float | None = None
    model: str | None = None
    session: str | None = None
    transcript: Mapping[str, Any] = field(default_factory=dict)
    redactions: Counter[str] = field(default_factory=Counter)
    answer: str = field(default="", repr=False)

    @property
    def repairable(self) -> bool:
        """Whether asking again, with the reasons, may help."""
        return bool(self.errors)

    def told(self) -> dict[str, Any]:
        """A failed attempt as the error of its call lists it."""
        failed = self.failure.model_dump(exclude_none=True) if self.failure else {}
        used = {"usage": self.usage.model_dump()} if self.usage else {}
        return {"attempt": self.number, **failed, **used}


@dataclass(frozen=True)
class AgentOutcome:
    """How the call ended. `usage` is the sum over all attempts that reported any; `error` that of the last one.

    `covered` says whether the budget, if there is one, covers another attempt.
    """

    status: Status
    output: Plain
    error: Failure | None
    usage: Usage | None
    attempts: tuple[AgentAttempt, ...]
    covered: bool = True


def run_agent(
    request: AgentRequest,
    settings: AgentSettings,
    codec: TypeCodec[Any],
    world: World,
    *,
    on_attempt: Callable[[AgentAttempt], None],
    attempts: int = 3,
    budget: float | None = None,
    spent: float = 0.0,
) -> AgentOutcome:
    """Asks until there is an answer of the wanted type; synchronous.

    `attempts` is the highest number an attempt may have, and `request.attempt` the first one's, which is always made.
    `on_attempt` gets every failed attempt that is followed by another one, before that one starts;
    the last attempt is in the outcome. With a `budget` (USD, of which `spent` is gone) no attempt starts that it does
    not cover. Raises InvalidInput and CannotEnforce for a request that the configured agent cannot be asked.
    """
    asking = _Asking(settings, world.presets[settings.preset], codec, world)
    made: list[AgentAttempt] = []
    asked, left = request, None if budget is None else budget - spent
    while left is None or left > 0:
        attempt = asking.ask(asked, request.prompt, left)
        made.append(attempt)
        if left is not None:
            left = round(left - attempt.cost, 10) if attempt.cost is not None else 0.0
        if not attempt.repairable or attempt.number >= attempts:
            return _outcome(made, covered=left is None or left > 0)
        if left is None or left > 0:
            on_attempt(attempt)
            asked = _again(request, attempt)
    return _outcome(made, covered=False, exhausted=_exhausted(made, budget or 0.0))


def _outcome(made: list[AgentAttempt], *, covered: bool, exhausted: Failure | None = None) -> AgentOutcome:
    usages = [attempt.usage for attempt in made if attempt.usage]
    last = made[-1] if made else None
    return AgentOutcome(
        status="failed" if last is None else last.status,
        output=last.output if last else None,
        error=exhausted or (last.failure if last else None),
        usage=sum(usages[1:], usages[0]) if usages else None,
        attempts=tuple(made),
        covered=covered,
    )


def _exhausted(made: list[AgentAttempt], budget: float) -> Failure:
    last = made[-1] if made else None
    if last and last.cost is None:
        said = "the agent did not report what that cost, so nobody knows what is left"
    else:
        said = "it is used up"
    before = f"{last.failure.message}; " if last and last.failure else ""
    message = f"{before}no further attempt within the budget of {budget:g} USD: {said}"
    return Failure(
        type="BudgetExceeded", message=message, details=last.failure.details if last and last.failure else None
    )


def _again(request: AgentRequest, refused: AgentAttempt) -> AgentRequest:
    """The same request, with what was wrong about the last answer in its prompt and in `previous`."""
    previous = Previous(output=refused.answer[:_REPEATED], errors=refused.errors)
    prompt = f"{request.prompt}\n\n{repair(request.returns, previous)}"
    return request.model_copy(update={"attempt": refused.number + 1, "prompt": prompt, "previous": previous})


@dataclass(frozen=True)
class _Asking:
    """What all attempts of one call share."""

    settings: AgentSettings
    preset: Preset
    codec: TypeCodec[Any]
    world: World

    def ask(self, request: AgentRequest, task: str, budget: float | None) -> AgentAttempt:
        """One attempt. `task` is the prompt without the reasons of a repair; `budget` what is left, in USD."""
        begin, started_at = time.monotonic(), self.world.now()
        with TemporaryDirectory(prefix="hermes-agent-", ignore_cleanup_errors=True) as folder:
            ask = self._prepared(request.model_copy(update={"budget_usd": budget}), task, Path(folder))
            check_enforced(self.preset, ask)
            prepared = self.preset.prepare(ask)
            answered = self._run(ask, prepared) if isinstance(prepared, Invocation) else self._recorded(prepared)
        usage = _priced(answered.response.usage if answered.response else None, self.settings.prices)
        return AgentAttempt(
            number=request.attempt,
            status=answered.verdict.status,
            started_at=started_at,
            finished_at=self.world.now(),
            duration_seconds=time.monotonic() - begin,
            output=answered.verdict.output,
            failure=answered.verdict.failure,
            errors=answered.verdict.errors,
            usage=usage.recorded() if usage else None,
            cost=usage.cost_usd if usage else None,
            model=(answered.response.model if answered.response else None) or ask.model,
            session=answered.response.session if answered.response else None,
            transcript=answered.transcript,
            redactions=answered.redactions,
            answer=answered.answer if answered.verdict.errors else "",
        )

    def _prepared(self, request: AgentRequest, task: str, folder: Path) -> Ask:
        clean = self.world.redactor.plain(request.model_dump(by_alias=True))
        request = AgentRequest.model_validate(clean)
        prompt = self.world.redactor.text(render(request, task))
        return Ask(request, prompt, self.settings, folder, self.world.cwd, request.budget_usd, self.world.recorded)

    def _recorded(self, response: AgentResponse) -> _Answered:
        verdict = Judge(self.codec, self.world.redactor).verdict(response)
        return _Answered(verdict, response, answer=_quoted(response))

    def _run(self, ask: Ask, invocation: Invocation) -> _Answered:
        for name, data in invocation.files.items():
            (ask.folder / name).write_bytes(data)
        command = Command(
            argv=invocation.argv,
            cwd=ask.cwd,
            env={**self.world.env, **invocation.env},
            stdin=invocation.stdin,
            timeout=self.settings.timeout,
            keep_bytes=ANSWER_BYTES,
        )
        world = self.world
        outcome = run_command(command, stop=world.stop, redactor=world.redactor, now=world.now, on_line=world.on_line)
        counts: Counter[str] = Counter()
        said = Said(
            readable(outcome.stdout.head + outcome.stdout.tail),
            readable(outcome.stderr.head),
            {name: self._left(ask.folder / name, counts) for name in invocation.results},
        )
        response, unreadable = self._read(ask, said)
        verdict = Judge(self.codec, self.world.redactor, outcome, said).verdict(response, unreadable)
        if outcome.ended == "not_started" and self.preset.install and verdict.failure:
            message = f"{verdict.failure.message}; {self.preset.install}"
            verdict = Verdict("failed", failure=verdict.failure.model_copy(update={"message": message}))
        redactions = outcome.stdout.redactions + outcome.stderr.redactions + verdict.redactions + counts
        return _Answered(verdict, response, _transcript(outcome, said), redactions, _quoted(response, outcome))

    def _read(self, ask: Ask, said: Said) -> tuple[AgentResponse | None, NoAnswer | None]:
        try:
            return self.preset.read(ask, said), None
        except NoAnswer as unreadable:
            return None, unreadable

    def _left(self, path: Path, counts: Counter[str]) -> str:
        """What the program wrote into a file, at most as much as it may print."""
        try:
            with path.open("rb") as file:
                data = file.read(2 * ANSWER_BYTES)
        except OSError:
            return ""
        return readable(self.world.redactor.data(data, counts))


@dataclass(frozen=True)
class _Answered:
    verdict: Verdict
    response: AgentResponse | None
    transcript: Mapping[str, Any] = field(default_factory=dict)
    redactions: Counter[str] = field(default_factory=Counter)
    answer: str = ""


def _priced(usage: AgentUsage | None, prices: Prices | None) -> AgentUsage | None:
    """With prices, the operator's sum replaces whatever the program believes its tokens to cost."""
    if usage is None or prices is None:
        return usage
    cost = (usage.input_tokens or 0) * prices.input + (usage.output_tokens or 0) * prices.output
    return usage.model_copy(update={"cost_usd": round(cost / _MILLION, 10)})


def _quoted(response: AgentResponse | None, outcome: Outcome | None = None) -> str:
    """The answer as the agent is shown it again."""
    if response is not None and response.has_output:
        return response.output if isinstance(response.output, str) else as_json(response.output)
    return readable(outcome.stdout.trimmed(_REPEATED).whole) if outcome else ""


def _transcript(outcome: Outcome, said: Said) -> dict[str, Any]:
    transcript: dict[str, Any] = {"ended": outcome.ended, "exit_code": outcome.exit_code}
    for name, stream in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        transcript[name] = stream.trimmed(_TRANSCRIPT_BYTES).whole.decode("utf-8", "replace")
        transcript[f"{name}_bytes"] = stream.total_bytes
        transcript[f"{name}_sha256"] = stream.sha256
    files = {name: text[:_TRANSCRIPT_BYTES] for name, text in said.files.items() if text}
    return {**transcript, **({"files": files} if files else {})}
