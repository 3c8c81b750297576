"""The checks of the pages would notice if a page said something else than the program."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.likeness import alike
from tests.docs.pages import Block
from tests.docs.session import Session
from tests.docs.test_blocks import _check


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("one … three\n", "one 2 three\n", True),
        ("one … three\n", "one 2 four\n", False),
        ("first\n…\nlast\n", "first\nlast\n", True),
        ("first\n…\nlast\n", "first\n2\n3\nlast\n", True),
        ("first\nlast\n", "first\n2\nlast\n", False),
        ("bold\n", "\x1b[1mbold\x1b[0m  \n", True),
    ],
)
def test_text_is_compared_but_for_what_may_differ(shown: str, printed: str, same: bool) -> None:
    assert alike(shown, printed, "text") is same


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ('{"a": 1}', '{"a":1}', True),
        ('{"a": 1}', '{"a":true}', False),
        ('{"a": 1}', '{"a":1,"b":2}', False),
        ('{"a": 1, "…": "…"}', '{"a":1,"b":2}', True),
        ('{"a": "…"}', '{"a":[1]}', True),
        ('{"a": "x …"}', '{"a":"y 1"}', False),
    ],
)
def test_json_is_compared_but_for_what_may_differ(shown: str, printed: str, same: bool) -> None:
    assert alike(shown, printed, "json") is same


@pytest.mark.parametrize(
    ("language", "text", "wishes"),
    [
        ("bash", "false\n", {}),
        ("bash", "true\n", {"exit": "3"}),
        ("bash", "true\n", {"skip": "somehow"}),
        ("console", "$ echo one\ntwo\n", {}),
        ("python", "raise SystemExit(1)\n", {}),
        ("json", "{'a': 1}\n", {}),
        ("text", "nothing like it\n", {"prints": ""}),
        ("bash", "true\n", {"same-as": "examples/quickstart.sh"}),
    ],
)
def test_a_block_that_is_not_true_is_found(language: str, text: str, wishes: dict[str, str], tmp_path: Path) -> None:
    block = Block(Path(__file__).resolve(), 1, language, text, wishes)
    with pytest.raises((AssertionError, ValueError)):
        _check(block, Session(tmp_path))
