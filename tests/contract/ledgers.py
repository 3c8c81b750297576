"""Builders for the tests of ledgers: small receipts, entries, and a clock that moves by itself."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hermes_workflows.core import layout
from hermes_workflows.core.encoding import Plain
from hermes_workflows.core.identity import request_fingerprint
from hermes_workflows.core.receipts import (
    Author,
    CallReceipt,
    Draft,
    Execution,
    Provenance,
    ReviewReceipt,
    ReviewRequest,
    RunEnded,
    RunRequest,
    RunStarted,
    draft,
)
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.ports import Appended, Entry, Ledger, Outcome
from hermes_workflows.store.refs import Patience

DAY = "2026-11-29"
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


class TickingClock:
    """Every look at it is a second later, so that no two commits share a time."""

    boot_id = "boot"

    def __init__(self) -> None:
        self.moment = NOON

    def now(self) -> datetime:
        self.moment += timedelta(seconds=1)
        return self.moment

    def elapsed(self) -> float:
        return (self.moment - NOON).total_seconds()


def open_git(folder: Path, **options: Any) -> GitLedger:
    """A repository of its own, without syncs: where they are the subject, `durability` says so."""
    settings: dict[str, Any] = {"create": True, "clock": TickingClock(), "durability": "process", "committer": "runner"}
    return GitLedger.open(folder / "workflows.git", **{**settings, **options})


def with_one_step(folder: Path) -> GitLedger:
    """A repository with one living run, `wf_a`, of which a single step is recorded."""
    made = open_git(folder)
    start(made)
    record(made, "wf_a", step_draft("one", "first"))
    return made


def impatient(**options: Any) -> Patience:
    """Waits for others as long as a test can, instead of as long as a person would."""
    return Patience(**{"ours": 5.0, "theirs": 0.3, "stale": 0.05, "pause": 0.001, **options})


def run_draft(**execution: Any) -> Draft:
    receipt = RunStarted(
        key="",
        request=RunRequest(workflow="module:function", input={"topic": "launch"}),
        execution=Execution(started_at=NOON, workspace="home", **execution),
        path=layout.RUN,
    )
    return draft(receipt, Author("starter"))


def step_draft(key: str, output: Any = None, *, path: str = "", author: str = "worker", **execution: Any) -> Draft:
    request: dict[str, Plain] = {"name": "work", "input": {"key": key}}
    receipt = CallReceipt(
        kind="step",
        key=key,
        status="completed",
        fingerprint=request_fingerprint("step", request),
        request=request,
        output=output,
        execution=Execution(finished_at=NOON, duration_seconds=1.25, **execution),
        path=path or layout.step(key),
    )
    return draft(receipt, Author(author))


def request_draft(key: str) -> Draft:
    request = ReviewRequest(prompt="Ship it?", returns={"type": "string"})
    receipt = ReviewReceipt(
        key=key,
        status="requested",
        fingerprint=request_fingerprint("review", request.model_dump()),
        request=request,
        execution=Execution(started_at=NOON),
        path=layout.request(key),
    )
    return draft(receipt, Author("workflow"))


def response_draft(key: str, asked: Draft, by: str = "ada") -> Draft:
    receipt = ReviewReceipt(
        key=key,
        status="completed",
        fingerprint=asked.receipt.fingerprint or "",
        output="yes",
        execution=Execution(finished_at=NOON, provenance=Provenance(kind="human", by=by, channel="cli")),
        path=layout.response(key),
    )
    return draft(receipt, Author(by))


def end_draft(status: str = "completed", output: Any = None) -> Draft:
    receipt = RunEnded(key="", status=status, output=output, execution=Execution(finished_at=NOON), path=layout.RESULT)  # type: ignore[arg-type]  # tests give the three words the model allows
    return draft(receipt, Author("workflow"))


def start(ledger: Ledger, run_id: str = "wf_a", day: str = DAY) -> Appended:
    return ledger.create(Entry(run_id, (run_draft(),)), day)


def record(ledger: Ledger, run_id: str, *drafts: Draft, files: Mapping[str, bytes] | None = None) -> Appended:
    """Append one entry that nothing is in the way of."""
    outcome = append(ledger, Entry(run_id, drafts, files=files or {}))
    assert isinstance(outcome, Appended), outcome
    return outcome


def append(ledger: Ledger, entry: Entry) -> Outcome:
    (outcome,) = ledger.append([entry])
    return outcome


def finished(ledger: Ledger, run_id: str, day: str = DAY) -> Appended:
    start(ledger, run_id, day)
    return record(ledger, run_id, end_draft())


def git(
    ledger_or_path: GitLedger | Path, *arguments: str, check: bool = True, env: Mapping[str, str] | None = None
) -> str:
    """What C git says about the repository, with nothing of this machine's settings."""
    path = ledger_or_path if isinstance(ledger_or_path, Path) else ledger_or_path.path
    done = subprocess.run(
        ["git", "-C", str(path), *arguments],
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(path), "GIT_CONFIG_NOSYSTEM": "1", **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if check and done.returncode != 0:
        raise AssertionError(f"git {' '.join(arguments)}: {done.stderr}")
    return done.stdout if check else f"{done.returncode}\n{done.stdout}{done.stderr}"
