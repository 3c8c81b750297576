"""Three runners on one workspace under everything that a machine does to them.

Every run ends right, no receipt is lost, no path is written twice, and what `status` shows is at every moment what
follows from the facts that the test reads for itself. `make soak` is the long form.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.clocks import VARIABLE
from tests.acceptance.workspaces import Site, observed
from tests.soak.flows import ENDS, FLOWS
from tests.soak.people import People
from tests.soak.trouble import SmallDisk, Trouble
from tests.soak.truth import Seen, Truth, plain

SECONDS = float(os.environ.get("SOAK_SECONDS", "6"))
RUNS = int(os.environ.get("SOAK_RUNS", "13"))
SEED = int(os.environ.get("SOAK_SEED", random.randrange(1_000_000)))
_TRIES = 4

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads the processes' truth from /proc")


@dataclass
class Soak:
    site: Site
    marks: Path
    trouble: Trouble
    chance: random.Random
    people: People = field(init=False)
    truth: Truth = field(init=False)
    states: Counter[str] = field(default_factory=Counter)
    undecided: int = 0
    names: list[str] = field(default_factory=list)
    tips: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.people = People(self.site, self.marks, self.chance, lambda: self.trouble.passing)
        self.truth = Truth(self.site, self.trouble.shown)
        self.trouble.look = self._look

    def go_through(self, seconds: float, runs: int) -> None:
        """Start runs evenly over three quarters of the time, and let something happen all the time."""
        begin, flows = time.monotonic(), self._flows(runs)
        while (passed := time.monotonic() - begin) < seconds or not self.trouble.has_done_everything:
            while len(self.people.started) < min(runs, 1 + runs * passed / (0.75 * seconds)):
                if not self.people.start(flows[len(self.people.started)]):
                    break
            self.trouble.one()
            self.trouble.assert_alive()
            self.names = list(self.people.round() or self.people.started)
            self.tips |= set(self.site.tips().items())
            self._check_some()
        self.trouble.calm()
        while len(self.people.started) < runs:
            self.people.start(flows[len(self.people.started)])

    def _flows(self, runs: int) -> list[str]:
        """Each kind as often as the others, in any order."""
        flows = [list(ENDS)[n % len(ENDS)] for n in range(runs)]
        self.chance.shuffle(flows)
        return flows

    def finish(self, seconds: float) -> dict[str, Any]:
        """Let everything come to its end undisturbed."""
        until = time.monotonic() + seconds
        while (open_runs := self.people.round(quiet=True)) != {}:
            self.trouble.assert_alive()
            assert time.monotonic() < until, self._told(open_runs or {})
        self.names = list(self.people.started)
        self._check_some()
        self.trouble.end()
        return {run["workflow_id"]: run for run in self.site.run("list", "--limit", "1000").json}

    def _told(self, runs: dict[str, Any]) -> str:
        told = {name: (run["state"], run["reason"], run["next_action"]) for name, run in runs.items()}
        return f"{told}\n" + "\n".join(runner.stderr[-3000:] for runner in self.trouble.runners)

    # -- states --------------------------------------------------------------------------------------------------

    def _check_some(self) -> None:
        self._check(self.chance.choice(self.names))
        with self.trouble.stand_still():
            self._check_still()

    def _look(self) -> None:
        if self.names:
            self._check_still()

    def _check_still(self) -> None:
        self._check(self.chance.choice(self.names))
        self._check_list(self.chance.choices(self.names, k=3))

    def _check(self, run_id: str) -> None:
        """What is shown follows from what was true before it was asked for, and still after."""
        for _ in range(_TRIES):
            before = self.truth.look(run_id)
            shown = self.site.run("status", run_id)
            if shown.code == 0 and self._is_true(run_id, before, shown.json):
                return
        self.undecided += 1

    def _check_list(self, names: list[str]) -> None:
        before = {name: self.truth.look(name) for name in names}
        shown = self.site.run("list", "--limit", "1000")
        for run in shown.json if shown.code == 0 else []:
            name = run["workflow_id"]
            if name in before and not self._is_true(name, before[name], run):
                self.undecided += 1

    def _is_true(self, run_id: str, before: Seen | None, told: dict[str, Any]) -> bool:
        """False when something has happened meanwhile, so that nobody can say what should have been shown."""
        after = self.truth.look(run_id)
        if before is None or after is None or before.still != after.still:
            return False
        found = tuple(map(plain, (told["state"], told["label"], told["reason"], told["next_action"])))
        wanted = [tuple(map(plain, seen.state)) for seen in (before, after)]
        assert found in wanted, f"{run_id}: shown\n{found}\ntrue\n{wanted[0]}\n{before}\n{after}"
        self.states[told["state"]] += 1
        return True


@pytest.fixture
def soak(tmp_path: Path) -> Iterator[Soak]:
    marks = tmp_path / "marks"
    marks.mkdir()
    with SmallDisk(tmp_path / "disk", 64 + 2 * RUNS) as disk:
        site = Site(disk.folder / "ws", {VARIABLE: str(tmp_path / "clock")}, FLOWS.replace("@MARKS@", str(marks)))
        chance = random.Random(SEED)
        trouble = Trouble(site, disk, tmp_path / "clock", chance)
        yield Soak(site, marks, trouble, chance)
        trouble.calm()
        for runner in trouble.runners:
            runner.kill()


def test_whatever_happens_every_run_ends_right_and_every_state_is_true(soak: Soak) -> None:
    print(f"SOAK_SEED={SEED} SOAK_SECONDS={SECONDS:g} SOAK_RUNS={RUNS}", file=sys.stderr)
    soak.go_through(SECONDS, RUNS)
    runs = soak.finish(60 + SECONDS)
    print(f"{soak.trouble.counts}, states {dict(soak.states)}, {soak.undecided} undecided", file=sys.stderr)
    for name, flow in soak.people.started.items():
        _, status, result = ENDS[flow]
        wanted = name if result == "@" else result
        assert (runs[name]["status"], runs[name]["result"]) == (status, wanted), runs[name]
    for (name, key), payload in soak.people.answers.items():
        assert soak.site.run("review", "show", name, key).json["answer"] == payload
    _assert_launched_once(soak)
    _assert_nothing_lost(soak)
    soak.site.assert_sound()
    soak.trouble.lose_index()
    assert observed({run["workflow_id"]: run for run in soak.site.run("list", "--limit", "1000").json}) == observed(
        runs
    )


def _assert_launched_once(soak: Soak) -> None:
    """At most once, and once more for each person who said that it had not happened."""
    for name, flow in soak.people.started.items():
        if flow == "careful":
            times = (soak.marks / f"launch-{name}").read_text().count("x")
            assert 1 <= times <= 1 + soak.people.repeated.count(name), name


def _assert_nothing_lost(soak: Soak) -> None:
    """What a ref named once is part of what it names now."""
    for ref in {ref for ref, _ in soak.tips}:
        whole = set(soak.site.git("rev-list", ref).split())
        assert {commit for name, commit in soak.tips if name == ref} <= whole, ref
