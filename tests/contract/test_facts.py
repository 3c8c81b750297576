"""What is seen of a run's work and of runners, and what it comes to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.contract.queues import FrozenClock, beat, dead_process

from hermes_workflows.core.states import Asked, Below, Executing
from hermes_workflows.core.summary import OpenReview, RunSummary
from hermes_workflows.core.timestamps import render_time
from hermes_workflows.facts import (
    Child,
    Observed,
    children_of,
    facts_of,
    known_of,
    refused_line,
    runnable,
    with_children,
    within_workspace,
)
from hermes_workflows.lives import is_healthy
from hermes_workflows.registry import DatabasePaths
from hermes_workflows.store.queue_port import Stuck, Work, WorkRow
from hermes_workflows.store.row_keys import FOREVER


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


def test_limits_and_another_look_at_a_child_are_not_what_a_run_sleeps_for() -> None:
    clock = FrozenClock()
    later = clock.wall + 60
    beside = [row("queued", key, visible_at=later) for key in ("$deadline", "$expiry/ok")]
    child = WorkRow(Work("wf", "child", "below", visible_at=later), "queued", None, 0, "2026-11-29T12:00:00.000Z", None)
    assert seen(*beside, child, clock=clock).due is None
    assert seen(*beside, row("queued", "$cleanup", visible_at=later), clock=clock).due is not None


def test_a_notice_is_no_work_of_the_run() -> None:
    notices = [WorkRow(Work("wf", "notify", "$notify/ok"), each, None, 5, "2026-11-29T12:00:00.000Z", None)
               for each in ("queued", "leased", "expired")]  # fmt: skip
    facts = seen(*notices)  # type: ignore[arg-type]
    assert (facts.queued, facts.executing, facts.lost, facts.repeated) == (0, (), (), None)


def test_children_are_looked_at_down_to_whom_they_ask() -> None:
    asked = RunSummary("wf.a.b", open_reviews={"ok": OpenReview("ok", "Ship?", None, None, None, {})}, status="waiting")
    tree = {"wf.a": RunSummary("wf.a", open_children={"b": "wf.a.b"}), "wf.a.b": asked}
    parent = RunSummary("wf", open_children={"a": "wf.a", "lost": "wf.lost"})
    found = with_children(Observed(parent), lambda run_id: Observed(tree[run_id]) if run_id in tree else None)
    facts = facts_of(found, "ana", FrozenClock())
    assert facts.below == (Below("wf.a", "Waiting on ana", ("wf.a.b", "ok")),)
    shown = children_of(found, "ana", FrozenClock(), DatabasePaths("default", Path("a.sqlite"), Path("a.git")))
    assert (shown["a"].state, shown["a"].status) == ("waiting", "running")
    assert shown["lost"] == Child("wf.lost")


def test_children_are_looked_at_down_to_the_one_that_is_paused() -> None:
    paused = RunSummary("wf.a.b", paused={"by": "ana", "since": "2026-11-29T12:00:00.000Z", "reason": ""})
    tree = {"wf.a": RunSummary("wf.a", open_children={"b": "wf.a.b"}), "wf.a.b": paused}
    parent = RunSummary("wf", open_children={"a": "wf.a"})
    found = with_children(Observed(parent), lambda run_id: Observed(tree[run_id]))
    assert facts_of(found, "ana", FrozenClock()).below == (Below("wf.a", "Waiting on ana", None, "wf.a.b"),)


def test_claimed_and_lost_work_is_named() -> None:
    facts = seen(row("leased", "a"), row("leased", ""), row("expired", "b"))
    assert (facts.executing, facts.lost) == (("a", "the workflow"), ("b",))


def test_only_work_that_came_back_counts_as_repeated() -> None:
    assert seen(row("leased", claims=3)).repeated is None
    assert seen(row("expired", claims=3)).repeated == "draft"
    assert seen(row("queued", claims=2)).repeated is None


@pytest.mark.parametrize(
    ("reason", "by", "shown"),
    [
        ("a\ntypo", {"kind": "manual", "by": "ana"}, "a typo, by ana (manual)"),
        ("wf no longer waits for it", {"kind": "policy", "by": "wf"}, "wf no longer waits for it"),
        ("deadline", {"kind": "policy", "by": "deadline"}, "its deadline passed"),
        ("deadline", {"kind": "human", "by": "ana"}, "deadline, by ana (human)"),
        ("a typo", None, "a typo"),
        (None, None, None),
    ],
)
def test_why_a_run_was_cancelled_and_by_whom(reason: str | None, by: Any, shown: str | None) -> None:
    summary = RunSummary("wf", status="cancelled", cancel_requested=reason, cancel_by=by)
    assert facts_of(Observed(summary), "ana", FrozenClock()).cancelled == shown


def test_only_what_a_runner_could_claim_now_is_runnable() -> None:
    clock = FrozenClock()
    now, lost = row("queued", "now"), row("expired", "lost")
    rows = [now, lost, row("leased", "a"), row("withdrawn", "b"), row("queued", "later", visible_at=clock.wall + 60)]
    rows.append(row("queued", "done", visible_at=FOREVER))
    assert runnable(rows, [], clock) == [now, lost]
    assert runnable(rows, [Stuck("wf", "divergence", "why", "hint")], clock) == []
    assert runnable(rows, [Stuck("other", "divergence", "why", "hint")], clock) == [now, lost]


def leased(key: str, since: str, runner: str = "ada") -> WorkRow:
    return WorkRow(Work("wf", "bash", key), "leased", runner, 1, "2026-11-29T12:00:00.000Z", since)


def test_what_has_been_executed_longest_is_told_with_its_runner_and_last_line() -> None:
    clock = FrozenClock()
    began = render_time(clock.now())
    clock.advance(20)
    rows = [leased("new", render_time(clock.now())), leased("old", began)]
    ada = replace(beat("ada", clock), said={"wf old": "42 of 80 pages"})
    facts = facts_of(Observed(RunSummary("wf"), rows, runners=[ada]), "ana", clock)
    assert facts.longest == Executing("old", "ada", 20.0, "42 of 80 pages")


def test_a_question_tells_whom_it_was_put_to_and_whether_its_time_is_over() -> None:
    clock = FrozenClock()
    now, since = render_time(clock.now()), "2026-11-28T12:00:00.000Z"
    asked = OpenReview("ok", "Ship?", "Ada\nLovelace", since, now, {})
    facts = facts_of(Observed(RunSummary("wf", open_reviews={"ok": asked}, status="waiting")), "ana", clock)
    assert facts.asked == Asked("Ada Lovelace", since, now, late=True)


def test_a_deaf_runner_is_not_healthy_and_is_named_with_what_it_holds() -> None:
    clock = FrozenClock()
    ada = replace(beat("ada", clock), silent=45.0)
    rows = [leased("draft", render_time(clock.now()))]
    facts = facts_of(Observed(RunSummary("wf"), rows, runners=[ada]), "ana", clock)
    assert (facts.healthy_runners, facts.deaf_executing) == (0, True)
    assert facts.deaf == (f"ada (pid {ada.pid} on {ada.host}) gives signs of life and has done nothing for 45 s",)


def test_what_a_runner_could_not_write_is_read_from_its_heartbeat() -> None:
    clock = FrozenClock()
    ada = replace(beat("ada", clock), executing=(refused_line("workflows.git:\nNo space left"),))
    facts = facts_of(Observed(RunSummary("wf"), [row("queued")], runners=[ada]), "ana", clock)
    assert facts.refused == "workflows.git: No space left"


def test_the_disk_is_looked_at_only_for_a_run_that_goes_on(tmp_path: Path) -> None:
    paths = DatabasePaths("default", tmp_path / "a.sqlite", tmp_path)
    assert (known_of(Observed(RunSummary("wf")), "ana", FrozenClock(), paths).free or 0) > 0
    assert known_of(Observed(RunSummary("wf", status="failed")), "ana", FrozenClock(), paths).free is None


def test_a_place_is_shown_relative_to_the_workspace() -> None:
    receipts = Path("/home/ana/site/.hermes/workflows.git")
    assert within_workspace("/home/ana/site/flows/visit.py:21", receipts) == "flows/visit.py:21"
    assert within_workspace("/opt/flows/visit.py:21", receipts) == "/opt/flows/visit.py:21"
    assert within_workspace(None, receipts) is None
