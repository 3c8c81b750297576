"""Repairs of a receipts repository that lose nothing: what is taken away is kept in `hermes/damaged`.

A ref that a power cut has emptied is set to the newest commit of its run that is here and whole. That is never less
than what was acknowledged: a commit is on disk before the ref moves to it. It may be more, a commit whose ref had not
moved yet: such a receipt is as good as any, and first at its path. It is never what somebody else brought here: where
a commit that was fetched, pushed or rejected would be the newest, and the index does not know it, none is chosen.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ..core.names import run_component
from ..errors import HermesError, IntegrityError, StoreFailure
from . import peek
from .commits import Commit
from .damage import BadObject, StaleLock, has_no_head
from .durability import disk_for
from .refs import Move, Patience, Refs
from .repository import GENESIS, MAIN
from .snapshots import Snapshots
from .verify import HashedObjects, verify_run
from .verify_seals import verify_seals

# In seconds: a repair is no reason to wait for long for a writer that is suspended.
_PATIENCE = 5.0


class Mender:
    """The repairs of one repository; each says what it did, or None when it was not needed or not safe.

    All raise TemporarilyLocked while others write, and StoreFailure.
    """

    def __init__(self, repository: Path, patience: float = _PATIENCE) -> None:
        self._repository = repository
        self._disk = disk_for(repository, "power")
        self.objects = HashedObjects(repository, self._disk)
        self._snapshots = Snapshots(self.objects)
        self._refs = Refs(repository, self._disk, Patience(ours=patience, theirs=patience))

    def close(self) -> None:
        self.objects.close()

    def sweep(self, lock: StaleLock) -> str | None:
        """Take a lock of git's away. Under every lock of ours: a suspended writer of ours may hold it rightly."""
        with _disk_errors(self._repository), self._refs.alone():
            try:
                found = lock.path.stat()
            except FileNotFoundError:
                return None
            if (found.st_ino, found.st_mtime_ns) != lock.seen:
                return None
            self._put_aside(lock.path)
        return f"took {lock.path.relative_to(self._repository)} away"

    def put_aside(self, bad: BadObject) -> str | None:
        """Take a damaged object away that a pack has as well, or that nothing refers to."""
        if bad.needed or not bad.path.exists():
            return None
        with _disk_errors(self._repository):
            return f"moved object {bad.oid} to {self._put_aside(bad.path)}"

    def restore(self, ref: str, known: str | None = None) -> str | None:
        """Let a ref whose file holds no commit id point at its newest commit again; `known` is one that was its tip."""
        # Before the locks, since it takes a while: nobody can append to what has no commit id.
        tip = self._tip_of(ref, known) if self._is_empty(ref) else None
        if tip is None and not ref.startswith(peek.REMOTES):
            return None
        with _disk_errors(self._repository), self._refs.alone():
            if not self._is_empty(ref):
                return None
            self._put_aside(self._repository / ref)
            if tip is None:
                return f"removed {ref}: the next fetch brings it again"
            packed = peek.read_ref(self._repository, ref)
            with contextlib.closing(self._disk.barrier()) as barrier:
                if packed != tip:
                    self._refs.move([Move(ref, packed, tip)], barrier)
        return f"set {ref} to {tip}"

    def restore_head(self) -> str | None:
        """Let git know the repository for one again."""
        if not has_no_head(self._repository):
            return None
        path, new = self._repository / "HEAD", self._repository / "hermes" / f"HEAD.{secrets.token_hex(4)}"
        with _disk_errors(self._repository):
            new.parent.mkdir(exist_ok=True)
            new.write_text(f"ref: {MAIN}\n", encoding="ascii")
            os.rename(new, path)
            self._disk.sync_folder(self._repository)
        return f"let HEAD point at {MAIN}"

    def _is_empty(self, ref: str) -> bool:
        try:
            peek.read_ref(self._repository, ref)
        except IntegrityError:
            return True
        return False

    def _tip_of(self, ref: str, known: str | None) -> str | None:
        if ref == MAIN:
            return GENESIS
        if ref == peek.LEDGER:
            return self._newest(lambda commit: len(commit.parents) == 2, self._sealed_well, known)
        if ref.startswith(peek.RUNS):
            component = ref.removeprefix(peek.RUNS)
            return self._newest(lambda commit: _is_of(component, commit), self._ran_well, known)
        return None

    def _newest(
        self, fits: Callable[[Commit], bool], is_whole: Callable[[bytes], bool], known: str | None
    ) -> str | None:
        """The end of the longest chain that is whole; None when there is none, or nobody can tell which is ours."""
        commits = dict(self._commits())
        foreign = _leading_to(commits, self._brought_here()) - _leading_to(commits, [known] if known else [])
        by_depth: dict[int, list[bytes]] = {}
        for oid, depth in _depths({o: each.parents[0] for o, each in commits.items() if fits(each)}).items():
            by_depth.setdefault(depth, []).append(oid)
        for depth in sorted(by_depth, reverse=True):
            if whole := [oid for oid in by_depth[depth] if is_whole(oid)]:
                clear = len(whole) == 1 and whole[0] not in foreign and _goes_on(commits, whole[0], known)
                return whole[0].hex() if clear else None
        return None

    def _brought_here(self) -> list[str]:
        """Commits that refs which are not ours point at."""
        refs = peek.all_refs(self._repository, "refs/").items()
        return [oid for ref, oid in refs if oid and not ref.startswith(peek.RUNS) and ref not in (MAIN, peek.LEDGER)]

    def _commits(self) -> Iterator[tuple[bytes, Commit]]:
        for number in range(256):
            for oid in self.objects.beginning(f"{number:02x}"):
                with contextlib.suppress(HermesError):
                    yield oid, self._snapshots.commit(oid)

    def _ran_well(self, oid: bytes) -> bool:
        try:
            return not verify_run(self._snapshots, self._snapshots.at(oid))
        except HermesError:
            return False

    def _sealed_well(self, oid: bytes) -> bool:
        return not list(verify_seals(self._snapshots, oid.hex()))

    def _put_aside(self, path: Path) -> str:
        folder = self._repository / "hermes" / "damaged"
        folder.mkdir(parents=True, exist_ok=True)
        name = "-".join(path.relative_to(self._repository).parts)
        os.rename(path, folder / f"{name}.{secrets.token_hex(4)}")
        self._disk.sync_folder(path.parent)
        return str(folder.relative_to(self._repository))


def _is_of(component: str, commit: Commit) -> bool:
    if len(commit.parents) != 1:
        return False
    return any(run_component(block["Run"]) == component for block in commit.trailers() if block.get("Run"))


def _leading_to(commits: Mapping[bytes, Commit], tips: Iterable[str]) -> set[bytes]:
    """These commits and all before them."""
    waiting = [bytes.fromhex(tip) for tip in tips]
    met: set[bytes] = set()
    while waiting:
        oid = waiting.pop()
        if oid not in met:
            met.add(oid)
            waiting += commits[oid].parents if oid in commits else ()
    return met


def _goes_on(commits: Mapping[bytes, Commit], oid: bytes, known: str | None) -> bool:
    """Whether what was acknowledged and is here is before it: a damaged receipt must not be dropped in silence."""
    if known is None or bytes.fromhex(known) not in commits:
        return True
    return bytes.fromhex(known) in _leading_to(commits, [oid.hex()])


def _depths(parents: Mapping[bytes, bytes]) -> dict[bytes, int]:
    """How many of these commits stand before each, by first parents."""
    depths: dict[bytes, int] = {}
    for oid in parents:
        chain = []
        while oid in parents and oid not in depths:
            chain.append(oid)
            oid = parents[oid]
        for depth, each in enumerate(reversed(chain), depths.get(oid, -1) + 1):
            depths[each] = depth
    return depths


@contextlib.contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreFailure(f"cannot repair {path}: {error.strerror or error}") from error
