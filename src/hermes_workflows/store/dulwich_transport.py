"""Exchange with a remote by dulwich, where there is no git program: local folders, ssh, and http(s) without helpers.

What C git does for us is done here by hand: a pack is checked in quarantine before it is let in, refs only go
forwards, and a folder next door that is a workspace's own store is not written into.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from dulwich.client import GitClient, HTTPUnauthorized, LocalGitClient, Urllib3HttpGitClient, get_transport_and_path
from dulwich.errors import GitProtocolError, NotGitRepository
from dulwich.file import FileLocked
from dulwich.graph import can_fast_forward
from dulwich.objects import ObjectID
from dulwich.refs import DiskRefsContainer, Ref, check_ref_format
from dulwich.repo import Repo

from ..core.redaction import Redactor
from ..errors import HermesError, IntegrityError, NotFound, RemoteFailure
from . import peek, repository
from .durability import Disk
from .quarantine import Quarantine
from .remotes import Remote, is_exchanged, kept_as, kept_of
from .remotes import prune as forget

_HIDDEN = "it is a workspace's own store, which takes no pushes; push to a bare repository between the two"

# What fits into memory while a pack arrives; more of it goes to the disk.
_IN_MEMORY = 8 << 20


class DulwichTransport:
    """`remotes.Transport` without the git program."""

    def __init__(self, path: Path, remote: Remote, disk: Disk, environment: Mapping[str, str]) -> None:
        self._path = path
        self._remote = remote
        self._disk = disk
        self._ssh = environment.get("GIT_SSH_COMMAND")

    def refs(self, *, for_push: bool = False) -> dict[str, str]:
        with self._talking(self._remote.push_url if for_push else self._remote.url) as (client, path):
            return _exchanged(client.get_refs(path.encode()).refs)

    def fetch(self, *, prune: bool) -> None:
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as pack, Quarantine(self._path, self._disk) as quarantine:
            theirs = self._receive(pack.write)
            if pack.tell():
                pack.seek(0)
                quarantine.take(pack)  # type: ignore[arg-type]  # a file in everything but its type
                quarantine.admit()
            wanted = kept_of(self._remote, theirs)
            self._check_sent(wanted)
            if prune:
                # First: a branch that is gone may have the name of a folder now.
                forget(self._path, self._remote, theirs)
            self._keep(wanted)

    def push(self, values: Mapping[str, str]) -> dict[str, str]:
        refused: dict[str, str] = {}
        with self._talking(self._remote.push_url) as (client, path), closing(Repo(str(self._path))) as ours:
            if isinstance(client, LocalGitClient) and _is_workspace(Path(path)):
                return dict.fromkeys(values, _HIDDEN)

            def update(theirs: Mapping[Any, Any]) -> dict[Any, Any]:
                moves = {}
                for ref, commit in values.items():
                    if why := _refusal(ours, theirs.get(ref.encode()), commit.encode()):
                        refused[ref] = why
                    else:
                        moves[ref.encode()] = commit.encode()
                return moves

            result = client.send_pack(path.encode(), update, ours.object_store.generate_pack_data)
        return refused | {ref.decode(): why for ref, why in (result.ref_status or {}).items() if why}

    def replace(self, ref: str, old: str, new: str) -> str | None:
        moved = False
        with self._talking(self._remote.push_url) as (client, path), closing(Repo(str(self._path))) as ours:
            if isinstance(client, LocalGitClient) and _is_workspace(Path(path)):
                return _HIDDEN

            def update(theirs: Mapping[Any, Any]) -> dict[Any, Any]:
                nonlocal moved
                moved = theirs.get(ref.encode()) == old.encode()
                return {ref.encode(): new.encode()} if moved else {}

            result = client.send_pack(path.encode(), update, ours.object_store.generate_pack_data)
        return (result.ref_status or {}).get(ref.encode()) if moved else "it was moved meanwhile"

    def _receive(self, write: Callable[[bytes], int]) -> dict[str, str]:
        """Ask for everything that is not here; what the remote has."""
        with self._talking(self._remote.url) as (client, path), closing(Repo(str(self._path))) as ours:

            def wants(refs: Mapping[Any, Any], depth: int | None = None) -> list[ObjectID]:
                named = {oid for ref, oid in refs.items() if oid and kept_as(self._remote, ref.decode())}
                return [ObjectID(oid) for oid in sorted(named) if ObjectID(oid) not in ours.object_store]

            return _exchanged(client.fetch_pack(path.encode(), wants, ours.get_graph_walker(), write).refs)

    def _check_sent(self, wanted: Mapping[str, str]) -> None:
        with closing(Repo(str(self._path))) as ours:
            for name, oid in wanted.items():
                if ObjectID(oid.encode()) not in ours.object_store:
                    raise IntegrityError(f"{self._remote.name} did not send {oid}, which it has as {name}")

    def _keep(self, wanted: Mapping[str, str]) -> None:
        known, refs = peek.all_refs(self._path, self._remote.prefix), DiskRefsContainer(str(self._path))
        failed = {}
        for name, oid in wanted.items():
            if known.get(name) == oid:
                continue
            try:
                if not check_ref_format(Ref(name.encode())):
                    failed[name] = "is no name for a ref"
                else:
                    refs.set_if_equals(Ref(name.encode()), None, ObjectID(oid.encode()))
            except (FileLocked, OSError, ValueError) as error:
                failed[name] = f"cannot be written: {error}"
        for name, why in failed.items():
            raise RemoteFailure(
                f"{name} {why}", hint="a branch there has become a folder, or the reverse: `fetch --prune`"
            )

    @contextmanager
    def _talking(self, url: str) -> Iterator[tuple[GitClient, str]]:
        """A client for a url, and everything that may go wrong with it as one error."""
        client = None
        try:
            address = os.path.join(self._path, url) if _is_path(url) else url
            client, path = get_transport_and_path(address, ssh_command=self._ssh)
            yield client, path
        except (HermesError, KeyboardInterrupt):
            raise
        except NotGitRepository:
            raise NotFound(
                f"{self._remote.name} ({self._remote.shown}) is no git repository", hint="`git init --bare` makes one"
            ) from None
        except (HTTPUnauthorized, GitProtocolError, OSError, AssertionError, ValueError, KeyError) as error:
            raise self._failure(error) from error
        except Exception as error:
            # urllib3 and ssh have errors of their own, which only their packages name.
            raise self._failure(error) from error
        finally:
            if isinstance(client, Urllib3HttpGitClient):
                client.pool_manager.clear()

    def _failure(self, error: Exception) -> RemoteFailure:
        said = " ".join(Redactor().text(str(error) or type(error).__name__).split())
        return RemoteFailure(
            f"{self._remote.name} ({self._remote.shown}): {said}",
            hint="check the address, the network and who may read or write there; with git installed, git is used",
        )


def _exchanged(refs: Mapping[Any, Any]) -> dict[str, str]:
    named = ((ref.decode("utf-8", "replace"), oid) for ref, oid in refs.items() if oid)
    return {ref: oid.decode() for ref, oid in named if is_exchanged(ref) and not ref.endswith("^{}")}


def _refusal(ours: Repo, old: bytes | None, new: bytes) -> str:
    """Why a ref may not move from `old` to `new`, or ""."""
    if old is None or old == new:
        return ""
    if ObjectID(old) not in ours.object_store:
        return "fetch first"
    return "" if can_fast_forward(ours, ObjectID(old), ObjectID(new)) else "non-fast-forward"


def _is_workspace(path: Path) -> bool:
    try:
        return bool(repository.workspace_id(path))
    except (HermesError, OSError):
        return False


def _is_path(url: str) -> bool:
    """As git decides it: a colon before any slash makes it `host:path`."""
    return ":" not in url.partition("/")[0]
