"""Two who add to one run in bursts and one who reads it, with their calls to the system in any order.

One of them runs at a time; before each call another one may go on, as a seed says. Time passes when somebody waits.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.contract.ledgers import append, git, impatient, open_git, start, step_draft
from tests.contract.test_bursts import keys

from hermes_workflows.errors import StoreFailure, TemporarilyLocked
from hermes_workflows.store import ahead, awaited, flocks, objects
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.ports import Appended, Entry

_CALLS = ("open", "pwrite", "ftruncate", "link", "rename", "unlink", "write", "stat", "fstat", "fdatasync", "close")
_LONG = 0.4


@dataclass
class Actor:
    """`owner` is whose process it is in; `asleep` until when that is suspended, or it waits."""

    owner: str
    act: Callable[[], object]
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    asleep: float = 0.0
    done: bool = False
    error: BaseException | None = None


class Stage:
    """Lets one actor go on at a time, chosen by a seed."""

    def __init__(self, seed: int, suspended: str) -> None:
        self.now = 0.0
        self.actors: dict[int, Actor] = {}
        self._chance = random.Random(seed)  # an order to try, no secret
        self._suspend = (suspended, self._chance.randrange(1500)) if suspended else ("", -1)
        self._back = threading.Semaphore(0)
        self._turns = 0

    def play(self, actors: list[Actor]) -> None:
        for actor in actors:
            thread = threading.Thread(target=self._perform, args=[actor], daemon=True)
            thread.start()
            self._back.acquire()
        while any(not actor.done for actor in actors):
            self._turns += 1
            if self._turns == self._suspend[1]:
                for actor in actors:
                    if actor.owner == self._suspend[0]:
                        actor.asleep = self.now + _LONG
            awake = [actor for actor in actors if not actor.done and actor.asleep <= self.now]
            if not awake:
                self.now = min(actor.asleep for actor in actors if not actor.done)
                continue
            self._chance.choice(awake).go.release()
            assert self._back.acquire(timeout=5), "somebody holds a lock that the one whose turn it is waits for"
        for actor in actors:
            if actor.error:
                raise actor.error

    def _perform(self, actor: Actor) -> None:
        self.actors[threading.get_ident()] = actor
        self._back.release()
        actor.go.acquire()
        try:
            actor.act()
        except BaseException as error:
            actor.error = error
        del self.actors[threading.get_ident()]
        actor.done = True
        self._back.release()

    def pause(self, seconds: float = 0.0) -> None:
        if actor := self.actors.get(threading.get_ident()):
            actor.asleep = max(actor.asleep, self.now + seconds)
            self._back.release()
            actor.go.acquire()

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in _CALLS:
            monkeypatch.setattr(os, name, self.seen(getattr(os, name)))
        monkeypatch.setattr(fcntl, "flock", self.seen(fcntl.flock))
        monkeypatch.setattr(flocks, "_GUARD", self.lock())

    def seen(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.pause()
            return real(*arguments, **options)

        return call

    def lock(self) -> Any:
        """A lock that lets others go on while it is waited for."""
        real = threading.RLock()

        class Lock:
            def __enter__(lock) -> None:  # noqa: N805  # `self` is the stage
                while not real.acquire(blocking=False):
                    self.pause(0.001)

            def __exit__(lock, *error: object) -> None:  # noqa: N805
                real.release()

        return Lock()


def stopped(stage: Stage, folder: Path) -> GitLedger:
    patience = impatient(ours=0.1, theirs=1.0, stale=0.05, pause=0.01, monotonic=lambda: stage.now, sleep=stage.pause)
    ledger = open_git(folder, bursts=True, patience=patience)
    ledger._ahead._landing, ledger._ahead.guard = stage.lock(), stage.lock()
    return ledger


@pytest.mark.parametrize("suspended", ["", "a", "b"], ids=["all go on", "one is suspended", "the other is suspended"])
@pytest.mark.parametrize("packed_from", [1, 1000], ids=["packs", "loose"])
@pytest.mark.parametrize("seed", range(3))
def test_in_any_order_nothing_is_lost_or_recorded_twice_or_seen_and_not_seen_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, packed_from: int, suspended: str
) -> None:
    monkeypatch.setattr(ahead, "LANDS_WITHIN", 0.02)
    monkeypatch.setattr(ahead, "BEGINS_WITHIN", 3600.0)
    monkeypatch.setattr(awaited, "_READERS_WAIT", 3600.0)
    monkeypatch.setattr(objects, "PACKED_FROM", packed_from)
    monkeypatch.setattr(ahead.Ahead, "_watch", lambda self: None)
    stage = Stage(seed, suspended)
    ledgers = {name: stopped(stage, tmp_path) for name in ("a", "b", "reader")}
    start(ledgers["a"])
    recorded: list[str] = []
    first: dict[str, list[str]] = {}

    def add(owner: str) -> None:
        for n in range(6):
            key = f"{owner}{n}" if n % 2 else f"both{n}"
            outcome = None
            while outcome is None:
                with contextlib.suppress(TemporarilyLocked, StoreFailure):
                    outcome = append(ledgers[owner], Entry("wf_a", (step_draft(key, owner),)))
            if isinstance(outcome, Appended):
                first.setdefault(key, []).append(owner)
                recorded.append(key)

    def land(owner: str) -> None:
        while any(not each.done for each in (*adding, reading)):
            ledgers[owner]._ahead.look()
            stage.pause(0.005)

    def read() -> None:
        seen: list[str] = []
        while any(not each.done for each in adding):
            acknowledged = set(recorded)
            found = keys(ledgers["reader"])
            assert found[: len(seen)] == seen
            assert acknowledged <= set(found)
            seen = found
            stage.pause(0.01)

    adding = [Actor(owner, lambda owner=owner: add(owner)) for owner in "ab"]  # type: ignore[misc]
    landing = [Actor(owner, lambda owner=owner: land(owner)) for owner in "ab"]  # type: ignore[misc]
    reading = Actor("reader", read)
    with monkeypatch.context() as watched:
        stage.watch(watched)
        stage.play([*adding, *landing, reading])
    for ledger in ledgers.values():
        ledger.close()
    assert all(len(owners) == 1 for owners in first.values())
    is_right(tmp_path, recorded)


def is_right(folder: Path, recorded: list[str]) -> None:
    ledger = open_git(folder)
    found = keys(ledger)
    assert sorted(found) == sorted(set(found))
    assert set(recorded) <= set(found)
    assert list(ledger.rejected()) == []
    assert "error" not in git(ledger, "fsck", "--strict", check=False)
