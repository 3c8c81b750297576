"""Whether a run from elsewhere may become one of ours to look at: it gets a ref, and never our hands.

here                    comes
nothing                 of another workspace    gets its ref
nothing                 says it is ours         refused: our runners would go on with it
the same, or more       anything                left alone
less, not ours          more                    its ref goes forwards
less, ours              more                    refused: only we add to it
something else          anything                refused
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ..core import layout
from ..core.receipts import RunStarted
from ..errors import Conflict, IntegrityError
from .admission import read_receipt
from .ports import Head
from .snapshots import Snapshot, Snapshots
from .verify import verify_run


@dataclass(frozen=True)
class Arrived:
    """A run that was brought here; `new` is False when it was here already, as far or farther."""

    head: Head
    home: str
    new: bool


def check_arrival(snapshots: Snapshots, tip: str) -> Snapshot:
    """The run whose commit `tip` is, if it is one from end to end. Raises IntegrityError."""
    snapshot = snapshots.at(bytes.fromhex(tip))
    problems = verify_run(snapshots, snapshot)
    if problems:
        first = problems[0]
        where = " ".join(filter(None, (first.commit[:12], first.path)))
        raise IntegrityError(
            f"{snapshot.run_id} is not what a workspace records: {where}: {first.message}",
            hint=f"{len(problems)} problems; nothing was taken from it",
        )
    return snapshot


def home_of(snapshot: Snapshot) -> str:
    """The workspace that a run says it belongs to. Raises IntegrityError."""
    started = read_receipt(snapshot, layout.RUN)
    assert isinstance(started, RunStarted)  # the only receipt of this path
    if not started.execution.workspace:
        # Runners go on with a run that names nobody.
        raise IntegrityError(f"{snapshot.run_id} does not say which workspace it belongs to")
    return started.execution.workspace


def is_news(coming: Snapshot, known: Head | None, ours: str) -> bool:
    """Whether the run's ref shall move to what comes; see the table above. Raises Conflict, IntegrityError."""
    own = home_of(coming) == ours
    if known is None:
        if own:
            raise Conflict(
                f"{coming.run_id} says that it belongs to this workspace, which does not have it",
                hint="a lost repository is restored from a mirror of it; `fork` it in a workspace of its own",
            )
        return True
    if known.tip == coming.tip.hex() or _is_behind(coming.store, coming.tip, bytes.fromhex(known.tip)):
        return False
    goes_on = not known.sealed and _is_behind(coming.store, bytes.fromhex(known.tip), coming.tip)
    if goes_on and not own:
        return True
    told = "goes on with commits that this workspace has not made" if goes_on else "is another run than the one here"
    raise Conflict(f"{coming.run_id} {told}", hint="import it into a workspace of its own, and compare them there")


def check_together(coming: Sequence[Snapshot]) -> None:
    """Raises Conflict for runs that cannot all get the refs that they want."""
    for one, other in itertools.combinations(coming, 2):
        if one.run_id.lower() != other.run_id.lower():
            continue
        orders = ((one.tip, other.tip), (other.tip, one.tip))
        if one.run_id != other.run_id or not any(_is_behind(one.store, old, new) for old, new in orders):
            raise Conflict(f"{one.run_id} and {other.run_id} came as two runs", hint="have them sent one by one")


def _is_behind(snapshots: Snapshots, old: bytes, new: bytes) -> bool:
    return any(oid == old for oid, _ in snapshots.first_parents(new))
