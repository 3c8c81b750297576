"""What is seen of a run's work and of runners, and what it comes to."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.queues import FrozenClock, beat, dead_process

from hermes_workflows.core.summary import RunSummary
from hermes_workflows.facts import Observed, facts_of, is_healthy
from hermes_workflows.store.queue_port import Work, WorkRow


def row(status: Any, key: str = "draft", claims: int = 0, visible_at: float = 0.0) -> WorkRow:
    work = Work("wf", "agent" if key else "workflow", key, visible_at=visible_at)
    return WorkRow(work, status, None, claims, "2026-11-29T12:00:00.000Z", None)


def seen(*rows: WorkRow, clock: FrozenClock | None = None) -> Any:
    return facts_of(Observed(RunSummary("wf"), rows), "ana", clock or FrozenClock())


def test_a_runner_is_healthy_within_one_lease_of_its_heartbeat() -> None:
    clock = FrozenClock()
    runner = beat("ada", clock)
    assert is_healthy(runner, clock)
    clock.advance(runner.lease_seconds + 0.1)
    assert not is_healthy(runner, clock)


def test_a_runner_of_another_boot_or_of_a_dead_process_is_not_healthy() -> None:
    clock = FrozenClock()
    assert not is_healthy(beat("ada", clock, dead_process()), clock)
    before = beat("ada", clock)
    clock.boot_id = "second-boot"
    assert not is_healthy(before, clock)


def test_work_counts_as_queued_from_the_moment_it_may_be_claimed() -> None:
    clock = FrozenClock()
    clock.advance(30)
    facts = seen(row("queued"), row("queued", "later", visible_at=clock.wall + 60), clock=clock)
    assert (facts.queued, facts.oldest) == (1, 30)
    assert facts.due == "2026-11-29T12:01:30.000Z"


def test_a_retry_is_as_old_as_its_turn_not_as_its_row() -> None:
    clock = FrozenClock()
    clock.advance(300)
    assert seen(row("queued", visible_at=clock.wall - 5), clock=clock).oldest == pytest.approx(5)


def test_claimed_and_lost_work_is_named() -> None:
    facts = seen(row("leased", "a"), row("leased", ""), row("expired", "b"))
    assert (facts.executing, facts.lost) == (("a", "the workflow"), ("b",))


def test_only_work_that_came_back_counts_as_repeated() -> None:
    assert seen(row("leased", claims=3)).repeated is None
    assert seen(row("expired", claims=3)).repeated == "draft"
    assert seen(row("queued", claims=2)).repeated is None
