"""MemoryQueue's status index, inbox and heartbeats: the twin of index_table.py."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ..core.summary import RunSummary
from .held import is_past
from .liveness import Process
from .queue_port import Counts, InboxPage, Indexed, ReviewRow, RunnerRow, Stuck, Took
from .rows import OPEN, merged, withdrawn
from .wanted import Wanted, WantedReviews, searched
from .work_table import Moment


@dataclass
class MemoryIndex:
    runs: dict[str, Indexed] = field(default_factory=dict)
    inbox: dict[tuple[str, str], ReviewRow] = field(default_factory=dict)
    marks: dict[tuple[str, str, str, str], Stuck] = field(default_factory=dict)
    beats: dict[tuple[str, Process], RunnerRow] = field(default_factory=dict)
    stamp: str = ""

    def put(self, rows: Iterable[Indexed]) -> None:
        for indexed in rows:
            run_id = indexed.summary.run_id
            known = self.runs.get(run_id)
            if known is None or indexed.summary.seq >= known.summary.seq:
                self.runs[run_id] = replace(indexed, reviews=())
            for review in indexed.reviews:
                name = (review.run_id, review.key)
                self.inbox[name] = merged(self.inbox.get(name), review)
            if indexed.summary.ended:
                self._close(run_id)

    def _close(self, run_id: str) -> None:
        self.unstick([run_id])
        for review in self.reviews(run_id, OPEN):
            self.inbox[run_id, review.key] = withdrawn(review)

    def put_stuck(self, marks: Iterable[Stuck], now: str) -> None:
        for mark in marks:
            name = (mark.run_id, mark.kind, mark.key, mark.code)
            known = self.marks.get(name)
            self.marks[name] = replace(mark, since=known.since if known else mark.since or now)

    def unstick(self, run_ids: Iterable[str]) -> None:
        freed = set(run_ids)
        self.marks = {name: mark for name, mark in self.marks.items() if name[0] not in freed}

    def is_stuck(self, run_id: str) -> bool:
        return any(name[0] == run_id for name in self.marks)

    def forget(self, run_id: str) -> None:
        self.runs.pop(run_id, None)
        self.inbox = {name: row for name, row in self.inbox.items() if name[0] != run_id}
        self.unstick([run_id])

    def page(self, wanted: Wanted, limit: int, offset: int) -> list[Indexed]:
        found = [row for row in self.runs.values() if self._is(wanted, row.summary)]
        found.sort(key=lambda row: (row.summary.started_at or "", row.summary.run_id), reverse=True)
        return found[offset : offset + limit]

    def _is(self, wanted: Wanted, run: RunSummary) -> bool:
        marks = [mark.reason.casefold() for mark in self.marks.values() if mark.run_id == run.run_id]
        return (
            (not wanted.statuses or run.status in wanted.statuses)
            and wanted.workflow in (None, run.workflow)
            and wanted.source in (None, (run.source or {}).get("run"))
            and (wanted.older is None or (run.started_at or "", run.run_id) < wanted.older)
            and all(any(word in text for text in (searched(run), *marks)) for word in wanted.words)
        )

    def counts(self) -> list[Counts]:
        names = sorted({row.summary.workflow for row in self.runs.values()})
        return [self._counts(name) for name in names]

    def _counts(self, workflow: str) -> Counts:
        statuses: list[str] = [row.summary.status for row in self.runs.values() if row.summary.workflow == workflow]
        return Counts(workflow, len(statuses), *map(statuses.count, ("completed", "failed", "cancelled")))

    def lately(self, workflow: str, limit: int) -> list[Took]:
        runs = [row.summary for row in self.page(Wanted(workflow=workflow), limit, 0)]
        return [Took(run.started_at or "", run.finished_at, run.usage) for run in runs]

    def started_from(self, run_id: str) -> list[str]:
        found = [row.summary for row in self.runs.values() if (row.summary.source or {}).get("run") == run_id]
        return [each.run_id for each in sorted(found, key=lambda each: (each.started_at or "", each.run_id))]

    def reviews(self, run_id: str | None, status: str | None) -> list[ReviewRow]:
        found = [row for row in self.inbox.values() if run_id in (None, row.run_id) and status in (None, row.status)]
        return sorted(found, key=lambda row: (row.requested_at or "", row.run_id, row.key))

    def inbox_page(self, wanted: WantedReviews, limit: int, offset: int) -> InboxPage:
        asked = [(row, self._workflow(row.run_id)) for row in self.reviews(None, wanted.status)]
        found = [
            (row, workflow)
            for row, workflow in asked
            if wanted.workflow in (None, workflow) and wanted.assignee in (None, row.assignee)
        ]
        people = {row.assignee for row, _ in asked if row.assignee}
        workflows = {workflow for _, workflow in asked}
        return InboxPage(found[offset : offset + limit], len(found), sorted(workflows), sorted(people))

    def _workflow(self, run_id: str) -> str:
        known = self.runs.get(run_id)
        return known.summary.workflow if known else ""

    def stuck(self, run_id: str | None) -> list[Stuck]:
        found = [mark for mark in self.marks.values() if run_id in (None, mark.run_id)]
        return sorted(found, key=lambda mark: (mark.since, mark.run_id, mark.kind, mark.key))

    def beat(self, row: RunnerRow, *, first: bool) -> None:
        if first:
            self.beats = {name: old for name, old in self.beats.items() if not is_past(old, row)}
        name = row.runner_id, Process.of(row)
        wanted = row.draining or (name in self.beats and self.beats[name].draining)
        self.beats[name] = replace(row, draining=wanted)

    def drain(self, runner_id: str | None) -> None:
        asked = {name: row for name, row in self.beats.items() if runner_id in (None, row.runner_id)}
        self.beats |= {name: replace(row, draining=True) for name, row in asked.items()}

    def goodbye(self, runner_id: str, process: Process | None) -> None:
        def leaves(name: tuple[str, Process]) -> bool:
            return name[0] == runner_id and process in (None, name[1])

        self.beats = {name: row for name, row in self.beats.items() if not leaves(name)}

    def runners(self) -> list[RunnerRow]:
        return sorted(self.beats.values(), key=lambda row: (row.started_at, row.runner_id, row.pid))

    def is_beating(self, runner_id: str, moment: Moment) -> bool:
        rows = [row for row in self.beats.values() if row.runner_id == runner_id and row.boot_id == moment.boot_id]
        return any(row.elapsed + row.lease_seconds > moment.elapsed for row in rows)
