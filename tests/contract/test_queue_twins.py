"""The same random history on both queues: whatever comes, they answer the same."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.contract.queues import FrozenClock, Shop, beat, call, dead_process, name, open_shop, run, workflow

from hermes_workflows.store.index import IndexQueue
from hermes_workflows.store.liveness import Process, new_token
from hermes_workflows.store.queue_port import Change, Claim, Kind, Lease, Stuck, Work

RUNS, KEYS, RUNNERS = ("r", "s", "t"), "abcdef", ("ada", "bob", "eve")
HISTORIES, STEPS = 40, 80


class History:
    """Random events; each is applied to one queue at a time and answered with what can be compared."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.clock = FrozenClock()
        self.held: list[Work] = []

    def event(self) -> tuple[str, Any]:
        kind = self.random.choice(
            ["offer", "offer", "claim", "claim", "enter", "end", "withdraw", "renew", "stuck", "time", "beat"]
        )
        return kind, getattr(self, f"_{kind}")()

    def _work(self) -> Work:
        visible_at = self.clock.wall + self.random.choice([-1, -1, -1, 5, 40])
        run_id = self.random.choice(RUNS)
        if self.random.random() < 0.3:
            return workflow(run_id, visible_at)
        work = call(run_id, self.random.choice(KEYS), self.random.choice(["step", "agent"]), visible_at)
        return replace(work, name=self.random.choice(["writer", "editor"]) if work.kind == "agent" else "")

    def _offer(self) -> list[Work]:
        return [self._work() for _ in range(self.random.randint(1, 4))]

    def _claim(self) -> tuple[str, Claim]:
        kinds: tuple[Kind, ...] = self.random.choice([(), (), ("step",), ("workflow",)])
        run_id = self.random.choice([None, None, *RUNS])
        limits = self.random.choice([(), (), (("step", 1),), (("agent:writer", 1), ("agent", 2))])
        return self.random.choice(RUNNERS), Claim(self.random.randint(0, 4), kinds, run_id, limits)

    def _enter(self) -> tuple[str, Work]:
        return self.random.choice(RUNNERS), call(self.random.choice(RUNS), self.random.choice(KEYS))

    def _end(self) -> tuple[str, str, float]:
        return self.random.choice(["finish", "release"]), self.random.choice(RUNNERS), self.random.random()

    def _withdraw(self) -> list[tuple[str, str]]:
        return [(work.run_id, work.key) for work in self._offer()]

    def _renew(self) -> float:
        return self.random.random()

    def _stuck(self) -> Change:
        run_id = self.random.choice(RUNS)
        if self.random.random() < 0.6:
            return Change(unstuck=[run_id])
        return Change(stuck=[Stuck(run_id, "divergence", "differs", "restore")], index=[run(run_id)])

    def _time(self) -> tuple[float, float]:
        return self.random.choice([0.1, 1.0, 20.0, 31.0]), self.random.choice([0.0, 0.0, -7.0])

    def _beat(self) -> tuple[str, Process]:
        return self.random.choice(RUNNERS), self.random.choice([Process.current(), dead_process()])


class Player:
    """Plays events on one queue and keeps its own leases, whose tokens are its own too."""

    def __init__(self, shop: Shop, clock: FrozenClock) -> None:
        self.queue: IndexQueue = shop.queue
        self.clock = clock
        self.leases: dict[str, Lease] = {}

    def play(self, kind: str, what: Any) -> Any:
        return getattr(self, f"_{kind}")(what)

    def _offer(self, works: list[Work]) -> None:
        self.queue.apply(Change(offer=works), "offerer")

    def _claim(self, what: tuple[str, Claim]) -> list[tuple[str, int, tuple[str, ...]]]:
        runner, claim = what
        leases = self.queue.apply(Change(claim=claim), runner)
        self.leases.update((name(lease.work), lease) for lease in leases)
        return [(name(lease.work), lease.claims, lease.lost) for lease in leases]

    def _enter(self, what: tuple[str, Work]) -> None:
        runner, work = what
        lease = self.leases[name(work)] = Lease(work, new_token(), claims=1)
        self.queue.apply(Change(enter=[lease]), runner)

    def _end(self, what: tuple[str, str, float]) -> None:
        how, runner, chance = what
        if lease := self._some(chance):
            self.queue.apply(Change(finish=[lease]) if how == "finish" else Change(release=[lease]), runner)

    def _withdraw(self, calls: list[tuple[str, str]]) -> None:
        self.queue.apply(Change(withdraw=calls), "ada")

    def _renew(self, chance: float) -> list[str]:
        lease = self._some(chance)
        return [*self.queue.renew([lease], 30.0).values()] if lease else []

    def _stuck(self, change: Change) -> None:
        self.queue.apply(change, "ada")

    def _time(self, _: tuple[float, float]) -> None:
        pass

    def _beat(self, what: tuple[str, Process]) -> None:
        runner, process = what
        self.queue.heartbeat(beat(runner, self.clock, process))

    def _some(self, chance: float) -> Lease | None:
        names = sorted(self.leases)
        return self.leases[names[int(chance * len(names))]] if names else None

    def seen(self) -> Any:
        rows = [replace(row, work=replace(row.work, fingerprint="")) for row in self.queue.work()]
        next_visible = self.queue.next_visible()
        return rows, None if next_visible is None else round(next_visible, 6), self.queue.runners(), self.queue.stuck()


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_both_queues_answer_the_same(seed: int, tmp_path: Path) -> None:
    history, log = History(seed), []
    with ExitStack() as stack:
        shops = [stack.enter_context(open_shop(kind, tmp_path, history.clock)) for kind in ("memory", "sqlite")]
        players = [Player(shop, history.clock) for shop in shops]
        for _ in range(STEPS):
            kind, what = history.event()
            log.append((kind, what))
            if kind == "time":
                history.clock.advance(what[0])
                history.clock.wall += what[1]
            memory, sqlite = ((player.play(kind, what), player.seen()) for player in players)
            assert memory == sqlite, log
