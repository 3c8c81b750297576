"""`make coverage` ends with a verdict: what has too little fails, with the lines that nothing met."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("coverage")

# What measures this process is not to measure those that are the subject.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
COVERED = Path(__file__).parents[2] / "scripts" / "covered.py"
# Of six statements and two branches one each is missed when nobody asks for more.
HALF = "import sys\n\n\ndef asked(more):\n    if more:\n        return 1\n    return 2\n\n\nasked(len(sys.argv) > 1)\n"


def measured(folder: Path, *parts: str, asks: bool) -> subprocess.CompletedProcess[str]:
    """The verdict on modules of these parts, which were run without `more` or, if somebody `asks`, with it as well."""
    for part in parts:
        module = folder / "src" / "hermes_workflows" / part / "module.py"
        module.parent.mkdir(parents=True)
        module.write_text(HALF)
        for more in ([], ["more"])[: 1 + asks]:
            command = [
                sys.executable,
                "-m",
                "coverage",
                "run",
                "-a",
                "--branch",
                str(module.relative_to(folder)),
                *more,
            ]
            subprocess.run(command, cwd=folder, env=ENVIRONMENT, check=True)
    return subprocess.run(
        [sys.executable, COVERED], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("part", "wanted"), [("core", 100), ("store", 100), ("cli", 90)])
def test_a_part_that_has_too_little_fails_with_what_was_not_met(tmp_path: Path, part: str, wanted: int) -> None:
    done = measured(tmp_path, part, asks=False)
    assert done.returncode == 1
    assert f"wanted {wanted} %" in done.stdout
    assert f"{part}/module.py: 6\n" in done.stdout


def test_what_has_enough_passes_and_names_no_line(tmp_path: Path) -> None:
    done = measured(tmp_path, "core", "store", "web", asks=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        [name, "100.0"] for name in ("core", "store", "web")
    ]
