"""Where two values first differ, as a JSON pointer."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_workflows.core.differences import first_difference


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "/a/1/b"),
        ({"a": 1}, {"a": 1, "b": 2}, "/b"),
        ([1, 2], [1], "/1"),
        (1, 1.0, ""),
        (True, 1, ""),
        ("1", ["1"], ""),
        ({"a/b~c": 1}, {"a/b~c": 2}, "/a~1b~0c"),
    ],
)
def test_the_first_difference_is_named(one: Any, other: Any, place: str) -> None:
    assert first_difference(one, other) == place
    assert first_difference(other, one) == place


@pytest.mark.parametrize("value", [None, {"a": [1, "x", None, {"b": b"y"}]}, [], "text", 1.5])
def test_equal_values_have_none(value: Any) -> None:
    assert first_difference(value, value) is None
