"""Every promise of docs/guarantees.md names the tests that would fail without it, and those are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py::\w+)`", PAGE)))
ROWS = re.findall(r"^\| (.+) \| ([A0-9, ]*) ?\| (`tests/.+) \|$", PAGE, re.MULTILINE)
ASSUMPTIONS = re.findall(r"^\| (A\d) \|", PAGE, re.MULTILINE)


@cache
def _tests_of(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("named", NAMED)
def test_a_test_that_a_promise_names_is_there(named: str) -> None:
    file, _, name = named.partition("::")
    assert (ROOT / file).exists()
    assert name.startswith("test_")
    assert name in _tests_of(file)


def test_every_promise_names_a_test_and_known_assumptions() -> None:
    promises = PAGE.partition("## Guarantees")[2].partition("## What happens")[0]
    rows = [
        line for line in promises.splitlines() if line.startswith("|") and not line.startswith(("| promise", "|---"))
    ]
    assert len(rows) == len(ROWS) > 20
    used = {each for _, needs, _ in ROWS for each in needs.replace(",", " ").split()}
    assert used == set(ASSUMPTIONS)


def test_the_words_of_the_field_are_there() -> None:
    for words in ("At-least-once execution", "Exactly-once recording", "Linearizable answers", "At-most-once"):
        assert f"**{words}" in PAGE
