"""Scripted people: they find their questions in the inbox, and answer through the same door as everybody.

Their answers are recorded with provenance `test`, so none can ever pass for a person's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..core.receipts import Provenance
from ..core.values import plain
from ..review.answer import Review
from ..workspace import Workspace
from .failures import Unscripted
from .scripts import Question, Scripts, without_number

_TEST = Provenance(kind="test", by="test", channel="test")


class People:
    def __init__(self, workspace: Workspace, answers: Scripts) -> None:
        self._workspace = workspace
        self._answers = answers
        self._asked: set[tuple[str, str]] = set()

    def unasked(self) -> Iterator[Review]:
        """Open questions that somebody is scripted for and has not heard of yet, oldest first."""
        for row in self._workspace.reviews():
            if (row.run_id, row.key) not in self._asked and self._entry(row.key) is not None:
                self._asked.add((row.run_id, row.key))
                yield self._workspace.review(row.run_id, row.key)

    def ask(self, review: Review) -> tuple[float, Callable[[], None]]:
        """After how many seconds the answer comes, and what gives it."""
        key = review.request.key
        entry = self._entry(key)
        assert entry is not None  # `unasked` yields no others
        reply = self._answers.ask(entry, _question(review))
        if reply.error is not None:
            said = f"answers[{entry!r}]: a person cannot fail with {type(reply.error).__name__}: {reply.error}"
            raise Unscripted(f"{said}; leave the answer out to let the question expire") from reply.error
        return reply.delay, lambda: self._give(review, reply.value)

    def _give(self, review: Review, value: object) -> None:
        expires = review.request.execution.expires_at
        if expires is not None and self._workspace.clock.now() >= expires:
            return
        # By then the body may not want it any more.
        if self._workspace.review(review.run_id, review.request.key).open:
            self._workspace.answer(review.run_id, review.request.key, plain(value), _TEST)

    def _entry(self, key: str) -> str | None:
        return self._answers.find(key, without_number(key))


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
