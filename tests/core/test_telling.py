"""A notice in a chat: whatever was asked by whom, the lines to send back stand under the answers they are for."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.forge import Page, does
from tests.hostile import EVERYTHING, TEXTS

from hermes_workflows.review.chat import Line
from hermes_workflows.review.telling import harmless, message

TOKENS = ("hw1-" + "z" * 48, "hw1-" + "y" * 48)
WHEN = datetime(2026, 11, 29, tzinfo=UTC)


def notice(text: str) -> dict[str, Any]:
    return {
        "event": "requested",
        "workflow": text,
        "workflow_id": "wf",
        "key": "ok",
        "prompt": text,
        "assignee": text,
        "respond": "hermes-workflows review respond wf ok",
    }


@settings(deadline=None)
@given(TEXTS, st.lists(TEXTS, min_size=2, max_size=2))
def test_a_line_to_send_back_stands_right_under_its_own_label(text: str, labels: list[str]) -> None:
    given_lines = [Line(label, token) for label, token in zip(labels, TOKENS, strict=True)]
    lines = message(notice(text), given_lines, WHEN).split("\n")
    for label, token in zip(labels, TOKENS, strict=True):
        at = lines.index(f"`{token}`")
        assert lines[at - 2] == ""
        assert lines[at - 1].endswith(":")
        assert re.sub(r"\W|_", "", lines[at - 1]) == re.sub(r"\W|_", "", harmless(label))


@settings(deadline=None)
@given(TEXTS)
def test_a_notice_calls_nobody_and_turns_nothing(text: str) -> None:
    told = message(notice(text))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", told)
    assert not re.search(r"(?i)MEDIA\s*:|\[\[|<[!#@&]", told)
    assert "`" not in told
    assert {"mention", "command"}.isdisjoint(does(Page(told)))


def test_all_of_it_at_once_is_harmless() -> None:
    told = harmless(EVERYTHING)
    assert harmless(told) == told
    told.encode()
