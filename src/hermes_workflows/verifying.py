"""`verify`: each run's commits, the seals, and what others remember of a run's newest commit. Reads only.

A chain of commits proves its own order and nothing about its end: a ref that was set back, or a history that was
written anew from a changed receipt on, is sound by itself. What tells are those who saw the commit that is missing:
the index, the ledger branch, and the parent of a child run. Nothing damaged hides the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from . import finding
from .core import layout
from .core.adoption import source_of
from .core.layout import Role
from .core.names import run_component
from .core.receipts import Receipt, RunStarted
from .errors import HermesError
from .finding import Matching, Place
from .store import peek
from .store.index import IndexQueue
from .store.ports import Head, Ledger, Problem

_SHORT = 12
_DOCTOR = "`hermes-workflows doctor` says more"


def locate(ledger: Ledger, queue: IndexQueue, text: str, matching: Matching) -> Place:
    """The run that `text` means, also one that only the index still knows. Raises NotFound, Conflict."""
    row = queue.indexed(text)
    # A run that the index knows is looked at whatever is left of it.
    return Place(Head(row.summary.run_id, row.tip, row.folder)) if row else finding.locate(ledger, text, matching)


def verify_place(ledger: Ledger, queue: IndexQueue, place: Place) -> list[Problem]:
    """The problems of one run, ours or fetched, as it stands or as a commit has it."""
    run_id, head = place.head.run_id, place.head
    if place.remote is not None or place.commit:
        return _own(ledger, run_id, head.tip)
    parent = _parent(ledger, run_id)
    witnessed = [each for each in _pins(ledger, parent) if each.run_id == run_id] if parent else []
    rejected = [each for each in _rejected(ledger) if each.run_id == run_id]
    return [*_run(ledger, queue, run_id), *witnessed, *rejected]


def verify_all(ledger: Ledger, queue: IndexQueue) -> Mapping[str, list[Problem]]:
    """The problems of every run, by id; those of the ledger branch that belong to no run stand under ""."""
    found = {run_id: _run(ledger, queue, run_id) for run_id in _names(ledger, queue)}
    for problem in (*ledger.verify_seals(), *_rejected(ledger)):
        found.setdefault(problem.run_id, []).append(problem)
    return found


def _names(ledger: Ledger, queue: IndexQueue) -> list[str]:
    """Every run that anybody knows of: a branch that cannot be read does not take the others with it."""
    names: dict[str, None] = {}
    try:
        for head in ledger.heads():
            names[head.run_id] = None
    except HermesError:
        pass  # `verify_seals` tells of it
    return list(names | dict.fromkeys(queue.tips()))


def _run(ledger: Ledger, queue: IndexQueue, run_id: str) -> list[Problem]:
    row = queue.indexed(run_id)
    moved = row is not None and not ledger.goes_on_from(run_id, row.tip)
    problems = [] if row is None or not moved else [_moved(ledger, run_id, row.tip)]
    if not moved or _head(ledger, run_id) is not None:
        problems += [*_own(ledger, run_id), *_pins(ledger, run_id)]
    return problems


def _own(ledger: Ledger, run_id: str, tip: str | None = None) -> list[Problem]:
    try:
        return ledger.verify(run_id, tip)
    except HermesError as error:
        return [Problem(run_id, tip or "", "", error.message, error.hint or _DOCTOR)]


def _moved(ledger: Ledger, run_id: str, tip: str) -> Problem:
    ref, head = peek.RUNS + run_component(run_id), _head(ledger, run_id)
    hint = "a runner puts it back, and so does `hermes-workflows list`; what it was moved to is kept in refs/rejected"
    if head is None:
        return Problem(run_id, tip, ref, f"is gone; the run's newest commit was {tip[:_SHORT]}", hint)
    return Problem(
        run_id, head.tip, ref, f"was moved: it does not lead back to {tip[:_SHORT]}, its newest commit", hint
    )


def _rejected(ledger: Ledger) -> Iterator[Problem]:
    for each in ledger.rejected():
        hint = f"see what it holds, then `git update-ref -d {each.ref}`"
        yield Problem(each.run_id, each.commit, each.ref, "is where somebody had moved the run; it was put back", hint)


def _pins(ledger: Ledger, parent: str) -> Iterator[Problem]:
    """Child runs that no longer lead back to the commit at which their parent's receipt saw them end.

    Only of what the parent has seen itself: a child of the run that its receipts were adopted from need not be here,
    and neither need those of a run from elsewhere. A run of ours may have the same id as one of them.
    """
    try:
        receipts = ledger.read(parent)[1]
    except HermesError:
        return
    source, home = source_of(receipts) or {}, _home(receipts)
    for receipt in receipts:
        child, tip = receipt.execution.child, receipt.execution.tip
        seen = receipt.role is Role.RESULT and receipt.seq > int(source.get("seq", -1))
        if not (seen and child and tip and (home in (None, ledger.home) or _home_of(ledger, child) == home)):
            continue
        if not ledger.goes_on_from(child, tip):
            message = f"does not lead back to {tip[:_SHORT]}, at which {parent} saw it end ({receipt.path})"
            yield Problem(child, tip, peek.RUNS + run_component(child), message)


def _home_of(ledger: Ledger, run_id: str) -> str | None:
    try:
        return _home(ledger.read(run_id)[1])
    except HermesError:
        return None


def _home(receipts: Iterable[Receipt]) -> str | None:
    """The workspace that a run says it belongs to."""
    return next((each.execution.workspace for each in receipts if each.path == layout.RUN), None)


def _parent(ledger: Ledger, run_id: str) -> str | None:
    try:
        started = next((each for each in ledger.read(run_id)[1] if each.path == layout.RUN), None)
    except HermesError:
        return None
    return (started.execution.parent or {}).get("run") if isinstance(started, RunStarted) else None


def _head(ledger: Ledger, run_id: str) -> Head | None:
    try:
        return ledger.head(run_id)
    except HermesError:
        # Something is there; what is wrong with it, reading it says.
        return Head(run_id, "", "")
