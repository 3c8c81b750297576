"""`verify`: a run's commits as facts for `core.checks`, read from the oldest to the newest.

Every object is hashed again on the way, since nothing else notices bytes that were exchanged under their old name.
What cannot be read is a problem where it stands and hides nothing else: a blob costs one path, a tree the commits
that hold it, a commit what came before it. After such a break the next commit that can be read is judged whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..core.checks import CommitFacts, check_run
from ..errors import IntegrityError
from .commits import Commit
from .objects import Objects, id_of
from .ports import Problem
from .snapshots import Snapshot, Snapshots
from .trees import FILE, Change, Item

_FILES = (FILE, 0o100755, 0o120000)

Tell = Callable[[str, IntegrityError], None]


class HashedObjects(Objects):
    """Objects whose content is compared with their name, which costs more than reading them otherwise does."""

    def read(self, oid: bytes, kind: bytes) -> bytes:
        body = super().read(oid, kind)
        if id_of(kind, body) != oid:
            raise IntegrityError(f"object {oid.hex()} holds something else than its name says")
        return body


def verify_run(snapshots: Snapshots, snapshot: Snapshot) -> list[Problem]:
    """All problems of one run, oldest first. `snapshots` reads through `HashedObjects`."""
    problems: list[Problem] = []
    told: set[str] = set()

    def tell(commit: str, error: IntegrityError) -> None:
        if error.message not in told:
            told.add(error.message)
            problems.append(Problem(snapshot.run_id, commit, "", error.message, error.hint or ""))

    history = _History(snapshots, snapshot.folder, tell)
    for finding in check_run(snapshot.run_id, history.facts(snapshot.tip), snapshot.content):
        problems.append(Problem(snapshot.run_id, finding.commit, finding.path, finding.message))
    return problems


def step_facts(snapshots: Snapshots, oid: bytes, commit: Commit, folder: str) -> CommitFacts:
    """What a commit does to a run. Raises IntegrityError when it, its parent or their trees cannot be read."""
    before = snapshots.trees.open(snapshots.commit(commit.parents[0]).tree)
    inside, outside = _split(snapshots.trees.compare(before, snapshots.trees.open(commit.tree)), folder)
    new = {change.path: change.new for change in inside if change.new and not change.old}
    added, unreadable = _contents(snapshots, new)
    return CommitFacts(
        commit=oid.hex(),
        parents=len(commit.parents),
        added=added,
        changed=tuple(change.path for change in inside if change.old and change.new),
        removed=tuple(change.path for change in inside if not change.new),
        outside=outside,
        odd=tuple(change.path for change in inside if change.new and change.new.mode != FILE),
        message=commit.message,
        author=commit.author.name,
        unreadable=unreadable,
    )


class _History:
    def __init__(self, snapshots: Snapshots, folder: str, tell: Tell) -> None:
        self._snapshots = snapshots
        self._folder = folder
        self._tell = tell

    def facts(self, tip: bytes) -> Iterator[CommitFacts]:
        chain, broken = self._chain(tip)
        for oid, commit in reversed(chain):
            try:
                yield self._whole(oid, commit) if broken else step_facts(self._snapshots, oid, commit, self._folder)
                broken = False
            except IntegrityError as error:
                self._tell(oid.hex(), error)
                broken = True

    def _chain(self, tip: bytes) -> tuple[list[tuple[bytes, Commit]], bool]:
        """The run's commits, newest first, down to genesis, and whether something is missing at their end."""
        chain: list[tuple[bytes, Commit]] = []
        try:
            for oid, commit in self._snapshots.first_parents(tip):
                if not commit.parents:
                    raise IntegrityError(f"commit {oid.hex()} is a root, but not the genesis commit of all runs")
                chain.append((oid, commit))
        except IntegrityError as error:
            self._tell(chain[-1][0].hex() if chain else tip.hex(), error)
            return chain, True
        return chain, False

    def _whole(self, oid: bytes, commit: Commit) -> CommitFacts:
        """Everything that can be read of the run's folder, as if the commit added it."""
        folder = self._snapshots.trees.folder(self._snapshots.trees.open(commit.tree), self._folder)
        if folder is None:
            raise IntegrityError(f"commit {oid.hex()} does not have {self._folder}")
        added, unreadable = _contents(self._snapshots, dict(self._snapshots.trees.walk(folder)))
        odd = tuple(path for path, item in self._snapshots.trees.walk(folder) if item.mode != FILE)
        return CommitFacts(oid.hex(), len(commit.parents), added, odd=odd, unreadable=unreadable, whole=True)


def _split(changes: Iterator[Change], folder: str) -> tuple[list[Change], tuple[str, ...]]:
    inside, outside, prefix = [], [], folder + "/"
    for change in changes:
        if change.path.startswith(prefix):
            inside.append(change._replace(path=change.path.removeprefix(prefix)))
        else:
            outside.append(change.path)
    return inside, tuple(outside)


def _contents(snapshots: Snapshots, items: dict[str, Item]) -> tuple[dict[str, bytes], dict[str, str]]:
    """The blobs that can be read, and why others cannot."""
    added, unreadable = {}, {}
    for path, item in items.items():
        if item.mode in _FILES:
            try:
                added[path] = snapshots.objects.read(item.oid, b"blob")
            except IntegrityError as error:
                unreadable[path] = error.message
    return added, unreadable
