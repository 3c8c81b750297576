"""`runner drain`: runners finish what they execute, take nothing new, and end."""

from __future__ import annotations

import time

import click

from ..core.spelling import suggestion
from ..errors import NotFound, TemporarilyLocked
from ..lives import life_of, named
from ..store.queue_port import RunnerRow
from .numbers import Seconds
from .scope import Scope, scoped
from .writing import columns

_LOOK_SECONDS = 0.1


@click.command("drain")
@click.option("--worker-id", metavar="NAME", help="Only the runner of this name; all of them when left out.")
@click.option("--wait", is_flag=True, help="Wait until they have ended.")
@click.option("--timeout", type=Seconds(), help="How long --wait waits at most.")
@scoped
def drain_runners(scope: Scope, worker_id: str | None, wait: bool, timeout: float | None) -> int:
    """Let runners finish what they execute, take nothing new, and end.

    Unlike a signal it sets no limit to how long that takes. Queued work stays for other runners.
    """
    asked = _ask(scope, worker_id)
    left = _wait(scope, asked, timeout) if wait else asked
    state = {_name(row): "draining" for row in asked} | ({} if not wait else {_name(row): "ended" for row in asked})
    state |= {_name(row): "draining" for row in left}
    document = {"runners": [{"runner_id": row.runner_id, "pid": row.pid, "state": state[_name(row)]} for row in asked]}
    lines = [(state[_name(row)], named(row)) for row in asked]
    scope.output.data(document, lambda: columns(lines) if lines else "no runner is up")
    return TemporarilyLocked.exit_code if wait and left else 0


def _ask(scope: Scope, worker_id: str | None) -> list[RunnerRow]:
    """Whom the wish has reached, each once, however many databases it serves. Raises NotFound for an unknown name."""
    asked: dict[tuple[str, int], RunnerRow] = {}
    names: set[str] = set()
    for paths in scope.every():
        with scope.open(paths) as workspace:
            alive = [row for row in workspace.queue.runners() if life_of(row, scope.clock) != "gone"]
            names |= {row.runner_id for row in alive}
            wanted = [row for row in alive if worker_id in (None, row.runner_id)]
            if wanted:
                workspace.queue.drain(worker_id)
            asked |= {_name(row): row for row in wanted}
    if worker_id is not None and not asked:
        raise NotFound(f"no runner {worker_id!r} is up", hint=suggestion(worker_id, names, "runners"))
    return list(asked.values())


def _wait(scope: Scope, asked: list[RunnerRow], timeout: float | None) -> list[RunnerRow]:
    """Those that are still there in the end."""
    until = None if timeout is None else scope.clock.elapsed() + timeout
    while left := [row for row in asked if not _has_ended(scope, row)]:
        if until is not None and scope.clock.elapsed() >= until:
            return left
        time.sleep(_LOOK_SECONDS)
    return []


def _has_ended(scope: Scope, asked: RunnerRow) -> bool:
    for paths in scope.every():
        with scope.look(paths) as workspace:
            rows = [row for row in workspace.queue.runners() if _name(row) == _name(asked)]
        if any(life_of(row, scope.clock) != "gone" for row in rows):
            return False
    return True


def _name(row: RunnerRow) -> tuple[str, int]:
    return row.runner_id, row.pid
