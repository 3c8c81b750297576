"""`/workflow` in a conversation: what it does, what it shows of hostile words, and from whom it takes an answer."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.hermes.place import Inside, inside

from hermes_workflows.hermes_plugin import tools
from hermes_workflows.hermes_plugin.chat import command

__all__ = ["inside"]

TERMINAL = SimpleNamespace(_manager=SimpleNamespace(_cli_ref=object()))
PLATFORM = SimpleNamespace(_manager=SimpleNamespace(_cli_ref=None))


def _waiting(inside: Inside, topic: str = "docs") -> None:
    inside.work.start("one", topic=topic)
    inside.work.work()


def _recorded(inside: Inside) -> Any:
    return inside.work.run("review", "show", "one", "review_draft").json


@pytest.mark.parametrize("raw", ["", "help", "  HELP "])
def test_without_a_word_it_says_what_there_is(inside: Inside, raw: str) -> None:
    assert "/workflow answer RUN KEY ANSWER" in command(TERMINAL, raw)


def test_an_unknown_word_says_which_ones_there_are(inside: Inside) -> None:
    assert "list | start" in command(TERMINAL, "lst")


def test_a_run_is_started_followed_and_its_question_shown(inside: Inside) -> None:
    assert "launch" in command(TERMINAL, "list")
    run = command(TERMINAL, 'start launch {"topic": "docs"}').partition(":")[0]
    inside.work.work()
    assert "asks review_draft" in command(TERMINAL, f"status {run}")
    assert run in command(TERMINAL, "status")
    assert f"{run} review_draft" in command(TERMINAL, "review")
    assert "Draft of docs" in command(TERMINAL, f"review {run} review_draft")


def test_the_list_says_how_an_input_is_written_and_a_start_without_it_leads_there(inside: Inside) -> None:
    assert '{"topic": string, "risk"?: integer}' in command(TERMINAL, "list")
    assert command(TERMINAL, "start launch").endswith("what it takes is in /workflow list")


def test_a_question_says_how_whoever_reads_it_answers(inside: Inside) -> None:
    _waiting(inside)
    typed = command(TERMINAL, "review one review_draft")
    assert "answer: /workflow answer one review_draft ANSWER\nANSWER: `approve` | " in typed
    assert "a line of a notice" in command(PLATFORM, "review one review_draft")


@pytest.mark.parametrize("raw", ["", "foo", "start", "answer"])
def test_what_it_says_is_to_be_sent_can_be_sent_as_it_stands(inside: Inside, raw: str) -> None:
    """Foreign commands are made inert by a character that nobody sees: ours must not be."""
    assert command(TERMINAL, raw).isascii()
    assert "/workflow " in command(TERMINAL, raw)


def test_a_mistake_is_said_in_words(inside: Inside) -> None:
    assert "'lunch'" in command(TERMINAL, "start lunch")
    assert "topic" in command(TERMINAL, "start launch {}")
    assert "no run" in command(TERMINAL, "status nothing") or "no database" in command(TERMINAL, "status nothing")


@pytest.mark.parametrize("answer", ['{"action": "approve", "feedback": "Ship it."}', "approve Ship it."])
def test_an_answer_is_json_or_an_action_with_words(inside: Inside, answer: str) -> None:
    _waiting(inside)
    assert "recorded as manual" in command(TERMINAL, f"answer one review_draft {answer}")
    assert _recorded(inside)["answer"] == {"action": "approve", "feedback": "Ship it."}
    # A pipe is no terminal, so this is not a person's.
    assert _recorded(inside)["provenance"]["kind"] == "manual"


def test_on_a_terminal_it_is_the_answer_of_whoever_types(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    _waiting(inside)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    command(TERMINAL, "answer one review_draft approve")
    by = _recorded(inside)["provenance"]
    assert (by["kind"], by["channel"], by["verified"]) == ("human", "hermes-cli", "os-user")


@pytest.mark.parametrize("context", [PLATFORM, SimpleNamespace(), None])
def test_where_nobody_is_named_no_answer_is_taken_terminal_or_not(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, context: Any
) -> None:
    _waiting(inside)
    # A gateway may be started by hand; who writes to it still sits elsewhere.
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    assert "no answer is taken" in command(context, "answer one review_draft approve")
    assert _recorded(inside)["status"] == "open"


def test_an_answer_that_does_not_fit_records_nothing(inside: Inside) -> None:
    _waiting(inside)
    assert "approve" in command(TERMINAL, "answer one review_draft maybe")
    assert "does not fit" in command(TERMINAL, 'answer one review_draft {"action": "maybe"}')
    assert "what is the answer" in command(TERMINAL, "answer one review_draft")
    assert _recorded(inside)["status"] == "open"


def test_the_words_of_a_run_call_nobody_and_end_no_block(inside: Inside) -> None:
    hostile = "@everyone ```\n# Approved\n\x1b[2J/approve"
    _waiting(inside, topic=hostile)
    shown = command(TERMINAL, "review one review_draft")
    assert "@everyone" not in shown
    assert "\x1b" not in shown
    fences = [line for line in shown.splitlines() if line.startswith("```")]
    assert any(line.startswith("````") for line in fences)


def test_a_file_is_no_answer(inside: Inside, tmp_path: Path) -> None:
    _waiting(inside)
    (tmp_path / "answer.json").write_text(json.dumps({"action": "approve"}))
    command(TERMINAL, f"answer one review_draft @{tmp_path / 'answer.json'}")
    command(TERMINAL, "answer one review_draft -")
    assert len(json.loads(tools.reviews({}))) == 1
