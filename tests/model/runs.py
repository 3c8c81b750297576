"""What is recorded: the runs of a workspace and of the repository between workspaces, and what a fork takes of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.model.body import Plan, Receipt, calls_of, think


class Refused(Exception):
    """The name of the error that an operation ends with."""


@dataclass
class Run:
    plan: Plan
    receipts: list[Receipt]
    ended_at: float | None = None
    sealed: bool = False
    living: bool = True

    @property
    def paths(self) -> dict[str, Receipt]:
        return {each.path: each for each in self.receipts}

    @property
    def ended(self) -> bool:
        return "result.json" in self.paths

    @property
    def cancelled(self) -> bool:
        return any(each.status == "cancel" for each in self.receipts)

    def open_questions(self) -> list[str]:
        return [key for key, status in questions(self.receipts).items() if status == "open"]


def questions(receipts: Sequence[Receipt]) -> dict[str, str]:
    """Keys and statuses, as the two receipts of each say; the end of a run leaves none open."""
    found: dict[str, str] = {}
    for each in receipts:
        if each.path.startswith("reviews/"):
            found[each.path.split("/")[1]] = "open" if each.status == "requested" else each.status
    return found


def status_of(receipts: Sequence[Receipt]) -> str:
    if receipts[-1].path == "result.json":
        return receipts[-1].status
    return "waiting" if "open" in questions(receipts).values() else "running"


@dataclass
class Refs:
    """The runs that a repository between workspaces has: those with a ref, and those that each workspace has sealed."""

    runs: dict[str, list[Receipt]] = field(default_factory=dict)
    ledgers: dict[str, dict[str, list[Receipt]]] = field(default_factory=dict)

    def all(self) -> dict[str, list[Receipt]]:
        sealed = {run_id: receipts for ledger in self.ledgers.values() for run_id, receipts in ledger.items()}
        return sealed | self.runs


def adopted(plan: Plan, receipts: list[Receipt], key: str | None) -> list[Receipt]:
    """What a fork begins with: results, and the notes of calls that have one. Up to a key, all of it; else up to the
    failure, or the cancel request, that ended the run.
    """
    if key is not None:
        own = [each for each in receipts if _about(plan, key, each)]
        results = [each for each in own if _is_result(each)]
        receipts = [each for each in receipts if each.seq <= (results or own)[-1].seq]
    stop = next((each.seq for each in receipts if each.status == "cancel"), None)
    if key is not None and stop is not None:
        raise Refused("InvalidInput")
    if key is None and (failed := think(plan, receipts).failed):
        stop = min(each.seq for each in receipts if each.path in {call.result for call in failed})
    left = [each for each in receipts if stop is None or each.seq < stop]
    paths = {each.path for each in left}
    done = [call for stage in calls_of(plan) for call in stage if call.result in paths]
    return [each for each in left if any(call.owns(each.path) for call in done)]


def _about(plan: Plan, key: str, receipt: Receipt) -> bool:
    return any(call.key == key and call.owns(receipt.path) for stage in calls_of(plan) for call in stage)


def _is_result(receipt: Receipt) -> bool:
    return receipt.path.endswith("/response.json") or (
        receipt.path.startswith("steps/") and ".attempt-" not in receipt.path
    )
