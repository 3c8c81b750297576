"""What a test says in place of agents, people and commands: a value, a list of values, a function, an exception.

value            the answer each time
[one, two]       one answer after the other; asked once more than that, the test fails
function         called with the request; what it returns is the answer
an exception     the call fails with it; so it does when the function raises one, but for failed assertions
later(60, …)     any of these, sixty seconds of the run's time after the request
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from .failures import HIDDEN, Unscripted

__tracebackhide__ = HIDDEN

_NUMBERED = re.compile(r"(-\d+)+\Z")


@dataclass(frozen=True)
class Later:
    seconds: float
    script: Any


def later(seconds: float, script: Any) -> Any:
    """An answer that comes after `seconds` of the run's time: for timeouts, expiry, and who is first."""
    return Later(seconds, script)


@dataclass(frozen=True)
class Question:
    """What a scripted person is asked. `returns` is the JSON Schema that the answer must fit."""

    run: str
    key: str
    prompt: str
    input: Any
    returns: Mapping[str, Any]
    assignee: str | None
    expires_at: datetime | None


@dataclass(frozen=True)
class Wait:
    """What a scripted sender is waited for. `returns` is the JSON Schema that the payload must fit."""

    run: str
    key: str
    name: str
    returns: Mapping[str, Any]


@dataclass(frozen=True)
class CommandRequest:
    """What a scripted command is given; secrets stand in `env` by name. `timeout` in seconds."""

    run: str
    key: str
    name: str
    command: str | Sequence[str]
    cwd: str
    env: Mapping[str, Any]
    timeout: float


@dataclass(frozen=True)
class Reply:
    """What came of asking once: a value or an exception, `delay` seconds after the request."""

    value: Any = None
    error: Exception | None = None
    delay: float = 0.0


class Scripts:
    """The scripts of one kind; `what` is how the argument of `run_workflow` is called.

    A list's place is kept per entry, whichever of its calls asks.
    """

    def __init__(self, what: str, given: Mapping[str, Any] | None) -> None:
        self._what = what
        self._given = dict(given or {})
        self._lists = {name: iter(script) for name, script in self._given.items() if isinstance(script, list)}

    def find(self, *names: str) -> str | None:
        """The entry for a call that goes by these names, the first one first; then the first pattern with a `*`."""
        for name in names:
            if name in self._given:
                return name
        patterns = (entry for entry in self._given if "*" in entry)
        return next((each for each in patterns if any(fnmatchcase(name, each) for name in names)), None)

    def ask(self, entry: str, request: Any) -> Reply:
        """Raises Unscripted when the entry's list is used up, and whatever assertion its function fails."""
        return _reply(self._next(entry) if entry in self._lists else self._given[entry], request)

    def _next(self, entry: str) -> Any:
        try:
            return next(self._lists[entry])
        except StopIteration:
            said = f"{self._what}[{entry!r}] was asked more often than it has answers, {len(self._given[entry])}"
            raise Unscripted(said) from None


def _reply(script: Any, request: Any) -> Reply:
    if isinstance(script, Later):
        reply = _reply(script.script, request)
        return Reply(reply.value, reply.error, reply.delay + script.seconds)
    if isinstance(script, Exception):
        return Reply(error=script)
    if isinstance(script, type) and issubclass(script, Exception):
        return Reply(error=script())
    if not callable(script):
        return Reply(script)
    try:
        return _reply_of_function(script(request), request)
    except AssertionError:
        raise  # the test's own, about the request
    except Exception as error:
        return Reply(error=error)


def _reply_of_function(value: Any, request: Any) -> Reply:
    return _reply(value, request) if isinstance(value, Later | Exception) else Reply(value)


def without_number(key: str) -> str:
    """A key as its first use has it: `review` for `review-2`, which a loop's second round makes of it."""
    return _NUMBERED.sub("", key)
