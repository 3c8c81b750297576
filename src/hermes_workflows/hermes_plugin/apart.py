"""Whatever imports a project's code is asked of a process of its own.

Hermes' process has modules called `tools`, `agent`, `cli` and `utils`: a project with one of these names would get
Hermes' instead, or take Hermes' away. So the command line is started, and what it says is passed on.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from ..clock import SystemClock
from ..core.redaction import Redactor
from ..errors import Conflict, HermesError, IntegrityError, InvalidInput, NotFound, StoreFailure, TemporarilyLocked
from ..registry import Registry
from ..runner.environment import clean_environment
from ..runner.processes import Command, Outcome, run_command
from ..runner.stopping import StopSignal
from .host import environment

SECONDS: Final = 60.0
_KEPT: Final = 4_000_000
# What a page or a chat says of them differs.
_KINDS: Final = (InvalidInput, NotFound, Conflict, IntegrityError, StoreFailure, TemporarilyLocked)
# Without the folder it starts in on its path, where a project's `json.py` would come before Python's.
PROGRAM: Final = (sys.executable, "-P", "-m", "hermes_workflows")


def ask(registry: Registry, *arguments: str, about: str | None = None, typed: bytes | None = None) -> Any:
    """The document that `hermes-workflows ARGUMENTS… ABOUT` prints in the workspace, `typed` on its stdin.

    `about` is an argument, whatever it looks like. Raises what went wrong over there, in its own words and with its
    own code.
    """
    if any("\0" in each for each in (*arguments, about or "")):
        raise InvalidInput("there is a NUL in it, which no name has", hint="leave it out")
    path = Path() if registry.path is None else registry.path
    variables, clock = environment(), SystemClock()
    argv = (*PROGRAM, *arguments, "--config", str(path), "--json", *(() if about is None else ("--", about)))
    command = Command(argv, registry.root, clean_environment(variables), typed, SECONDS, _KEPT)
    named = {name: value for name in registry.redact if (value := variables.get(name))}
    done = run_command(command, stop=StopSignal(), redactor=Redactor(named, variables), now=clock.now)
    if done.exit_code == 0:
        return json.loads(done.stdout.whole)
    raise _refusal(done)


def _refusal(done: Outcome) -> HermesError:
    lines = done.stderr.whole.decode("utf-8", "replace").strip().splitlines() or [done.reason or "it said nothing"]
    try:
        said = json.loads(lines[-1])["error"]
        code, message, hint = str(said["code"]), str(said["message"]), said["hint"]
    except (ValueError, KeyError, TypeError):
        code, hint = "internal", "hermes-workflows doctor"
        message = f"hermes-workflows ended without an answer: {lines[-1]}"
    error = next((kind for kind in _KINDS if kind.exit_code == done.exit_code), HermesError)(message, hint=hint)
    error.code = code
    return error
