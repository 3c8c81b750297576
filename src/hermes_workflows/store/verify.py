"""`verify`: a run's commits as facts for `core.checks`, read from the oldest to the newest."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.checks import CommitFacts, check_run
from ..errors import IntegrityError
from .commits import Commit
from .ports import Problem
from .snapshots import Snapshot, Snapshots
from .trees import FILE, Change, Folder


def verify_run(snapshots: Snapshots, snapshot: Snapshot) -> list[Problem]:
    """All problems of one run, oldest first; an unreadable object is one of them and ends the search."""
    try:
        chain = list(_chain(snapshots, snapshot.tip))
        facts = (_facts(snapshots, oid, commit, parent, snapshot.folder) for oid, commit, parent in reversed(chain))
        return [
            Problem(snapshot.run_id, finding.commit, finding.path, finding.message)
            for finding in check_run(snapshot.run_id, facts, snapshot.content)
        ]
    except IntegrityError as error:
        return [Problem(snapshot.run_id, "", "", error.message, error.hint or "")]


def _chain(snapshots: Snapshots, tip: bytes) -> Iterator[tuple[bytes, Commit, Commit]]:
    """The run's commits with their parents, newest first, down to genesis."""
    for oid, commit in snapshots.first_parents(tip):
        if not commit.parents:
            raise IntegrityError(f"commit {oid.hex()} is a root, but not the genesis commit of all runs")
        yield oid, commit, snapshots.commit(commit.parents[0])


def _facts(snapshots: Snapshots, oid: bytes, commit: Commit, parent: Commit, folder: str) -> CommitFacts:
    inside, outside = _changes(snapshots, commit, parent, folder)
    return CommitFacts(
        commit=oid.hex(),
        parents=len(commit.parents),
        added={
            change.path: snapshots.objects.read(change.new.oid, b"blob")
            for change in inside
            if change.new and not change.old and change.new.mode in (FILE, 0o100755, 0o120000)
        },
        changed=tuple(change.path for change in inside if change.old and change.new),
        removed=tuple(change.path for change in inside if not change.new),
        outside=outside,
        odd=tuple(change.path for change in inside if change.new and change.new.mode != FILE),
        message=commit.message,
    )


def _changes(snapshots: Snapshots, commit: Commit, parent: Commit, folder: str) -> tuple[list[Change], tuple[str, ...]]:
    old, new = (_open(snapshots, each) for each in (parent, commit))
    inside, outside, prefix = [], [], folder + "/"
    for change in snapshots.trees.compare(old, new):
        if change.path.startswith(prefix):
            inside.append(change._replace(path=change.path.removeprefix(prefix)))
        else:
            outside.append(change.path)
    return inside, tuple(outside)


def _open(snapshots: Snapshots, commit: Commit) -> Folder:
    return snapshots.trees.open(commit.tree)
