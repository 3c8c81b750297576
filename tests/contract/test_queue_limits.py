"""Limits that hold for all runners together, who was lost in a call, and what a claim without limits costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.queues import Shop, beat, call, calls, dead_process, open_shop, workflow

from hermes_workflows.store.queue_port import DECIDING, Change, Claim, Work
from hermes_workflows.store.sqlite_queue import SqliteQueue
from hermes_workflows.store.tables import IS_DECIDING


@pytest.fixture(params=["memory", "sqlite"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    with open_shop(request.param, tmp_path) as shop:
        yield shop


def asks(run_id: str, key: str, agent: str) -> Work:
    return Work(run_id, "agent", key, f"fp1:{key}", name=agent)


def lose(shop: Shop, name: str, times: int) -> None:
    """Runners claim a call, and their processes die in it."""
    for number in range(times):
        runner = f"dead-{number}"
        shop.queue.heartbeat(beat(runner, shop.clock, dead_process()))
        assert name in shop.claim(runner)
        shop.clock.advance(31)


# --- limits -----------------------------------------------------------------------------------------------------


def test_a_limit_holds_for_all_runners_together(shop: Shop) -> None:
    shop.offer(*(call("r", key, "bash") for key in "abcd"))
    limits = (("bash", 3),)
    assert shop.claim("ada", limit=2, limits=limits) == ["r/a", "r/b"]
    assert shop.claim("bob", queue=shop.another(), limits=limits) == ["r/c"]
    assert shop.claim("eve", limits=limits) == []
    shop.finish("r/a")
    assert shop.claim("eve", limits=limits) == ["r/d"]


def test_one_agent_may_be_limited_among_all(shop: Shop) -> None:
    shop.offer(asks("r", "a", "writer"), asks("r", "b", "writer"), asks("r", "c", "editor"), asks("r", "d", "editor"))
    limits = (("agent:writer", 1), ("agent", 2))
    assert shop.claim(limits=limits) == ["r/a", "r/c"]
    shop.finish("r/c")
    assert shop.claim(limits=limits) == ["r/d"]


def test_what_there_is_no_room_for_does_not_hold_up_what_stands_behind_it(shop: Shop) -> None:
    shop.offer(*(call("big", str(n), "bash") for n in range(50)), call("big", "last", "step"))
    assert shop.claim(limit=3, limits=(("bash", 1),)) == ["big/0", "big/last"]


def test_runs_take_turns_at_a_limit(shop: Shop) -> None:
    shop.offer(*(call("big", str(n), "bash") for n in range(5)))
    limits = (("bash", 1),)
    taken = shop.claim(limits=limits)
    shop.offer(call("small", "x", "bash"))
    while len(taken) < 4:
        shop.finish(taken[-1])
        taken += shop.claim(limits=limits)
    assert "small/x" in taken[1:3]


def test_a_lease_that_is_over_leaves_room(shop: Shop) -> None:
    shop.queue.heartbeat(beat("ada", shop.clock, dead_process()))
    shop.offer(call("r", "a", "bash"), call("r", "b", "bash"))
    assert shop.claim("ada", limit=1, limits=(("bash", 1),)) == ["r/a"]
    assert shop.claim("bob", limits=(("bash", 1),)) == ["r/a"]


def test_a_withdrawn_call_counts_until_its_holder_has_let_go(shop: Shop) -> None:
    shop.offer(call("r", "a", "bash"), call("r", "b", "bash"))
    shop.claim(limit=1, limits=(("bash", 1),))
    shop.withdraw(call("r", "a"))
    assert shop.claim(limits=(("bash", 1),)) == []
    shop.finish("r/a")
    assert shop.claim(limits=(("bash", 1),)) == ["r/b"]


def test_a_run_with_ten_thousand_queued_calls_lets_others_in_at_once(tmp_path: Path) -> None:
    with open_shop("sqlite", tmp_path) as shop:
        shop.offer(*(call("big", str(n), "bash") for n in range(10_000)))
        shop.claim(limit=4)
        shop.offer(*(call(f"small-{n}", "x", "bash") for n in range(20)))
        # One of the big run's, then one of each other run.
        claimed = [name for _ in range(21) for name in shop.claim(limit=1, limits=(("bash", 100),))]
    assert sum(name.startswith("small-") for name in claimed) == 20


def test_a_claim_without_limits_counts_nothing(tmp_path: Path) -> None:
    said: dict[Any, list[str]] = {}
    for limits in ((), (("bash", 2),)):
        with open_shop("sqlite", tmp_path / str(len(limits))) as shop:
            shop.offer(call("r", "a", "bash"))
            queue = shop.queue
            assert isinstance(queue, SqliteQueue)
            connection = queue._database.connection  # type: ignore[union-attr]
            connection.set_trace_callback(said.setdefault(limits, []).append)
            assert shop.claim(limit=1, limits=limits) == ["r/a"]
            connection.set_trace_callback(None)
    # begin, what is due, whose lease is over, the rows, the claim, commit
    assert len(said[()]) == 6
    assert len(said[("bash", 2),]) == 7


# --- who was lost -----------------------------------------------------------------------------------------------


def test_whoever_takes_a_call_over_learns_who_was_lost_in_it(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    lose(shop, "r/a", 2)
    assert shop.claim("ada") == ["r/a"]
    lost = shop.leases["r/a"].lost
    assert [line.split()[0] for line in lost] == ["dead-0", "dead-1"]
    assert f"(pid {dead_process().pid} on" in lost[0]
    assert "died" in lost[0]


def test_a_holder_that_lives_and_is_late_is_lost_too_and_not_called_dead(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim("ada")
    shop.clock.advance(31)
    shop.claim("bob")
    [line] = shop.leases["r/a"].lost
    assert line.startswith("ada ")
    assert "let its lease run out" in line


def test_a_call_that_is_given_back_or_tried_again_has_lost_nobody(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim("ada")
    shop.release("r/a")
    shop.claim("bob")
    assert shop.leases["r/a"].lost == ()
    shop.clock.advance(31)
    shop.claim("ada")
    shop.finish("r/a")
    shop.offer(call("r", "a"))
    shop.claim("bob")
    assert shop.leases["r/a"].lost == ()


def test_a_restart_of_the_machine_is_no_call_s_fault(shop: Shop) -> None:
    shop.offer(call("r", "a"))
    shop.claim("ada")
    shop.clock.boot_id, shop.clock.seconds = "second-boot", 5.0
    assert shop.claim("bob") == ["r/a"]
    assert (shop.leases["r/a"].claims, shop.leases["r/a"].lost) == (2, ())


def test_of_calls_that_may_have_ended_their_runners_a_runner_gets_one_at_a_time(shop: Shop) -> None:
    shop.offer(*calls("r", "a", "b", "c"))
    lose(shop, "r/a", 2)
    shop.offer(*calls("s", "x", "y"))
    assert shop.claim("ada") == ["r/a", "s/x", "s/y"]
    assert shop.claim("ada") == []
    assert shop.claim("bob", queue=shop.another()) == ["r/b"]
    shop.finish("r/a")
    assert shop.claim("ada") == ["r/c"]


def test_a_suspect_makes_room_for_the_next_one_in_the_change_that_ends_it(shop: Shop) -> None:
    shop.offer(*calls("r", "a", "b"))
    lose(shop, "r/a", 2)
    assert shop.claim("ada") == ["r/a"]
    ended = Change(finish=[shop.leases["r/a"]], claim=Claim(5))
    assert [lease.work.key for lease in shop.queue.apply(ended, "ada")] == ["b"]


def test_whoever_lifts_a_mark_forgives_what_was_lost_in_the_run_s_calls(shop: Shop) -> None:
    shop.offer(*calls("r", "a"))
    lose(shop, "r/a", 2)
    shop.claim("ada")
    shop.release("r/a")
    shop.stick("r")
    shop.queue.apply(Change(unstuck=["r"]), "ada")
    shop.claim("bob")
    assert shop.leases["r/a"].lost == ()


def test_runs_are_suspected_by_a_rule_of_their_own(shop: Shop) -> None:
    shop.offer(workflow("r"), workflow("s"))
    lose(shop, "r/", 2)
    assert shop.claim("ada") == ["r/", "s/"]


# --- the wish that a runner end ---------------------------------------------------------------------------------


def test_a_wish_to_drain_outlives_the_heartbeats_that_do_not_know_of_it(shop: Shop) -> None:
    for runner in ("ada", "bob"):
        shop.queue.heartbeat(beat(runner, shop.clock))
    shop.queue.drain("ada")
    shop.queue.heartbeat(beat("ada", shop.clock))
    assert {row.runner_id: row.draining for row in shop.queue.runners()} == {"ada": True, "bob": False}
    shop.queue.drain()
    assert all(row.draining for row in shop.queue.runners())
    shop.queue.goodbye("ada")
    shop.queue.heartbeat(beat("ada", shop.clock))
    assert {row.runner_id: row.draining for row in shop.queue.runners()} == {"ada": False, "bob": True}


def test_a_change_of_limits_is_no_change_of_rows(shop: Shop) -> None:
    shop.offer(call("r", "a", "bash"))
    before = shop.queue.work()
    assert shop.queue.apply(Change(), "ada") == []
    assert shop.claim(limit=0, limits=(("bash", 1),)) == []
    assert shop.queue.work() == before


def test_what_is_decided_is_found_by_the_kinds_that_need_no_executor() -> None:
    assert f"kind IN {DECIDING}" == IS_DECIDING
