"""The seven states: which facts make which, and that the operator always learns what to do next."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_workflows.core.state_facts import FULL_BYTES, OLD_SECONDS, Asked, Below, Executing, Facts, Mark
from hermes_workflows.core.state_rules import TABLE, Rule
from hermes_workflows.core.state_table import EXAMPLE, as_table
from hermes_workflows.core.states import OperationalState, operational_state


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


def test_a_parent_whose_children_are_all_paused_waits_for_who_resumes_them() -> None:
    paused = Below("wf.a", "Waiting on Skylar", None, "wf.a.deep")
    shown = state(children=("wf.a",), below=(paused,))
    assert (shown.state, shown.next_action) == ("waiting", "hermes-workflows resume wf.a.deep")
    beside = state(children=("wf.a", "wf.b"), below=(paused, Below("wf.b", "Running")))
    assert beside.state == "running"


def test_a_parent_tells_how_its_only_child_is() -> None:
    shown = state(children=("wf.a",), below=(Below("wf.a", "Stuck"),), due="2026-11-29T10:00:00.000Z")
    assert shown.reason == "waiting for the child run wf.a (Stuck)"


def test_waiting_for_a_signal_says_how_to_send_it() -> None:
    shown = state(signals=("go now",), due="2026-11-29T10:00:00.000Z")
    assert (shown.state, shown.reason) == ("running", "waiting for the signal go now, an event from outside")
    assert shown.next_action == "hermes-workflows signal wf_launch 'go now' --json …"


def test_a_run_that_nothing_will_move_is_stuck_not_running() -> None:
    shown = state()
    assert (shown.state, shown.next_action) == ("stuck", "hermes-workflows runner run")
    shown = state(healthy_runners=1)
    assert (shown.state, shown.next_action) == ("stuck", "wait; a runner queues it again")


def test_a_cancelled_run_says_why_and_what_its_cleanup_ended_in() -> None:
    assert state(status="cancelled", cancelled="a typo, by ana (human)").reason == "cancelled: a typo, by ana (human)"
    shown = state(status="cancelled", cancelled="its deadline passed", error="CleanupSkipped: it was stuck")
    assert shown.reason == "cancelled: its deadline passed; CleanupSkipped: it was stuck"
    assert state(status="cancelled").reason == "cancelled, and no receipt says why"


def test_whoever_was_asked_is_named_with_since_when_and_until_when() -> None:
    asked = Asked("Ada", "2026-11-29T12:00:00.000Z", "2026-11-30T12:00:00.000Z")
    shown = state(status="waiting", question="ok", operator="Skylar", asked=asked)
    assert shown.label == "Waiting on Ada"
    assert shown.reason == ("a typed answer to ok is needed since 2026-11-29T12:00:00Z, until 2026-11-30T12:00:00Z")


def test_a_question_whose_time_is_over_needs_a_runner_not_an_answer() -> None:
    asked = Asked(None, None, "2026-11-30T12:00:00.000Z", late=True)
    assert state(status="waiting", question="ok", asked=asked).next_action == "hermes-workflows runner run"
    assert state(status="waiting", question="ok", asked=asked, healthy_runners=1).next_action == "wait"


def test_what_executes_is_told_with_its_runner_its_time_and_its_last_line() -> None:
    longest = Executing("b", "ada", 200.0, "42 of 80 pages")
    assert state(executing=("b",), longest=longest).reason == "executing b on ada for 3 min 20 s: 42 of 80 pages"
    assert state(executing=("a", "b"), longest=longest).reason.startswith("executing a, b; b on ada for 3 min 20 s")


def test_queued_work_says_of_each_living_runner_why_it_cannot_take_it() -> None:
    facts = {"queued": 1, "unable": ("ada is Python 3.12, and the run was started under 3.11",)}
    shown = state(**facts, silent=("ben (pid 7 on host) has given no sign of life for 40 s",))
    assert shown.state == "queued"
    assert "no living runner can take it: ada is Python 3.12" in shown.reason
    assert "ben (pid 7 on host) has given no sign of life for 40 s" in shown.reason
    assert state(**facts, oldest=OLD_SECONDS + 1).state == "stuck"


def test_a_deaf_runner_with_a_call_in_hand_is_stuck_whoever_else_is_up() -> None:
    deaf = ("ada (pid 7 on host) gives signs of life and has done nothing for 45 s",)
    shown = state(executing=("draft",), deaf=deaf, deaf_executing=True, healthy_runners=1)
    assert (shown.state, shown.reason) == ("stuck", f"{deaf[0]}; it has draft in hand")
    assert state(queued=1, deaf=deaf).state == "stuck"
    assert state(queued=1, deaf=deaf, healthy_runners=1).state == "queued"


def test_a_full_disk_stops_only_runs_that_have_something_to_write() -> None:
    assert state(queued=1, free=FULL_BYTES - 1, healthy_runners=1).state == "stuck"
    assert state(queued=1, free=FULL_BYTES, healthy_runners=1).state == "queued"
    assert state(status="waiting", question="ok", free=0).state == "waiting"


def test_what_a_runner_cannot_write_is_told_while_there_is_work() -> None:
    refused = "No space left on device"
    assert state(executing=("a",), refused=refused).reason == f"a runner cannot write: {refused}"
    assert state(signals=("go",), refused=refused).state == "running"


def test_a_failed_run_names_file_and_line_once() -> None:
    shown = state(status="failed", error="ValueError: no such room", failed_at="flows/visit.py:21")
    assert shown.reason == "ValueError: no such room, at flows/visit.py:21"
    told = state(
        status="failed", error="KeyClash: flows/visit.py:21 and flows/visit.py:22", failed_at="flows/visit.py:21"
    )
    assert told.reason == "KeyClash: flows/visit.py:21 and flows/visit.py:22"


def test_a_lost_call_is_about_to_be_taken_over_when_somebody_healthy_is_up() -> None:
    shown = state(lost=("a",), lost_by="(ada, pid 7 on host) died", healthy_runners=1)
    assert (shown.state, shown.next_action) == ("stuck", "wait; another runner is about to take it over")


@pytest.mark.parametrize("rule", TABLE, ids=lambda rule: rule.when)
def test_every_rule_says_a_reason_for_the_example(rule: Rule) -> None:
    reason, action = rule.says(EXAMPLE)
    assert reason
    assert "None" not in f"{reason} {action or ''}"


def test_the_table_of_states_has_a_row_for_each_rule() -> None:
    head, line, *rows = as_table().splitlines()
    assert [row.count(" | ") for row in (head, *rows)] == [3] * (1 + len(rows))
    assert [row.split(" | ")[1] for row in rows] == [rule.state for rule in TABLE]
    assert line == "|---|---|---|---|"
