"""Two live owners of the same calls, in every order of their steps, with leases that run out in between.

A step goes from one write to the next: a claim, what it finds, an intent, the execution, a renewal, the receipt, the
end of the lease. Whoever comes first is called ada: the other half is the same with the names exchanged.
`TWO_OWNERS_PLAYS` says how many longer orders are tried, `TWO_OWNERS_SEED` which; the seed is printed. With more of
them than `make test` tries, both names come first, and leases run out between any two steps.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import combinations
from pathlib import Path

import pytest
from tests.guarantees.owners import Owner, Place
from tests.guarantees.turns import every, some

from hermes_workflows.store import ahead

PLAYS = int(os.environ.get("TWO_OWNERS_PLAYS", "30"))
SOAK = PLAYS > 30
SEED = int(os.environ.get("TWO_OWNERS_SEED", random.SystemRandom().randrange(1_000_000) if SOAK else 1))
# Orders in which something went wrong once: a call was executed by the one who had it in hand already.
FOUND = (5112,)

CALLS = 30
HEAD = """
from pathlib import Path
from hermes_workflows import ask, parallel, workflow
from hermes_workflows.authoring import step

def effect(name: str) -> None:
    with (Path(__file__).parent / "effects").open("a") as file:
        file.write(name + "\\n")

@step
def work(n: int) -> int:
    effect(f"work-{n}")
    return n + 1

@step(at_most_once=True)
def once(n: int) -> int:
    effect(f"once-{n}")
    return n + 1
"""
ONE_BY_ONE = """
@workflow
async def flow(n: int) -> int:
    for _ in range(CALLS):
        n = await STEP(n)
    return n
"""
TOGETHER = """
@workflow
async def flow(n: int) -> int:
    first = sum(await parallel([work(n), once(n), work(n + 1)]))
    return first + await once(n + 2)
"""


ORDERS = {
    "".join("a" if place in own else "b" for place in range(12))
    for own in map(set, combinations(range(12), 6))
    if SOAK or 0 in own
}
"""Of two owners with six steps each; those of ada are an `a`."""


def has_something_to_do(order: str) -> bool:
    """Unless somebody who has claimed a call finds its receipt: then it goes without four of its steps."""
    at = {name: [place for place, each in enumerate(order) if each == name] for name in "ab"}
    return not any(at[one][0] < at[other][5] and at[other][4] < at[one][1] for one, other in ("ab", "ba"))


class Calls:
    """One open call after the other, of as many runs as are needed."""

    def __init__(self, place: Place) -> None:
        self._place, self._runs = place, 0

    def next(self) -> str:
        run_id = f"wf{self._runs}"
        if not self._runs or len(self._place.paths(run_id)) > CALLS - 5:
            if self._runs:
                self._place.settle(run_id, execute=True)
            self._runs += 1
            run_id = f"wf{self._runs}"
            self._place.start(run_id, 1000 * self._runs)
        return run_id


def in_every_order(place: Place) -> Iterator[list[str]]:
    """The steps of two who own one call, another call each time."""
    calls, (ada, bob) = Calls(place), place.owners
    acts = {"ada": ada.own_one, "bob": bob.own_one}
    notices = (lambda step: True) if SOAK else (lambda step: step.startswith(("claim", "renew")))
    for choose in every(first=None if SOAK else "ada"):
        run_id = calls.next()
        place.watch.turns.play(acts, choose, {"leases run out": place.expire}, notices)
        place.settle(run_id)
        place.is_right(run_id)
        yield place.watch.turns.steps
    place.settle(run_id, execute=True)
    place.is_whole()


def test_in_every_order_of_two_owners_of_one_call_there_is_one_receipt_and_they_agree(tmp_path: Path) -> None:
    with closing(Place(tmp_path, HEAD + ONE_BY_ONE.replace("CALLS", str(CALLS)).replace("STEP", "work"))) as place:
        orders = {"".join(step[0] for step in steps if ":" in step) for steps in in_every_order(place)}
    assert orders >= set(filter(has_something_to_do, ORDERS)), "the steps of a call are no longer those counted here"


def test_in_every_order_of_two_owners_a_call_that_may_run_once_does(tmp_path: Path) -> None:
    with closing(Place(tmp_path, HEAD + ONE_BY_ONE.replace("CALLS", str(CALLS)).replace("STEP", "once"))) as place:
        for steps in in_every_order(place):
            assert max(place.effects().values()) == 1, steps
        assert set(place.effects().values()) == {1}


@pytest.mark.parametrize("bursts", [False, True], ids=["one by one", "in bursts"])
def test_two_runners_of_whole_runs_agree_in_whatever_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bursts: bool
) -> None:
    monkeypatch.setattr(ahead, "LANDS_WITHIN", 3600.0)
    monkeypatch.setattr(ahead, "BEGINS_WITHIN", 3600.0)
    with closing(Place(tmp_path, HEAD + TOGETHER, bursts=bursts)) as place:
        for number, seed in enumerate([*FOUND, *range(SEED, SEED + PLAYS // 2)]):
            print(f"TWO_OWNERS_SEED={seed} TWO_OWNERS_PLAYS=2")
            run_id = f"wf{number}"
            place.people.start("flow.py:flow", 10 * number, run_id=run_id)
            place.watch.reads = number % 2 == 1
            moments = {f"leases run out {nth}": place.expire for nth in (1, 2)}
            place.watch.turns.play(acts(place, run_id), some(seed), moments)
            place.settle(run_id, execute=True)
            place.is_right(run_id)
            assert place.people.summary(run_id).result == 3 * (10 * number + 1) + 1 + 10 * number + 3
        effects = place.effects()
        assert {count for name, count in effects.items() if name.startswith("once")} == {1}
        place.is_whole()


def test_two_runners_of_bursts_agree_in_whatever_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that one of them executes before the queue knows of them."""
    monkeypatch.setattr(ahead, "LANDS_WITHIN", 3600.0)
    monkeypatch.setattr(ahead, "BEGINS_WITHIN", 3600.0)
    code = HEAD + ONE_BY_ONE.replace("CALLS", "8").replace("STEP", "work")
    with closing(Place(tmp_path, code, bursts=True)) as place:
        for owner in place.owners:
            owner.in_bursts = True
        for number, seed in enumerate(range(SEED, SEED + PLAYS)):
            print(f"TWO_OWNERS_SEED={seed} TWO_OWNERS_PLAYS=1")
            run_id = f"wf{number}"
            place.people.start("flow.py:flow", 100 * number, run_id=run_id)
            place.watch.reads = number % 2 == 1
            moments = {f"leases run out {nth}": place.expire for nth in range(1, 1 + number % 3)}
            before = place.effects()
            place.watch.turns.play(acts(place, run_id), some(seed), moments)
            place.settle(run_id, execute=True)
            place.is_right(run_id)
            assert place.people.summary(run_id).result == 100 * number + 8
            if not moments:
                assert set((place.effects() - before).values()) == {1}, "nobody does what another one has in hand"
        assert all(owner.steps_in_bursts > PLAYS for owner in place.owners)
        place.is_whole()


def test_whoever_was_second_leaves_the_run_to_its_row(tmp_path: Path) -> None:
    """The first one goes on with it, and may execute what the queue does not know of."""
    with closing(Place(tmp_path, HEAD + ONE_BY_ONE.replace("CALLS", "8").replace("STEP", "work"))) as place:
        place.start("wf", 0)
        for owner in place.owners:
            owner.dispatcher.turn(1, None)
            owner.execute()
            place.expire()
        second, first = place.owners
        first.record()
        second.record()
        assert [(work.kind, work.key) for work in second.records.pending.offer] == [("workflow", "")]
        assert ("step", "work-2") in [(work.kind, work.key) for work in first.records.pending.offer]


def acts(place: Place, run_id: str) -> dict[str, Callable[[], object]]:
    """Each runner's threads, until the run has its end."""
    at_work = {owner.name for owner in place.owners}

    def ended() -> bool:
        # Not from the index: whoever asks that brings it up to date, and may find work for those who have left.
        return place.people.ledger.file(run_id, "result.json") is not None and not place.people.queue.work(run_id)

    def loop(owner: Owner) -> None:
        owner.loop(ended)
        at_work.remove(owner.name)

    made: dict[str, Callable[[], object]] = {}
    for owner in place.owners:
        made[f"{owner.name} loop"] = partial(loop, owner)
        made[f"{owner.name} hands"] = partial(owner.hands, lambda: not at_work)
        made[f"{owner.name} keeper"] = partial(owner.keeper, lambda: not at_work)
    return made
