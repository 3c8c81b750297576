"""Foreign text that is shown, and words of commands that are to be copied."""

from __future__ import annotations

import json
import shlex
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hostile import EVERYTHING, LINES, TEXTS

from hermes_workflows.cli.writing import as_json
from hermes_workflows.core.plain import command_line, escaped_json, git_line, plain

TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@settings(deadline=None)
@given(TEXTS)
def test_nothing_that_is_shown_is_obeyed_and_every_stream_takes_it(text: str) -> None:
    for shown, kept in ((plain(text), "\n\t"), (plain(text, cr=True), "\r\n\t")):
        shown.encode()
        assert not [char for char in shown if unicodedata.category(char) == "Cc" and char not in kept]
        assert not TURNING & set(shown)
        assert plain(shown, cr=True) == shown
        # Nothing that can be seen is gone.
        assert [char for char in shown if char.isprintable() and char != "\ufffd"] == [
            char for char in text if char.isprintable() and char != "\ufffd"
        ]


@pytest.mark.parametrize("text", ["a  b\n\tc", "Ünïcode 日本 😀", "👨\u200d👩\u200d👧", ""])
def test_what_is_only_text_is_shown_as_it_is(text: str) -> None:
    assert plain(text) == text


@settings(deadline=None)
@given(st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_a_document_says_the_same_and_holds_nothing_that_a_terminal_obeys(document: dict[str, str]) -> None:
    written = as_json(document).decode()
    assert written == plain(written)
    assert "\n" not in written
    # Escaped one by one, the two halves of a surrogate pair are read as one character.
    assert json.loads(written) == json.loads(json.dumps(document))
    assert escaped_json(written) == written


@settings(deadline=None)
@given(st.lists(LINES, max_size=5))
def test_words_of_a_command_stay_words_on_one_line(words: list[str]) -> None:
    for line, before in ((command_line(*words), ["hermes-workflows"]), (git_line("a b", *words), ["git", "-C", "a b"])):
        assert line.isprintable()
        found = shlex.split(line)
        assert found[: len(before)] == before
        shown = [each for each in zip(words, found[len(before) :], strict=True) if each[0].isprintable()]
        assert all(word == read for word, read in shown)


def test_a_command_of_plain_words_is_what_one_would_type() -> None:
    assert command_line("review", "respond", "wf_1", "docs/ok-2") == "hermes-workflows review respond wf_1 docs/ok-2"
    assert command_line("show", "wf@a; rm -rf ~") == "hermes-workflows show 'wf@a; rm -rf ~'"
    assert "\n" not in command_line(EVERYTHING)
