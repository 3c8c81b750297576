"""Runs found by a commit, and runs that came from elsewhere: what `RUN` may name beyond an id of ours.

Everything fetched is foreign: it is read, checked against the name it came under, and believed in nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from ..core.names import check_run_id, run_component
from ..errors import Conflict, IntegrityError, InvalidInput, NotFound
from . import peek
from .ports import Head
from .sealing import Sealed
from .snapshots import NoRun, Snapshot, Snapshots

_ID = re.compile(r"[0-9a-f]{7,40}")
_WHOLE = 40
_SHOWN = 5
_SHORT = 12

# In this order: a ref of a run's own is newer than what a ledger has sealed of it.
_FETCHED = ("runs", "run", "ledger")


class Lookup:
    """Thread-safe, as far as what it reads with is."""

    def __init__(self, repository: Path, snapshots: Snapshots) -> None:
        self._repository = repository
        self._snapshots = snapshots

    def at(self, text: str) -> Snapshot:
        """The run as the commit `text` has it, which may be abbreviated; a seal stands for the run it sealed.

        Raises NotFound for what is no commit of a run, Conflict when several begin so, IntegrityError for damage.
        """
        if not _ID.fullmatch(text):
            raise _no_commit(text)
        if len(text) == _WHOLE:
            return self._run_at(bytes.fromhex(text))
        found = list(self._beginning(text))
        if len(found) > 1:
            shown = ", ".join(snapshot.tip.hex()[:_SHORT] for snapshot in found[:_SHOWN])
            raise Conflict(f"several commits begin with {text}: {shown}", hint="write more of the id")
        if not found:
            raise _no_commit(text)
        return found[0]

    def fetched(self) -> Iterator[tuple[str, Head]]:
        """Every run that was fetched and can be read, with its remote's name; no id of one remote twice."""
        seen: set[tuple[str, str]] = set()
        for remote, head in self._fetched():
            if (remote, head.run_id) not in seen:
                seen.add((remote, head.run_id))
                yield remote, head

    def _run_at(self, oid: bytes) -> Snapshot:
        try:
            commit = self._snapshots.commit(oid)
        except IntegrityError as error:
            if self._snapshots.objects.has(oid):
                raise
            raise _no_commit(oid.hex()) from error
        if len(commit.parents) > 1:
            # Two parents: a seal, which names the run's tip, or a merge, which holds whatever was merged.
            if commit.parents[1].hex() in {block.get("Tip") for block in commit.trailers()}:
                return replace(self._snapshots.at(commit.parents[1]), sealed=True)
            raise _no_commit(oid.hex())
        try:
            return self._snapshots.at(oid)
        except NoRun as error:
            raise _no_commit(oid.hex()) from error

    def _beginning(self, prefix: str) -> Iterator[Snapshot]:
        for oid in self._snapshots.objects.beginning(prefix):
            try:
                yield self._run_at(oid)
            except (IntegrityError, NotFound):
                # Another object that begins alike, or a commit of something else.
                continue

    def _fetched(self) -> Iterator[tuple[str, Head]]:
        refs = sorted(peek.all_refs(self._repository, peek.REMOTES).items())
        for kind in _FETCHED:
            for ref, tip in refs:
                remote, found, name = f"{ref.removeprefix(peek.REMOTES)}/".partition(f"/{kind}/")
                # A workspace that is fetched from itself has its own ledger under no name.
                if tip and (name or (found and kind == "ledger")):
                    heads = self._ledger(ref) if kind == "ledger" else self._run(name.removesuffix("/"), tip)
                    yield from ((remote, head) for head in heads)

    def _run(self, name: str, tip: str) -> Iterable[Head]:
        try:
            head = self._snapshots.locate(bytes.fromhex(tip)).head
        except IntegrityError:
            return []
        return [head] if run_component(head.run_id) == name and _is_run_id(head.run_id) else []

    def _ledger(self, ref: str) -> Iterator[Head]:
        try:
            for head in Sealed(self._repository, self._snapshots, ref).heads():
                if _is_run_id(head.run_id):
                    yield head
        except IntegrityError:
            # What was read of it before counts; the rest is the sender's to repair.
            return


def _is_run_id(text: str) -> bool:
    try:
        return bool(check_run_id(text))
    except InvalidInput:
        return False


def _no_commit(text: str) -> NotFound:
    return NotFound(
        f"{text!r} is no commit of a run", hint="`hermes-workflows log` shows the newest commit of each run"
    )
