"""Every part of the benchmark still works on today's program: in a tiny form, whose numbers nobody looks at."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from bench.__main__ import PARTS, measured
from bench.rows import Missing, from_json
from bench.sizes import TINY, Place
from tests.runner.desks import until

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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rounds", "0"], "'0' is no number of rounds"),
        (["--rounds", "-1"], "'-1' is no number of rounds"),
        (["--folder", "nowhere"], "nothing can be made in nowhere"),
        (["--json", "."], "--json: . cannot be written"),
        (["--read", "nowhere"], "nowhere cannot be read"),
        (["--read", "page.md"], "page.md cannot be read"),
        (["--write", "page.md"], "page.md has no place for a table"),
        (["--write", "nowhere"], "No such file"),
    ],
)
def test_what_would_fail_in_the_end_is_refused_in_the_beginning(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "page.md").write_text("nothing")
    command = [sys.executable, "-m", "bench", *arguments]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupted_benchmark_keeps_what_it_has_measured_and_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench", "--size", "tiny", "--only", "space,runners"]
    command += ["--folder", str(tmp_path), "--json", str(tmp_path / "report.json")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as benchmark:
        assert benchmark.stdout is not None
        assert any("disk a receipt" in line for line in benchmark.stdout)
        until(lambda: list(tmp_path.glob("*/*/log")))
        benchmark.send_signal(signal.SIGINT)
        told = benchmark.communicate(timeout=60)[1]
    assert "Interrupted; what was measured until then is in" in told
    assert "Traceback" not in told
    assert [row.name for row in from_json(json.loads((tmp_path / "report.json").read_text())).rows] == ["space"]
    assert os.listdir(tmp_path) == ["report.json"]


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
