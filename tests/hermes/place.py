"""A workspace, a folder for Hermes, and this process as Hermes' would be: standing in the one, with the other named."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.command_line import REGISTRY, Place, place


@dataclass
class Inside:
    """`home` is Hermes' folder, `work` the workspace that the plugin serves."""

    home: Path
    work: Place


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inside:
    made = Inside(tmp_path / "home", place(tmp_path / "work"))
    made.home.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(made.home))
    monkeypatch.chdir(made.work.root)
    return made


def registry_with(**more: Any) -> dict[str, Any]:
    return {**REGISTRY, **more}
