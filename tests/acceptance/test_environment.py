"""`make demo` and `make test` begin on machines that we do not know: which Python they take, and what they say."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]

TOO_OLD = "exit 3"
WITHOUT_VENV = "exit 4"
# What a version manager leaves on the path for a version that is installed and not chosen.
REFUSES = "echo 'not in use here' >&2; exit 127"
SUITS = f'exec "{sys.executable}" "$@"'


def machine(tmp_path: Path, **pythons: str) -> dict[str, str]:
    """An environment whose path holds a shell, the given commands and nothing else."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("sh", "cat", "cksum"):
        (commands / name).symlink_to(str(shutil.which(name)))
    for name, script in pythons.items():
        command = commands / name.replace("_", ".")
        command.write_text(f"#!/bin/sh\n{script}\n")
        command.chmod(0o755)
    return {"PATH": str(commands)}


def find_python(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    script = TOP / "scripts" / "find-python.sh"
    return subprocess.run(["sh", script], env=env, capture_output=True, text=True, check=False)


def test_a_machine_without_a_new_enough_python_gets_one_line(tmp_path: Path) -> None:
    found = find_python(machine(tmp_path, python3=TOO_OLD))
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr.startswith("no Python 3.11 or newer found (tried: python3.13, ")
    assert found.stderr.count("\n") == 1


def test_a_python_without_venv_is_named_with_what_to_install(tmp_path: Path) -> None:
    found = find_python(machine(tmp_path, python3=WITHOUT_VENV))
    assert found.returncode == 1
    assert found.stderr.startswith("python3 has no venv module: install it")
    assert found.stderr.count("\n") == 1


def test_a_python_that_refuses_to_start_is_passed_over(tmp_path: Path) -> None:
    found = find_python(machine(tmp_path, python3_13=REFUSES, python3_12=WITHOUT_VENV, python3=SUITS))
    assert found.returncode == 0
    assert Path(found.stdout.strip()).resolve() == Path(sys.executable).resolve()


def test_a_python_named_by_the_caller_is_the_only_candidate(tmp_path: Path) -> None:
    env = machine(tmp_path, python3_13=SUITS, python3_12=TOO_OLD) | {"PYTHON": "python3.12"}
    found = find_python(env)
    assert found.returncode == 1
    assert "(tried: python3.12)" in found.stderr


# A Python that makes an environment of itself, and writes down in it what pip is asked for.
MAKES_ITSELF = """
case "$1 $2" in
    "--version ") echo "Python 3.13.0" ;;
    "-c "*) echo "$0" ;;
    "-m venv") mkdir -p "$3/bin"; touch "$3/pyvenv.cfg"; cp "$0" "$3/bin/python" ;;
    "-m pip") echo "$@" >> "${0%/bin/python}/asked" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the scripts, a project file, and a Python beside it."""
    top = tmp_path / "checkout"
    shutil.copytree(TOP / "scripts", top / "scripts")
    (top / "pyproject.toml").write_text("[project]\nname = 'empty'\n")
    python = tmp_path / "python3"
    python.write_text(f"#!/bin/sh\n{MAKES_ITSELF}")
    python.chmod(0o755)
    return top


def make_environment(top: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "PYTHON": str(top.parent / "python3")}
    command = ["sh", "scripts/environment.sh", *(arguments or [".venv"])]
    return subprocess.run(command, cwd=top, env=env, capture_output=True, text=True, check=False)


def installs(top: Path) -> int:
    return len((top / ".venv" / "asked").read_text().splitlines())


def test_an_environment_is_filled_once_and_again_when_the_project_file_changes(checkout: Path) -> None:
    made = make_environment(checkout)
    assert made.stderr.startswith("Making the environment .venv with Python 3.13.0.\n")
    assert make_environment(checkout).stderr == ""
    assert installs(checkout) == 1
    (checkout / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    assert make_environment(checkout).returncode == 0
    assert installs(checkout) == 2


def test_an_environment_with_tools_serves_where_none_are_asked_for(checkout: Path) -> None:
    make_environment(checkout, ".venv", "dev")
    make_environment(checkout)
    assert installs(checkout) == 1
    make_environment(checkout, ".venv", "docs")
    assert installs(checkout) == 2


def test_an_environment_of_a_moved_checkout_is_made_anew(checkout: Path) -> None:
    make_environment(checkout)
    moved = checkout.rename(checkout.parent / "elsewhere")
    assert make_environment(moved).stderr.startswith("Making the environment .venv")
    assert installs(moved) == 1


def test_an_environment_whose_python_is_gone_is_made_anew(checkout: Path) -> None:
    make_environment(checkout)
    (checkout / ".venv" / "bin" / "python").unlink()
    assert make_environment(checkout).stderr.startswith("Making the environment .venv")


def test_a_folder_that_is_no_environment_is_left_alone(checkout: Path) -> None:
    (checkout / "photos").mkdir()
    (checkout / "photos" / "one.jpg").touch()
    made = make_environment(checkout, "photos")
    assert made.returncode == 1
    assert "is not a Python environment" in made.stderr
    assert (checkout / "photos" / "one.jpg").exists()
