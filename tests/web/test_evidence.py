"""Evidence looks like what it is, and no size or depth of it breaks a page."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_workflows.core.changes import changes
from hermes_workflows.web.evidence import DiffLine, changed, diff_line, piece_of


@pytest.mark.parametrize(
    ("value", "path", "kind"),
    [
        ("some *words*", None, "markdown"),
        ("# Notes", "docs/a.md", "markdown"),
        ("x = 1", "a.py", "text"),
        ("diff --git a/x b/x\n", "a.md", "diff"),
        ({"a": 1}, None, "fields"),
        (["a"], None, "items"),
        ([1, 2], None, "text"),
        (True, None, "value"),
        (None, None, "value"),
        (b"\x00bytes", None, "value"),
        ({}, None, "text"),
        ([], None, "text"),
    ],
)
def test_a_value_is_shown_as_what_it_is(value: Any, path: str | None, kind: str) -> None:
    assert piece_of("t", value, path).kind == kind


def test_the_lines_of_a_diff_are_told_apart() -> None:
    kinds = [diff_line(line).kind for line in ("--- a", "+++ b", "@@ -1 +1 @@", "-old", "+new", " same", "")]
    assert kinds == ["place", "place", "place", "removed", "added", "same", "same"]


def test_a_change_of_anything_reads_as_a_diff() -> None:
    (change,) = changes({"n": 1}, {"n": [2]})
    assert changed(change).lines == (
        DiffLine("removed", "-1"),
        DiffLine("added", "+["),
        DiffLine("added", "+  2"),
        DiffLine("added", "+]"),
    )
    (gone,) = changes({"n": 1}, {})
    assert [line.text for line in changed(gone).lines] == ["-1"]


def test_what_is_too_deep_too_long_or_too_much_is_cut_and_says_so() -> None:
    deep: Any = "end"
    for _ in range(60):
        deep = {"in": deep}
    piece, levels = piece_of("t", deep), 0
    while piece.parts:
        piece, levels = piece.parts[0], levels + 1
    assert (levels, piece.kind) == (3, "text")
    assert "more characters]" in piece_of("t", {str(n): "x" * 100 for n in range(5000)}).text
    assert piece_of("t", "--- a\n" + "+x\n" * 6000).lines[-1].text == "[… 1,001 more lines]"
