"""One way into `reviews/<key>/response.json`, for every channel: the command line, a browser, a commit (SEMANTICS §8).

An answer is checked before it is accepted, so a bad one never reaches the run. The first valid one wins, because the
path is taken; a channel that sends the same message again gets the receipt it made the first time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..core import layout
from ..core.adoption import with_origin
from ..core.differences import first_difference
from ..core.encoding import Plain
from ..core.names import clean_key
from ..core.readme import render
from ..core.receipts import Author, Execution, Provenance, Receipt, ReviewReceipt, draft
from ..core.redaction import Redactor
from ..core.spelling import suggestion
from ..core.summary import summarize
from ..core.timestamps import render_time
from ..core.values import check_schema
from ..errors import AlreadyAnswered, Conflict, InvalidInput, NotFound, StoreFailure
from ..store.ports import Appended, Ended, Entry, Ledger, PathTaken


@dataclass(frozen=True)
class Answer:
    """What somebody says to the review `key` of a run. `given_at` is the clock of whoever takes the answer."""

    run_id: str
    key: str
    payload: Plain
    provenance: Provenance
    given_at: datetime


@dataclass(frozen=True)
class Review:
    """A question and what became of it."""

    run_id: str
    request: ReviewReceipt
    response: ReviewReceipt | None

    @property
    def open(self) -> bool:
        return self.response is None


class InvalidAnswer(InvalidInput):
    """An answer that does not fit its question; `errors` has every reason, as (JSON pointer, reason)."""

    code = "invalid_answer"

    def __init__(self, key: str, errors: Sequence[tuple[str, str]]) -> None:
        listed = "; ".join(f"{path or '/'}: {reason}" for path, reason in errors)
        super().__init__(
            f"the answer to {key} does not fit: {listed}",
            hint="nothing was recorded; `hermes-workflows review show` prints the wanted form",
        )
        self.errors = tuple(errors)


def find_review(run_id: str, key: str, receipts: Sequence[Receipt]) -> Review:
    """The review `key` among a run's receipts. Raises NotFound that says which ones there are."""
    path = layout.request(clean_key(key))
    requests = {receipt.path: receipt for receipt in receipts if _is_request(receipt)}
    request = requests.get(path)
    if request is None:
        status = summarize(run_id, receipts).status
        raise NotFound(
            f"{run_id} ({status}) has no review {key!r}",
            hint=suggestion(key, [other.key for other in requests.values()], "reviews"),
        )
    answers = (receipt for receipt in with_origin(receipts) if receipt.path == layout.response(request.key))
    return Review(run_id, _as_review(request), next(map(_as_review, answers), None))


def answer(ledger: Ledger, given: Answer, receipts: Sequence[Receipt], redactor: Redactor) -> Review:
    """Record an answer, or return what the same message has made before. `receipts` are the run's, just read.

    Raises InvalidAnswer, NotFound (no such request), AlreadyAnswered, and Conflict (the run has ended, the request
    has expired or was withdrawn, the message id stands for another payload).
    """
    review = find_review(given.run_id, given.key, receipts)
    if review.response is not None:
        response = _met(given, review.response, redactor)
    else:
        _refuse_late(given, review.request, receipts)
        response = _recorded(ledger, given, review.request, receipts, redactor)
    return Review(given.run_id, review.request, response)


def _recorded(
    ledger: Ledger, given: Answer, request: ReviewReceipt, receipts: Sequence[Receipt], redactor: Redactor
) -> ReviewReceipt:
    response = _response(given, request, redactor)
    told = [*receipts, response]
    readme = render(summarize(given.run_id, told), told)
    entry = Entry(
        given.run_id,
        (draft(response, Author(given.provenance.by)),),
        files={layout.README: readme},
    )
    match ledger.append([entry])[0]:
        case Appended(receipts=recorded):
            return _as_review(recorded[0])
        case PathTaken(winner=winner):
            return _met(given, _as_review(winner), redactor)
        case Ended():
            raise _ended(given, summarize(given.run_id, ledger.read(given.run_id)[1]).status)
        case other:
            raise StoreFailure(f"an answer is no decision and cannot be stale: {other}")


def _is_request(receipt: Receipt) -> bool:
    return isinstance(receipt, ReviewReceipt) and receipt.status == "requested"


def _as_review(receipt: Receipt) -> ReviewReceipt:
    assert isinstance(receipt, ReviewReceipt)  # the layout allows nothing else below reviews/
    return receipt


def _response(given: Answer, request: ReviewReceipt, redactor: Redactor) -> ReviewReceipt:
    counts: Counter[str] = Counter()
    payload = redactor.plain(given.payload, counts)
    assert request.request is not None  # a request receipt always holds its question
    # Checked as it will be stored: what redaction has made invalid must not reach the body.
    errors = check_schema(payload, request.request.returns)
    if errors and counts and not check_schema(given.payload, request.request.returns):
        errors = [(path, f"{reason} (after secrets were redacted)") for path, reason in errors]
    if errors:
        raise InvalidAnswer(given.key, errors)
    return ReviewReceipt(
        path=layout.response(request.key),
        key=request.key,
        status="completed",
        fingerprint=request.fingerprint,
        output=payload,
        execution=Execution(finished_at=given.given_at, provenance=given.provenance, redactions=dict(counts) or None),
    )


def _refuse_late(given: Answer, request: ReviewReceipt, receipts: Sequence[Receipt]) -> None:
    summary = summarize(given.run_id, receipts)
    if summary.ended:
        raise _ended(given, summary.status)
    expires = request.execution.expires_at
    if expires is not None and given.given_at >= expires:
        raise Conflict(
            f"{given.key} of {given.run_id} expired at {render_time(expires)}",
            hint="the run goes on without an answer; nothing was recorded",
        )


def _ended(given: Answer, status: str) -> Conflict:
    return Conflict(f"{given.run_id} is {status} and takes no more answers", hint="nothing was recorded")


def _met(given: Answer, response: ReviewReceipt, redactor: Redactor) -> ReviewReceipt:
    """Another receipt is at the path: the same message's own, somebody's answer, or the end of the question."""
    if response.status != "completed":
        raise Conflict(f"{given.key} of {given.run_id} is {response.status}", hint="nothing was recorded")
    first, when = response.execution.provenance, response.execution.finished_at
    if first is not None and first.is_same_message(given.provenance):
        if first_difference(response.output, redactor.plain(given.payload)) is None:
            return response
        raise Conflict(
            f"message {first.message_id} of {first.channel} was recorded with another answer to {given.key}",
            hint="the first one stands; another answer needs another message id",
        )
    who = f"{first.by} ({first.kind}, {first.channel})" if first else "somebody"
    at = f" at {render_time(when)}" if when else ""
    raise AlreadyAnswered(f"{given.key} of {given.run_id} was answered by {who}{at}", hint="the first answer stands")
