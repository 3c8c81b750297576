"""Everybody who is not a runner: they start runs, answer, send signals, cancel, pause, and mend what is stuck."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.acceptance.nursery import Child
from tests.acceptance.workspaces import Site
from tests.soak.flows import ENDS

_BY = ("--by", "ana")
_TEST = (*_BY, "--channel", "tests", "--kind", "test")


class People:
    """`trouble` says whether a command may be refused at the moment; it is given again on the next round."""

    def __init__(self, site: Site, marks: Path, chance: random.Random, trouble: Callable[[], bool]) -> None:
        self.site = site
        self.chance = chance
        self.started: dict[str, str] = {}
        self.answers: dict[tuple[str, str], Any] = {}
        self.repeated: list[str] = []
        self._marks = marks
        self._trouble = trouble
        self._paused: set[str] = set()
        self._ended: set[str] = set()

    def start(self, flow: str) -> bool:
        """Start a run; False when that was refused for now."""
        name = f"{flow}-{len(self.started)}"
        given = json.dumps(ENDS[flow][0]).replace("@", name)
        text = () if ENDS[flow][0] is None else ("--input-json", given)
        if self._say("run", flow, "--id", name, *text) is None:
            return False
        self.started[name] = flow
        return True

    def round(self, *, quiet: bool = False) -> dict[str, Any] | None:
        """Do what the open runs want, and return them; None when they could not be listed.

        `quiet` people leave nothing undone, pause nothing and resume everything.
        """
        open_runs = self._open_runs()
        if open_runs is None:
            return None
        for name, run in open_runs.items():
            if run["paused"] is not None:
                if quiet or self.chance.random() < 0.3:
                    self._say("resume", name, *_BY)
            elif run["state"] == "stuck":
                self._mend(name, run)
            elif quiet or self.chance.random() < 0.4:
                self._serve(name, run)
        if open_runs and not quiet and self.chance.random() < 0.2:
            self._say("pause", self.chance.choice(list(open_runs)), "--reason", "a break", *_BY)
        return open_runs

    def _open_runs(self) -> dict[str, Any] | None:
        found: dict[str, Any] = {}
        for narrowed in (("--status", "running"), ("--status", "waiting"), ()):
            if found and not narrowed:
                break  # only an empty answer needs proof: between two questions a run may change its place
            shown = self._say("list", *narrowed, "--limit", "2000")
            if shown is None:
                return None
            found |= {run["workflow_id"]: run for run in shown.json if run["status"] in ("running", "waiting")}
        return found

    def _serve(self, name: str, run: Mapping[str, Any]) -> None:
        flow = name.partition("-")[0]
        for wait in run["waits"]:
            payload = ("--json", '{"version": "1.2"}')
            self._say("signal", name, wait["name"], *payload, *_TEST, "--message-id", name)
        if not run["waiting_on"]:
            return
        key = run["waiting_on"]["key"]
        if flow == "stopped":
            now = ("--now",) if self.chance.random() < 0.3 else ()
            self._say("cancel", name, "--reason", "enough", *_BY, *now)
        elif flow == "asking":
            # The first round is sent back, the second one approved.
            self._answer(name, key, {"action": "approve" if key.endswith("-2") else "revise", "feedback": "shorter"})
        elif flow == "above":
            self._answer(name, key, "staging")

    def _answer(self, name: str, key: str, payload: Any) -> None:
        given = ("--json", json.dumps(payload), *_TEST, "--message-id", f"{name}/{key}")
        if self._say("review", "respond", name, key, *given) is not None:
            self.answers[name, key] = payload

    def _mend(self, name: str, run: Mapping[str, Any]) -> None:
        """What the state says is to be done, word by word as far as a person would type it."""
        if "hermes-workflows resolve" in run["next_action"]:
            self._resolve(name)
        elif "hermes-workflows retry" in run["next_action"]:
            self._say("retry", name, *_BY)

    def _resolve(self, name: str) -> None:
        happened = (self._marks / f"launch-{name}").exists()
        what = ("--happened", json.dumps(name)) if happened else ("--did-not-happen",)
        if self._say("resolve", name, "launch", *what, "--why", "I looked", *_BY) is not None and not happened:
            self.repeated.append(name)

    def _say(self, *arguments: str) -> Child | None:
        """A command, which is understood, or refused for a reason that passes."""
        before = self._trouble()
        said = self.site.run(*arguments)
        if said.code == 0:
            return said
        # 4 and 5: the run has moved on since it was looked at; 74 and 75: the disk is full, a file is locked.
        passing = (4, 5, 74, 75) if before or self._trouble() else (4, 5, 75)
        assert said.code in passing, f"{arguments}: {said.code}: {said.stderr}"
        assert "Traceback" not in said.stderr, said.stderr
        return None
