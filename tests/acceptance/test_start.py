"""A command starts with what it needs: whoever asks for help, or in a loop for a status, waits for nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.acceptance.command_line import Place, place

# Of the project, what knows of receipts; of others, what takes longest to import.
HEAVY = {"hermes_workflows.workspace", "hermes_workflows.core.summary", "hermes_workflows.core.receipts"}
HEAVY |= {"pydantic", "dulwich", "orjson", "asyncio", "rich", "dataclasses", "hashlib", "difflib", "traceback"}
# What only looks at runs may not wait for: click alone takes as long as all of `status`.
PARSERS = {"click", "inspect", "hermes_workflows.cli.commands"}
# What nobody who asks for help may wait for, either.
RUNS = {"sqlite3", "pathlib", "hermes_workflows.facts", "hermes_workflows.registry", "hermes_workflows.store"}

PLAIN = [
    ["list"],
    ["list", "--limit", "1", "--offset", "1"],
    ["list", "--status", "completed"],
    ["list", "--state", "queued", "--workflow", "launch"],
    ["list", "--find", "docs", "--limit", "3"],
    ["status", "asks"],
    ["status", "--id", "done", "--json"],
]


def brought_in(arguments: list[str], modules: set[str], folder: Path | None = None) -> list[str]:
    code = "import sys; from hermes_workflows.cli.main import main\n"
    code += f"main({arguments}); print(*sorted({modules} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder)
    return done.stderr.split()


@pytest.mark.untraced
@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_brings_in_nothing_that_is_about_runs(arguments: list[str]) -> None:
    # Which version it is stands in a file of the installation, which is looked for with `pathlib`.
    assert brought_in(arguments, (HEAVY | RUNS) - ({"pathlib"} if arguments == ["--version"] else set())) == []


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Place:
    here = place(tmp_path_factory.mktemp("shown") / "ws")
    here.start("done", "flows/launch.py:quick")
    here.work()
    here.start("asks")
    # Whoever looks first brings the index to where git is.
    here.run("list")
    return here


@pytest.mark.untraced
@pytest.mark.parametrize("arguments", PLAIN, ids=" ".join)
def test_a_plain_look_at_runs_waits_neither_for_click_nor_for_receipts(shown: Place, arguments: list[str]) -> None:
    assert brought_in(arguments, HEAVY | PARSERS, shown.root) == []


@pytest.mark.untraced
def test_an_index_is_made_without_what_decides_runs(shown: Place) -> None:
    deciding = {"asyncio", "hermes_workflows.authoring", "hermes_workflows.loader", "hermes_workflows.workspace"}
    assert brought_in(["index", "rebuild"], deciding, shown.root) == []


@pytest.mark.parametrize("arguments", PLAIN, ids=" ".join)
def test_a_plain_look_says_what_the_command_itself_says(shown: Place, arguments: list[str]) -> None:
    # An option that only the command knows.
    said = shown.run(*arguments)
    assert said.stdout == shown.run(*arguments, "--debug").stdout
    assert said.json


@pytest.mark.parametrize("more", [["--limit=1"], ["--status", "done"], ["--limit", "0"], ["done"]], ids=" ".join)
def test_what_is_not_plain_is_left_to_the_command(shown: Place, more: list[str]) -> None:
    code = f"import sys; from hermes_workflows.cli.main import main; main({['list', *more]})"
    code += "; print('click' in sys.modules)"
    assert shown.run(program=[sys.executable, "-c", code]).stdout.splitlines()[-1] == "True"


def test_a_list_without_an_index_asks_the_receipts(tmp_path: Path) -> None:
    here = place(tmp_path / "ws")
    here.start("first")
    here.sqlite.unlink()
    assert [run["workflow_id"] for run in here.run("list").json] == ["first"]


@pytest.mark.untraced
@pytest.mark.parametrize("command", ["replay", "fork", "retry", "reproduce"])
def test_a_process_that_gets_another_hash_seed_has_imported_nothing_in_vain(command: str) -> None:
    code = f"""import os, sys
os.execve = lambda *_: sys.exit(" ".join({HEAVY | PARSERS | {"typing"}} & set(sys.modules)) or None)
sys.argv = ["hermes-workflows", "{command}", "one"]
from hermes_workflows.cli.main import main
main()"""
    environment = {**os.environ, "PYTHONHASHSEED": "random"}
    done = subprocess.run([sys.executable, "-c", code], check=False, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
