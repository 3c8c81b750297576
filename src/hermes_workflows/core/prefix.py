"""With how much of a recorded run another one can begin, under the present code (SEMANTICS §6).

The code is asked, and nothing is executed: a body of the new run takes the recorded results, one after the other,
until one does not fit. Order is seq, everywhere. What is adopted must by itself replay to the same place, so a part
that is cut off is decided about without it: an `accept` that was written later no longer helps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from ..errors import CallFailed, Divergence, InvalidInput
from . import layout
from .layout import Role
from .live import Decision, LiveRun
from .receipts import Receipt, RunEnded

MakeBody = Callable[[], LiveRun]
"""A new body of the run that is to begin; it is asked for again whenever the part becomes shorter."""


@dataclass(frozen=True)
class Prefix:
    """`receipts` are to be adopted, oldest first, without `run.json`. `stopped` says why there are no more."""

    receipts: tuple[Receipt, ...]
    stopped: str | None = None
    divergence: Divergence | None = None

    @property
    def seq(self) -> int:
        return max((receipt.seq for receipt in self.receipts), default=0)

    @property
    def last_key(self) -> str | None:
        """The key of the newest result: `RUN@` this key is where the new run goes on."""
        results = [receipt.key for receipt in self.receipts if receipt.role is Role.RESULT and receipt.key]
        return results[-1] if results else None


@dataclass
class _Walk:
    """How far a body came: `stop` is the seq of the first receipt that must not be adopted."""

    requested: set[str] = field(default_factory=set)
    open: frozenset[str] = frozenset()
    stop: int | None = None
    stopped: str | None = None
    divergence: Divergence | None = None

    def saw(self, decision: Decision) -> None:
        self.requested.update(call.key for call in decision.requested)


def whole_prefix(make: MakeBody, receipts: Sequence[Receipt]) -> Prefix:
    """All of what was recorded up to a key.

    Raises Divergence for what the present code does not fit, InvalidInput for a prefix in which the run was cancelled.
    """
    if (cancel := _first_cancel(receipts)) is not None:
        raise InvalidInput(
            f"the run was cancelled before that, at seq {cancel.seq}", hint="fork it at a key before its cancel request"
        )
    walk = _walk(make, receipts, to_the_end=True)
    if walk.divergence is not None:
        raise walk.divergence
    return Prefix(tuple(_adoptable(receipts, walk)))


def longest_prefix(make: MakeBody, receipts: Sequence[Receipt], given: Collection[str] = ()) -> Prefix:
    """As much as neither diverges nor holds the failure, or the cancel request, that ended the run.

    `given` are keys whose results are no longer the recorded ones, so that they are no failure any more.
    """
    stop, stopped = _recorded_stop(receipts, given)
    divergence = None
    while True:
        left = receipts if stop is None else [receipt for receipt in receipts if receipt.seq < stop]
        walk = _walk(make, left, to_the_end=False)
        if walk.stop is None:
            return Prefix(tuple(_adoptable(left, walk)), stopped, divergence)
        stop, stopped, divergence = walk.stop, walk.stopped, walk.divergence


def _walk(make: MakeBody, receipts: Sequence[Receipt], *, to_the_end: bool) -> _Walk:
    """Give a body the results among `receipts`. Unless it goes `to_the_end`, a failure of the body stops it."""
    walk, live = _Walk(), make()
    try:
        for note in receipts:
            if note.role is Role.NOTE and not isinstance(note, RunEnded) and note.path != layout.RUN:
                live.take(note)
        decision = live.start()
        walk.saw(decision)
        for receipt in _results(receipts):
            decision = live.take(receipt) or decision
            walk.saw(decision)
            if not to_the_end and decision.end is not None and decision.end.status == "failed":
                walk.stop, walk.stopped = _failure(live, receipts, receipt)
                break
        walk.open = frozenset((*live.outstanding, *live.withdrawn))
    except Divergence as error:
        walk.divergence, walk.stopped = error, error.message
        walk.stop = live.after
    finally:
        live.evict()
    return walk


def _results(receipts: Sequence[Receipt]) -> list[Receipt]:
    return [receipt for receipt in receipts if receipt.role is Role.RESULT]


def _failure(live: LiveRun, receipts: Sequence[Receipt], last: Receipt) -> tuple[int, str]:
    """Where the failure begins that ends the present body: at the calls that failed, else at the last result."""
    keys = set(_failed_keys(live.error)) if live.error else set()
    failed = [receipt for receipt in _results(receipts) if receipt.key in keys]
    if not failed:
        return last.seq, f"the run fails after {last.key or last.path}"
    first = min(failed, key=lambda receipt: receipt.seq)
    return _first_of_its_like(receipts, first.seq), f"the run fails on {first.key or first.path}"


def _failed_keys(error: BaseException) -> Iterator[str]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _failed_keys(each)
    elif isinstance(error, CallFailed):
        yield error.key
    # What the body made of another error; one that it met while it handled a failed call is that call's.
    elif (cause := error.__cause__ or error.__context__) is not None:
        yield from _failed_keys(cause)


def _recorded_stop(receipts: Sequence[Receipt], given: Collection[str]) -> tuple[int | None, str | None]:
    """The first receipt of what is recorded as the reason of the end, and what to say of it."""
    if (cancel := _first_cancel(receipts)) is not None:
        return cancel.seq, "there the run was cancelled"
    ended = next((receipt for receipt in receipts if isinstance(receipt, RunEnded)), None)
    details = ended.error.details if ended and ended.error else None
    key = (details or {}).get("key")
    failed = [receipt.seq for receipt in _results(receipts) if receipt.key == key]
    if not failed or key in given:
        return None, None
    return _first_of_its_like(receipts, failed[-1], given), f"the run failed on {key}"


def _first_of_its_like(receipts: Sequence[Receipt], seq: int, given: Collection[str] = ()) -> int:
    """Where the failures begin that nothing followed: of calls that ran at once several may have failed.

    The run ended with one of them. Another that was adopted would end the next run as well, whatever was mended.
    """
    results = _results(receipts)
    asked = max((receipt.execution.requested_after or 0 for receipt in results), default=0)
    like = [each.seq for each in results if asked < each.seq < seq and _has_failed(each) and each.key not in given]
    return min([seq, *like])


def _has_failed(receipt: Receipt) -> bool:
    output = receipt.output
    expired = receipt.status == "expired" and receipt.error is not None  # without a default answer
    return receipt.status == "failed" or expired or (isinstance(output, dict) and bool(output.get("exit_code")))


def _first_cancel(receipts: Sequence[Receipt]) -> Receipt | None:
    return next((receipt for receipt in receipts if _family(receipt) == "cancel"), None)


def _adoptable(receipts: Sequence[Receipt], walk: _Walk) -> Iterator[Receipt]:
    """The results, and the notes of calls that have one."""
    answered = walk.requested - walk.open
    for receipt in receipts:
        family = _family(receipt)
        if family in ("run", "end"):
            continue
        if family == "control":
            about = _about(receipt)
            adopted = bool(about) and not about.isdisjoint(answered)
        else:
            adopted = receipt.role is Role.RESULT or receipt.key in answered
        if adopted:
            yield receipt


def _about(receipt: Receipt) -> set[str]:
    """The keys that an operator's decision is about; pausing and resuming are about the run they were said of."""
    if receipt.status == "accept":
        return {each["key"] for each in receipt.request["accepted"]}
    return {receipt.key} if receipt.status == "resolve" else set()


def _family(receipt: Receipt) -> str:
    place = layout.place(receipt.path)
    assert place is not None  # a receipt is only made for a path of the table
    return place.family
