"""Work in a Python process of its own: this interpreter, with this process's path, told what to do on its input."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .processes import Command

# With the path of this process, whatever folder it was started in and without the one it stands in: a `queue.py` of
# the project must not break the program.
_PROGRAM = """
import json, sys
from importlib import import_module
told = json.load(sys.stdin)
sys.path[:] = told["path"]
import_module(told["module"]).main(told["told"])
"""


def python(
    module: str, told: Mapping[str, Any], *, cwd: Path, environment: Mapping[str, str], timeout: float | None
) -> Command:
    """A command that calls `main(told)` of `module`; `told` is JSON, `timeout` in seconds."""
    path = [os.path.abspath(entry) for entry in sys.path if entry]
    return Command(
        argv=(sys.executable, "-P", "-c", _PROGRAM),
        cwd=cwd,
        env=environment,
        # On standard input, since it holds secrets and may be long.
        stdin=json.dumps({"path": path, "module": module, "told": told}).encode(),
        timeout=timeout,
    )
