"""What the workflow under test decides, said a second time: from its plan and from what is recorded of it.

A plan is a list of stages; the calls of a stage are open together, and the next stage begins when all have ended.
A stage in which a call failed ends the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Plan = Sequence[Sequence[str]]

ANSWER_SECONDS = 100.0
RETRY_SECONDS = 5.0
ATTEMPTS = 2

FLOW = f"""
from dataclasses import dataclass
from hermes_workflows import ask, parallel, workflow
from hermes_workflows.authoring import Retry, step

@dataclass
class Plan:
    stages: list[list[str]]

@step
async def once(place: str) -> str: ...

@step(retry=Retry(attempts={ATTEMPTS}, initial={RETRY_SECONDS}, jitter=0.0))
async def twice(place: str) -> str: ...

def call(kind: str, place: str):
    if kind == "ask":
        return ask("Go on?", key="ask-" + place, returns=str)
    if kind == "soon":
        return ask("Go on?", key="soon-" + place, returns=str, expires={ANSWER_SECONDS})
    return once(place) if kind == "once" else twice(place)

@workflow
async def flow(plan: Plan) -> list[list[str]]:
    told = []
    for number, stage in enumerate(plan.stages):
        told.append(await parallel([call(kind, f"{{number}}-{{place}}") for place, kind in enumerate(stage)]))
    return told
"""


@dataclass(frozen=True)
class Receipt:
    """`by` is the runner of a step or who answered; `at` is when, for questions, in seconds since 1970."""

    seq: int
    path: str
    status: str
    output: Any = None
    by: str = ""
    at: float = 0.0


@dataclass(frozen=True)
class Call:
    key: str
    kind: str

    @property
    def is_question(self) -> bool:
        return self.kind in ("ask", "soon")

    @property
    def request(self) -> str:
        return f"reviews/{self.key}/request.json"

    @property
    def result(self) -> str:
        return f"reviews/{self.key}/response.json" if self.is_question else f"steps/{self.key}.json"

    def attempt(self, number: int) -> str:
        return f"steps/{self.key}.attempt-{number}.json"

    def owns(self, path: str) -> bool:
        notes = [self.request] if self.is_question else [self.attempt(number) for number in range(1, ATTEMPTS)]
        return path in (self.result, *notes)


@dataclass(frozen=True)
class Thought:
    """What a body wants, and its end. `dropped` are calls that were open when it was cancelled, `given_up` those of
    them that have left nothing yet, `failed` those that ended it.
    """

    open: tuple[Call, ...] = ()
    dropped: tuple[Call, ...] = ()
    given_up: tuple[Call, ...] = ()
    end: str | None = None
    output: Any = None
    failed: tuple[Call, ...] = ()


def calls_of(plan: Plan) -> list[list[Call]]:
    """Steps are called after their function, and numbered in the order they are written; questions have a key."""
    seen: Counter[str] = Counter()
    stages = []
    for number, stage in enumerate(plan):
        stages.append([_call(kind, f"{number}-{place}", seen) for place, kind in enumerate(stage)])
    return stages


def _call(kind: str, place: str, seen: Counter[str]) -> Call:
    if kind in ("ask", "soon"):
        return Call(f"{kind}-{place}", kind)
    seen[kind] += 1
    return Call(kind if seen[kind] == 1 else f"{kind}-{seen[kind]}", kind)


def think(plan: Plan, receipts: Iterable[Receipt]) -> Thought:
    """Receipts in the order of their seq decide, and nothing else."""
    stages = calls_of(plan)
    results: dict[str, Receipt] = {}
    ended: Thought | None = None
    cancelled = False
    for each in receipts:
        results.setdefault(each.path, each)
        cancelled = cancelled or (each.status == "cancel" and ended is None)
        if ended is None and not cancelled:
            ended = _end(stages, results)
    if ended is not None:
        return ended
    if not cancelled:
        return Thought(open=_waiting(stages, results))
    cut = next(each.seq for each in results.values() if each.status == "cancel")
    dropped = _waiting(stages, {path: each for path, each in results.items() if each.seq < cut})
    given_up = tuple(call for call in dropped if call.result not in results)
    return Thought(dropped=dropped, given_up=given_up, end="cancelled")


def _waiting(stages: list[list[Call]], results: dict[str, Receipt]) -> tuple[Call, ...]:
    """The calls of the first stage that has not ended, but for those that have a result."""
    waiting = (tuple(call for call in stage if call.result not in results) for stage in stages)
    return next(filter(None, waiting))


def _end(stages: list[list[Call]], results: dict[str, Receipt]) -> Thought | None:
    told = []
    for stage in stages:
        if any(call.result not in results for call in stage):
            return None
        failed = tuple(call for call in stage if results[call.result].status in ("failed", "expired"))
        if failed:
            return Thought(end="failed", failed=failed)
        told.append([results[call.result].output for call in stage])
    return Thought(end="completed", output=told)
