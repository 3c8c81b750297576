"""`goal(...)`: do, check, use the feedback, do again."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from ..core.live import LiveRun
from ..core.scopes import Scope
from ..core.tasks import BodyTask
from ..errors import AuthoringError, GoalExhausted
from .composed import Composed

T = TypeVar("T")

_FLAGS = ("approved", "accepted", "ok", "passed")
_ACCEPTING_ACTIONS = frozenset({"approve", "approved", "accept", "accepted", "pass", "passed", "ok", "ship"})


def goal(
    do: Callable[..., Awaitable[T]], check: Callable[[T], object], *, max_iters: int = 20, initial: Any = None
) -> Composed[T]:
    """Repeat `do` until `check` accepts its result.

    `do` takes nothing, the last result (at first `initial`), or the last result and the last feedback.
    `check(result)` accepts with `True`, or with an object or dict whose `approved`, `accepted`, `ok`, `passed` or
    `action` says so; its `feedback` goes to the next `do`. Both may return a call, a coroutine or a plain value.
    Keys of round n begin with `goal/<n>`.
    Raises GoalExhausted, with the last result and check, after `max_iters` rounds.
    """
    if max_iters < 1:
        raise AuthoringError(f"goal(max_iters={max_iters}): at least one round is needed")
    wanted = _positional(do)
    return Composed("goal", lambda run, scope: _Rounds(run, scope, do, check, wanted, max_iters, initial))


@dataclass(frozen=True)
class _Rounds:
    live: LiveRun
    scope: Scope
    do: Callable[..., Any]
    check: Callable[[Any], Any]
    wanted: int
    limit: int
    initial: Any

    async def run(self) -> Any:
        value, feedback, verdict = self.initial, None, None
        for number in range(1, self.limit + 1):
            with _inside(self.live, self.scope.round(number)):
                value = await _settled(self.do(*(value, feedback)[: self.wanted]))
                verdict = await _settled(self.check(value))
            if accepted(verdict):
                return value
            feedback = _field(verdict, "feedback")
        message = f"goal gave up after {self.limit} rounds; the last check was {_shown(verdict)}"
        raise GoalExhausted(message, last_result=value, last_check=verdict)

    def drop(self) -> None:
        pass


def accepted(verdict: Any) -> bool:
    """Whether a check's answer accepts the result."""
    if isinstance(verdict, bool):
        return verdict
    for name in _FLAGS:
        if isinstance(flag := _field(verdict, name), bool):
            return flag
    action = _field(verdict, "action")
    if isinstance(action, enum.Enum):
        action = action.value
    return isinstance(action, str) and action.lower() in _ACCEPTING_ACTIONS


def _field(verdict: Any, name: str) -> Any:
    return verdict.get(name) if isinstance(verdict, Mapping) else getattr(verdict, name, None)


def _shown(verdict: Any) -> str:
    text = repr(verdict)
    # Default reprs hold an address, which would make the message differ between two replays.
    return type(verdict).__name__ if " at 0x" in text else text[:200]


def _positional(do: Callable[..., Any]) -> int:
    kinds = [each.kind for each in inspect.signature(do).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return 2
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return min(sum(kind in plain for kind in kinds), 2)


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


@contextmanager
def _inside(run: LiveRun, scope: Scope) -> Iterator[None]:
    """Calls written in this block by the running task stand in `scope`."""
    task = run.loop.current()
    assert isinstance(task, BodyTask)
    task.scopes.append(scope)
    try:
        yield
    finally:
        task.scopes.remove(scope)
