"""SIGKILL at random moments: every run ends right, and nothing that was acknowledged is lost.

Most kills hit a runner that has something in hand, since each is preceded by another start; two runners at a time,
and those who start, answer and cancel are killed as well. Every fifth kill the index is deleted, too.
`KILL_SEEDS` says how often there are twenty kills: in `make soak` ten times.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.nursery import Child
from tests.acceptance.workspaces import ENDS, Site, observed

KILLS = 20
SEEDS = int(os.environ.get("KILL_SEEDS", "4"))
_ENDED = ("completed", "failed", "cancelled")


class Mayhem:
    """Runs of every kind, people who answer, and somebody who kills."""

    def __init__(self, site: Site, seed: int) -> None:
        self.site = site
        self.chance = random.Random(seed)
        self.wanted: dict[str, str] = {}
        self.acknowledged: dict[tuple[str, str], Any] = {}
        self.tips: list[dict[str, str]] = []
        for flow in ENDS:
            self.start(flow)
        self.runners = [self._runner() for _ in range(2)]

    def start(self, flow: str) -> None:
        """Somebody starts a run, and may be killed before it is told that it has one: then it is started again."""
        name = f"{flow}-{len(self.wanted)}"
        self.wanted[name] = flow
        text = ("--input-json", json.dumps(ENDS[flow][0])) if ENDS[flow][0] is not None else ()
        child = self.site.command("run", flow, "--id", name, *text)
        if self.chance.random() < 0.3:
            time.sleep(self.chance.uniform(0.0, 0.15))
            child.kill()
            child = self.site.command("run", flow, "--id", name, *text)
        assert child.wait() == 0, child.stderr

    def _runner(self) -> Child:
        return self.site.runner("--worker-id", f"runner-{self.chance.randrange(3)}", "--lease-seconds", "5")

    def kill_one(self) -> None:
        """A runner, mostly one at work, at a random moment, and another one in its place."""
        place = self.chance.randrange(len(self.runners))
        victim = self.runners[place]
        if self.chance.random() < 0.75:
            self._wait_until_at_work(victim)
        time.sleep(self.chance.uniform(0.0, 0.03))
        victim.kill()
        if self.chance.random() < 0.2:
            lose_index(self.site)
        self.runners[place] = self._runner()

    def _wait_until_at_work(self, victim: Child) -> None:
        until = time.monotonic() + 0.3
        while time.monotonic() < until and str(victim.pid) not in self._holders():
            time.sleep(0.002)

    def _holders(self) -> str:
        """The processes that hold leases; nothing while the file is being made."""
        try:
            with closing(sqlite3.connect(f"file:{self.site.sqlite}?mode=ro", uri=True)) as connection:
                return str(connection.execute("SELECT holder FROM work WHERE state = 'leased'").fetchall())
        except sqlite3.Error:
            return ""

    def people(self, *, killing: bool = True) -> None:
        """Answer what is open, cancel what is to be cancelled, and look where everything stands."""
        self.tips.append(self.site.tips())
        for name, run in self.site.statuses().items():
            if run["status"] != "waiting":
                continue
            if name.startswith("stopped"):
                self._say("cancel", name, "--by", "ana", killing=killing)
            elif name.startswith("asking"):
                self._answer(name, run["waiting_on"]["key"], killing)

    def _answer(self, name: str, key: str, killing: bool) -> None:
        # The first round is sent back, the second one approved.
        payload = {"action": "approve" if key.endswith("-2") else "revise", "feedback": "shorter"}
        way = ("--by", "ana", "--channel", "tests", "--kind", "test", "--message-id", key)
        said = self._say("review", "respond", name, key, "--json", json.dumps(payload), *way, killing=killing)
        assert said.code == 0, said.stderr
        self.acknowledged[name, key] = payload

    def _say(self, *arguments: str, killing: bool) -> Child:
        """A command; now and then its process is killed, and it is given again."""
        if killing and self.chance.random() < 0.3:
            child = self.site.command(*arguments)
            time.sleep(self.chance.uniform(0.0, 0.15))
            child.kill()
        return self.site.run(*arguments)

    def finish(self) -> Mapping[str, Any]:
        """Let everything come to its end undisturbed."""
        until = time.monotonic() + 60
        while open_runs := {name: run for name, run in self.site.statuses().items() if run["status"] not in _ENDED}:
            assert time.monotonic() < until, self._told(open_runs)
            self.people(killing=False)
            self._retry(open_runs)
        # Of a run that ended while somebody woke it, a row is left that a runner takes away.
        while "workflow" in {row["kind"] for row in self.site.run("runner", "status").json["work"]}:
            assert time.monotonic() < until, self._told({})
        for child in self.runners:
            child.send(signal.SIGTERM)
        for child in self.runners:
            child.wait()
        return self.site.statuses()

    def _retry(self, runs: Mapping[str, Any]) -> None:
        """What an operator does who has found that it was not the call that killed three runners."""
        for name, run in runs.items():
            if run["state"] == "stuck" and "runners were lost while they executed" in run["reason"]:
                assert self.site.run("retry", name).code in (0, 5)  # 5: it moves again by itself

    def _told(self, runs: Mapping[str, Any]) -> str:
        told = {name: (run["state"], run["reason"]) for name, run in runs.items()}
        return f"{told}\n" + "\n".join(child.stderr[-2000:] for child in self.runners)


def lose_index(site: Site) -> None:
    for file in site.sqlite.parent.glob("workflows.sqlite*"):
        file.unlink(missing_ok=True)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_is_killed_every_run_ends_right(tmp_path: Path, seed: int) -> None:
    site = Site(tmp_path / "ws")
    mayhem = Mayhem(site, seed)
    for kill in range(KILLS):
        if kill % 2:
            mayhem.start(mayhem.chance.choice(list(ENDS)))
        mayhem.kill_one()
        if kill % 5 == 4:
            mayhem.people()
    runs = mayhem.finish()
    for name, flow in mayhem.wanted.items():
        assert (runs[name]["status"], runs[name]["result"]) == ENDS[flow][1:], runs[name]
    # A parent's look at its child may have been put off by a runner that had not heard of the end.
    assert {row["kind"] for row in site.run("runner", "status").json["work"]} <= {"child"}
    for (name, key), payload in mayhem.acknowledged.items():
        assert site.run("review", "show", name, key).json["answer"] == payload
    _assert_nothing_lost(site, mayhem.tips)
    site.assert_sound()
    lose_index(site)
    assert observed(site.statuses()) == observed(runs)


def _assert_nothing_lost(site: Site, tips: list[dict[str, str]]) -> None:
    """What a ref named once is part of what it names now."""
    now = site.tips()
    seen = {(ref, commit) for earlier in tips for ref, commit in earlier.items()}
    for ref, commit in seen:
        if now[ref] != commit:
            site.git("merge-base", "--is-ancestor", commit, now[ref])
