"""Scripted people and senders: they find what is open, and answer through the same doors as everybody.

What they say is recorded with provenance `test`, so none of it can ever pass for a person's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from ..core.receipts import Provenance
from ..core.summary import OpenWait
from ..core.timestamps import parse_time
from ..core.values import plain
from ..review.answer import Review
from ..workspace import Workspace
from .failures import Unscripted
from .scripts import Question, Reply, Scripts, Wait, without_number

_TEST = Provenance(kind="test", by="test", channel="test")

News = tuple[float, Callable[[], None]]
"""After how many seconds somebody acts, and what does it."""


class People:
    """`answers` are for questions, `signals` for waits."""

    def __init__(self, workspace: Workspace, answers: Scripts, signals: Scripts) -> None:
        self._workspace = workspace
        self._answers = answers
        self._signals = signals
        self._heard: set[tuple[str, str]] = set()

    def news(self) -> Iterator[News]:
        """What somebody is scripted for and has not heard of yet, oldest first."""
        for row in self._workspace.reviews():
            if self._is_new(row.run_id, row.key, entry := self._answers.find(row.key, without_number(row.key))):
                assert entry is not None
                yield self._asked(self._workspace.review(row.run_id, row.key), entry)
        for run_id, wait in self._waits():
            entry = self._signals.find(wait.key, wait.name, without_number(wait.key))
            if self._is_new(run_id, wait.key, entry):
                assert entry is not None
                yield self._awaited(run_id, wait, entry)

    def _is_new(self, run_id: str, key: str, entry: str | None) -> bool:
        if entry is None or (run_id, key) in self._heard:
            return False
        self._heard.add((run_id, key))
        return True

    # -- questions -------------------------------------------------------------------------------------------

    def _asked(self, review: Review, entry: str) -> News:
        reply = self._answers.ask(entry, _question(review))
        _check("answers", entry, reply)
        return reply.delay, lambda: self._answer(review, reply.value)

    def _answer(self, review: Review, value: object) -> None:
        # By then it may have expired, or the body may not want it any more.
        if self._is_over(review.request.execution.expires_at):
            return
        if self._workspace.review(review.run_id, review.request.key).open:
            self._workspace.answer(review.run_id, review.request.key, plain(value), _TEST)

    # -- signals ---------------------------------------------------------------------------------------------

    def _waits(self) -> Iterator[tuple[str, OpenWait]]:
        for head in self._workspace.ledger.heads():
            for wait in self._workspace.summary(head.run_id).open_waits.values():
                yield head.run_id, wait

    def _awaited(self, run_id: str, wait: OpenWait, entry: str) -> News:
        reply = self._signals.ask(entry, Wait(run_id, wait.key, wait.name, wait.returns))
        _check("signals", entry, reply)
        return reply.delay, lambda: self._send(run_id, wait, reply.value)

    def _send(self, run_id: str, wait: OpenWait, value: object) -> None:
        if self._is_over(parse_time(wait.expires_at) if wait.expires_at else None):
            return
        if wait.key in self._workspace.summary(run_id).open_waits:
            self._workspace.signal(run_id, wait.name, plain(value), _TEST)

    def _is_over(self, expires: datetime | None) -> bool:
        return expires is not None and self._workspace.clock.now() >= expires


def _check(what: str, entry: str, reply: Reply) -> None:
    if reply.error is not None:
        said = f"{what}[{entry!r}] cannot fail with {type(reply.error).__name__}: {reply.error}"
        raise Unscripted(f"{said}; leave it out to let the time run out") from reply.error


def _question(review: Review) -> Question:
    request, asked = review.request, review.request.request
    assert asked is not None  # a request receipt always holds its question
    return Question(
        run=review.run_id,
        key=request.key,
        prompt=asked.prompt,
        input=asked.input,
        returns=asked.returns,
        assignee=asked.assignee,
        expires_at=request.execution.expires_at,
    )
