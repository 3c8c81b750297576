"""What every queue does with work, SQLite or memory: offers, claims, ends, withdrawals, stuck runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.queues import Shop, call, calls, open_shop, run, workflow

from hermes_workflows.store.queue_port import Change, Claim


@pytest.fixture(params=["memory", "sqlite"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    with open_shop(request.param, tmp_path) as shop:
        yield shop


# --- offers and claims ------------------------------------------------------------------------------------------


def test_what_is_offered_is_claimed_once(shop: Shop) -> None:
    shop.offer(call("r", "a", "agent"))
    assert shop.claim("ada") == ["r/a"]
    assert shop.claim("bob") == []
    lease = shop.leases["r/a"]
    assert (lease.work, lease.claims) == (call("r", "a", "agent"), 1)


def test_a_change_is_applied_before_its_claim_is_served(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim()
    done, following = shop.leases["r/a"], call("r", "b")
    [lease] = shop.queue.apply(Change(finish=[done], offer=[following], claim=Claim(5)), "ada")
    assert lease.work == following


def test_workflow_rows_come_before_calls(shop: Shop) -> None:
    shop.offer(call("r", "a"), call("r", "b"), workflow("s"))
    assert shop.claim() == ["s/", "r/a", "r/b"]


def test_a_claim_takes_no_more_than_its_limit_oldest_first(shop: Shop) -> None:
    shop.offer(*calls("r", "c", "a", "b"))
    assert shop.claim(limit=2) == ["r/c", "r/a"]
    assert shop.claim(limit=0) == []
    assert shop.claim(limit=2) == ["r/b"]


def test_a_claim_takes_only_the_kinds_and_the_run_it_wants(shop: Shop) -> None:
    shop.offer(workflow("r"), call("r", "a", "agent"), call("r", "b", "bash"), call("s", "c", "agent"))
    assert shop.claim(kinds=("agent", "bash"), run_id="r") == ["r/a", "r/b"]
    assert shop.claim(kinds=("step",)) == []
    assert shop.claim(run_id="s") == ["s/c"]


def test_runs_take_turns(shop: Shop) -> None:
    shop.offer(*calls("big", "a", "b", "c"), *calls("small", "x", "y"))
    assert shop.claim() == ["big/a", "small/x", "big/b", "small/y", "big/c"]


def test_a_run_that_comes_late_does_not_wait_for_the_whole_fan_out_of_another(shop: Shop) -> None:
    shop.offer(*calls("big", *"abcdefgh"))
    shop.claim(limit=3)
    shop.offer(*calls("small", "x"))
    assert "small/x" in shop.claim(limit=2)


def test_a_run_of_single_steps_does_not_starve_a_fan_out(shop: Shop) -> None:
    shop.offer(*calls("big", *"abcdefgh"), call("small", "0"))
    taken = []
    for number in range(1, 9):
        [claimed] = shop.claim(limit=1)
        taken.append(claimed)
        shop.finish(claimed)
        if claimed.startswith("small"):
            shop.offer(call("small", str(number)))
    assert sum(claimed.startswith("big") for claimed in taken) == 4


def test_runs_that_want_to_advance_are_served_in_the_order_they_asked(shop: Shop) -> None:
    shop.offer(workflow("r"), workflow("s"))
    assert shop.claim(limit=1) == ["r/"]
    shop.offer(workflow("r"))
    shop.finish("r/")
    assert shop.claim() == ["s/", "r/"]


def test_a_row_waits_for_its_time(shop: Shop) -> None:
    soon = shop.clock.wall + 60
    shop.offer(call("r", "nap", "timer", visible_at=soon), call("r", "sleep", "timer", visible_at=soon + 60))
    assert shop.claim() == []
    assert shop.queue.next_visible() == soon
    shop.clock.advance(60)
    assert shop.claim() == ["r/nap"]
    assert shop.queue.next_visible() == soon + 60


def test_a_row_whose_time_has_come_is_named_until_somebody_claims(shop: Shop) -> None:
    soon = shop.clock.wall + 60
    shop.offer(call("r", "nap", "timer", visible_at=soon))
    shop.clock.advance(61)
    assert shop.queue.next_visible() == soon
    shop.claim()
    assert shop.queue.next_visible() is None


def test_a_row_that_sleeps_does_not_let_newcomers_in_at_its_old_turn(shop: Shop) -> None:
    shop.offer(call("old", "nap", visible_at=shop.clock.wall + 60), *calls("big", *"abcd"))
    shop.claim(limit=2)
    shop.offer(call("small", "x"))
    assert shop.claim(limit=2) == ["big/c", "small/x"]


def test_an_offered_call_stays_as_it_is(shop: Shop) -> None:
    later = shop.clock.wall + 5
    shop.offer(call("r", "a", visible_at=later))
    shop.offer(replace(call("r", "a"), fingerprint="fp1:other"))
    assert shop.claim() == []
    assert [row.work for row in shop.queue.work()] == [call("r", "a", visible_at=later)]


def test_a_run_that_was_put_off_is_woken_by_an_earlier_offer(shop: Shop) -> None:
    shop.offer(workflow("r", visible_at=shop.clock.wall + 60))
    shop.offer(workflow("r"))
    assert shop.claim() == ["r/"]


def test_a_run_is_not_put_off_by_a_later_offer(shop: Shop) -> None:
    shop.offer(workflow("r"))
    shop.offer(workflow("r", visible_at=shop.clock.wall + 60))
    assert shop.claim() == ["r/"]


# --- the end of a lease -----------------------------------------------------------------------------------------


def test_a_finished_row_is_gone(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim()
    shop.finish("r/a")
    assert shop.queue.work() == []


def test_a_run_that_was_offered_while_it_advanced_gets_one_more_turn(shop: Shop) -> None:
    shop.offer(workflow("r"))
    shop.claim()
    shop.offer(workflow("r"), workflow("r"))
    assert shop.claim("bob") == []
    shop.finish("r/")
    assert shop.claim() == ["r/"]
    assert shop.leases["r/"].claims == 1
    shop.finish("r/")
    assert shop.queue.work() == []


def test_a_turn_that_is_wanted_later_waits_for_its_time(shop: Shop) -> None:
    shop.offer(workflow("r"))
    shop.claim()
    shop.offer(workflow("r", visible_at=shop.clock.wall + 60))
    shop.finish("r/")
    assert shop.claim() == []
    shop.clock.advance(60)
    assert shop.claim() == ["r/"]


def test_a_call_that_was_offered_while_it_executed_is_not_executed_again(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim()
    shop.offer(call("r", "a"))
    shop.finish("r/a")
    assert shop.queue.work() == []


def test_a_released_row_is_free_and_its_claim_uncounted(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim()
    shop.release("r/a")
    assert shop.status() == {"r/a": "queued"}
    shop.claim("bob")
    assert shop.leases["r/a"].claims == 1


def test_a_run_that_was_offered_while_it_advanced_is_claimable_once_released(shop: Shop) -> None:
    shop.offer(workflow("r"))
    shop.claim()
    shop.offer(workflow("r"))
    shop.release("r/")
    assert shop.claim() == ["r/"]
    shop.finish("r/")
    assert shop.queue.work() == []


def test_a_token_that_no_longer_holds_changes_nothing(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim()
    stale = replace(shop.leases["r/a"], token="0123456789abcdef")
    shop.queue.apply(Change(finish=[stale], release=[stale]), "bob")
    assert shop.status() == {"r/a": "leased"}
    assert shop.queue.renew([stale], 30.0) == {stale.token: "lost"}


# --- withdrawing ------------------------------------------------------------------------------------------------


def test_a_free_row_that_is_withdrawn_is_gone(shop: Shop) -> None:
    shop.offer(*calls("r", "a", "b"))
    shop.withdraw(call("r", "a"), call("r", "never-offered"))
    assert shop.status() == {"r/b": "queued"}


def test_the_holder_of_a_withdrawn_call_is_told_to_kill_it(shop: Shop) -> None:
    shop.offer(*calls("r", "a", "b"))
    shop.claim()
    shop.withdraw(call("r", "a"))
    assert shop.status() == {"r/a": "withdrawn", "r/b": "leased"}
    assert (shop.renew("r/a"), shop.renew("r/b")) == ("withdrawn", "held")


@pytest.mark.parametrize("ending", ["finish", "release"])
def test_a_withdrawn_row_is_gone_when_its_holder_lets_go(shop: Shop, ending: str) -> None:
    shop.offer(call("r", "a"))
    shop.claim()
    shop.withdraw(call("r", "a"))
    getattr(shop, ending)("r/a")
    assert shop.queue.work() == []


def test_a_withdrawn_row_is_never_claimed_again(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim("ada")
    shop.withdraw(call("r", "a"))
    shop.clock.advance(31)
    assert shop.claim("bob") == []
    assert shop.queue.work() == []


def test_a_withdrawn_row_that_is_offered_again_is_queued_again(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim("ada")
    old = shop.leases["r/a"]
    shop.withdraw(call("r", "a"))
    shop.offer(call("r", "a"))
    assert shop.claim("bob") == ["r/a"]
    assert shop.queue.renew([old], 30.0) == {old.token: "lost"}


# --- stuck runs -------------------------------------------------------------------------------------------------


def test_rows_of_a_stuck_run_wait_and_others_go_on(shop: Shop) -> None:
    shop.offer(workflow("r"), call("r", "a"), call("s", "b"))
    shop.stick("r")
    assert shop.claim() == ["s/b"]
    shop.queue.apply(Change(unstuck=["r"]), "ada")
    assert shop.claim() == ["r/", "r/a"]


def test_a_stuck_run_does_not_hold_back_the_turns_of_others(shop: Shop) -> None:
    shop.offer(call("stuck", "a"), *calls("big", *"abcdef"))
    shop.stick("stuck")
    shop.claim(limit=3)
    shop.offer(call("small", "x"))
    assert shop.claim(limit=2) == ["big/d", "small/x"]


def test_a_mark_keeps_since_when_and_takes_the_newest_reason(shop: Shop) -> None:
    shop.stick("r", key="a", code="3f2a")
    shop.clock.advance(60)
    shop.stick("r", key="a", code="3f2a", runner="bob")
    shop.stick("r", key="a", code="77aa")
    first, second = shop.queue.stuck("r")
    assert (first.since, first.code, first.runner) == ("2026-11-29T12:00:00.000Z", "3f2a", "bob")
    assert (second.since, second.code) == ("2026-11-29T12:01:00.000Z", "77aa")


def test_a_run_that_ended_is_no_longer_stuck(shop: Shop) -> None:
    shop.stick("r")
    shop.put(run("r", status="cancelled"))
    assert shop.queue.stuck("r") == []


# --- noticing ---------------------------------------------------------------------------------------------------


def test_writes_of_others_are_noticed_once_and_own_ones_never(shop: Shop) -> None:
    other = shop.another()
    shop.offer(call("r", "a"))
    assert not shop.queue.changed()
    assert other.changed()
    assert not other.changed()
    other.apply(Change(offer=[call("r", "b")]), "bob")
    assert shop.queue.changed()


def test_a_claim_of_nothing_is_no_change(shop: Shop) -> None:
    other = shop.another()
    shop.offer(call("r", "sleeps", visible_at=shop.clock.wall + 60))
    other.changed()
    assert shop.claim() == []
    assert not other.changed()
