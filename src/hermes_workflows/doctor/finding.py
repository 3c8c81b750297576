"""What the doctor says: one finding for each thing that was looked at, with its repair where one is safe."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from ..errors import HermesError

Level = Literal["ok", "warning", "problem"]
# Does the repair and says in a line what it did; None when it turned out not to be needed, or not to be safe.
Repair = Callable[[], str | None]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `hint` says what to do; None when there is nothing to do.

    `part` names what it is a part of. `repair` loses nothing, whatever else is going on.
    """

    level: Level
    what: str
    hint: str | None = None
    part: str = ""
    repair: Repair | None = field(default=None, compare=False, repr=False)


def looked(part: str, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """What is damaged in one place does not keep the others from being looked at, and hides nothing seen before."""
    found: list[Finding] = []
    try:
        found.extend(replace(finding, part=part) for finding in look())
    except HermesError as error:
        found.append(Finding("problem", error.message, error.hint, part))
    except OSError as error:
        what = f"{error.filename or part} cannot be looked at: {error.strerror or error}"
        found.append(Finding("problem", what, "look at it by hand, as the user who runs the runners", part))
    return found


def mend(findings: Iterable[Finding]) -> list[str]:
    """Do every repair there is; what was done, in order."""
    done = []
    for finding in findings:
        if finding.repair is None:
            continue
        try:
            said = finding.repair()
        except HermesError as error:
            said = f"could not be repaired: {finding.what}: {error.message}"
        if said:
            done.append(said)
    return done
