"""The present code of a run that was found, with care for one that was not started here.

A run's start names its workflow, and loading that is importing a file of this machine. For a run that came from
elsewhere it must not be the sender who says which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.history import start_of
from ..errors import IntegrityError
from ..finding import Found
from ..loader import LoadedWorkflow

if TYPE_CHECKING:
    from ..recorded import Recorded


def load_found(workspace: Recorded, found: Found) -> LoadedWorkflow:
    """Raises IntegrityError for a run without a start, NotFound and CannotLoad, and InvalidInput for code that is
    no workflow of this workspace.
    """
    ref = start_of(found.receipts).request.workflow
    if is_ours(workspace, found):
        return workspace.loader.load(ref)
    return workspace.loader.load_foreign(ref)


def check_found(workspace: Recorded, found: Found) -> None:
    """Refuse receipts of a run that was not started here and is not sound: they would become part of one of ours.

    Raises IntegrityError with the first problem.
    """
    if is_ours(workspace, found):
        return
    for problem in workspace.ledger.verify(found.run_id, found.head.tip):
        where = " ".join(filter(None, (problem.commit[:12], problem.path)))
        raise IntegrityError(
            f"{found.run_id} comes from elsewhere and is not sound: {where} {problem.message}",
            hint=f"`hermes-workflows verify {found.head.tip[:12]}` shows every such place; nothing of it is taken over",
        )


def is_ours(workspace: Recorded, found: Found) -> bool:
    """Whether a run was started here.

    A commit may be of anybody's run, whatever id and home it claims: then the run that is here must say the same.
    """
    started = start_of(found.receipts)
    if found.remote is not None or started.execution.workspace != workspace.ledger.home:
        return False
    if not found.commit:
        return True
    return workspace.ledger.head(found.run_id) is not None and started == start_of(
        workspace.find(found.run_id).receipts
    )
