"""`hermes workflows …`: the command line of hermes-workflows itself, in the place of Hermes' process.

Nothing is said twice: the same commands, options, exit codes, and the same terminal for whoever answers.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from ..errors import HermesError
from ..registry import find
from .apart import PROGRAM
from .host import environment, registry_here


def run(args: Any) -> None:
    """Does not return: this process becomes `hermes-workflows ARGUMENTS…`."""
    arguments = [str(each) for each in getattr(args, "arguments", None) or ["help"]]
    if arguments[0] == "help":
        # Hermes keeps `--help` for itself when it comes first.
        arguments = [*arguments[1:], "--help"]
    _enter_workspace(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [*PROGRAM, *arguments], dict(environment()))


def _enter_workspace(arguments: list[str]) -> None:
    """Outside of any workspace, the one that Hermes serves is meant."""
    if "--config" in arguments or find(Path.cwd()) is not None:
        return
    try:
        os.chdir(registry_here().root)
    except (HermesError, OSError):
        # The command itself says that there is no registry, and what to do.
        return
