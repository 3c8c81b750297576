"""Runs between workspaces: push, fetch and sync with a remote, export and import as files.

What goes out is ours: our runs, `main`, and our ledger under the workspace's own name. What comes in is kept under
`refs/remotes/`, or gets a ref after it was checked from end to end. Nothing that comes in is executed, and none of it
moves a ref of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from .core import layout
from .core.encoding import parse
from .core.names import run_component
from .errors import HermesError, InvalidInput, NotFound, StoreFailure
from .finding import Found
from .store import git_binary, peek
from .store.arriving import Arrived, check_arrival, check_together
from .store.bundles import read_header, write_bundle
from .store.git_ledger import GitLedger
from .store.quarantine import Quarantine
from .store.reaching import leads_to, reach
from .store.remotes import Remote, Transport, find_remote, kept_as
from .store.repository import GENESIS, MAIN
from .store.snapshots import Snapshots
from .workspace import Workspace

State = Literal["sent", "unchanged", "behind", "refused"]

# What git says, in words that say what to do.
_REASONS = {
    "non-fast-forward": "it has other commits there; nothing is ever forced",
    "fetch first": "it has commits there that are not here; fetch first",
    "deny updating a hidden ref": "the remote is a workspace's own store; push to a bare repository between the two",
}


@dataclass(frozen=True)
class Sent:
    """What became of one ref of ours: `there` is its name at the remote; `behind` means that the remote has more."""

    ref: str
    there: str
    commit: str
    state: State
    reason: str = ""


@dataclass(frozen=True)
class Pushed:
    remote: Remote
    refs: tuple[Sent, ...]

    def of(self, state: State) -> list[Sent]:
        return [each for each in self.refs if each.state == state]


@dataclass(frozen=True)
class Fetched:
    """What has changed of a remote's refs, by their names behind `refs/remotes/<remote>/`.

    `no_runs` are those among its runs that are none, with the reason; they are kept, and no command reads them.
    """

    remote: Remote
    new: tuple[str, ...]
    moved: tuple[str, ...]
    gone: tuple[str, ...]
    no_runs: Mapping[str, str]


def push(workspace: Workspace, name: str | None = None) -> Pushed:
    """Send our runs, our ledger and `main`, forwards only. Raises NotFound, InvalidInput, RemoteFailure."""
    ledger, remote, transport = _reached(workspace, name)
    theirs = transport.refs(for_push=True)
    plan = list(_plan(ledger, theirs))
    wanted = {each.there: each.commit for each in plan if each.state == "sent"}
    refused = transport.push(wanted) if wanted else {}
    return Pushed(remote, tuple(_settled(each, refused) for each in plan))


def fetch(workspace: Workspace, name: str | None = None, *, prune: bool = False) -> Fetched:
    """Bring what a remote has under `refs/remotes/`; `prune` forgets what is gone there.

    Raises NotFound, InvalidInput, RemoteFailure, and IntegrityError for objects that are damaged or made to harm.
    """
    ledger, remote, transport = _reached(workspace, name)
    before = peek.all_refs(ledger.path, remote.prefix)
    transport.fetch(prune=prune)
    after = peek.all_refs(ledger.path, remote.prefix)
    moved = {ref: oid for ref, oid in after.items() if oid != before.get(ref)}
    there = {_run_ref(remote, ref) for ref in moved}
    ours = {kept_as(remote, name): commit for name, commit in _own_refs(ledger, there)}
    # What we have sent comes back with all the rest, and is no news, also when the run has gone on since.
    changed = {ref: oid for ref, oid in moved.items() if ref not in ours or not _led_to(ledger, oid, ours[ref])}
    cut = len(remote.prefix)
    return Fetched(
        remote,
        new=tuple(sorted(ref[cut:] for ref in changed if ref not in before)),
        moved=tuple(sorted(ref[cut:] for ref in changed if ref in before)),
        gone=tuple(sorted(ref[cut:] for ref in before if ref not in after)),
        no_runs={ref[cut:]: why for ref, oid in sorted(changed.items()) if (why := _no_run(ledger, remote, ref, oid))},
    )


def export_bundle(workspace: Workspace, found: Found, target: Path) -> None:
    """Write a run with its whole history into one file. Raises InvalidInput, Conflict, StoreFailure, IntegrityError."""
    ledger = _git(workspace)
    write_bundle(ledger.path, _whole(found).head, target, git_binary.find(workspace.environment))


def export_tar(workspace: Workspace, found: Found, target: Path) -> int:
    """Write what a run recorded as plain files; how many. Raises InvalidInput, Conflict, StoreFailure."""
    return _git(workspace).write_tar(_whole(found).head, target)


def import_bundle(workspace: Workspace, source: Path) -> list[Arrived]:
    """Take the runs of a bundle in, all or none of them: each must be one from end to end.

    They stay runs of the workspace they were made in: shown, verified, replayed, forked and exported here, never
    executed. Raises NotFound, InvalidInput, IntegrityError, Conflict.
    """
    ledger = _git(workspace)
    git = git_binary.find(workspace.environment)
    with _opened(source) as file, Quarantine(ledger.path, ledger.disk, git) as quarantine:
        tips = read_header(file, str(source)).tips()
        if not tips:
            raise InvalidInput(f"{source} holds no run", hint="runs lie under refs/runs/ or refs/heads/run/")
        quarantine.take(file)
        snapshots = Snapshots(quarantine.objects)
        # Before anything is let in: one run that may not come keeps all of them out.
        coming = [check_arrival(snapshots, tip) for tip in tips]
        check_together(coming)
        for each in coming:
            ledger.is_news(each)
        quarantine.admit()
        arrived = [ledger.accept(tip) for tip in tips]
    for one in arrived:
        workspace.went_on(one.head.run_id)
    return arrived


def _own_refs(ledger: GitLedger, there: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Where at a remote our refs lie, and their commits; of runs that only our ledger has, those that are `there`."""
    living = peek.list_refs(ledger.path, peek.RUNS)
    yield from living.items()
    for ref in there:
        if ref.startswith(peek.RUNS) and ref not in living and (tip := ledger.sealed_tip(ref.removeprefix(peek.RUNS))):
            yield ref, tip
    for ref, there in _named(ledger).items():
        if commit := peek.read_ref(ledger.path, ref):
            yield there, commit


def _led_to(ledger: GitLedger, old: str, new: str) -> bool:
    return old == new or leads_to(ledger.path, old, new)


def _named(ledger: GitLedger) -> dict[str, str]:
    """Our two branches, and what they are called at a remote, which has those of others as well."""
    return {MAIN: MAIN, peek.LEDGER: f"{peek.LEDGER}/{ledger.home}"}


def _plan(ledger: GitLedger, theirs: Mapping[str, str]) -> Iterator[Sent]:
    for ref, there in _named(ledger).items():
        if commit := peek.read_ref(ledger.path, ref):
            yield Sent(ref, there, commit, _state(ledger.path, ref, commit, theirs.get(there)))
    # A run that the remote knows by its ref must not stay there as it was, because ours was dropped when it was sealed.
    runs = {ref: commit for ref, commit in _own_refs(ledger, theirs) if ref.startswith(peek.RUNS)}
    for ref, commit in sorted(runs.items()):
        if commit and commit == theirs.get(ref):
            yield Sent(ref, ref, commit, "unchanged")
            continue
        try:
            if commit and _home(ledger, commit) == ledger.home:
                yield Sent(ref, ref, commit, "sent")
        except HermesError as error:
            yield Sent(ref, ref, commit, "refused", error.message)


def _state(path: Path, ref: str, ours: str, theirs: str | None) -> State:
    if theirs == ours:
        return "unchanged"
    # Others merge into main, and every main begins with genesis. Nobody else writes our ledger.
    if ref == MAIN and theirs and (ours == GENESIS or leads_to(path, ours, theirs)):
        return "behind"
    return "sent"


def _settled(planned: Sent, refused: Mapping[str, str]) -> Sent:
    why = refused.get(planned.there) if planned.state == "sent" else None
    if why is None:
        return planned
    return Sent(planned.ref, planned.there, planned.commit, "refused", _REASONS.get(why, why))


def _home(ledger: GitLedger, commit: str) -> object:
    started = parse(ledger.content(commit, layout.RUN) or b"null")
    execution = started.get("execution") if isinstance(started, dict) else None
    return execution.get("workspace") if isinstance(execution, dict) else None


def _no_run(ledger: GitLedger, remote: Remote, ref: str, commit: str) -> str:
    """Why a ref among a remote's runs is none, or ""."""
    run = _run_ref(remote, ref)
    if not run:
        return ""
    try:
        head = ledger.head_at(commit)
    except HermesError as error:
        return error.message
    return "" if peek.RUNS + run_component(head.run_id) == run else f"it is a commit of run {head.run_id}"


def _run_ref(remote: Remote, ref: str) -> str:
    """The name at the remote of a run's ref that is kept here, or ""."""
    runs = f"{remote.prefix}runs/"
    return peek.RUNS + ref.removeprefix(runs) if ref.startswith(runs) else ""


def _reached(workspace: Workspace, name: str | None) -> tuple[GitLedger, Remote, Transport]:
    ledger = _git(workspace)
    remote = find_remote(ledger.path, name)
    return ledger, remote, reach(ledger.path, remote, ledger.disk, workspace.environment)


def _git(workspace: Workspace) -> GitLedger:
    if not isinstance(workspace.ledger, GitLedger):
        raise InvalidInput("a ledger in memory is exchanged with nobody")
    return workspace.ledger


@contextmanager
def _opened(source: Path) -> Iterator[BinaryIO]:
    try:
        with open(source, "rb") as file:
            yield file
    except (FileNotFoundError, IsADirectoryError):
        raise NotFound(f"there is no file {source}") from None
    except OSError as error:
        raise StoreFailure(f"cannot read {source}: {error.strerror or error}") from error


def _whole(found: Found) -> Found:
    if found.key is not None:
        raise InvalidInput("a run is exported whole", hint=f"leave out @{found.key}; `fork` ends where you want it")
    return found
