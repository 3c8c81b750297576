"""An export, from the databases to the folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..app import create_app
from ..opened import Opened
from ..remembering import remembering
from ..settings import WebSettings
from .chosen import Asked, Chosen
from .folder import Folder
from .pages import Pages
from .then import Then

# Files between two times of telling how far it is.
_OFTEN = 500


@dataclass(frozen=True)
class Written:
    """`left_out` says which runs, databases and pages could not be shown as they are, and why."""

    files: int
    runs: int
    left_out: tuple[str, ...]


def write(
    settings: WebSettings, opened: Opened, clock: Then, root: Path, asked: Asked, tell: Callable[[int], None]
) -> Written:
    """Write what is `asked` of the `opened` databases into the folder `root`.

    `clock` is theirs, and they are good for nothing else afterwards.
    Raises NotFound, Conflict: then nothing was written.
    """
    chosen = Chosen.of(opened, asked)
    clock.stop_after(run for _, run in chosen.runs)
    folder = Folder.take(root)
    for workspace in opened.every:
        workspace.ledger = remembering(workspace.ledger, still=True)
    wrong = list(chosen.unreadable)
    for number, file in enumerate(Pages(create_app(settings, opened.every), chosen, clock).files(), 1):
        folder.write(file.name, file.data)
        if file.wrong:
            wrong.append(f"{file.name} tells of an error: {file.wrong}")
        if number % _OFTEN == 0:
            tell(number)
    return Written(folder.finish(), len(chosen.runs), tuple(wrong))
