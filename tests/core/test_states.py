"""The seven states: which facts make which, and that the operator always learns what to do next."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_workflows.core.states import OLD_SECONDS, Below, Facts, Mark, OperationalState, operational_state


def state(**facts: Any) -> OperationalState:
    return operational_state(Facts(**{"run_id": "wf_launch", "status": "running", **facts}))


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_an_end_is_final_whatever_the_queue_still_holds(status: str) -> None:
    shown = state(status=status, queued=3, lost=("a",), marks=(Mark("divergence", "restore the code"),))
    assert (shown.state, shown.label) == (status, status.capitalize())


def test_a_question_waits_on_the_operator_by_name() -> None:
    shown = state(status="waiting", question="review_draft", operator="Skylar")
    assert (shown.state, shown.label) == ("waiting", "Waiting on Skylar")
    assert shown.next_action == "hermes-workflows review respond wf_launch review_draft"


def test_a_question_comes_before_work_that_goes_on_beside_it() -> None:
    assert state(status="waiting", question="ok", executing=("research/docs",)).state == "waiting"


def test_unclaimed_work_is_queued_and_says_how_to_start_a_runner() -> None:
    shown = state(queued=1, oldest=1.0)
    assert shown.state == "queued"
    assert "runner run" in (shown.next_action or "")


def test_queued_work_needs_nothing_while_a_runner_is_up() -> None:
    assert state(queued=1, oldest=OLD_SECONDS * 9, healthy_runners=1).next_action == "wait"


def test_old_queued_work_without_a_healthy_runner_is_stuck() -> None:
    assert state(queued=1, oldest=OLD_SECONDS).state == "queued"
    assert state(queued=1, oldest=OLD_SECONDS + 1).state == "stuck"


def test_claimed_work_is_running_and_named() -> None:
    shown = state(executing=("a", "b", "c", "d", "e"))
    assert shown.state == "running"
    assert shown.reason == "executing a, b, c and 2 more"


def test_a_dead_claimer_makes_the_run_stuck_although_other_calls_execute() -> None:
    shown = state(executing=("a",), lost=("research/docs",))
    assert shown.state == "stuck"
    assert "research/docs" in shown.reason


def test_what_was_claimed_too_often_is_stuck() -> None:
    assert state(queued=1, repeated="draft").state == "stuck"


def test_a_runner_that_says_why_is_quoted_word_for_word() -> None:
    shown = state(queued=1, marks=(Mark("cannot load pkg:draft", "install pkg"),))
    assert (shown.state, shown.reason, shown.next_action) == ("stuck", "cannot load pkg:draft", "install pkg")


def test_a_sleeping_run_is_running_only_while_somebody_can_wake_it() -> None:
    assert state(due="2026-11-29T10:00:00.000Z", healthy_runners=1).state == "running"
    assert state(due="2026-11-29T10:00:00.000Z").state == "queued"


def test_a_parent_points_to_the_child_it_waits_for() -> None:
    shown = state(children=("wf_launch.docs",))
    assert (shown.state, shown.next_action) == ("running", "hermes-workflows status wf_launch.docs")


def test_a_question_below_waits_on_the_operator_too_and_says_where_to_answer() -> None:
    below = (Below("wf.a", "Running"), Below("wf.b", "Waiting on Skylar", ("wf.b.deep", "ok")))
    shown = state(children=("wf.a", "wf.b"), below=below, operator="Skylar", executing=("draft",))
    assert (shown.state, shown.label) == ("waiting", "Waiting on Skylar")
    assert shown.next_action == "hermes-workflows review respond wf.b.deep ok"


def test_a_parent_tells_how_its_only_child_is() -> None:
    shown = state(children=("wf.a",), below=(Below("wf.a", "Stuck"),), due="2026-11-29T10:00:00.000Z")
    assert shown.reason == "waiting for the child run wf.a (Stuck)"


def test_waiting_for_a_signal_says_how_to_send_it() -> None:
    shown = state(signals=("go now",), due="2026-11-29T10:00:00.000Z")
    assert (shown.state, shown.reason) == ("running", "waiting for the signal go now, an event from outside")
    assert shown.next_action == "hermes-workflows signal wf_launch 'go now' --json …"


def test_a_run_that_nothing_will_move_is_stuck_not_running() -> None:
    shown = state()
    assert (shown.state, shown.next_action) == ("stuck", "hermes-workflows index rebuild")


def test_a_cancelled_run_says_why_and_what_its_cleanup_ended_in() -> None:
    assert state(status="cancelled", cancelled="a typo, by ana (human)").reason == "cancelled: a typo, by ana (human)"
    shown = state(status="cancelled", cancelled="its deadline passed", error="CleanupSkipped: it was stuck")
    assert shown.reason == "cancelled: its deadline passed; CleanupSkipped: it was stuck"
    assert state(status="cancelled").reason == "cancelled, and no receipt says why"
