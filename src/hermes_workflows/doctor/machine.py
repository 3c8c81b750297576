"""The machine: versions, what the environment says, room, permissions, the clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ..core.clock import Clock
from ..core.spelling import nearest
from ..registry import FILE, FOLDER, DatabasePaths, Registry
from ..settings import FromEnvironment
from ..store import health
from ..versions import versions
from .finding import Finding

_PREFIX = "HERMES_WORKFLOWS_"
# From here on maintenance and exchange use git as they were written; older ones are passed over.
_OLDEST_GIT = (2, 32)
_MEBIBYTE = 1 << 20
_LITTLE = 1024 * _MEBIBYTE
_TOO_LITTLE = 64 * _MEBIBYTE
_FEW_FILES = 10_000
_FIRST_RELEASE = datetime(2026, 1, 1, tzinfo=UTC)
# Clocks of machines that share a workspace differ by less.
_AHEAD = timedelta(minutes=5)


def examine_machine(
    registry: Registry, environment: Mapping[str, str], variables: Iterable[str], clock: Clock
) -> Iterator[Finding]:
    """`variables` are the names that begin with our prefix and mean something."""
    yield from _versions(environment)
    yield from _misspelt(environment, tuple(variables))
    yield from _missing(registry, environment)
    if clock.now() < _FIRST_RELEASE:
        yield Finding("problem", f"the clock says {clock.now():%Y-%m-%d}", "set it: receipts carry its time for ever")


def _versions(environment: Mapping[str, str]) -> Iterator[Finding]:
    git = health.git_version(environment)
    known = {**versions(), "sqlite": health.sqlite_version()} | ({"git": git} if git else {})
    yield Finding("ok", ", ".join(f"{name} {version}" for name, version in known.items()))
    if git is None:
        hint = "install git 2.32 or newer: maintenance and a faster exchange with remotes need it"
        yield Finding("warning", "there is no git on PATH", hint)
    elif tuple(int(part) for part in git.split(".")[:2] if part.isdigit()) < _OLDEST_GIT:
        yield Finding("warning", f"git {git} is older than 2.32", "install a newer one for maintenance and remotes")


def _misspelt(environment: Mapping[str, str], known: tuple[str, ...]) -> Iterator[Finding]:
    for name in sorted(environment):
        if name.startswith(_PREFIX) and name not in known:
            near = nearest(name, known)
            hint = f"did you mean {near}?" if near else f"known are {', '.join(known)}"
            yield Finding("warning", f"the variable {name} means nothing here", hint)


def _missing(registry: Registry, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Variables that the registry names and this environment does not have; a runner's own may."""
    named = [("redact", name) for name in registry.redact]
    for agent, settings in registry.agents.items():
        named += [(f"agents.{agent}.env", given.name) for given in _references(settings.env.values())]
    for where, name in named:
        if name not in environment:
            near = nearest(name, environment)
            hint = f"did you mean {near}?" if near else "set it where runners are started"
            yield Finding("warning", f"{where} names the variable {name}, which is not set here", hint)


def _references(values: Iterable[object]) -> Iterator[FromEnvironment]:
    return (value for value in values if isinstance(value, FromEnvironment))


def examine_files(registry: Registry, paths: DatabasePaths, clock: Clock) -> Iterator[Finding]:
    """Where the workspace lies: room, the kind of file system, who may write. Raises OSError."""
    folders = [folder for folder in _folders(registry, paths) if folder.exists()]
    for folder in folders:
        yield from _access(folder)
    for path in filter(Path.exists, [registry.root / FOLDER / FILE, paths.sqlite, paths.receipts / "config"]):
        yield from _access(path)
    home = next(folder for folder in (paths.receipts, *paths.receipts.parents) if folder.exists())
    if kind := health.remote_file_system(home):
        what = f"{home} lies on {kind}: SQLite and locks are not safe on a file system of another machine"
        yield Finding("warning", what, "keep the workspace on a local disk, and share runs by push and fetch")
    yield room_finding(home, health.room(home))


def _folders(registry: Registry, paths: DatabasePaths) -> list[Path]:
    own = paths.receipts
    inside = [own / name for name in ("objects", "refs", "refs/runs", "hermes", "hermes/locks", "hermes/pending")]
    return list(dict.fromkeys([registry.root / FOLDER, paths.sqlite.parent, own, *inside]))


def _access(path: Path) -> Iterator[Finding]:
    found = health.access(path)
    if not found.writable:
        owner = f"; it belongs to {found.owner}" if found.owner else ""
        hint = f"chown or chmod it for whoever runs runners here; until then runs can be shown, not started{owner}"
        yield Finding("problem", f"{path} takes no writing", hint)
    elif found.owner:
        hint = "one user should run everything here, or a group with umask 002"
        yield Finding("warning", f"{path} belongs to {found.owner}", hint)
    if found.open_to_all:
        what = f"anybody on this machine may change {path}, and with it what runners execute"
        yield Finding("warning", what, f"chmod o-w {path}")


def room_finding(path: Path, left: health.Room) -> Finding:
    files = "" if left.files is None else f", {left.files:,} files"
    what = f"{left.bytes // _MEBIBYTE:,} MiB{files} are left where {path} lies"
    hint = "free some space: a full disk loses nothing, and nothing goes on"
    if left.bytes < _TOO_LITTLE or left.files == 0:
        return Finding("problem", what, hint)
    if left.bytes < _LITTLE or (left.files is not None and left.files < _FEW_FILES):
        return Finding("warning", what, hint)
    return Finding("ok", what)


def ahead(newest: datetime | None, clock: Clock) -> Finding | None:
    """Whether something was recorded at a time that has not come yet."""
    if newest is None or newest - clock.now() <= _AHEAD:
        return None
    what = f"the newest receipt is of {newest:%Y-%m-%d %H:%M} UTC, and the clock says {clock.now():%Y-%m-%d %H:%M}"
    return Finding("warning", what, "one of the clocks is or was wrong; the order of receipts does not depend on it")
