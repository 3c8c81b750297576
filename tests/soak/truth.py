"""The facts of a run as the test itself finds them: receipts by git, rows by SQL, processes by /proc, disks by statvfs.

Nothing here asks the program for a fact; only what follows from facts, `operational_state`, is the program's own.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.acceptance.clocks import ShiftedClock
from tests.acceptance.workspaces import Site
from tests.soak.told import Reader, Told

from hermes_workflows.core.state_facts import Asked, Below, Executing, Facts, Mark
from hermes_workflows.core.states import OperationalState, operational_state

Row = Mapping[str, Any]
_BESIDE = ("$expiry/", "$deadline")


@dataclass(frozen=True)
class Rows:
    """The tables at one instant."""

    work: Sequence[Row] = ()
    stuck: Sequence[Row] = ()
    runners: Sequence[Row] = ()
    file: int = 0


@dataclass(frozen=True)
class Seen:
    """What was found at one instant; two that are `still` the same have nothing between them."""

    facts: Facts
    still: object

    @property
    def state(self) -> OperationalState:
        return operational_state(self.facts)


class Truth:
    def __init__(self, site: Site, clock: ShiftedClock) -> None:
        self.site = site
        self.clock = clock
        self.reader = Reader(site.receipts)

    def look(self, run_id: str) -> Seen | None:
        """None when there is no such run, or no index that could be read."""
        told, rows = self.reader.run(run_id), self._rows()
        if told is None or rows is None:
            return None
        below = {key: self.reader.run(child) for key, child in told.children.items()}
        facts = self._facts(told, rows, [each for each in below.values() if each])
        facts = facts._replace(receipts=str(self.site.receipts), ref=f"runs/{run_id}")
        facts = facts._replace(free=None if told.end else _free(self.site.receipts))
        names = {run_id, *told.children.values()}
        claimed = [
            (row["run_id"], row["key"], row["token"], row["claims"]) for row in rows.work if row["run_id"] in names
        ]
        tips = [each.tip for each in (told, *below.values()) if each]
        # A file that was made anew may for a moment have known of leases that were just being finished.
        return Seen(facts, (_without_time(facts), claimed, tips, rows.file))

    def _rows(self) -> Rows | None:
        try:
            with closing(sqlite3.connect(f"file:{self.site.sqlite}?mode=ro", uri=True, timeout=5)) as connection:
                connection.row_factory = sqlite3.Row
                connection.execute("BEGIN")
                file = self.site.sqlite.stat().st_ino
                work, stuck, runners = (
                    [dict(row) for row in connection.execute(f"SELECT * FROM {name} ORDER BY {order}")]
                    for name, order in (
                        ("work", "id"),
                        ("stuck", "since, run_id, kind, key"),
                        ("runners", "started_at"),
                    )
                )
        except (OSError, sqlite3.Error):
            return None
        return Rows(work, stuck, runners, file)

    def _facts(self, told: Told, rows: Rows, below: Sequence[Told] = ()) -> Facts:
        now = self.clock.now().timestamp()
        own = [row for row in rows.work if row["run_id"] == told.run_id and row["kind"] != "notify"]
        by_standing: dict[str, list[Row]] = {}
        for row in own:
            by_standing.setdefault(self._standing(row), []).append(row)
        free, leased, lost = (by_standing.get(each, []) for each in ("free", "leased", "expired"))
        due = [row for row in free if row["visible_at"] <= now]
        later = [row for row in free if row["visible_at"] > now and not row["key"].startswith(_BESIDE)]
        later = [row for row in later if row["kind"] != "child"]
        question = next(iter(told.questions), None)
        return Facts(
            run_id=told.run_id,
            status=told.status,  # type: ignore[arg-type]
            question=question["key"] if question else None,
            asked=_asked(question, now) if question else Asked(),
            error=told.error,
            failed_at=told.failed_at,
            cancel_requested=told.cancelled is not None,
            cancelled=told.cancelled,
            paused=told.paused,
            marks=tuple(Mark(row["reason"], row["hint"]) for row in rows.stuck if row["run_id"] == told.run_id),
            queued=len(due),
            oldest=max((now - max(_seconds(row["offered_at"]), row["visible_at"]) for row in due), default=0.0),
            executing=tuple(map(_name, leased)),
            longest=self._longest(leased, rows, now),
            lost=tuple(map(_name, lost)),
            lost_by=self._lost_by(lost[0]["runner"], rows) if lost else None,
            repeated=next((_name(row) for row in (*due, *later, *lost) if row["claims"] >= 3), None),
            due=_moment(min(row["visible_at"] for row in later)) if later else None,
            signals=tuple(told.signals),
            children=tuple(told.children.values()),
            below=tuple(self._below(child, rows) for child in below),
            **self._of_runners(told.run_id, leased, rows),
        )

    def _of_runners(self, run_id: str, leased: Sequence[Row], rows: Rows) -> dict[str, Any]:
        lives = {id(row): self._life(row) for row in rows.runners}
        up = [row for row in rows.runners if lives[id(row)] == "up"]
        deaf = [row for row in rows.runners if lives[id(row)] == "deaf"]
        silent = [row for row in rows.runners if lives[id(row)] == "silent"]
        notes = [line for row in up for line in json.loads(row["executing"])]
        busy, refused = f"{run_id} $busy ", "$refused "
        only_deaf = {row["runner_id"] for row in deaf} - {row["runner_id"] for row in up}
        return {
            "healthy_runners": sum(not row["draining"] for row in up),
            "unable": tuple(f"{row['runner_id']} is draining: it takes nothing new" for row in up if row["draining"]),
            "deaf": tuple(self._told(row, "deaf") for row in deaf),
            "deaf_executing": any(row["runner"] in only_deaf for row in leased),
            "silent": tuple(self._told(row, "silent") for row in silent),
            "busy": next((line.removeprefix(busy) for line in notes if line.startswith(busy)), None),
            "refused": next((line.removeprefix(refused) for line in notes if line.startswith(refused)), None),
        }

    def _below(self, told: Told, rows: Rows) -> Below:
        facts = self._facts(told, rows)
        asks = (told.run_id, facts.question) if facts.question else None
        paused = told.run_id if told.paused is not None and asks is None else None
        return Below(told.run_id, operational_state(facts).label, asks, paused)

    def _longest(self, leased: Sequence[Row], rows: Rows, now: float) -> Executing | None:
        row = min(leased, key=lambda row: row["claimed_at"], default=None)
        if row is None:
            return None
        name = f"{row['run_id']} {row['key']}"
        said = [json.loads(each["said"]) for each in rows.runners if each["runner_id"] == row["runner"]]
        line = next((each[name] for each in said if name in each), "")
        return Executing(_name(row), row["runner"], max(now - _seconds(row["claimed_at"]), 0.0), line)

    # -- processes -----------------------------------------------------------------------------------------------

    def _standing(self, row: Row) -> str:
        if row["withdrawn"]:
            return "withdrawn"
        if row["token"] is None:
            return "free"
        late = row["expires_at"] <= self.clock.elapsed() or row["boot_id"] != self.clock.boot_id
        _, pid, began = json.loads(row["holder"])
        return "expired" if late or row["state"] != "leased" or _gone(pid, began) else "leased"

    def _life(self, row: Row) -> str:
        if _gone(row["pid"], row["pid_started"]):
            return "gone"
        if self.clock.elapsed() - row["elapsed"] > row["lease_seconds"]:
            return "silent"
        return "deaf" if row["silent"] >= 30 else "up"

    def _told(self, row: Row, life: str) -> str:
        what = {
            "gone": "died",
            "silent": "has given no sign of life for 0 s",
            "deaf": "gives signs of life and has done nothing for 0 s",
        }
        return f"{row['runner_id']} (pid {row['pid']} on {row['host']}) {what[life]}"

    def _lost_by(self, runner: str, rows: Rows) -> str | None:
        of_name = [(row, self._life(row)) for row in rows.runners if row["runner_id"] == runner]
        for row, life in sorted(of_name, key=lambda each: each[1] == "gone"):
            who = f"({row['runner_id']}, pid {row['pid']} on {row['host']}) "
            if life == "up":
                return f"{who}lives, and has let its lease run out"
            return who + self._told(row, life).split(") ", 1)[1]
        return None


def _gone(pid: int, began: str) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    fields = stat.rpartition(")")[2].split()
    return fields[0] in "ZX" or fields[19] != began


def _free(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def _name(row: Row) -> str:
    return row["key"] or "the workflow"


def _asked(question: Mapping[str, Any], now: float) -> Asked:
    execution, of = question["execution"], question["request"]["assignee"]
    until = execution.get("expires_at")
    return Asked(of, execution["started_at"], until, until is not None and _seconds(until) <= now)


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# -- what goes on by itself between two looks ------------------------------------------------------------------------


def plain(text: str | None) -> str | None:
    """A reason without the numbers that grow from one second to the next."""
    if text is None:
        return None
    timeless = re.sub(r"for (\d+ (d|h|min|s)\b ?)+", "for a while", text)
    return re.sub(r"[\d,]+ bytes are free", "few bytes are free", timeless)


def _without_time(facts: Facts) -> Facts:
    longest = facts.longest._replace(seconds=0.0) if facts.longest else None
    full = facts.free is not None and facts.free < 256 * 1024
    return facts._replace(oldest=float(facts.oldest > 60), longest=longest, free=int(full))
