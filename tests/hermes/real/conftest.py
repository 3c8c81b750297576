"""Hermes Agent itself, with the plugin installed into a folder of its own; without Hermes, one line says so."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.hermes.real.client import Client, client_in

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if find_spec("hermes_cli") is not None:
        return
    mark = pytest.mark.skip(reason="no Hermes Agent in this environment: `make test-hermes` tries it")
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(mark)


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """Hermes with the plugin installed and enabled, serving a workspace."""
    made = client_in(tmp_path)
    said = made.work.run("hermes", "install")
    assert said.json["enabled"] is True, said.stderr
    return made
