"""The pytest plugin, as a suite of somebody else meets it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import itertools

from flows import counted, steady


def test_steady(run_workflow, assert_replays):
    run = run_workflow(steady, agents={"writer": "text"})
    assert run.result == "text"
    assert_replays(run)


def test_counted(run_workflow):
    assert run_workflow(counted).status == "completed"
"""
FLOWS = """
import itertools

from hermes_workflows import agent, bash, workflow

numbers = itertools.count()


@workflow
async def steady() -> str:
    return await agent("writer", returns=str)


@workflow
async def counted() -> None:
    await bash("true", name=f"call-{next(numbers)}")
"""

# Plugins of this project's own tests, which half of the time of such a session would go into.
OTHERS = [f"-pno:{name}" for name in ("anyio", "hypothesispytest", "randomly", "xdist", "xdist.looponfail")]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "flows.py").write_text(FLOWS)
    (tmp_path / "test_flows.py").write_text(TESTS)
    return tmp_path


def run_pytest(suite: Path, *options: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *OTHERS, *options],
        cwd=suite,
        env=kept,
        text=True,
        stdout=subprocess.PIPE,
        timeout=120,
        check=False,
    )
    return done.stdout


def test_fixtures_are_there_without_an_import(suite: Path) -> None:
    assert "2 passed" in run_pytest(suite)


def test_one_option_makes_determinism_tests_of_a_suite(suite: Path) -> None:
    said = run_pytest(suite, "--always-replay")
    assert "1 failed, 1 passed" in said
    assert "FAILED test_flows.py::test_counted" in said
    assert "counted does not decide the same again" in said
    assert "(flows.py:16)" in said


def test_a_session_without_workflows_pays_nothing_for_the_plugin() -> None:
    heavy = "{'pydantic', 'asyncio', 'dulwich'} & set(sys.modules)"
    code = f"import sys, hermes_workflows.testing.plugin as _; print({heavy} - before)"
    code = f"import sys, pytest; before = set(sys.modules); {code}"
    done = subprocess.run([sys.executable, "-c", code], text=True, stdout=subprocess.PIPE, check=True)
    assert done.stdout.strip() == "set()"
