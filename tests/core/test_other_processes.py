"""A history decides the same in another process, whatever its hash seed, and where nothing races, on another Python."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.core.programs import LEAVES, NODES, STRUCTURED, play
from tests.core.replaying import Trace, as_text, trace_of

HISTORIES = 60
TOP = Path(__file__).parents[2]


def random_program(chance: random.Random, leaves: list[str], nodes: list[str], depth: int = 3) -> Any:
    if depth == 0 or chance.random() < 0.3:
        return chance.choice(leaves)
    inner = [random_program(chance, leaves, nodes, depth - 1) for _ in range(chance.randint(1, 3))]
    return chance.choice(nodes), inner


def recorded(leaves: list[str], nodes: list[str]) -> list[list[list[str]]]:
    """Histories of random programs, as files."""
    histories = []
    for seed in range(HISTORIES):
        driver = play(random_program(random.Random(seed), leaves, nodes), seed, crashes=0, cancels=0.02)
        histories.append(as_text(driver.receipts))
    return histories


def replayed(python: str, histories: list[list[list[str]]], hash_seed: str) -> list[Trace]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    if python != sys.executable:
        # Another Python has packages of its own: only the project itself is shared.
        environment["PYTHONPATH"] = os.pathsep.join(["src", "."])
    done = subprocess.run(
        [python, "-m", "tests.core.replaying"],
        input=json.dumps(histories), capture_output=True, text=True, env=environment, cwd=TOP, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    traces: list[Trace] = json.loads(done.stdout)
    return traces


@pytest.mark.parametrize("hash_seed", ["1", "random"])
def test_a_history_decides_the_same_in_a_process_with_another_hash_seed(hash_seed: str) -> None:
    histories = recorded(LEAVES, NODES)
    here = [trace_of(files) for files in histories]
    assert replayed(sys.executable, histories, hash_seed) == here


@pytest.mark.parametrize("minor", [11, 12, 13])
def test_without_races_another_python_decides_the_same(minor: int) -> None:
    python = other_python(minor)
    histories = recorded(["leaf", "named", "shared", "fails", "asks", "chance", "nothing"], sorted(STRUCTURED))
    here = [trace_of(files) for files in histories]
    assert replayed(python, histories, "0") == here


@cache
def other_python(minor: int) -> str:
    """An interpreter with our dependencies; skips where there is none.

    `HERMES_PYTHONS=/path/to/venv312/bin/python:…` names some; otherwise those on the path are tried.
    """
    if sys.version_info[1] == minor:
        pytest.skip("that is this one")
    named = os.environ.get("HERMES_PYTHONS", "").split(os.pathsep)
    for python in [*filter(None, named), *filter(None, [shutil.which(f"python3.{minor}")])]:
        wanted = f"import sys, pydantic, orjson, hypothesis; assert sys.version_info[:2] == (3, {minor})"
        if subprocess.run([python, "-c", wanted], capture_output=True, check=False).returncode == 0:
            return python
    pytest.skip(f"no Python 3.{minor} with the dependencies is here")
