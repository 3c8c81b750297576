"""Every difference of two values, and of two texts line by line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_workflows.core import changes as module
from hermes_workflows.core.changes import ABSENT, Change, changes, line_diff


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"a": 1, "b": 2}, {"a": 2, "c": 2}, [("/a", 1, 2), ("/b", 2, ABSENT), ("/c", ABSENT, 2)]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1.0}]}, [("/a/0/b", 1, 1.0)]),
        (True, 1, [("", True, 1)]),
        (None, {"a": 1}, [("", None, {"a": 1})]),
        ({"a/b": 1}, {}, [("/a~1b", 1, ABSENT)]),
    ],
)
def test_each_place_is_named_with_both_values(before: Any, after: Any, found: list[tuple[str, Any, Any]]) -> None:
    assert list(changes(before, after)) == [Change(*each) for each in found]


def test_an_item_put_first_into_a_list_is_one_difference() -> None:
    items = [{"name": name} for name in "abc"]
    assert list(changes(items, [{"name": "new"}, *items])) == [Change("/0", ABSENT, {"name": "new"})]
    assert list(changes(items, items[1:])) == [Change("/0", {"name": "a"}, ABSENT)]


def test_an_item_that_changed_in_a_list_is_looked_into() -> None:
    before = [{"name": "a", "n": 1}, {"name": "b", "n": 1}]
    assert list(changes(before, [before[0], {"name": "b", "n": 2}])) == [Change("/1/n", 1, 2)]


def test_texts_of_several_lines_are_a_diff_of_lines() -> None:
    change = Change("", "one\ntwo\nthree", "one\nzwei\nthree")
    assert change.lines == ("@@ -1,3 +1,3 @@", " one", "-two", "+zwei", " three")
    assert Change("", "short", "other").lines == ()


def test_a_line_end_that_is_missing_or_of_another_system_shows() -> None:
    assert line_diff("a\n", "a") == ("@@ -1,2 +1 @@", " a", "-")
    assert line_diff("a\r\nb", "a\nb") == ("@@ -1,2 +1,2 @@", "-a\r", "+a", " b")


def test_one_line_among_many_alike_is_found() -> None:
    lines = ["ok"] * 3000
    changed = [*lines[:1500], "failed", *lines[1501:]]
    found = line_diff("\n".join(lines), "\n".join(changed))
    assert found == ("@@ -1498,7 +1498,7 @@", " ok", " ok", " ok", "-ok", "+failed", " ok", " ok", " ok")
    assert list(changes(lines, changed)) == [Change("/1500", "ok", "failed")]


@given(st.lists(st.sampled_from("ab\n"), max_size=30), st.lists(st.sampled_from("ab\n"), max_size=30))
def test_a_diff_applied_to_the_old_text_makes_the_new_one(one: list[str], other: list[str]) -> None:
    before, after = "".join(one), "".join(other)
    ours = line_diff(before, after)
    assert bool(ours) == (before != after)
    assert _applied(before, ours) == after


def _applied(before: str, diff: tuple[str, ...]) -> str:
    """The text that the diff makes of `before`."""
    lines, made, at = before.split("\n"), list[str](), 0
    for line in diff:
        if line.startswith("@@"):
            start, _, count = line.split()[1][1:].partition(",")
            here = int(start) - (count != "0")
            made += lines[at:here]
            at = here
        elif line[0] == "+":
            made.append(line[1:])
        else:
            assert lines[at] == line[1:]
            made += [line[1:]] if line[0] == " " else []
            at += 1
    return "\n".join([*made, *lines[at:]])


def test_what_is_too_long_to_match_is_shown_as_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_PAIRS", 1)
    assert line_diff("a\nb\nc\nz", "a\nB\nz") == ("@@ -1,4 +1,3 @@", " a", "-b", "-c", "+B", " z")
    assert list(changes([1, 2, 3], [0, 2, 1, 3])) == [Change("/0", 1, 0), Change("/2", ABSENT, 1)]
