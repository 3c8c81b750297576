"""The real Hermes as a process: its command line, and scripts that run in its Python with its plugins discovered."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.acceptance.command_line import Place, Said, place

DEADLINE = 120.0
PROGRAM = Path(sys.executable).parent / "hermes"
_DISCOVER = """
import json, sys
from hermes_cli.plugins import discover_plugins, get_plugin_manager
discover_plugins()
manager = get_plugin_manager()
"""


@dataclass(frozen=True)
class Client:
    """`home` is Hermes' own folder; `work` is the workspace, whose environment names it."""

    home: Path
    work: Place

    def hermes(self, *arguments: str, cwd: Path | None = None) -> Said:
        """`hermes ARGUMENTS…`, piped."""
        return self._run([str(PROGRAM), *arguments], cwd)

    def script(self, text: str) -> Any:
        """What a script prints as JSON that runs in Hermes' Python; `manager` has the plugins."""
        done = self._run([sys.executable, "-c", _DISCOVER + text], None)
        assert done.code == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def dispatch(self, tool: str, **arguments: Any) -> Any:
        """What Hermes hands to its model for a call of a tool."""
        call = f"registry.dispatch({tool!r}, json.loads({json.dumps(arguments)!r}), session_id='s-1')"
        return self.script(f"from tools.registry import registry\nprint({call})")

    def _run(self, command: list[str], cwd: Path | None) -> Said:
        done = subprocess.run(
            command,
            cwd=cwd or self.work.root,
            env=self.work.env(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)


def client_in(folder: Path) -> Client:
    home = folder / "home"
    home.mkdir()
    (folder / "person").mkdir()
    surroundings = {"HERMES_HOME": str(home), "HOME": str(folder / "person")}
    return Client(home, place(folder / "work", None, **surroundings))
