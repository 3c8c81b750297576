"""A command starts with what it needs: whoever asks for help, or in a loop for a status, waits for nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Of the project, what knows of runs; of others, what takes longest to import.
HEAVY = "{'hermes_workflows.facts', 'hermes_workflows.workspace', 'pydantic', 'dulwich', 'orjson', 'asyncio', 'rich'}"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_brings_in_nothing_that_is_about_runs(arguments: list[str]) -> None:
    code = "import sys; from hermes_workflows.cli.main import main\n"
    code += f"main({arguments}); print('brought in:', *({HEAVY} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == "brought in:"
