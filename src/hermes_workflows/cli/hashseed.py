"""A process that decides starts with `PYTHONHASHSEED=0`, so that sets of texts iterate in one order everywhere.

The seed is fixed when Python starts; a process without it is replaced by itself, once, before it does anything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

# Without `typing`: nothing is imported that the next process would import once more.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from .session import Session

# What commands get back, so that nobody's program notices (runner/environment.py reads it).
_ORIGINAL = "HERMES_WORKFLOWS_ORIGINAL_HASHSEED"


def fix_hash_seed(session: Session) -> None:
    """Replace this process by one with the fixed seed; returns when it has it already, or is not ours to replace.

    To be called before anything else is imported, which the next process would import once more.
    """
    if session.own_process:
        start_again(session.arguments, session.environment)


def start_again(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """The same for a process that is nothing but this command."""
    if environment.get("PYTHONHASHSEED") == "0":
        return
    changed = {"PYTHONHASHSEED": "0", _ORIGINAL: environment.get("PYTHONHASHSEED", "")}
    command = [sys.executable, *_interpreter_options(), "-m", "hermes_workflows", *arguments]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command, {**environment, **changed})


def _interpreter_options() -> list[str]:
    """How Python itself was called, as far as it changes what a body may see."""
    flags = {"-B": sys.flags.dont_write_bytecode, "-O": sys.flags.optimize, "-s": sys.flags.no_user_site}
    # Without it a project's own `json.py` would come before Python's.
    flags["-P"] = sys.flags.safe_path
    return [*(flag for flag, given in flags.items() if given), *(f"-W{option}" for option in sys.warnoptions)]
