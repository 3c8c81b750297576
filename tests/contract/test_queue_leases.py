"""Who may take a lease from whom, and when: time, boots, dead processes, and the holder of a live body."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.queues import Shop, beat, call, dead_process, open_shop, workflow

from hermes_workflows.store.liveness import Process
from hermes_workflows.store.queue_port import Change, Claim, Lease, Work


@pytest.fixture(params=["memory", "sqlite"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    with open_shop(request.param, tmp_path) as shop:
        yield shop


# --- who may take a lease from whom -----------------------------------------------------------------------------


def test_a_lease_that_ran_out_is_given_to_somebody_else_and_counted(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim("ada")
    shop.clock.advance(29)
    assert shop.claim("bob") == []
    shop.clock.advance(1)
    assert shop.claim("bob") == ["r/a"]
    assert shop.leases["r/a"].claims == 2


def test_a_wall_clock_that_jumps_ends_no_lease(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim("ada")
    shop.clock.wall += 3600
    assert shop.claim("bob") == []
    assert shop.status() == {"r/a": "leased"}


def test_a_renewed_lease_lasts(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim("ada")
    shop.clock.advance(29)
    assert shop.renew("r/a") == "held"
    shop.clock.advance(29)
    assert shop.claim("bob") == []


def test_a_slow_holder_may_still_renew_what_nobody_has_taken(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim("ada")
    shop.clock.advance(31)
    assert shop.claim("bob", kinds=("agent",)) == []
    assert shop.status() == {"r/a": "expired"}
    assert shop.renew("r/a") == "held"
    assert shop.claim("bob") == []


def test_a_slow_holder_may_still_finish_what_nobody_has_taken(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim("ada")
    shop.clock.advance(31)
    shop.claim("bob", kinds=("agent",))
    shop.finish("r/a")
    assert shop.queue.work() == []


def test_an_offer_to_a_run_whose_lease_ran_out_survives_its_slow_holder(shop: Shop) -> None:
    shop.offer(workflow("r"))
    shop.claim("ada")
    shop.clock.advance(31)
    shop.claim("bob", kinds=("agent",))
    shop.offer(workflow("r"))
    shop.finish("r/")
    assert shop.claim("bob") == ["r/"]


def test_who_takes_a_run_over_has_seen_what_was_offered_before(shop: Shop) -> None:
    shop.offer(workflow("r"))
    shop.claim("ada")
    shop.offer(workflow("r"))
    shop.clock.advance(31)
    shop.claim("bob")
    shop.finish("r/", runner="bob")
    assert shop.queue.work() == []


def test_a_holder_learns_that_his_lease_is_lost(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim("ada")
    lost = shop.leases["r/a"]
    shop.clock.advance(31)
    shop.claim("bob")
    assert shop.queue.renew([lost], 30.0) == {lost.token: "lost"}
    shop.queue.apply(Change(finish=[lost]), "ada")
    assert shop.status() == {"r/a": "leased"}


def test_after_a_suspend_nobody_runs_his_own_call_twice(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim("ada")
    shop.clock.advance(600)
    assert shop.claim("ada") == []
    assert shop.renew("r/a") == "held"
    assert shop.claim("bob") == []


def test_what_others_have_seen_to_have_run_out_is_not_for_its_own_holder(shop: Shop) -> None:
    shop.offer(call("r", "a"), call("r", "b"), call("r", "c"))
    shop.claim("ada")
    shop.clock.advance(600)
    assert shop.claim("bob", limit=1) == ["r/a"]
    assert shop.status() == {"r/a": "leased", "r/b": "expired", "r/c": "expired"}
    assert shop.claim("ada") == []
    assert shop.renew("r/b") == "held"
    assert shop.claim("bob") == ["r/c"]


def test_a_restarted_runner_of_the_same_name_takes_over_when_the_lease_ran_out(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim("ada")
    restarted = shop.another()
    assert shop.claim("ada", queue=restarted) == []
    shop.clock.advance(31)
    assert shop.claim("ada", queue=restarted) == ["r/a"]


def test_leases_of_another_boot_have_ended(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim("ada")
    shop.clock.boot_id, shop.clock.seconds = "second-boot", 5.0
    assert shop.claim("bob") == ["r/a"]


def test_a_lease_of_a_dead_process_ends_at_once(shop: Shop) -> None:
    shop.queue.heartbeat(beat("ada", shop.clock, dead_process()))
    shop.offer(call("r", "a"))
    shop.claim("ada")
    assert shop.status() == {"r/a": "expired"}
    assert shop.claim("bob") == ["r/a"]
    assert shop.leases["r/a"].claims == 2


def test_a_restarted_runner_of_the_same_name_takes_over_from_its_dead_process_at_once(shop: Shop) -> None:
    shop.queue.heartbeat(beat("ada", shop.clock, dead_process()))
    shop.offer(call("r", "a"))
    shop.claim("ada")
    restarted = shop.another()
    restarted.heartbeat(beat("ada", shop.clock))
    assert shop.claim("ada", queue=restarted) == ["r/a"]


def test_a_pid_that_came_back_is_not_the_process_that_died(shop: Shop) -> None:
    shop.queue.heartbeat(beat("ada", shop.clock, Process.current()._replace(pid_started="1")))
    shop.offer(call("r", "a"))
    shop.claim("ada")
    assert shop.claim("bob") == ["r/a"]


def test_a_process_of_another_host_is_believed_until_its_lease_runs_out(shop: Shop) -> None:
    shop.queue.heartbeat(beat("ada", shop.clock, dead_process()._replace(host="elsewhere")))
    shop.offer(call("r", "a"))
    shop.claim("ada")
    assert shop.claim("bob") == []
    shop.clock.advance(31)
    assert shop.claim("bob") == ["r/a"]


# --- claiming twice over ----------------------------------------------------------------------------------------


def test_what_is_wanted_once_the_limit_is_reached_is_claimed_beside_it(shop: Shop) -> None:
    shop.offer(call("r", "a"), call("r", "b"), call("r", "c"), Work("r", "timer", "t"))
    assert shop.claim("ada", 2, then=Claim(5, ("timer",))) == ["r/a", "r/b", "r/t"]


def test_nothing_beside_is_claimed_by_whoever_gets_less_than_he_wanted(shop: Shop) -> None:
    shop.offer(call("r", "a"), Work("r", "timer", "t"))
    assert shop.claim("ada", 2, kinds=("step",), then=Claim(5, ("timer",))) == ["r/a"]


# --- precedence -------------------------------------------------------------------------------------------------


def advanced_by_ada(shop: Shop) -> None:
    shop.queue.heartbeat(beat("ada", shop.clock))
    shop.offer(workflow("r"))
    shop.claim("ada")
    shop.finish("r/")
    shop.offer(workflow("r"))


def test_the_holder_of_a_live_body_has_its_row_to_himself_for_a_moment(shop: Shop) -> None:
    advanced_by_ada(shop)
    assert shop.claim("bob") == []
    assert shop.claim("ada") == ["r/"]


def test_the_moment_of_precedence_ends_and_is_foretold(shop: Shop) -> None:
    advanced_by_ada(shop)
    assert shop.queue.next_visible() == pytest.approx(shop.clock.wall + 0.2)
    shop.clock.advance(0.21)
    assert shop.queue.next_visible() is None
    assert shop.claim("bob") == ["r/"]


def test_a_turn_wanted_again_belongs_to_the_same_holder_for_a_moment(shop: Shop) -> None:
    shop.queue.heartbeat(beat("ada", shop.clock))
    shop.offer(workflow("r"))
    shop.claim("ada")
    shop.offer(workflow("r"))
    shop.finish("r/")
    assert shop.claim("bob") == []
    assert shop.claim("ada") == ["r/"]


def test_a_runner_whose_heartbeat_is_late_has_no_precedence(shop: Shop) -> None:
    shop.queue.heartbeat(beat("ada", shop.clock))
    shop.offer(workflow("r"))
    shop.claim("ada")
    shop.finish("r/")
    shop.clock.advance(31)
    shop.offer(workflow("r"))
    assert shop.claim("bob") == ["r/"]


def test_a_runner_that_said_goodbye_has_no_precedence(shop: Shop) -> None:
    shop.queue.heartbeat(beat("ada", shop.clock))
    shop.offer(workflow("r"))
    shop.claim("ada")
    shop.finish("r/")
    shop.queue.goodbye("ada")
    shop.offer(workflow("r"))
    assert shop.claim("bob") == ["r/"]


def test_a_precedence_of_another_boot_means_nothing(shop: Shop) -> None:
    advanced_by_ada(shop)
    shop.clock.boot_id, shop.clock.seconds = "second-boot", 5.0
    assert shop.claim("bob") == ["r/"]


def bodies_of_ada_and_bob(shop: Shop) -> None:
    """Ada has the bodies of a1 and a2, and Bob has that of b; each asks for a call, a1 first."""
    for runner, runs in (("ada", ["a1", "a2"]), ("bob", ["b"])):
        for run in runs:
            shop.offer(workflow(run))
            shop.claim(runner)
            shop.finish(f"{run}/", runner=runner)
    for run in ("a1", "a2", "b"):
        shop.offer(call(run, "x"))


def test_who_has_a_runs_body_comes_first_to_its_calls(shop: Shop) -> None:
    bodies_of_ada_and_bob(shop)
    assert shop.claim("bob", 1) == ["b/x"]


def test_nobody_stands_idle_for_another_runners_body(shop: Shop) -> None:
    bodies_of_ada_and_bob(shop)
    assert shop.claim("bob", 3) == ["b/x", "a1/x", "a2/x"]


def test_who_takes_a_call_of_another_runners_run_has_its_body_from_then_on(shop: Shop) -> None:
    bodies_of_ada_and_bob(shop)
    shop.claim("bob", 3)
    shop.offer(call("b", "y"), call("a1", "y"))
    assert shop.claim("ada", 1) == ["b/y"]  # in turn, since Ada has neither body
    shop.offer(call("a2", "y"))
    assert shop.claim("bob", 1) == ["a1/y"]


def test_a_call_that_has_waited_for_its_runs_body_waits_no_longer(shop: Shop) -> None:
    bodies_of_ada_and_bob(shop)
    shop.clock.advance(1.1)
    assert shop.claim("bob", 1) == ["a1/x"]


# --- what is executed before the queue knows of it --------------------------------------------------------------


def own(work: Work) -> Lease:
    return Lease(work, "of-my-own", claims=1)


def test_a_call_that_is_entered_is_leased_like_one_that_was_claimed(shop: Shop) -> None:
    shop.leases["r/b"] = own(call("r", "b"))
    shop.queue.apply(Change(enter=[shop.leases["r/b"]]), "ada")
    assert shop.status() == {"r/b": "leased"}
    assert (shop.claim("bob"), shop.renew("r/b")) == ([], "held")
    shop.clock.advance(31)
    assert shop.claim("bob") == ["r/b"]
    assert shop.leases["r/b"].claims == 2


def test_one_change_may_enter_a_call_and_give_it_back(shop: Shop) -> None:
    lease = own(call("r", "b"))
    shop.queue.apply(Change(enter=[lease], release=[lease]), "ada")
    assert shop.claim("bob") == ["r/b"]
    assert shop.leases["r/b"].claims == 1


def test_entering_takes_a_free_row_and_none_that_somebody_has(shop: Shop) -> None:
    shop.offer(call("r", "a"), call("r", "b"))
    shop.claim("bob", limit=1)
    shop.queue.apply(Change(enter=[own(call("r", "a")), replace(own(call("r", "b")), token="another")]), "ada")
    shop.finish("r/a", runner="bob")
    assert shop.status() == {"r/b": "leased"}
    assert shop.claim("bob") == []
