"""One way into `signals/<name>/<n>.json`, for every channel.

A payload is checked against the wait it will end; one that comes before anybody waits is kept as it is. A channel that
sends the same message again gets the receipt it made the first time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..core import layout
from ..core.differences import first_difference
from ..core.encoding import Plain
from ..core.names import check_name, clean_key
from ..core.readme import render
from ..core.receipts import Author, Execution, Provenance, Receipt, SignalReceipt, draft
from ..core.redaction import Redactor
from ..core.summary import OpenWait, RunSummary, summarize
from ..core.values import check_schema
from ..errors import Conflict, InvalidInput, TemporarilyLocked
from ..store.ports import Appended, Ended, Entry, Ledger

_ATTEMPTS = 50


@dataclass(frozen=True)
class Signal:
    """What somebody tells a run. `sent_at` is the clock of whoever takes it."""

    run_id: str
    name: str
    payload: Plain
    provenance: Provenance
    sent_at: datetime


@dataclass(frozen=True)
class Sent:
    """A recorded signal, its number among those of its name, and the key of the wait that takes it, if one is open."""

    receipt: SignalReceipt
    number: int
    wait: str | None


class InvalidSignal(InvalidInput):
    """A payload that does not fit what the run waits for; `errors` has every reason, as (JSON pointer, reason)."""

    code = "invalid_signal"

    def __init__(self, wait: OpenWait, errors: Sequence[tuple[str, str]]) -> None:
        listed = "; ".join(f"{path or '/'}: {reason}" for path, reason in errors)
        super().__init__(
            f"the signal {wait.name} does not fit what {wait.key} waits for: {listed}",
            hint="nothing was recorded; `hermes-workflows status` shows the wanted form",
        )
        self.errors = tuple(errors)


def send(ledger: Ledger, given: Signal, redactor: Redactor) -> Sent:
    """Record a signal, or return the receipt that the same message made before.

    Raises InvalidSignal, InvalidInput (a name that is none), NotFound (no such run), and Conflict (the run has ended,
    the message id stands for another signal).
    """
    check_name(given.name, "signal")
    for _ in range(_ATTEMPTS):
        _, receipts = ledger.read(given.run_id)
        if (before := _same_message(given, receipts, redactor)) is not None:
            return before
        made = _made(given, receipts, redactor)
        told = [*receipts, made.receipt]
        readme = {layout.README: render(summarize(given.run_id, told), told)}
        entry = Entry(given.run_id, (draft(made.receipt, Author(given.provenance.by)),), files=readme)
        match ledger.append([entry])[0]:
            case Appended(receipts=recorded):
                assert isinstance(recorded[0], SignalReceipt)
                return Sent(recorded[0], made.number, made.wait)
            case Ended():
                raise _ended(given, summarize(given.run_id, ledger.read(given.run_id)[1]))
            case _:  # another signal was first: the next number is ours
                continue
    raise TemporarilyLocked(f"{given.run_id} gets more signals than can be counted", hint="try again")


def received(receipts: Sequence[Receipt], name: str | None = None) -> Iterator[tuple[int, SignalReceipt]]:
    """The signals that came, with their numbers; all, or those of one name."""
    wanted = None if name is None else clean_key(name)
    for receipt in receipts:
        place = layout.place(receipt.path)
        if place is None or place.family != "signal" or not isinstance(receipt, SignalReceipt):
            continue
        if wanted in (None, clean_key(receipt.key)):
            yield place.number, receipt


def _made(given: Signal, receipts: Sequence[Receipt], redactor: Redactor) -> Sent:
    summary = summarize(given.run_id, receipts)
    if summary.ended:
        raise _ended(given, summary)
    wait = open_wait(summary, given.name)
    counts: Counter[str] = Counter()
    payload = redactor.plain(given.payload, counts)
    if wait is not None and (errors := _errors(given.payload, payload, wait)):
        raise InvalidSignal(wait, errors)
    number = 1 + max((number for number, _ in received(receipts, given.name)), default=0)
    receipt = SignalReceipt(
        path=layout.signal(clean_key(given.name), number),
        key=given.name,
        status="received",
        output=payload,
        execution=Execution(finished_at=given.sent_at, provenance=given.provenance, redactions=dict(counts) or None),
    )
    return Sent(receipt, number, wait.key if wait else None)


def open_wait(summary: RunSummary, name: str) -> OpenWait | None:
    """The wait that the next signal of this name ends."""
    waits = (wait for wait in summary.open_waits.values() if clean_key(wait.name) == clean_key(name))
    return next(waits, None)


def _errors(given: Plain, redacted: Plain, wait: OpenWait) -> list[tuple[str, str]]:
    # Checked as it will be stored: what redaction has made invalid must not reach the body.
    errors = check_schema(redacted, wait.returns)
    if errors and not check_schema(given, wait.returns):
        return [(path, f"{reason} (after secrets were redacted)") for path, reason in errors]
    return errors


def _same_message(given: Signal, receipts: Sequence[Receipt], redactor: Redactor) -> Sent | None:
    for number, receipt in received(receipts):
        first = receipt.execution.provenance
        if first is None or not first.is_same_message(given.provenance):
            continue
        same_name = clean_key(receipt.key) == clean_key(given.name)
        if same_name and first_difference(receipt.output, redactor.plain(given.payload)) is None:
            return Sent(receipt, number, None)
        raise Conflict(
            f"message {first.message_id} of {first.channel} was recorded as another signal, {receipt.key} {number}",
            hint="the first one stands; another signal needs another message id",
        )
    return None


def _ended(given: Signal, summary: RunSummary) -> Conflict:
    return Conflict(f"{given.run_id} is {summary.status} and takes no more signals", hint="nothing was recorded")
