"""What happens to three runners and their machine: death, stand-still, clocks, git, a lost index, a full disk."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Self

from tests.acceptance.clocks import ShiftedClock, set_clock
from tests.acceptance.nursery import Child
from tests.acceptance.workspaces import Site

from hermes_workflows.errors import StoreFailure

RUNNERS = 3
_GIT = (("gc", "--quiet"), ("repack", "-adq"), ("pack-refs", "--all"), ("maintenance", "run", "--quiet"))
_HOUR = 3600.0
# Seconds in which a runner has opened everything.
_BEGINNING = 2.0


class SmallDisk:
    """A file system of its own whose end can be brought near, without writing it full.

    An ordinary folder, which never is, where none can be mounted.
    """

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        self.size = megabytes << 20
        folder.mkdir()
        self.mounted = self._mount("-t", "tmpfs", "-o", f"size={self.size}", "tmpfs")

    def fill(self) -> bool:
        """Leave less than a step needs."""
        with suppress(OSError):
            for spare in (65536, 1 << 18):
                used = self._used() + spare
                if self.mounted and self._mount("-o", f"remount,size={used}"):
                    return True
        return False

    def free(self) -> None:
        assert self._mount("-o", f"remount,size={self.size}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.mounted:
            subprocess.run(["umount", "-l", self.folder], check=True)

    def _used(self) -> int:
        disk = os.statvfs(self.folder)
        return (disk.f_blocks - disk.f_bfree) * disk.f_frsize

    def _mount(self, *arguments: str) -> bool:
        command = ["mount", *arguments, str(self.folder)]
        return bool(shutil.which("mount")) and subprocess.run(command, capture_output=True, check=False).returncode == 0


def holders(site: Site) -> str:
    """The processes that hold leases; nothing while the file is being made."""
    try:
        with closing(sqlite3.connect(f"file:{site.sqlite}?mode=ro", uri=True)) as connection:
            return str(connection.execute("SELECT holder FROM work WHERE state = 'leased'").fetchall())
    except sqlite3.Error:
        return ""


def is_being_written(site: Site) -> bool:
    with suppress(FileNotFoundError), open(f"{site.sqlite}.lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    try:
        with closing(sqlite3.connect(f"file:{site.sqlite}?mode=rw", uri=True, timeout=0)) as connection:
            connection.execute("BEGIN IMMEDIATE")
    except sqlite3.Error as error:
        return "locked" in str(error)
    return False


class Trouble:
    """Three runners, and what is done to them. `passing` says that commands may be refused at the moment."""

    def __init__(self, site: Site, disk: SmallDisk, clock: Path, chance: random.Random) -> None:
        self.site = site
        self.disk = disk
        self.chance = chance
        self.counts: dict[str, int] = {}
        # Called while nothing moves, right after something has.
        self.look: Callable[[], None] = lambda: None
        self.full = False
        self._begun: dict[int, float] = {}
        self._filled = 0.0
        self._clock = clock
        self._wall = self._furthest = self._boot = 0.0
        self._stopped: dict[int, tuple[threading.Timer, Child]] = {}
        self._room = threading.Timer(0.0, self.disk.free)
        self._helpers: list[subprocess.Popen[bytes]] = []
        set_clock(clock)
        self.shown = ShiftedClock(str(clock))
        self.runners = [self._runner(n) for n in range(RUNNERS)]
        self._deeds: dict[Callable[[], None], int] = {
            self.kill: 5,
            self.stop: 3,
            self.jump: 2,
            self.suspend: 1,
            self.maintain: 3,
            self.lose_index: 1,
            self.damage_index: 1,
            self.age_index: 2,
            self.fill: 2,
        }
        self._first = [*self._deeds, self.age_index]
        chance.shuffle(self._first)

    def one(self) -> None:
        """Let what is over be over, then do one thing: each once, and then by chance."""
        self._end_what_is_over()
        deed = self._first.pop() if self._first else self.chance.choices(*zip(*self._deeds.items(), strict=True))[0]
        deed()
        name = deed.__name__
        self.counts[name] = self.counts.get(name, 0) + 1

    @property
    def has_done_everything(self) -> bool:
        return not self._first

    @property
    def passing(self) -> bool:
        return self.full or bool(self._stopped)

    # -- runners -------------------------------------------------------------------------------------------------

    def _runner(self, place: int) -> Child:
        self._begun[place] = time.monotonic()
        return self.site.runner("--worker-id", f"runner-{place}", "--lease-seconds", "4", "--debug")

    def kill(self) -> None:
        """Mostly one at work; another one takes its name and its place."""
        place = self.chance.randrange(RUNNERS)
        self._go_on(place)
        if self.chance.random() < 0.7:
            self._wait_until_at_work(self.runners[place])
        time.sleep(self.chance.uniform(0.0, 0.03))
        self.runners[place].kill()
        self.runners[place] = self._runner(place)

    def _wait_until_at_work(self, victim: Child) -> None:
        until = time.monotonic() + 0.3
        while time.monotonic() < until and f" {victim.pid}," not in holders(self.site):
            time.sleep(0.002)

    def stop(self) -> None:
        """For a moment, or for longer than its leases."""
        place = self.chance.randrange(RUNNERS)
        seconds = self.chance.choice([self.chance.uniform(0.05, 0.5), self.chance.uniform(4.0, 6.0)])
        self._go_on(place)
        victim = self.runners[place]
        victim.send(signal.SIGSTOP)
        # Whoever waits for a lock that it holds must not be the one who lets it go on.
        alarm = threading.Timer(seconds, os.kill, (victim.pid, signal.SIGCONT))
        alarm.daemon = True
        alarm.start()
        self._stopped[place] = (alarm, victim)

    def _go_on(self, place: int) -> None:
        if place in self._stopped:
            alarm, victim = self._stopped.pop(place)
            alarm.cancel()
            victim.send(signal.SIGCONT)

    @contextmanager
    def stand_still(self) -> Iterator[None]:
        """No runner takes a step meanwhile, except when one of them is all the time in the middle of writing the index.

        Whoever looks would wait for it, and it for whoever looks.
        """
        moving = [runner for place, runner in enumerate(self.runners) if place not in self._stopped]
        try:
            for _ in range(100):
                self._send(moving, signal.SIGSTOP)
                if not is_being_written(self.site):
                    break
                self._send(moving, signal.SIGCONT)
                time.sleep(0.05)
            yield
        finally:
            self._send(moving, signal.SIGCONT)

    def _send(self, runners: Sequence[Child], number: int) -> None:
        for runner in runners:
            runner.send(number)

    def assert_alive(self) -> None:
        for place, runner in enumerate(self.runners):
            if runner.lives():
                continue
            # Where the index is lost as well, it cannot even begin, and whoever supervises it starts it again.
            full = runner.code == StoreFailure.exit_code and "disk is full" in runner.stderr
            no_room = full and self._begun[place] > self._filled - _BEGINNING
            assert no_room, f"a runner ended by itself with {runner.code}: {runner.stderr[-4000:]}"
            self.runners[place] = self._runner(place)

    # -- their machine -------------------------------------------------------------------------------------------

    def jump(self) -> None:
        self._set(self.chance.choice([-_HOUR, 0.0, _HOUR]), self._boot)

    def suspend(self) -> None:
        """Ten minutes pass, for everybody at once."""
        with self.stand_still():
            self._set(self._wall + 600.0, self._boot + 600.0)
            self.look()

    def _set(self, wall: float, boot: float) -> None:
        self._wall, self._boot = wall, boot
        self._furthest = max(self._furthest, wall)
        set_clock(self._clock, wall, boot)

    def maintain(self) -> None:
        """Git's own upkeep, beside whatever is written; it may give up, and nobody else may."""
        arguments = self.chance.choice(_GIT)
        command = ["git", "-C", str(self.site.receipts), *arguments]
        self._helpers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def lose_index(self) -> None:
        for file in self.site.sqlite.parent.glob("workflows.sqlite*"):
            file.unlink(missing_ok=True)

    def damage_index(self) -> None:
        with suppress(OSError):
            how = self.chance.choice([b"", b"garbage" * 2000, None])
            if how is None:
                os.truncate(self.site.sqlite, 5000)
            else:
                self.site.sqlite.write_bytes(how)

    def age_index(self) -> None:
        """Somebody puts back a copy: the next time, of what is there now."""
        copy = self._clock.with_suffix(".sqlite")
        if copy.exists():
            with self.stand_still():
                self._put_back(copy)
                self.look()
            copy.unlink()
            return
        with (
            suppress(sqlite3.Error),
            closing(sqlite3.connect(f"file:{self.site.sqlite}?mode=ro", uri=True)) as old,
            closing(sqlite3.connect(copy)) as new,
        ):
            old.backup(new)

    def _put_back(self, copy: Path) -> None:
        for ending in ("-wal", "-shm"):
            self.site.sqlite.with_name(self.site.sqlite.name + ending).unlink(missing_ok=True)
        with suppress(OSError):
            shutil.copy(copy, self.site.sqlite.with_name("copy"))
            os.replace(self.site.sqlite.with_name("copy"), self.site.sqlite)

    def fill(self) -> None:
        """For a moment, or for longer than anybody who reads waits for those who write."""
        seconds = self.chance.choice([self.chance.uniform(0.3, 1.5), self.chance.uniform(2.5, 4.0)])
        if not self.full and self.disk.fill():
            self.full, self._filled = True, time.monotonic()
            # As with those that are stopped.
            self._room = threading.Timer(seconds, self.disk.free)
            self._room.daemon = True
            self._room.start()

    def _end_what_is_over(self, *, all_of_it: bool = False) -> None:
        for place, (alarm, _) in list(self._stopped.items()):
            if all_of_it or not alarm.is_alive():
                self._go_on(place)
        if self.full and (all_of_it or not self._room.is_alive()):
            self._room.cancel()
            self._room.join()
            self.disk.free()
            self.full = False
        self._helpers = [each for each in self._helpers if each.poll() is None]

    def calm(self) -> None:
        """Nothing happens any more; all that is due by any clock there was is due now."""
        self._end_what_is_over(all_of_it=True)
        self._set(self._furthest, self._boot)

    def end(self) -> None:
        """Runners that are told to end do so."""
        for helper in self._helpers:
            helper.wait()
        for runner in self.runners:
            runner.send(signal.SIGTERM)
        for runner in self.runners:
            assert runner.wait() == 0, runner.stderr[-4000:]
