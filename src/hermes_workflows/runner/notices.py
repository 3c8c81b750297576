"""Telling people: the registry's `notify` command, once for each new question, reminder and expiry.

The command gets the notice on its standard input: as JSON, or as the text of a chat (`review.telling`). It may fail or
hang as it likes: that is logged, and no run hears of it. A row that was served stays in the queue, put off for ever,
until its question is closed: it says that the notice went out. So a crash repeats a notice rather than losing it, and
so does the loss of the database.
"""

from __future__ import annotations

import json
import math
import queue
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ..core import layout
from ..core.plain import command_line
from ..core.receipts import ReviewReceipt, load
from ..core.timestamps import render_time
from ..errors import HermesError
from ..review.chat import lines_of
from ..review.evidence import evidence_of
from ..review.telling import message
from ..settings import Notify
from ..store.queue_port import Lease, Work
from ..store.row_keys import ASKED, EXPIRED, FOREVER, REMIND
from .about import about
from .environment import clean_environment
from .jobs import Surroundings
from .pool import Pool
from .processes import Command, Outcome, StopSignal, run_command
from .records import Records, log
from .results import SHUTDOWN

SECONDS = 30.0
"""How long the command may take."""

_AT_ONCE = 2
_EVENTS = {ASKED: "requested", REMIND: "reminder", EXPIRED: "expired"}


@dataclass
class _Going:
    """A notice whose command runs; `again` is its row once it has gone out."""

    lease: Lease
    again: Work | None
    stop: StopSignal = field(default_factory=StopSignal)


class Notices:
    """One database's notices, served beside everything else. Single-threaded but for the commands."""

    def __init__(self, records: Records, around: Surroundings) -> None:
        self._records = records
        self._around = around
        self._pool = Pool(_AT_ONCE)
        self._going: dict[str, _Going] = {}
        self._done: queue.SimpleQueue[_Going] = queue.SimpleQueue()

    @property
    def busy(self) -> bool:
        return bool(self._going)

    @property
    def has_room(self) -> bool:
        """Whether another notice may be claimed: what waits here is served by no other runner."""
        return len(self._going) < _AT_ONCE

    def leases(self) -> list[Lease]:
        return [each.lease for each in list(self._going.values())]

    def serve(self, lease: Lease) -> None:
        """Start the command of a claimed row, or remove one that is not wanted any more."""
        run_id, mark, key = lease.work.run_id, *_split(lease.work.key)
        template = self._records.workspace.registry.notify
        question = _question(self._records, run_id, key)
        if not template or question is None or (mark != EXPIRED and self._is_closed(run_id, key)):
            self._records.pending.finish.append(lease)
            return
        notice = self._notice(run_id, mark, question)
        going = _Going(lease, _again(self._records, lease.work, question))
        self._going[lease.token] = going
        self._pool.submit(lambda: self._tell(going, template, notice))

    def settle(self) -> None:
        """Take back the rows of what has gone out."""
        while not self._done.empty():
            going = self._done.get()
            self._going.pop(going.lease.token, None)
            if going.stop.reason == SHUTDOWN:
                self._records.pending.release.append(going.lease)
                continue
            self._records.pending.finish.append(going.lease)
            if going.again is not None:
                self._records.pending.offer.append(going.again)

    def stop_all(self) -> None:
        for going in self._going.values():
            going.stop.set(SHUTDOWN)

    def give_back(self) -> None:
        """The runner ends: what has not gone out is somebody else's to tell."""
        self.stop_all()
        self.settle()
        for going in list(self._going.values()):
            self._records.pending.release.append(going.lease)
        self._going.clear()
        self._pool.close()

    def _is_closed(self, run_id: str, key: str) -> bool:
        ledger = self._records.workspace.ledger
        return any(ledger.file(run_id, path) is not None for path in (layout.response(key), layout.RESULT))

    def _notice(self, run_id: str, mark: str, question: ReviewReceipt) -> dict[str, Any]:
        indexed = self._records.workspace.queue.indexed(run_id)
        document = notice_of(run_id, _EVENTS[mark], question)
        return document | {"workflow": indexed.summary.workflow if indexed else None}

    def _tell(self, going: _Going, template: Notify, notice: dict[str, Any]) -> None:
        around = self._around
        try:
            command = Command(
                argv=_filled(template.command, notice),
                cwd=around.root,
                env=clean_environment(around.environment, rules=around.rules),
                stdin=self._said(template, notice).encode("utf-8", "backslashreplace"),
                timeout=SECONDS,
                keep_bytes=4096,
            )
            redactor = self._records.workspace.redactor
            outcome = run_command(command, stop=going.stop, redactor=redactor, now=around.clock.now)
            if (said := _failure(outcome)) is not None:
                with about(notice["workflow_id"], notice["key"]):
                    log.warning("notify (%s of %s) %s", notice["event"], notice["key"], said)
        except Exception:
            with about(notice["workflow_id"], notice["key"]):
                log.exception("notify")
        self._done.put(going)

    def _said(self, template: Notify, notice: dict[str, Any]) -> str:
        """What the command reads."""
        if template.preset is None:
            return json.dumps(notice, ensure_ascii=False, default=_shown)
        workspace = self._records.workspace
        if notice["event"] == _EVENTS[EXPIRED] or not workspace.registry.hermes.senders:
            # Nobody could send a line back.
            return message(notice)
        try:
            return message(notice, *lines_of(workspace, notice["workflow_id"], notice["key"]))
        except HermesError as error:
            log.warning("notify: no lines to send back for %s: %s", notice["key"], error.message)
            return message(notice)


def rows(records: Records, run_id: str, question: ReviewReceipt) -> Iterator[Work]:
    """The rows of an open question; those that are there stay as they are."""
    if not records.workspace.registry.notify:
        return
    yield Work(run_id, "notify", ASKED + question.key)
    if (due := _next_reminder(question, records.workspace.clock.now())) is not None:
        yield Work(run_id, "notify", REMIND + question.key, visible_at=due.timestamp())


def tell_expiry(records: Records, run_id: str, key: str) -> None:
    """Queue the notice of a question that nobody has answered in time, if that is what became of it."""
    if not records.workspace.registry.notify:
        return
    path = layout.response(key)
    data = records.workspace.ledger.file(run_id, path)
    if data is not None and load(path, data, lambda sha: _blob(records, run_id, sha)).status == "expired":
        records.pending.offer.append(Work(run_id, "notify", EXPIRED + key))


def notice_of(run_id: str, event: str, question: ReviewReceipt) -> dict[str, Any]:
    """What the command reads; the run's workflow is added by whoever knows it."""
    asked, execution = question.request, question.execution
    assert asked is not None  # a request receipt always holds its question
    return {
        "schema": "hermes.notice/1",
        "event": event,
        "workflow_id": run_id,
        "key": question.key,
        "prompt": asked.prompt,
        "input": asked.input,
        "evidence": [vars(each) for each in evidence_of(question)],
        "returns": asked.returns,
        "assignee": asked.assignee,
        "requested_at": render_time(execution.started_at) if execution.started_at else None,
        "expires_at": render_time(execution.expires_at) if execution.expires_at else None,
        "on_expiry": asked.on_expiry,
        "respond": command_line("review", "respond", run_id, question.key),
    }


def _again(records: Records, work: Work, question: ReviewReceipt) -> Work | None:
    mark, _ = _split(work.key)
    if mark == EXPIRED:
        return None
    due = _next_reminder(question, records.workspace.clock.now()) if mark == REMIND else None
    return Work(work.run_id, "notify", work.key, visible_at=due.timestamp() if due else FOREVER)


def _next_reminder(question: ReviewReceipt, now: datetime) -> datetime | None:
    every = question.request.remind_seconds if question.request else None
    since = question.execution.started_at
    if every is None or since is None:
        return None
    # Counted from the question, so that a late reminder does not put off the ones after it.
    passed = max(math.floor((now - since).total_seconds() / every), 0)
    try:
        return since + timedelta(seconds=every * (passed + 1))
    except OverflowError:
        return None


def _question(records: Records, run_id: str, key: str) -> ReviewReceipt | None:
    path = layout.request(key)
    data = records.workspace.ledger.file(run_id, path)
    if data is None:
        return None
    question = load(path, data, lambda sha: _blob(records, run_id, sha))
    assert isinstance(question, ReviewReceipt)
    return question


def _blob(records: Records, run_id: str, sha256: str) -> bytes:
    return records.workspace.ledger.file(run_id, layout.artifact(sha256)) or b""


def _split(row_key: str) -> tuple[str, str]:
    mark, _, key = row_key.partition("/")
    return f"{mark}/", key


def _filled(template: tuple[str, ...], notice: dict[str, Any]) -> tuple[str, ...]:
    """The words of the command, with what they name of the notice in place of `{name}`."""
    named = {"event": "event", "run": "workflow_id", "key": "key", "assignee": "assignee"}
    words = list(template)
    for name, field_of_notice in named.items():
        value = str(notice[field_of_notice] or "")
        words = [word.replace(f"{{{name}}}", value) for word in words]
    return tuple(words)


def _failure(outcome: Outcome) -> str | None:
    if outcome.ended == "exited" and outcome.exit_code == 0:
        return None
    last = (outcome.stderr.whole or outcome.stdout.whole).decode("utf-8", "replace").strip().splitlines()[-1:]
    how = f"exited {outcome.exit_code}" if outcome.ended == "exited" else outcome.reason or outcome.ended
    return ": ".join([how, *last])


def _shown(value: object) -> str:
    return f"{len(value):,} bytes" if isinstance(value, bytes) else str(value)
