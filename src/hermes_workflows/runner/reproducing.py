"""`reproduce`: the same input once more, from the start, in a run of its own (SEMANTICS §6).

What is to be reused is named in the start of the new run, so whichever runner goes on with it does the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.names import check_run_id
from ..core.plain import command_line
from ..core.receipts import RunStarted
from ..errors import Conflict, InvalidInput
from ..starting import check_id, following, recorded_names, secrets_named
from .found_code import check_found, load_found
from .reusing import KINDS

if TYPE_CHECKING:
    from ..finding import Found
    from ..workspace import Workspace


@dataclass(frozen=True)
class Reproduction:
    """A run `run_id` of what `source` was given. `reuse` are words of `reusing.KINDS`.

    `checked` says that the workspace holds the very code that the run was recorded with, by a run of our own.
    """

    source: Found
    run_id: str
    reuse: Sequence[str] = ()
    checked: bool = False


def reproduce(workspace: Workspace, wish: Reproduction) -> None:
    """Record the start of a reproduction, and queue it.

    Raises InvalidInput for an input that the present code does not take or a word that names no kind of call,
    Conflict for an id that exists, and IntegrityError for a run from elsewhere that is not sound.
    """
    name = check_run_id(wish.run_id)
    check_id("run id", name, workspace.redactor)
    if unknown := [word for word in wish.reuse if word not in KINDS]:
        raise InvalidInput(f"{unknown[0]!r} is nothing to reuse", hint=f"--reuse takes {', '.join(KINDS)}")
    if wish.source.key is not None:
        moment = f"{wish.source.run_id}@{wish.source.key}"
        raise InvalidInput(
            "a run is reproduced from its start, not from a moment in it",
            hint=f"`{command_line('fork', moment, '--id', 'NEW')}` goes on from there",
        )
    if workspace.ledger.head(name) is not None:
        raise Conflict(f"run {name} exists already", hint="choose another id")
    check_found(workspace, wish.source)
    there = next(each for each in wish.source.receipts if isinstance(each, RunStarted))
    loaded = workspace.loader.load(there.request.workflow) if wish.checked else load_found(workspace, wish.source)
    for secret in (*secrets_named(loaded), *recorded_names(wish.source.receipts)):
        workspace.secret(secret)
    began = workspace.started(loaded, there.request.input)
    reuse = {"reuse": ",".join(wish.reuse)} if wish.reuse else {}
    source = {"run": wish.source.run_id, "commit": wish.source.head.tip, "how": "reproduce", **reuse}
    workspace.begin(name, loaded, following(began, there, source))
