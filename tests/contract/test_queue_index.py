"""What every queue does beside its work: the status index, the inbox, the heartbeats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from tests.contract.queues import NOON, Shop, beat, call, dead_process, open_shop, run, workflow

from hermes_workflows.core.summary import OpenReview
from hermes_workflows.store.liveness import Process
from hermes_workflows.store.queue_port import Change, Counts, Indexed, ReviewRow, Took
from hermes_workflows.store.row_keys import DEADLINE, EXPIRY
from hermes_workflows.store.wanted import Wanted, WantedReviews


@pytest.fixture(params=["memory", "sqlite"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    with open_shop(request.param, tmp_path) as shop:
        yield shop


def at(hour: int) -> str:
    return f"2026-11-29T{hour:02}:00:00.000Z"


def review(key: str, status: str = "open", **more: object) -> ReviewRow:
    return replace(ReviewRow("r", key, status, f"About {key}?", requested_at=at(12)), **more)  # type: ignore[arg-type]


def names(rows: list[Indexed]) -> list[str]:
    return [row.summary.run_id for row in rows]


# --- runs -------------------------------------------------------------------------------------------------------


def test_a_row_comes_back_as_it_was_put(shop: Shop) -> None:
    asked = OpenReview("ok", "Ship it?", "ada", at(9), None, MappingProxyType({"type": "object"}))
    row = run(
        "r",
        workflow="module:function",
        home="here",
        status="waiting",
        started_at=at(9),
        calls={"completed": 3},
        usage={"cost_usd": 0.25},
        open_reviews={"ok": asked},
        open_intents=("charge",),
        parent={"run": "p", "key": "child"},
    )
    shop.put(row)
    found = shop.queue.indexed("r")
    assert found == row
    assert found.summary.waiting_on == asked


def test_runs_are_found_by_the_run_they_started_from(shop: Shop) -> None:
    shop.put(run("r", started_at=at(9)))
    for number, name in enumerate(("r-later", "r-first", "other")):
        source = {"run": "r" if name != "other" else "x", "commit": "0" * 40, "how": "fork"}
        shop.put(run(name, started_at=at(12 - number), source=source))
    assert shop.queue.started_from("r") == ["r-first", "r-later"]
    assert shop.queue.started_from("other") == []


@pytest.mark.parametrize(
    "value",
    [b"\xf0\x00", {"raw": [b"", {"$": "dollar", "$lines": b"x"}], "$blob": 1}, 2**200, "\u2028 \U0001f600", 1.5, None],
)
def test_results_keep_their_types(shop: Shop, value: object) -> None:
    shop.put(run("r", result=value))
    found = shop.queue.indexed("r")
    assert found is not None
    assert found.summary.result == value
    assert type(found.summary.result) is type(value)


def test_runs_are_listed_newest_first_in_pages(shop: Shop) -> None:
    shop.put(*(run(f"r{hour}", started_at=at(hour)) for hour in (9, 11, 10)), run("unstarted"))
    assert names(shop.queue.list_indexed()) == ["r11", "r10", "r9", "unstarted"]
    assert names(shop.queue.list_indexed(limit=2, offset=1)) == ["r10", "r9"]


def test_runs_are_listed_by_status(shop: Shop) -> None:
    shop.put(run("a", status="failed", started_at=at(9)), run("b"), run("c", status="failed", started_at=at(10)))
    assert names(shop.queue.list_indexed(Wanted(("failed",)))) == ["c", "a"]
    assert names(shop.queue.list_indexed(Wanted(("waiting",)))) == []


def test_runs_are_listed_by_all_that_is_asked_for_at_once(shop: Shop) -> None:
    forked = {"run": "a", "how": "fork"}
    shop.put(
        run("a", workflow="x", status="failed", started_at=at(9)),
        run("b", workflow="x", started_at=at(10), source=forked),
        run("c", workflow="y", status="failed", started_at=at(11), source=forked),
    )
    found = {
        Wanted(workflow="x"): ["b", "a"],
        Wanted(source="a"): ["c", "b"],
        Wanted(("failed", "running"), source="a"): ["c", "b"],
        Wanted(("failed",), "x"): ["a"],
        Wanted(workflow="y", source="b"): [],
        Wanted(older=(at(10), "b")): ["a"],
        Wanted(workflow="x", older=(at(11), "")): ["b", "a"],
    }
    assert {wanted: names(shop.queue.list_indexed(wanted)) for wanted in found} == found


def test_runs_are_found_by_words_of_their_id_input_or_reason(shop: Shop) -> None:
    asked = OpenReview("ok", "Which colour?", None, None, None, {})
    shop.put(
        run("Blue-1", given='{"city": "Ås"}', started_at=at(8)),
        run("red", status="failed", error={"type": "ValueError", "message": "no such room"}, started_at=at(9)),
        run("ended", status="cancelled", cancel_requested="too late for a room", started_at=at(10)),
        run("kept", status="waiting", open_reviews={"ok": asked}, started_at=at(11)),
    )
    shop.stick("Blue-1")
    found = {
        "BLUE": ["Blue-1"],
        "ås": ["Blue-1"],
        "code differs": ["Blue-1"],
        "room": ["ended", "red"],
        "room such": ["red"],
        "colour": ["kept"],
        "100%": [],
        "\udcff": [],
        "  ": ["kept", "ended", "red", "Blue-1"],
        "a b c d e f g h i": [],
    }
    assert {text: names(shop.queue.list_indexed(Wanted(text=text))) for text in found} == found


def test_what_a_run_is_found_by_follows_what_becomes_of_it(shop: Shop) -> None:
    shop.put(run("r", given="tea"))
    shop.put(run("r", seq=1, given="tea", tip="t1"))
    shop.put(run("r", seq=2, given="tea", status="failed", error={"type": "Spilt", "message": "all of it"}))
    assert names(shop.queue.list_indexed(Wanted(("failed",), text="spilt tea"))) == ["r"]
    assert names(shop.queue.list_indexed(Wanted(("running",)))) == []
    found = shop.queue.indexed("r")
    assert found is not None
    assert found.summary.seq == 2


def test_runs_are_counted_by_workflow_and_the_newest_of_one_say_how_long_they_took(shop: Shop) -> None:
    shop.put(
        run("a", workflow="x", status="failed", started_at=at(9), finished_at=at(10), usage={"cost_usd": 0.5}),
        run("b", workflow="x", started_at=at(11)),
        run("c", workflow="y", status="completed", started_at=at(8)),
        run("d", workflow="y", status="cancelled", started_at=at(9)),
    )
    assert shop.queue.counts() == [Counts("x", 2, failed=1), Counts("y", 2, completed=1, cancelled=1)]
    assert shop.queue.lately("x", 5) == [Took(at(11), None, {}), Took(at(9), at(10), {"cost_usd": 0.5})]
    assert len(shop.queue.lately("x", 1)) == 1
    assert shop.queue.lately("z", 5) == []


def test_an_older_row_that_arrives_late_changes_nothing(shop: Shop) -> None:
    shop.put(run("r", seq=6, tip="newer", status="waiting"))
    shop.put(run("r", seq=5, tip="older"))
    found = shop.queue.indexed("r")
    assert found is not None
    assert (found.tip, found.summary.status) == ("newer", "waiting")


def test_the_tips_of_all_runs_are_told_at_once(shop: Shop) -> None:
    shop.put(run("a", seq=3, tip="t1"), replace(run("b", seq=4, tip="t2"), sealed=True))
    assert shop.queue.tips() == {"a": ("t1", False, 3), "b": ("t2", True, 4)}


def test_run_ids_are_found_by_their_beginning(shop: Shop) -> None:
    shop.put(*map(run, ("wf_a", "wf_b", "wf", "wg", "WF_c", "wf%")))
    assert shop.queue.matching("wf_") == ["wf_a", "wf_b"]
    assert shop.queue.matching("wf", limit=2) == ["wf", "wf%"]
    assert shop.queue.matching("%") == []


def test_a_forgotten_run_leaves_no_row(shop: Shop) -> None:
    shop.put(run("r", reviews=(review("ok"),)), run("s"))
    shop.offer(workflow("r"), call("r", "a"), call("s", "b"))
    shop.stick("r")
    shop.queue.forget("r")
    queue = shop.queue
    assert (queue.indexed("r"), queue.reviews(), queue.stuck("r")) == (None, [], [])
    assert shop.status() == {"s/b": "queued"}


def test_a_run_that_stands_further_back_keeps_its_work_alone(shop: Shop) -> None:
    shop.put(run("r", seq=7, reviews=(review("ok"),)), run("s"))
    shop.offer(workflow("r"), call("r", "a"))
    shop.stick("r")
    shop.queue.rewind("r")
    queue = shop.queue
    assert (queue.indexed("r"), queue.reviews(), queue.stuck("r")) == (None, [], [])
    assert shop.status() == {"r/": "queued", "r/a": "queued"}
    assert queue.indexed("s") is not None


def test_unfinished_runs_that_no_row_would_move_are_found(shop: Shop) -> None:
    shop.put(
        *(run(name, tip=f"tip {name}") for name in ("asleep", "asking", "leased", "lost", "marked", "new", "told"))
    )
    shop.put(run("over", status="completed"), run("waiting", status="waiting", tip="tip waiting"))
    shop.offer(workflow("leased"))
    shop.claim()
    shop.offer(workflow("new"), call("asleep", "nap", "timer", NOON + 60))
    shop.offer(call("asking", EXPIRY + "ok", "timer"), call("lost", DEADLINE, "timer"), call("told", "told", "notify"))
    shop.stick("marked")
    assert sorted(shop.queue.unqueued()) == [(name, f"tip {name}") for name in ("asking", "lost", "told", "waiting")]


# --- reviews ----------------------------------------------------------------------------------------------------


def test_reviews_are_listed_oldest_first_by_run_and_status(shop: Shop) -> None:
    newer = review("newer", requested_at=at(13))
    shop.put(run("r", reviews=(newer, review("older"), review("done", "completed", answer={"raw": b"\xff"}))))
    shop.put(run("s", reviews=(replace(review("other"), run_id="s"),)))
    assert [row.key for row in shop.queue.reviews(status="open")] == ["older", "other", "newer"]
    assert shop.queue.reviews(run_id="r", status="completed") == [review("done", "completed", answer={"raw": b"\xff"})]
    assert shop.queue.reviews(run_id="nobody") == []


def test_a_page_of_the_inbox_has_the_workflows_and_says_how_many_there_are(shop: Shop) -> None:
    asked = (review("a", assignee="ana"), review("b", requested_at=at(9)), review("c", requested_at=at(10)))
    shop.put(run("r", workflow="x", reviews=asked), run("s", workflow="y", reviews=(replace(review("d"), run_id="s"),)))
    shop.put(run("r", workflow="x", seq=1, reviews=(replace(asked[1], status="completed", answer=True),)))

    def inbox(limit: int = 9, offset: int = 0, **wanted: str) -> tuple[list[str], int]:
        page = shop.queue.inbox(WantedReviews(**wanted), limit=limit, offset=offset)
        assert all(workflow == ("x" if row.run_id == "r" else "y") for row, workflow in page.rows)
        return [row.key for row, _ in page.rows], page.total

    assert inbox() == (["b", "c", "a", "d"], 4)
    assert inbox(limit=2, offset=1) == (["c", "a"], 4)
    assert inbox(status="open", workflow="x") == (["c", "a"], 2)
    assert inbox(status="open", assignee="ana") == (["a"], 1)
    assert inbox(status="completed") == (["b"], 1)
    page = shop.queue.inbox(WantedReviews("open"), limit=1)
    assert (page.workflows, page.people) == (["x", "y"], ["ana"])
    assert shop.queue.open_questions() == [("r", "c"), ("r", "a"), ("s", "d")]
    shop.put(run("r", workflow="x", seq=2, status="failed"))
    assert inbox(status="withdrawn", workflow="x") == (["c", "a"], 2)


@pytest.mark.parametrize("answer", ["", 0, False, None, []])
def test_an_answer_that_looks_like_nothing_is_kept(shop: Shop, answer: object) -> None:
    response = ReviewRow("r", "ok", "completed", answered_at=at(14), answer=answer, provenance={"kind": "manual"})
    shop.put(run("r", reviews=(review("ok"),)))
    shop.put(run("r", reviews=(response,)))
    shop.put(run("r", reviews=(review("ok"),)))
    assert shop.queue.reviews() == [replace(response, prompt="About ok?", requested_at=at(12))]


def test_an_ended_run_waits_for_nobody(shop: Shop) -> None:
    shop.put(run("r", reviews=(review("dropped"), review("done", "completed"))))
    shop.put(run("r", seq=1, status="failed"))
    assert {row.key: row.status for row in shop.queue.reviews()} == {"dropped": "withdrawn", "done": "completed"}


# --- runners ----------------------------------------------------------------------------------------------------


def test_a_heartbeat_is_one_row_a_process(shop: Shop) -> None:
    first = beat("ada", shop.clock)
    shop.queue.heartbeat(first)
    shop.clock.advance(5)
    second = replace(beat("ada", shop.clock), executing=("r a", "s b"), database="workflows.sqlite")
    shop.queue.heartbeat(second)
    assert shop.another().runners() == [second]


def test_two_live_processes_of_one_name_are_both_seen(shop: Shop) -> None:
    other = shop.another()
    elsewhere = beat("ada", shop.clock, Process("elsewhere", 7, "1"))
    shop.queue.heartbeat(beat("ada", shop.clock))
    other.heartbeat(elsewhere)
    assert len(shop.queue.runners()) == 2
    shop.queue.goodbye("ada")
    assert other.runners() == [elsewhere]


def test_a_dead_runner_stays_visible_until_its_successor_beats(shop: Shop) -> None:
    shop.queue.heartbeat(beat("ada", shop.clock, dead_process()))
    shop.queue.heartbeat(beat("bob", shop.clock))
    assert [row.runner_id for row in shop.queue.runners()] == ["ada", "bob"]
    restarted = shop.another()
    restarted.heartbeat(beat("ada", shop.clock))
    assert [row.pid for row in restarted.runners()] == [Process.current().pid] * 2


def test_dead_runners_without_a_successor_are_shown_for_an_hour(shop: Shop) -> None:
    shop.queue.heartbeat(beat("ada", shop.clock, dead_process()))
    shop.clock.advance(3599)
    shop.queue.heartbeat(beat("bob", shop.clock))
    assert [row.runner_id for row in shop.queue.runners()] == ["ada", "bob"]
    shop.clock.advance(2)
    shop.queue.heartbeat(beat("eve", shop.clock))
    assert [row.runner_id for row in shop.queue.runners()] == ["bob", "eve"]


def test_a_goodbye_of_a_stranger_removes_that_name(shop: Shop) -> None:
    shop.queue.heartbeat(beat("ada", shop.clock))
    shop.another().goodbye("ada")
    assert shop.queue.runners() == []


def test_a_stamp_is_kept_for_the_next_process(shop: Shop) -> None:
    assert shop.queue.stamp() == ""
    shop.queue.put_stamp("(1, 2)", shop.queue.epoch())
    shop.queue.put_stamp("(3, 4)", shop.queue.epoch())
    assert shop.another().stamp() == "(3, 4)"


def test_a_change_may_hold_everything_at_once(shop: Shop) -> None:
    shop.offer(workflow("r"), call("r", "a"), call("r", "b"))
    shop.claim()
    change = Change(
        finish=[shop.leases["r/a"]],
        release=[shop.leases["r/"]],
        offer=[call("r", "c")],
        withdraw=[("r", "b")],
        index=[run("r", seq=3, reviews=(review("ok"),))],
        unstuck=["r"],
    )
    assert shop.queue.apply(change, "ada") == []
    assert shop.status() == {"r/": "queued", "r/b": "withdrawn", "r/c": "queued"}
    assert len(shop.queue.reviews()) == 1
