"""The pytest plugin: `run_workflow` and `assert_replays` as fixtures, and `--always-replay` for all of a suite's runs.

pytest loads it in every session of an environment that has this project, so it imports nothing before a test asks.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from .. import testing

if TYPE_CHECKING:
    from collections.abc import Callable

_HELP = "build every workflow body again from its receipts at each await, and in processes with other hash seeds"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("hermes-workflows").addoption("--always-replay", action="store_true", help=_HELP)


@pytest.fixture
def run_workflow(pytestconfig: pytest.Config) -> Callable[..., Any]:
    """`hermes_workflows.testing.run_workflow`; under `--always-replay` that is the default of every run."""
    run = testing.run_workflow
    return partial(run, always_replay=True) if pytestconfig.getoption("--always-replay") else run


@pytest.fixture
def assert_replays() -> Callable[..., None]:
    """`hermes_workflows.testing.assert_replays`."""
    return testing.assert_replays
