"""Answers that people put on branches, read and never believed (SEMANTICS §8).

    refs/heads/answer/<run>             pushed here; read once, then dropped, or kept under refs/refused/ with a reason
    refs/remotes/<remote>/answer/<run>  fetched; so are the branches below, which a forge's web page commits to
    refs/remotes/<remote>/run/<run>
    refs/remotes/<remote>/runs/<run>

Of such a branch exactly `reviews/<key>/response.json` is taken. What else it changes, seen from the last commit of
ours that it builds on, is named, so that it can be refused with its path. No ref of a run ever moves because of it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from ..core import layout
from ..core.names import run_component
from ..errors import HermesError
from . import git_binary, peek
from .durability import Disk
from .ports import Proposal
from .refs import Move, Refs
from .repository import GENESIS
from .sealing import Sealed
from .snapshots import Snapshot, Snapshots
from .trees import FILE, Change, Item

PUSHED = "refs/heads/answer/"
REFUSED = "refs/refused/"

_GENESIS = bytes.fromhex(GENESIS)
_FETCHED = re.compile(r"refs/remotes/[^/]+/(?:answer|run|runs)/([^/]+)\Z")
# A person's branch has one commit, or a few; a longer one is no answer.
_MOST_COMMITS = 50
_BLOB = re.compile(rb'"\$blob": "([0-9a-f]{64})"')


class Proposals:
    """Reads the branches of one repository. Thread-safe, as far as what it reads with is."""

    def __init__(self, repository: Path, snapshots: Snapshots, refs: Refs, sealed: Sealed, disk: Disk) -> None:
        self._repository = repository
        self._snapshots = snapshots
        self._refs = refs
        self._sealed = sealed
        self._disk = disk

    def waiting(self, *, fetched: bool) -> Iterator[Proposal]:
        """What was pushed here, and with `fetched` what came from remotes, if it says anything new."""
        for ref, commit in sorted(self._branches(fetched).items()):
            home = self._home(ref)
            if home is None or not commit or bytes.fromhex(commit) == home.tip:
                continue
            try:
                proposal = self._read(ref, bytes.fromhex(commit), home)
            except HermesError as error:
                proposal = Proposal(home.run_id, ref, commit, "somebody", "", faults=(error.message,))
            if proposal:
                yield proposal

    def settle(self, proposal: Proposal, *, refused: bool) -> None:
        """Clear a pushed branch away, so that the next push starts afresh; what was refused stays reachable."""
        if not proposal.ref.startswith(PUSHED):
            return
        kept = f"{REFUSED}{run_component(proposal.run_id)}/{proposal.commit}"
        with self._refs.locked([proposal.ref, kept]), contextlib.closing(self._disk.barrier()) as barrier:
            if refused:
                self._refs.move([Move(kept, peek.read_ref(self._repository, kept), proposal.commit)], barrier)
            self._refs.drop({proposal.ref: proposal.commit})

    def _branches(self, fetched: bool) -> dict[str, str]:
        found = peek.list_refs(self._repository, PUSHED)
        if fetched:
            remote = peek.all_refs(self._repository, peek.REMOTES)
            found |= {ref: commit for ref, commit in remote.items() if _FETCHED.match(ref)}
        return found

    def _home(self, ref: str) -> Snapshot | None:
        name = ref.rpartition("/")[2]
        # People write the id; branches of ours are named like folders.
        return self._ours(name) or self._ours(run_component(name))

    def _ours(self, component: str) -> Snapshot | None:
        tip = peek.read_ref(self._repository, peek.RUNS + component) or self._sealed.tip(component)
        return self._snapshots.at(bytes.fromhex(tip)) if tip else None

    def _read(self, ref: str, oid: bytes, home: Snapshot) -> Proposal | None:
        commit = self._snapshots.commit(oid)
        theirs = self._snapshots.trees.folder(self._snapshots.trees.open(commit.tree), home.folder)
        news = list(self._snapshots.trees.compare(home.run_folder(), theirs))
        if not any(change.new and change.path != layout.README for change in news):
            if not ref.startswith(PUSHED):
                return None
            # An older commit of ours, or one that adds nothing: it is cleared away all the same.
            nothing = ("it adds no reviews/<key>/response.json",)
            return Proposal(home.run_id, ref, oid.hex(), commit.author.name, "", faults=nothing)
        found, faults = self._taken(oid, commit.tree, home)
        answers = {path: self._snapshots.objects.read(item.oid, b"blob") for path, item in found.items()}
        faults += [fault for path in found for fault in self._stale(path, commit.tree, home)]
        signature, signer = self._signature(oid)
        if signature == "bad":
            faults.append("its signature does not belong to it")
        who = commit.author
        return Proposal(home.run_id, ref, oid.hex(), who.name, who.email, answers, tuple(faults), signature, signer)

    def _taken(self, oid: bytes, tree: bytes, home: Snapshot) -> tuple[dict[str, Item], list[str]]:
        """The responses that a commit adds to what it builds on, and every other change of it."""
        base = self._base(oid, home)
        if base is None:
            return {}, [f"it does not build on {home.run_id}: start from the run's newest commit"]
        trees = self._snapshots.trees
        answers: dict[str, Item] = {}
        faults = []
        for change in trees.compare(trees.open(self._snapshots.commit(base).tree), trees.open(tree)):
            path = change.path.removeprefix(home.folder + "/")
            place = layout.place(path) if path != change.path else None
            if place and place.family == "response" and change.old is None and change.new and change.new.mode == FILE:
                answers[path] = change.new
            elif not self._is_ours(change, home, whole=base == _GENESIS):
                faults.append(f"it changes {change.path}, and only reviews/<key>/response.json may be added")
        return answers, faults

    def _is_ours(self, change: Change, home: Snapshot, *, whole: bool) -> bool:
        """Whether it is what our run has there, too; `whole`, that the branch holds the run without its history."""
        if change.new is None:
            return False
        ours = self._snapshots.trees.find(home.root, change.path)
        return ours == change.new or (whole and change.path == f"{home.folder}/{layout.README}")

    def _base(self, oid: bytes, home: Snapshot) -> bytes | None:
        chain = {_GENESIS, *(commit for commit, _ in self._snapshots.first_parents(home.tip))}
        for _ in range(_MOST_COMMITS):
            if oid in chain:
                return oid
            parents = self._snapshots.commit(oid).parents
            if not parents:
                return None
            oid = parents[0]
        return None

    def _stale(self, path: str, tree: bytes, home: Snapshot) -> list[str]:
        """Whether question and evidence are the ones at home: that decides, and not which commit it builds on."""
        request = f"{path.removesuffix('response.json')}request.json"
        data = home.content(request)
        if data is None:
            return [f"there is no question {path.split('/', 1)[1].removesuffix('/response.json')}"]
        trees, root = self._snapshots.trees, self._snapshots.trees.open(tree)
        places = [f"{home.folder}/{each}" for each in (request, *blobs_of(data))]
        return [
            f"{place} is not the one that was asked with"
            for place in places
            if trees.find(root, place) != trees.find(home.root, place)
        ]

    def _signature(self, oid: bytes) -> tuple[str, str]:
        head = self._snapshots.objects.read(oid, b"commit").partition(b"\n\n")[0]
        if b"\ngpgsig" not in head:
            return "none", ""
        return git_binary.signature(str(self._repository), oid.hex())


def blobs_of(request: bytes) -> Iterator[str]:
    """The paths of what lies beside a question's receipt, given its bytes."""
    return (layout.artifact(name.decode()) for name in _BLOB.findall(request))
