"""`status` and `list` as programs ask them again and again: answered before even click is imported.

Both ask what the commands themselves ask first (fresh.py). Any option not named here, and whatever is in doubt, is
left to the command.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..clock import SystemClock
from ..core.state_rules import STATES
from ..errors import HermesError
from ..registry import choose
from .fresh import MOST, STATUSES, Query, fresh_runs, fresh_status
from .show import status_document
from .writing import as_json

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ..registry import DatabasePaths, Registry
    from .seen import Shown

_WHERE = ("--db", "--config")
_CHOICES = {"--status": STATUSES, "--state": STATES}
_LIST = ("--limit", "--offset", *_CHOICES, "--workflow", "--source", "--find", *_WHERE)
# More digits may be more than an option takes.
_DIGITS = 9

T = TypeVar("T")


class _Doubt(Exception):
    """The command itself should look at this."""


def answer(arguments: Sequence[str]) -> bytes | None:
    """The document of `status RUN` or of `list`, when it is wanted as JSON and the index is fresh."""
    if sys.stdout.isatty() and "--json" not in arguments:
        return None
    command, *words = arguments
    try:
        if command == "status":
            return as_json(status_document(_status(words)))
        return as_json([status_document(shown) for shown in _list(words)])
    except (_Doubt, HermesError, UnicodeEncodeError):
        # An argument that is no text cannot be looked up; the command says which.
        return None


def _status(words: Sequence[str]) -> Shown:
    given = _parsed(words, ("--id", *_WHERE), bare="--id")
    if "--id" not in given:
        raise _Doubt
    registry, here = _registry(given)
    return _certain(fresh_status(registry, registry.database(given.get("--db"), here), given["--id"], SystemClock()))


def _list(words: Sequence[str]) -> list[Shown]:
    given = _parsed(words, _LIST)
    limit, offset = _number(given.get("--limit", str(MOST))), _number(given.get("--offset", "0"))
    chosen = [given[name] in values for name, values in _CHOICES.items() if name in given]
    if not limit or len(chosen) > 1 or not all(chosen):
        raise _Doubt
    registry, here = _registry(given)
    query = Query.of({name.removeprefix("--"): value for name, value in given.items()}, registry, limit, offset)

    def found(paths: DatabasePaths, asked: Query) -> list[Shown]:
        return _certain(fresh_runs(registry, paths, asked, SystemClock()))

    return query.of_all(registry.databases(given.get("--db"), here), found)


def _registry(given: Mapping[str, str]) -> tuple[Registry, Path]:
    here = Path.cwd()
    registry = choose(given.get("--config"), given.get("--db"), here)
    if registry.warnings:
        raise _Doubt
    return registry, here


def _certain(found: T | None) -> T:
    if found is None:
        raise _Doubt
    return found


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise _Doubt
    return int(text)


def _parsed(words: Sequence[str], options: Collection[str], bare: str | None = None) -> dict[str, str]:
    """Plain options and their values, a word without one as `bare`; raises for anything that click should look at."""
    given: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if word == "--json":
            continue
        name, value = (word, next(rest, "")) if word in options else (bare, word)
        if name is None or not value or value.startswith("-") or name in given:
            raise _Doubt
        given[name] = value
    return given
