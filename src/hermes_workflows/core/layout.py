"""Where a receipt lies inside its run's folder (FORMAT §3): one table, both directions.

A *result* is delivered to the workflow body, a *note* never is.
The path is the unit of "first one wins", so nothing else in the project may build or take apart such a path.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from .names import fan_out


class Role(StrEnum):
    RESULT = "result"
    NOTE = "note"
    FILE = "file"
    DERIVED = "derived"


RUN = "run.json"
RESULT = "result.json"
README = "README.md"


class Place(NamedTuple):
    """What a path means: its role, the receipt kinds allowed there, and which call it belongs to."""

    role: Role
    family: str
    stem: str = ""
    number: int = 0


def step(key: str) -> str:
    return f"steps/{fan_out(key)}.json"


def attempt(key: str, number: int) -> str:
    return f"steps/{fan_out(key)}.attempt-{number}.json"


def start(key: str) -> str:
    return f"steps/{fan_out(key)}.start.json"


def late(key: str, number: int) -> str:
    return f"steps/{fan_out(key)}.late-{number}.json"


def timer_start(key: str) -> str:
    return f"timers/{fan_out(key)}/start.json"


def timer_fired(key: str) -> str:
    return f"timers/{fan_out(key)}/fired.json"


def request(key: str) -> str:
    return f"reviews/{fan_out(key)}/request.json"


def response(key: str) -> str:
    return f"reviews/{fan_out(key)}/response.json"


def signal(name: str, number: int) -> str:
    return f"signals/{fan_out(name)}/{number}.json"


def control(number: int, verb: str) -> str:
    return f"control/{number}-{verb}.json"


def artifact(sha256: str) -> str:
    return f"artifacts/{sha256[:2]}/{sha256}"


def source(code: str, path: str) -> str:
    return f"source/{code}/{path}"


# Order matters: `x.attempt-1.json` also matches the pattern of a plain step result.
_TABLE: tuple[tuple[re.Pattern[str], Role, str], ...] = tuple(
    (re.compile(pattern + r"\Z"), role, family)
    for pattern, role, family in (
        (r"run\.json", Role.NOTE, "run"),
        (r"result\.json", Role.NOTE, "end"),
        (r"README\.md", Role.DERIVED, "readme"),
        (r"steps/(?P<stem>.+)\.attempt-(?P<n>[0-9]{1,9})\.json", Role.NOTE, "attempt"),
        (r"steps/(?P<stem>.+)\.late-(?P<n>[0-9]{1,9})\.json", Role.NOTE, "late"),
        (r"steps/(?P<stem>.+)\.start\.json", Role.NOTE, "start"),
        (r"steps/(?P<stem>.+)\.json", Role.RESULT, "step"),
        (r"timers/(?P<stem>.+)/start\.json", Role.NOTE, "timer-start"),
        (r"timers/(?P<stem>.+)/fired\.json", Role.RESULT, "timer"),
        (r"reviews/(?P<stem>.+)/request\.json", Role.NOTE, "request"),
        (r"reviews/(?P<stem>.+)/response\.json", Role.RESULT, "response"),
        (r"signals/(?P<stem>.+)/(?P<n>[0-9]{1,9})\.json", Role.RESULT, "signal"),
        (r"control/(?P<n>[0-9]{1,9})-cancel\.json", Role.RESULT, "cancel"),
        (r"control/(?P<n>[0-9]{1,9})-(?P<stem>pause|resume|accept|resolve|tombstone)\.json", Role.NOTE, "control"),
        (r"artifacts/[0-9a-f]{2}/(?P<stem>[0-9a-f]{64})", Role.FILE, "artifact"),
        (r"source/[0-9a-f]{12}/(?P<stem>.+)", Role.FILE, "source"),
    )
)


def _top(path: str) -> str:
    return path.partition("/")[0]


# Only rows that begin as the path does are tried: most paths are those of steps, which stand in the middle.
_ROWS = {
    top: tuple(rows)
    for top, rows in groupby(_TABLE, key=lambda row: _top(row[0].pattern.removesuffix(r"\Z")).replace("\\", ""))
}


# What a path of these rows has in it: most steps have none, and each expression would look at all of the path.
_MARKS = {"attempt": ".attempt-", "late": ".late-", "start": ".start."}


# A receipt's path is asked about six times before it is recorded.
@lru_cache(maxsize=128)
def place(path: str) -> Place | None:
    """What `path` (relative to the run's folder) means, or None when nothing may lie there."""
    for pattern, role, family in _ROWS.get(_top(path), ()):
        if _MARKS.get(family, "") in path and (found := pattern.match(path)):
            groups = found.groupdict()
            return Place(role, family, groups.get("stem", ""), int(groups.get("n", 0)))
    return None
