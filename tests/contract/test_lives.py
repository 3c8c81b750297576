"""Which runners live, work and could take a run: what their heartbeats and this machine's processes come to."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.contract.queues import FrozenClock, beat, dead_process

from hermes_workflows.core.state_facts import DEAF_SECONDS
from hermes_workflows.lives import elsewhere, life_of, told, unable, who_lost
from hermes_workflows.registry import DatabasePaths
from hermes_workflows.runner.keeper import TICK_SECONDS, Silence
from hermes_workflows.store.queue_port import RunnerRow
from hermes_workflows.store.sqlite_queue import SqliteQueue


def row(clock: FrozenClock, **more: Any) -> RunnerRow:
    return replace(beat("ada", clock), **more)


def test_a_dead_process_is_gone_at_once_however_young_its_heartbeat_is() -> None:
    clock = FrozenClock()
    assert life_of(beat("ada", clock, dead_process()), clock) == "gone"
    assert told(beat("ada", clock, dead_process()), clock) == "died"
    assert told(row(clock, boot_id="another"), clock) == "ended with a restart of the machine"


def test_a_runner_without_a_heartbeat_for_a_lease_is_silent_although_its_process_is_there() -> None:
    clock = FrozenClock()
    runner = row(clock)
    clock.advance(runner.lease_seconds + 15)
    assert life_of(runner, clock) == "silent"
    assert told(runner, clock) == "has given no sign of life for 45 s"


def test_heartbeats_without_progress_make_a_runner_deaf_and_not_healthy() -> None:
    clock = FrozenClock()
    assert life_of(row(clock, silent=DEAF_SECONDS - 1), clock) == "up"
    assert life_of(row(clock, silent=DEAF_SECONDS), clock) == "deaf"
    assert told(row(clock, silent=45.0), clock) == "gives signs of life and has done nothing for 45 s"


def test_silence_is_added_up_while_the_loop_does_not_turn_and_the_machine_is_awake() -> None:
    silence = Silence()
    silence.look(1, 0.0)
    for second in range(1, 6):
        silence.look(1, float(second))
    assert silence.seconds == 5.0
    silence.look(1, 10_000.0)  # a laptop that slept
    assert silence.seconds == 5.0 + 2 * TICK_SECONDS
    silence.look(2, 10_001.0)
    assert silence.seconds == 0.0


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"python": "3.12"}, "ada is Python 3.12, and the run was started under 3.11"),
        ({"database": "/b.sqlite"}, "ada works on another database, /b.sqlite"),
        ({"draining": True}, "ada is draining: it takes nothing new"),
        ({"only": ("agent",)}, "ada executes only agent"),
        ({"only": ("agent", "bash"), "python": "3.11", "database": "/a.sqlite"}, None),
    ],
)
def test_a_runner_that_is_up_says_why_it_cannot_take_a_run(more: dict[str, Any], why: str | None) -> None:
    assert unable(row(FrozenClock(), **more), "3.11", "/a.sqlite", ["bash"]) == why


def test_every_runner_decides_whatever_it_executes() -> None:
    assert unable(row(FrozenClock(), only=("agent",)), None, None, ["workflow"]) is None


def test_a_lost_call_names_what_became_of_its_claimer() -> None:
    clock = FrozenClock()
    dead = beat("ada", clock, dead_process())
    assert who_lost("ada", [dead], clock) == f"(ada, pid {dead.pid} on {dead.host}) died"
    assert str(who_lost("ada", [dead, beat("ada", clock)], clock)).endswith("lives, and has let its lease run out")
    assert who_lost("ben", [dead], clock) is None


def test_runners_of_other_databases_are_looked_for_only_when_there_is_none_here(tmp_path: Path) -> None:
    clock = FrozenClock()
    dbs = [DatabasePaths(each, tmp_path / f"{each}.sqlite", tmp_path / f"{each}.git") for each in ("a", "b", "none")]
    with closing(SqliteQueue.open(dbs[1].sqlite, clock=clock, rebuild=tuple)) as other:
        other.heartbeat(beat("ben", clock))
        assert [found.runner_id for found in elsewhere([], dbs, dbs[0].sqlite, clock)] == ["ben"]
        assert elsewhere([beat("ada", clock)], dbs, dbs[0].sqlite, clock) == []
