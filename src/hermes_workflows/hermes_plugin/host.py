"""Where the plugin is: in which process, with which environment, and for which workspace. Only this module asks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from ..errors import InvalidInput
from ..registry import Registry, choose

if TYPE_CHECKING:
    from ..web.opened import Opened

FOLDER: Final = "hermes-workflows"
NOTE: Final = "installed.json"
"""In the plugin's folder: what `hermes install` wrote there, and the registry that Hermes serves."""


def environment() -> Mapping[str, str]:
    return os.environ


def hermes_home(variables: Mapping[str, str]) -> Path:
    """Hermes' own folder: that of its profile, when one is chosen."""
    named = variables.get("HERMES_HOME", "").strip()
    return Path(named).expanduser() if named else Path(variables.get("HOME") or Path.home()) / ".hermes"


def plugin_folder(home: Path) -> Path:
    return home / "plugins" / FOLDER


def note_of(folder: Path) -> dict[str, Any] | None:
    """What `install` left in the plugin's folder; None when there is none. Raises InvalidInput for a damaged one."""
    try:
        note = json.loads((folder / NOTE).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, RecursionError, ValueError) as error:
        raise InvalidInput(
            f"{folder / NOTE}: cannot be read: {error}", hint="`hermes-workflows hermes doctor`"
        ) from None
    if not isinstance(note, dict) or not _is_ours(note):
        raise InvalidInput(f"{folder / NOTE}: is no note of ours", hint="`hermes-workflows hermes doctor`")
    return note


def _is_ours(note: dict[str, Any]) -> bool:
    """Whether it could be one: by its names files are removed."""
    files, registry = note.get("files", {}), note.get("registry")
    if not isinstance(files, dict) or not isinstance(note.get("config", {}), dict):
        return False
    within = all(not PurePath(name).is_absolute() and ".." not in PurePath(name).parts for name in files)
    return within and (registry is None or isinstance(registry, str))


def registry_here() -> Registry:
    """The registry that `hermes install` named; without one, that of the folder Hermes works in.

    Raises NotFound, InvalidInput.
    """
    note = note_of(plugin_folder(hermes_home(environment())))
    named = None if note is None else note.get("registry")
    return choose(named, None, Path.cwd())


@contextmanager
def opened() -> Iterator[Opened]:
    """All databases of the workspace that have something in them.

    Raises NotFound, InvalidInput, IntegrityError, StoreFailure.
    """
    # Here and not above: Hermes imports this module at its start, and pays for none of it until somebody asks.
    from ..clock import SystemClock
    from ..opening import open_workspace
    from ..web.opened import Opened
    from ..workspace import Surroundings, Workspace

    registry, surroundings = registry_here(), Surroundings(SystemClock(), environment())
    every: list[Workspace] = []
    try:
        for paths in registry.dbs.values():
            if paths.receipts.exists():
                every.append(open_workspace(registry, paths, surroundings))
        yield Opened(registry, every)
    finally:
        for workspace in every:
            workspace.close()
