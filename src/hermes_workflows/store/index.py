"""From receipts to index rows: one run after it moved, all runs, or everything again from nothing.

The index is right for a run when its row names the run's tip; whatever is in doubt is read again from the ledger.
A run that the index had to catch up with is offered to the runners: somebody died between git and SQLite,
or pushed, and nobody else would wake it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from ..core.adoption import with_origin
from ..core.receipts import Receipt
from ..core.summary import summarize
from ..core.timestamps import render_time
from ..errors import Conflict, HermesError, IntegrityError, InvalidInput, NotFound
from .ports import Head, Ledger
from .queue_port import Change, Indexed, Known, Queue, ReviewRow, Work
from .rows import OPEN, carried, standing_of

_NAME = "index"
# Of so many runs and more there are as many parts, so that nobody waits long for whoever has the last one.
_PARTS = 40
# Rows that are put in one transaction.
_BATCH = 50

P = TypeVar("P")
R = TypeVar("R")


class Share(Protocol):
    """Work on each of many parts, by this process or by several, in any order.

    What another process has done goes through `carry` there, which makes it lighter to hand over.
    """

    def __call__(self, work: Callable[[P], R], parts: Sequence[P], carry: Callable[[R], R]) -> Iterable[R]: ...


def alone(work: Callable[[P], R], parts: Sequence[P], carry: Callable[[R], R]) -> Iterable[R]:
    """This process does all of it."""
    return map(work, parts)


class IndexQueue(Queue, Protocol):
    """What an index must answer beyond the queue port."""

    def tips(self) -> dict[str, Known]: ...
    def matching(self, prefix: str, limit: int = 10) -> list[str]: ...
    def started_from(self, run_id: str) -> list[str]: ...
    def stamp(self) -> str: ...
    def put_stamp(self, value: str, epoch: object) -> None:
        """Say so of the rows of this `epoch`: nothing, when they were made anew since."""


@dataclass(frozen=True)
class Refreshed:
    """How many rows were put or removed, which runs could not be read, with the reason, and which were put back:
    somebody else had moved their refs.
    """

    changed: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)
    put_back: tuple[str, ...] = ()


def review_rows(run_id: str, receipts: Iterable[Receipt]) -> tuple[ReviewRow, ...]:
    """Rows for the requests and responses among `receipts`.

    A response whose request is not among them gives a row without the question; the index merges both.
    """
    every = tuple(receipts)
    if not any(receipt.kind == "review" for receipt in every):
        return ()  # most runs ask nobody
    return tuple(row for receipt in with_origin(every) if (row := _review_row(run_id, receipt)))


def _review_row(run_id: str, receipt: Receipt) -> ReviewRow | None:
    if receipt.kind != "review":
        return None
    execution = receipt.execution
    # No other review has this status: a receipt that lies where it cannot be is not read (`contents.fault_of`).
    if receipt.status == "requested":
        return ReviewRow(
            run_id=run_id,
            key=receipt.key,
            status=OPEN,
            prompt=receipt.request.prompt,
            assignee=receipt.request.assignee,
            requested_at=render_time(execution.started_at) if execution.started_at else None,
            expires_at=render_time(execution.expires_at) if execution.expires_at else None,
        )
    answered = execution.finished_at or execution.started_at
    return ReviewRow(
        run_id=run_id,
        key=receipt.key,
        status=receipt.status,
        answered_at=render_time(answered) if answered else None,
        answer=receipt.output,
        provenance=execution.provenance.model_dump(exclude_none=True) if execution.provenance else None,
    )


def whole(head: Head, receipts: Sequence[Receipt]) -> Indexed:
    """A run's row from all of its receipts."""
    summary = summarize(head.run_id, receipts)
    return Indexed(summary, head.tip, head.folder, head.sealed, review_rows(head.run_id, receipts))


def grown(known: Indexed, head: Head, receipts: Sequence[Receipt]) -> Indexed:
    """A run's row from the row before and the receipts that came after it."""
    summary = known.summary.apply(receipts)
    return Indexed(summary, head.tip, head.folder, head.sealed, review_rows(head.run_id, receipts))


class Found(NamedTuple):
    """Rows of runs, and the heads of others about which something is odd."""

    rows: Sequence[Indexed]
    left: Sequence[Head]

    def carried(self) -> Found:
        return Found([carried(row) for row in self.rows], self.left)


def all_indexed(ledger: Ledger, share: Share = alone) -> Iterator[Indexed]:
    """Every run that can be read: what `SqliteQueue.open` wants as `rebuild`.

    Others get no row, so that asking for one reads it and says what is wrong with it.
    """
    for found in share(partial(_at_tips, ledger), _parts(ledger.heads()), Found.carried):
        yield from found.rows
        yield from _by_name(ledger, found.left, {})


def refresh(ledger: Ledger, queue: Queue, run_id: str) -> Indexed | None:
    """The run's row, read again if the run has moved on; None when there is no such run.

    Raises IntegrityError or NewerSchema for receipts that cannot be read.
    """
    # In this order: the row may name what git is about to have. Asking the ledger waits for that, though not for ever.
    known, behind, head = queue.indexed(run_id), run_id in ledger.ahead(), ledger.head(run_id)
    if known is not None and (head is None or head.tip != known.tip) and not behind and _put_back(ledger, known):
        head = ledger.head(run_id)
    if head is None and not behind:
        if known is not None:
            queue.forget(run_id)
        return None
    if head is None:
        return known
    if _is_current(known, head):
        return known
    found = _read(ledger, known, head)
    rewound = known is not None and known.summary.seq > found.summary.seq
    if rewound and behind:
        return known
    _put(ledger, queue, [_shown(found, ledger)], {run_id} if rewound else set())
    return found


def check_own(ledger: Ledger, queue: Queue, run_id: str) -> None:
    """Raises Conflict for a run that was imported: only the workspace it was made in adds to it."""
    indexed = refresh(ledger, queue, run_id)
    home = indexed.summary.home if indexed else ""
    if home not in ("", ledger.home):
        raise Conflict(
            f"{run_id} belongs to workspace {home}, and goes on there only",
            hint=f"`hermes-workflows fork {run_id} --id NEW` makes a run of your own of it",
        )


def refresh_all(ledger: Ledger, queue: IndexQueue, stamp: str = "") -> Refreshed:
    """Bring every row up to date.

    `stamp` is the state of the refs, taken before this call; while it stays the same nothing needs to be read
    (see `store.peek.stamp`). Without one the rows are always compared with the ledger's heads.
    """
    epoch = queue.epoch()
    if stamp and queue.stamp() == stamp:
        return Refreshed()
    done = _compare(ledger, queue)
    # Runs that cannot be read have no row; with the stamp they would stay unseen after their repair.
    if stamp and not done.unreadable:
        queue.put_stamp(stamp, epoch)
    return done


def rebuild(ledger: Ledger, queue: IndexQueue, share: Share = alone) -> Refreshed:
    """Read every run again and offer the unfinished ones of this workspace. Leases and calls in work stay."""
    return _compare(ledger, queue, share)


def _compare(ledger: Ledger, queue: IndexQueue, again: Share | None = None) -> Refreshed:
    # The rows first, as above. All at once: a row of its own for each takes as long as reading the run.
    tips, ahead = queue.tips(), ledger.ahead()
    # Most runs stand where their rows say, and a runner compares often, beside others that do the same.
    standing = {run_id: known.tip for run_id, known in tips.items() if not known.sealed}
    heads = {head.run_id: head for head in ledger.heads(None if again else standing)}
    settled = {run_id: known for run_id, known in tips.items() if run_id not in ahead}
    put_back = tuple(_restored(ledger, queue, settled, heads))
    if put_back:
        heads = {head.run_id: head for head in ledger.heads()}
    vanished = [run_id for run_id in tips if not (run_id in heads or run_id in ahead) and _is_gone(ledger, run_id)]
    for run_id in vanished:
        queue.forget(run_id)
    unreadable: dict[str, str] = {}
    if again:
        moved = [*heads.values()]
        for found in again(partial(_at_tips, ledger), _parts(moved), Found.carried):
            _put_anew(ledger, queue, [*found.rows, *_by_name(ledger, found.left, unreadable)], tips, ahead)
    else:
        moved = [head for head in heads.values() if not _is_current(tips.get(head.run_id), head)]
        for part in _parts(moved):
            _put_grown(ledger, queue, part, unreadable)
    return Refreshed(len(vanished) + len(moved) - len(unreadable), unreadable, put_back)


def _is_current(known: Indexed | Known | None, head: Head) -> bool:
    return known is not None and (known.tip, known.sealed) == (head.tip, head.sealed)


def _parts(heads: Iterable[Head]) -> list[list[Head]]:
    each = list(heads)
    size = min(_BATCH, len(each) // _PARTS or _BATCH)
    return [each[start : start + size] for start in range(0, len(each), size)]


def _put_anew(
    ledger: Ledger, queue: Queue, rows: Sequence[Indexed], tips: Mapping[str, Known], ahead: Container[str]
) -> None:
    runs = [standing_of(row) for row in rows]
    shorter = {run.run_id for run in runs if (known := tips.get(run.run_id)) and known.seq > run.seq}
    # Of these git lacks the end of a burst, which their rows have.
    behind = {run_id for run_id in shorter if run_id in ahead}
    _put(
        ledger, queue, [row for row, run in zip(rows, runs, strict=True) if run.run_id not in behind], shorter - behind
    )


def _put_grown(ledger: Ledger, queue: Queue, heads: Iterable[Head], unreadable: dict[str, str]) -> None:
    rows: list[Indexed] = []
    rewound: set[str] = set()
    for head in heads:
        known, behind = queue.indexed(head.run_id), head.run_id in ledger.ahead()
        try:
            row = _read(ledger, known, head)
        except (IntegrityError, NotFound, InvalidInput) as error:
            unreadable[head.run_id] = error.message
            continue
        if known is not None and known.summary.seq > row.summary.seq:
            if behind:
                continue  # git lacks the end of a burst, which the row has
            rewound.add(head.run_id)
        rows.append(_shown(row, ledger))
    _put(ledger, queue, rows, rewound)


def _restored(ledger: Ledger, queue: IndexQueue, tips: Mapping[str, Known], heads: Mapping[str, Head]) -> Iterator[str]:
    for run_id, (tip, _, _) in tips.items():
        head = heads.get(run_id)
        if (head is None or head.tip != tip) and (known := queue.indexed(run_id)) and _put_back(ledger, known):
            yield run_id


def _is_gone(ledger: Ledger, run_id: str) -> bool:
    """Asked for by its name: refs move while they are listed, and with a run goes all of its work."""
    try:
        return ledger.head(run_id) is None
    except IntegrityError:
        return False


def _put_back(ledger: Ledger, known: Indexed) -> bool:
    """A ref that does not go on where the row ends was moved by somebody; the row is all that remembers."""
    try:
        return ledger.put_back(known.summary.run_id, known.tip)
    except HermesError:
        # Nothing can be written there now, or the ref is damaged: the row is only a cache, and the ledger is read.
        return False


def _read(ledger: Ledger, known: Indexed | None, head: Head) -> Indexed:
    if known is not None and known.tip == head.tip:
        return grown(known, head, ())
    if known is not None and known.summary.receipts:
        try:
            newest, receipts = ledger.read(head.run_id, since=known.tip)
        except (IntegrityError, NotFound):
            newest, receipts = head, []  # the row's tip is gone, or of another history
        if newest.tip == known.tip:
            return grown(known, newest, ())
        # A ref that was put back, or a history that was exchanged, does not go on where the row ends.
        if receipts and receipts[0].seq == known.summary.seq + 1:
            return grown(known, newest, receipts)
    return whole(*ledger.read(head.run_id))


def _at_tips(ledger: Ledger, heads: Iterable[Head]) -> Found:
    """Rows of runs as a listing has just found them: their refs are not looked up again."""
    rows, left = [], []
    for head in heads:
        try:
            there, receipts = ledger.at(head.tip)
        except HermesError:
            left.append(head)
            continue
        if (there.run_id, there.tip) == (head.run_id, head.tip):
            rows.append(_shown(whole(head, receipts), ledger))
        else:
            left.append(head)
    return Found(rows, left)


def _by_name(ledger: Ledger, heads: Iterable[Head], unreadable: dict[str, str]) -> Iterator[Indexed]:
    """The same by the ordinary way, which says whatever is odd about a run."""
    for head in heads:
        try:
            yield _shown(whole(*ledger.read(head.run_id)), ledger)
        except (IntegrityError, NotFound, InvalidInput) as error:
            unreadable[head.run_id] = error.message


def _shown(row: Indexed, ledger: Ledger) -> Indexed:
    """A run of another workspace asks nobody here: its questions are none of this inbox."""
    return row if row.summary.home in ("", ledger.home) else replace(row, reviews=())


def _put(ledger: Ledger, queue: Queue, rows: Sequence[Indexed], rewound: set[str]) -> None:
    for run_id in rewound:
        # A row never goes back to fewer receipts by itself: that is how two indexers at once are kept in order.
        queue.rewind(run_id)
    unfinished = [run.run_id for run in map(standing_of, rows) if not run.ended and run.home == ledger.home]
    queue.apply(Change(index=rows, offer=[Work(run_id, "workflow") for run_id in unfinished]), _NAME)
