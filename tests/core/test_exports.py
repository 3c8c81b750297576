"""The front door: exactly seven names, and nothing heavy behind it until one of them is asked for."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import hermes_workflows

SEVEN = ["agent", "ask", "bash", "goal", "parallel", "pipeline", "workflow"]


def test_the_public_surface_is_exactly_seven_names() -> None:
    assert hermes_workflows.__all__ == SEVEN
    namespace: dict[str, object] = {}
    exec("from hermes_workflows import *", namespace)
    assert sorted(name for name in namespace if not name.startswith("__")) == SEVEN


def test_looking_around_shows_the_seven_names_and_modules_only() -> None:
    shown = [name for name in dir(hermes_workflows) if not name.startswith("_")]
    modules = [name for name in shown if isinstance(getattr(hermes_workflows, name), ModuleType)]
    assert sorted(set(shown) - set(modules)) == SEVEN


def test_the_names_are_functions_although_modules_are_called_the_same() -> None:
    from hermes_workflows import agent, ask, bash, goal, parallel, pipeline, workflow

    for name, function in zip(SEVEN, (agent, ask, bash, goal, parallel, pipeline, workflow), strict=True):
        assert callable(function), name
        assert not isinstance(function, ModuleType), name


def test_another_name_is_no_attribute() -> None:
    assert not hasattr(hermes_workflows, "step")
    assert not hasattr(hermes_workflows, "Engine")


def test_importing_the_package_loads_neither_pydantic_nor_asyncio() -> None:
    code = (
        "import sys, hermes_workflows; print(sorted({'pydantic', 'asyncio', 'orjson', 'dulwich'} & set(sys.modules)))"
    )
    path = [entry for entry in sys.path if entry]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}; " + code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
