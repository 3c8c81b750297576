"""Which runners live and work, as their heartbeats and this machine's processes show it.

Light on purpose: the fast `status` imports this.
"""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Literal

from .core.durations import lasting
from .core.state_facts import DEAF_SECONDS
from .errors import HermesError
from .settings import LIMITED
from .store.fast_status import DatabaseGone, FastIndex
from .store.liveness import Process

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from .core.clock import Clock
    from .registry import DatabasePaths
    from .store.queue_port import RunnerRow

Life = Literal["up", "deaf", "silent", "gone"]


def life_of(row: RunnerRow, clock: Clock) -> Life:
    """`gone`: its process is over, or the machine was started anew. `silent`: no heartbeat within one lease.

    `deaf`: heartbeats come, but the loop that does the work does not turn.
    """
    if row.boot_id != clock.boot_id or Process.of(row).gone():
        return "gone"
    if clock.elapsed() - row.elapsed > row.lease_seconds:
        return "silent"
    return "deaf" if row.silent >= DEAF_SECONDS else "up"


def is_healthy(row: RunnerRow, clock: Clock) -> bool:
    """Whether a runner lives and works."""
    return life_of(row, clock) == "up"


def told(row: RunnerRow, clock: Clock) -> str:
    """What is the matter with a runner, in words that follow its name."""
    life = life_of(row, clock)
    if life == "gone":
        return "died" if row.boot_id == clock.boot_id else "ended with a restart of the machine"
    if life == "silent":
        return f"has given no sign of life for {lasting(clock.elapsed() - row.elapsed)}"
    if life == "deaf":
        return f"gives signs of life and has done nothing for {lasting(row.silent)}"
    return "is up"


def named(row: RunnerRow) -> str:
    return f"{row.runner_id} (pid {row.pid} on {row.host})"


def unable(row: RunnerRow, python: str | None, database: str | None, kinds: Collection[str]) -> str | None:
    """Why a runner that is up could not move a run of this Python in this database; None when it could.

    `kinds` are those of the run's queued work; every runner decides, whatever it executes.
    """
    if database and row.database and not _is_same(row.database, database):
        return f"{row.runner_id} works on another database, {row.database}"
    if python and row.python and row.python != python:
        return f"{row.runner_id} is Python {row.python}, and the run was started under {python}"
    if kinds and row.only and all(kind in LIMITED and kind not in row.only for kind in kinds):
        return f"{row.runner_id} executes only {', '.join(row.only)}"
    return f"{row.runner_id} is draining: it takes nothing new" if row.draining else None


def who_lost(runner: str | None, rows: Iterable[RunnerRow], clock: Clock) -> str | None:
    """What became of the runner that claimed a row whose lease is over; None when there is no trace of it."""
    found = [row for row in rows if row.runner_id == runner]
    alive = [row for row in found if life_of(row, clock) != "gone"]
    row = next(iter(alive or found), None)
    if row is None:
        return None
    what = "lives, and has let its lease run out" if life_of(row, clock) == "up" else told(row, clock)
    return f"({row.runner_id}, pid {row.pid} on {row.host}) {what}"


def living(rows: Iterable[RunnerRow], clock: Clock) -> Mapping[Life, list[RunnerRow]]:
    """All runners by how they are."""
    found: dict[Life, list[RunnerRow]] = {"up": [], "deaf": [], "silent": [], "gone": []}
    for row in rows:
        found[life_of(row, clock)].append(row)
    return found


def elsewhere(
    rows: Iterable[RunnerRow], databases: Iterable[DatabasePaths], mine: Path, clock: Clock
) -> list[RunnerRow]:
    """Runners that are up for another of a registry's databases, when none of `rows`, those of this one, is."""
    if any(is_healthy(row, clock) for row in rows):
        return []
    others = [each for each in databases if each.sqlite != mine and each.sqlite.exists()]
    return [row for each in others for row in _runners_of(each) if is_healthy(row, clock)]


def _runners_of(paths: DatabasePaths) -> list[RunnerRow]:
    try:
        with closing(FastIndex(paths.sqlite)) as index:
            return index.runners()
    except (DatabaseGone, HermesError):
        return []


def _is_same(one: str, other: str) -> bool:
    return one == other or os.path.realpath(one) == os.path.realpath(other)
