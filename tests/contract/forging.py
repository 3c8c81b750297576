"""Forgers: somebody with git and write access who makes a run's history anew, as well as it can be done."""

from __future__ import annotations

import re
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

from tests.contract.ledgers import git, open_git
from tests.contract.queues import FrozenClock

from hermes_workflows.store import index
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.memory_queue import MemoryQueue
from hermes_workflows.store.ports import Ledger, Problem
from hermes_workflows.verifying import verify_all

RUN = "refs/runs/wf_a"


def indexed(ledger: Ledger) -> MemoryQueue:
    """An index that has seen every run as it stands."""
    queue = MemoryQueue(clock=FrozenClock())
    index.refresh_all(ledger, queue)
    return queue


def problems(ledger: GitLedger, queue: MemoryQueue | None = None) -> list[Problem]:
    """What another process finds, which has read nothing yet; without a queue there is nobody who saw it before."""
    other = open_git(ledger.path.parent)
    try:
        found = verify_all(other, queue or MemoryQueue(clock=FrozenClock()))
    finally:
        other.close()
    return [problem for each in found.values() for problem in each]


def told(found: list[Problem]) -> str:
    return "\n".join(f"{each.run_id} {each.path}: {each.message}" for each in found)


def rewrite(ledger: GitLedger, change: Callable[[list[bytes]], list[bytes]], ref: str = RUN) -> None:
    """Write the commits of `ref` anew, in the order and with the bytes that `change` makes of their stream."""
    stream = _git(ledger, "fast-export", ref)
    blobs = b"".join(_sections(stream, b"blob"))
    commits = change(_sections(stream, b"commit"))
    _git(ledger, "fast-import", "--force", "--quiet", data=blobs + b"".join(_chained(commits)))


def replaced(ledger: GitLedger, old: bytes, new: bytes, ref: str = RUN) -> None:
    """Write everything anew with some bytes exchanged, in receipts as well as in messages."""
    assert len(old) == len(new)
    stream = _git(ledger, "fast-export", ref)
    assert old in stream
    _git(ledger, "fast-import", "--force", "--quiet", data=stream.replace(old, new))


def exchange(ledger: GitLedger, oid: str, change: Callable[[bytes], bytes]) -> bytes:
    """Other bytes under the name of an object; returns those that were there."""
    path = ledger.path / "objects" / oid[:2] / oid[2:]
    stored = path.read_bytes()
    header, _, body = zlib.decompress(stored).partition(b"\0")
    made = change(body)
    path.chmod(0o644)
    path.write_bytes(zlib.compress(header.split()[0] + b" %d\0" % len(made) + made))
    return stored


def object_path(ledger: GitLedger, revision: str) -> Path:
    oid = git(ledger, "rev-parse", revision).strip()
    return ledger.path / "objects" / oid[:2] / oid[2:]


def _sections(stream: bytes, kind: bytes) -> list[bytes]:
    return [each for each in re.split(rb"(?m)^(?=blob$|commit refs|reset refs)", stream) if each.startswith(kind)]


def _chained(commits: list[bytes]) -> list[bytes]:
    """Each commit upon the one before it in this order."""
    made: list[bytes] = []
    for commit in commits:
        mark = re.search(rb"(?m)^mark (:\d+)$", made[-1]) if made else None
        made.append(re.sub(rb"(?m)^from .*$", b"from " + mark[1], commit, count=1) if mark else commit)
    return made


def _git(ledger: GitLedger, *arguments: str, data: bytes = b"") -> bytes:
    done = subprocess.run(
        ["git", "-C", str(ledger.path), *arguments], input=data, capture_output=True, check=True, timeout=60
    )
    return done.stdout
