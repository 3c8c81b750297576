"""A benchmark's numbers are shown as they are, and read again as they were written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench.pages import BEGIN, END, put
from bench.rows import (
    SCHEMA,
    Aim,
    Missing,
    Report,
    Row,
    against_neighbours,
    as_json,
    as_markdown,
    as_text,
    from_json,
    number,
)

STEPS = Row("steps", "1,000 steps", "a peer", (1.4, 1.1, 3.0), "×", Aim("at least", 1.2), "ours 512/s, theirs 366/s")
MEMORY = Row("memory", "memory", "the number", (130.0,), "MB", Aim("at most", 120))
REPORT = Report("2026-01-01", False, {"cores": "2"}, {"peer": "1.0"}, [STEPS, MEMORY], [Missing("x", "no | network")])


def test_a_row_is_judged_by_its_median_and_shows_its_spread() -> None:
    assert STEPS.measured == "1.40 × (1.10 to 3.00)"
    assert (STEPS.verdict, MEMORY.verdict) == ("yes", "no")
    assert "to reach ≤ 120 MB: no" in as_text(MEMORY)


def test_a_row_without_an_aim_is_not_judged() -> None:
    row = Row("limit", "steps", "fsync limit", (0.1,), "×")
    assert row.verdict == ""
    assert "to reach" not in as_text(row)


@pytest.mark.parametrize(
    ("value", "shown"), [(12_345.6, "12,346"), (99.96, "100.0"), (12.34, "12.3"), (0.456, "0.46"), (0.0, "0")]
)
def test_numbers_have_three_digits_that_count(value: float, shown: str) -> None:
    assert number(value) == shown


def test_a_value_is_held_against_the_mean_of_its_neighbours() -> None:
    assert against_neighbours([6.0, 10.0], [1.0, 3.0, 5.0]) == (3.0, 2.5)


def test_a_report_is_read_as_it_was_written() -> None:
    written = json.loads(json.dumps(as_json(REPORT)))
    assert from_json(written) == REPORT
    assert [row["reached"] for row in written["rows"]] == [True, False]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"schema": "something"}, "it is no hermes"),
        ([], "it is no hermes"),
        ({"schema": SCHEMA}, "not as a benchmark"),
        (as_json(REPORT) | {"rows": [{"name": "x"}]}, "not as a benchmark"),
        (as_json(REPORT) | {"missing": 3}, "not as a benchmark"),
    ],
)
def test_a_file_of_another_kind_is_not_read(document: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        from_json(document)


def test_the_table_names_machine_versions_and_what_is_missing() -> None:
    table = as_markdown(REPORT)
    assert "| 1,000 steps | a peer | 1.40 × (1.10 to 3.00) | ≥ 1.20 × | yes | ours 512/s, theirs 366/s |" in table
    assert "Machine: cores 2." in table
    assert "Versions: peer 1.0." in table
    assert "- x: no \\| network" in table


def test_a_page_keeps_everything_but_the_old_table(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    put(page, "new")
    put(page, "newer")
    assert page.read_text() == f"before\n{BEGIN}\nnewer\n{END}\nafter\n"


@pytest.mark.parametrize("text", ["nothing", f"{BEGIN} and no end", f"{END} before {BEGIN}"])
def test_a_page_without_a_place_for_a_table_is_left_alone(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ValueError, match="no place"):
        put(page, "new")
    assert page.read_text() == text


def test_the_page_about_performance_has_a_place_for_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "performance.md").read_text(encoding="utf-8")
    assert page.index(BEGIN) < page.index(END)
