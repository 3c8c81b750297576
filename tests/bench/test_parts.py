"""Every part of the benchmark still works on today's program: in a tiny form, whose numbers nobody looks at."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from bench.__main__ import PARTS, measured
from bench.rows import Missing
from bench.sizes import TINY, Place

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_has_rows_for_what_it_measures(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its processes import the benchmark from here.
    monkeypatch.chdir(ROOT)
    rows = list(PARTS[part](Place(tmp_path, TINY)))
    # Only Linux tells of memory and processors through /proc.
    assert [row for row in rows if isinstance(row, Missing) and sys.platform == "linux"] == []
    assert len({row.name for row in rows}) == len(rows) > 0


def test_a_part_that_is_not_there_is_named_with_those_that_are() -> None:
    command = [sys.executable, "-m", "bench", "--only", "speed"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no part speed; there are sequential, fan-out" in done.stderr


def test_a_part_that_fails_is_a_line_and_the_next_one_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A workspace cannot be made where a file is.
    (tmp_path / "file").write_text("")
    broken = PARTS["space"]
    monkeypatch.setitem(PARTS, "broken", lambda place: broken(Place(tmp_path / "file", TINY)))
    report = measured(Place(tmp_path, TINY), ["broken", "space"], quick=True)
    assert [each.name for each in report.missing] == ["broken"]
    assert [row.name for row in report.rows] == ["space"]
    assert "broken was not measured" in capsys.readouterr().out
