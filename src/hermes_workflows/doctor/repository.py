"""The receipts repository as files: locks that nobody holds, refs and objects that a power cut has emptied.

It is looked at before the workspace is opened, which some of this damage prevents.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from ..core.clock import Clock
from ..core.durations import lasting
from ..core.plain import git_line
from ..errors import HermesError
from ..registry import DatabasePaths
from ..store import damage, peek
from ..store.fast_status import DatabaseGone, FastIndex
from ..store.maintenance import LOOSE_LIMIT, loose_objects
from ..store.mending import Mender
from ..store.repository import missing_settings
from .finding import Finding


def examine_repository(paths: DatabasePaths, mender: Mender, clock: Clock) -> Iterator[Finding]:
    """Raises StoreFailure."""
    receipts = paths.receipts
    if damage.has_no_head(receipts):
        what = f"{receipts / 'HEAD'} is empty or missing, so git does not know {receipts} for a repository"
        yield Finding("problem", what, "`doctor --fix` writes it again", repair=mender.restore_head)
    yield from _settings(receipts)
    yield from _locks(receipts, mender, clock)
    yield from _refs(paths, mender)
    yield from _objects(receipts, mender)
    if (loose := loose_objects(receipts)) > 4 * LOOSE_LIMIT:
        yield Finding("warning", f"{receipts} has about {loose:,} loose objects", "hermes-workflows maintenance run")
    living = sum(map(bool, peek.list_refs(receipts, peek.RUNS).values()))
    yield Finding("ok", f"{receipts} has {living} living run{'s' * (living != 1)}")


def _settings(receipts: Path) -> Iterator[Finding]:
    for name, value in missing_settings(receipts):
        what = f"{receipts / 'config'} lacks {name} = {value}, as after it was restored from a mirror"
        yield Finding("warning", what, git_line(receipts, "config", "--add", name, value))


def _locks(receipts: Path, mender: Mender, clock: Clock) -> Iterator[Finding]:
    for lock in damage.stale_locks(receipts, clock.now().timestamp()):
        what = f"{lock.path} has been there for {lasting(lock.age)}, as a git that was killed leaves it"
        hint = "`doctor --fix` takes it away; so does `rm` when no git is at work there"
        yield Finding("problem", what, hint, repair=partial(mender.sweep, lock))
    for path, age in damage.bursts_kept(receipts, clock.now().timestamp()):
        what = f"{path} has held receipts that git does not have yet for {lasting(age)}"
        hint = (
            "any command puts them in, unless their runner is suspended (let it go on, or end it) or another version "
            "of this program has recorded them (run that one once more)"
        )
        yield Finding("warning", what, hint)


def _refs(paths: DatabasePaths, mender: Mender) -> Iterator[Finding]:
    receipts = paths.receipts
    for name in damage.empty_refs(receipts):
        what = f"{receipts / name} holds no commit id, as a power cut may leave it"
        hint = f"`doctor --fix` finds the newest commit that is whole; or remove the file: {_by_hand(receipts, name)}"
        yield Finding("problem", what, hint, repair=partial(mender.restore, name, _known(paths, name)))


def _known(paths: DatabasePaths, ref: str) -> str | None:
    """The tip that the index remembers of a run."""
    try:
        with closing(FastIndex(paths.sqlite)) as known:
            row = known.indexed(ref.removeprefix(peek.RUNS))
    except (DatabaseGone, HermesError):
        return None
    return row.tip if row else None


def _by_hand(receipts: Path, name: str) -> str:
    set_again = f"`{git_line(receipts, 'update-ref', name, 'COMMIT')}`"
    look = f"`{git_line(receipts, 'fsck', *(['--unreachable'] if name.startswith(peek.RUNS) else []))}`"
    if name.startswith(peek.RUNS):
        return f"{look} then names the run's last commit, and {set_again} puts it back"
    if name == peek.LEDGER:
        return f"{look} then names the last seal as a dangling commit, and {set_again} puts it back"
    return f"{set_again} sets it"


def _objects(receipts: Path, mender: Mender) -> Iterator[Finding]:
    """What a file system had not written when the power went; every such file was never acknowledged."""
    for pack, wrong in damage.bad_packs(receipts):
        look = git_line(receipts, "fsck", "--full")
        hint = f"`{look}` says what is missing: fetch it from a clone, then move the pack away"
        yield Finding("problem", f"{pack} {wrong}", hint)
    for bad in damage.bad_objects(receipts, mender.objects):
        what = f"{bad.path} is {'empty' if bad.empty else 'damaged'}"
        if bad.needed:
            hint = "receipts need it: put a copy of the file there, or fetch it from a clone; `git fsck` says what for"
            yield Finding("problem", f"{what}, and no pack has it", hint)
        else:
            hint = "`doctor --fix` moves it away: a pack has it as well, or nothing refers to it"
            yield Finding("problem", what, hint, repair=partial(mender.put_aside, bad))
