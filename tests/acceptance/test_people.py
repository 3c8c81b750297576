"""Answers through the command line: what is human, what is not, and what a terminal shows and asks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.command_line import LAUNCH, Place, place

SHIP = json.dumps({"action": "approve", "feedback": "Ship it."})


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = place(tmp_path_factory.mktemp("model") / "ws")
    made.start()
    made.work()
    return made.root


@pytest.fixture
def asked(model: Path, tmp_path: Path) -> Place:
    """A workspace whose run `wf` waits for an answer to `review_draft`; nothing runs in it, so it can be copied."""
    return Place(Path(shutil.copytree(model, tmp_path / "ws")))


def provenance(made: Place) -> Any:
    return made.run("review", "show", "wf", "review_draft").json["provenance"]


def test_an_answer_from_a_script_is_manual_and_never_human(asked: Place) -> None:
    refused = asked.run("review", "respond", "wf", "review_draft", "--json", SHIP, "--kind", "human")
    assert refused.code == 2
    assert "only when a person types it" in refused.error["message"]
    assert provenance(asked) is None
    asked.run("review", "respond", "wf", "review_draft", "--json", SHIP, "--by", "ana")
    assert (provenance(asked)["kind"], provenance(asked)["verified"]) == ("manual", "none")


def test_a_test_says_that_it_is_one(asked: Place) -> None:
    asked.run("review", "respond", "wf", "review_draft", "--json", SHIP, "--kind", "test", "--channel", "smoke")
    assert (provenance(asked)["kind"], provenance(asked)["channel"]) == ("test", "smoke")


def test_an_answer_typed_in_a_terminal_is_human(asked: Place) -> None:
    code, seen = asked.terminal("review", "respond", "wf", "review_draft", "--json", SHIP, "--by", "ana")
    assert code == 0
    assert "recorded as human, by ana through cli" in seen
    assert provenance(asked)["kind"] == "human"


def test_a_terminal_is_asked_field_by_field_until_each_fits(asked: Place) -> None:
    code, seen = asked.terminal("review", "respond", "wf", "review_draft", typed="aprove\n1\nLooks good.\n")
    assert code == 0
    for shown in ("Ship it?", '"draft": "Draft of docs"', "1. approve", "action must be one of approve, revise"):
        assert shown in seen
    answer = asked.run("review", "show", "wf", "review_draft").json["answer"]
    assert answer == {"action": "approve", "feedback": "Looks good."}


def test_what_may_be_left_out_is_left_out(asked: Place) -> None:
    asked.terminal("review", "respond", "wf", "review_draft", typed="revise\n\n")
    assert asked.run("review", "show", "wf", "review_draft").json["answer"] == {"action": "revise"}


def test_fields_may_be_given_as_flags(asked: Place) -> None:
    said = asked.run(
        "review", "respond", "wf", "review_draft", "--action", "revise", "--field", "feedback=Shorter = better"
    )
    assert said.json["answer"] == {"action": "revise", "feedback": "Shorter = better"}


def test_an_answer_may_come_from_stdin(asked: Place) -> None:
    assert asked.run("review", "respond", "wf", "review_draft", "--json", "-", typed=SHIP).code == 0


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (["--json", '{"action":"aprove","feedback":3,"more":1}'], 2, ["/action", "/feedback", "/more"]),
        (["--json", "{}"], 2, ["action"]),
        (["--json", "{"], 2, ["--json: not JSON"]),
        (["--field", "feedbak=x"], 2, ["no field 'feedbak'"]),
        (["--field", "feedback"], 2, ["names no value"]),
        (["--json", SHIP, "--action", "approve"], 2, ["given twice"]),
        ([], 2, ["no answer was given"]),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_nothing_is_recorded(
    asked: Place, given: list[str], code: int, said: list[str]
) -> None:
    before = asked.git("rev-parse", "runs/wf")
    refused = asked.run("review", "respond", "wf", "review_draft", *given)
    assert (refused.code, refused.stdout) == (code, "")
    assert all(part in refused.error["message"] for part in said)
    assert asked.git("rev-parse", "runs/wf") == before


def test_the_second_answer_is_a_conflict_and_the_same_message_is_not(asked: Place) -> None:
    answer = ("review", "respond", "wf", "review_draft", "--json", SHIP)
    first = asked.run(*answer, "--by", "ana", "--message-id", "m-1")
    assert asked.run(*answer, "--by", "ana", "--message-id", "m-1").json["answered_at"] == first.json["answered_at"]
    second = asked.run(*answer, "--by", "bo")
    assert (second.code, second.error["code"]) == (5, "already_answered")
    assert "answered by ana (manual, cli) at " in second.error["message"]


def test_an_answer_sent_again_from_a_terminal_stays_what_it_was(asked: Place) -> None:
    answer = ("review", "respond", "wf", "review_draft", "--json", SHIP, "--message-id", "m-1")
    asked.run(*answer, "--by", "ana", "--kind", "test")
    code, seen = asked.terminal(*answer, "--by", "ana")
    assert code == 0
    assert "recorded as test, by ana through cli" in seen


def test_an_answer_before_the_question_says_where_the_run_stands(tmp_path: Path) -> None:
    made = place(tmp_path / "ws")
    made.start()
    refused = made.run("review", "respond", "wf", "review_draft", "--json", SHIP)
    assert refused.code == 4
    assert "wf (running) has no review 'review_draft'" in refused.error["message"]


def test_a_terminal_shows_text_and_a_pipe_gets_json(asked: Place) -> None:
    code, seen = asked.terminal("status", "wf")
    assert code == 0
    assert seen.startswith("wf: Waiting on the operator\n")
    assert "next: hermes-workflows review respond wf review_draft" in seen
    for command in (["list"], ["review", "list"], ["runner", "status"], ["registry", "list"]):
        code, seen = asked.terminal(*command)
        assert (code, "{" in seen) == (0, False)
        json.loads(asked.terminal("--json", *command)[1])


def test_no_color_is_obeyed(asked: Place) -> None:
    asked.environment = {"TERM": "xterm-256color"}
    assert "\x1b[" in asked.terminal("list")[1]
    asked.environment = {"TERM": "xterm-256color", "NO_COLOR": "1"}
    assert "\x1b[3" not in asked.terminal("list")[1]


def test_an_error_on_a_terminal_is_one_line_and_a_hint(asked: Place) -> None:
    code, seen = asked.terminal("run", "lunch")
    assert code == 4
    assert seen.splitlines()[0].startswith("error: no workflow 'lunch'")
    assert seen.splitlines()[1] == "  did you mean 'launch'?"


def test_text_of_an_agent_cannot_drive_the_terminal(tmp_path: Path) -> None:
    made = place(tmp_path / "ws")
    hostile = LAUNCH.replace("Ship it?", "Ship\\x1b[2Jit?\\r\\x07\\u202e")
    (made.root / "flows" / "launch.py").write_text(hostile)
    made.start()
    made.work()
    for command in (["review", "show", "wf", "review_draft"], ["status", "wf"], ["review", "list"]):
        seen = made.terminal(*command)[1]
        assert "Ship" in seen
        assert not [part for part in ("\x1b[2J", "\x07", "\u202e", "\r") if part in seen]


def test_null_is_an_answer_where_the_type_has_it(tmp_path: Path) -> None:
    made = place(tmp_path / "ws")
    (made.root / "maybe.py").write_text(
        "from hermes_workflows import ask, workflow\n\n\n@workflow\nasync def maybe() -> bool | None:\n"
        "    return await ask('Yes, no, or neither?', key='q', returns=bool | None)\n",
    )
    made.run("run", "maybe.py", "--id", "m", "--drain")
    assert made.run("review", "respond", "m", "q", "--json", "null").code == 0
    assert made.run("review", "show", "m", "q").json["status"] == "completed"


def test_an_answer_that_is_needed_is_asked_for_again_when_nothing_was_typed(tmp_path: Path) -> None:
    made = place(tmp_path / "ws")
    (made.root / "word.py").write_text(
        "from hermes_workflows import ask, workflow\n\n\n@workflow\nasync def word() -> str:\n"
        "    return await ask('Which?', key='q', returns=str)\n",
    )
    made.run("run", "word.py", "--id", "w", "--drain")
    code, seen = made.terminal("review", "respond", "w", "q", typed="\nthis one\n")
    assert (code, made.run("review", "show", "w", "q").json["answer"]) == (0, "this one")
    assert "an answer is needed" in seen


def test_an_answer_that_does_not_fit_as_a_whole_is_asked_for_again(tmp_path: Path) -> None:
    made = place(tmp_path / "ws")
    (made.root / "score.py").write_text(
        "from pydantic import BaseModel, Field\nfrom hermes_workflows import ask, workflow\n\n\n"
        "class Score(BaseModel):\n    points: int = Field(description='One is worst.', ge=1, le=5)\n\n\n"
        "@workflow\nasync def score() -> int:\n"
        "    return (await ask('How good?', key='q', returns=Score)).points\n",
    )
    made.run("run", "score.py", "--id", "s", "--drain")
    code, seen = made.terminal("review", "respond", "s", "q", typed="9\n4\n")
    assert (code, made.run("review", "show", "s", "q").json["answer"]) == (0, {"points": 4})
    assert seen.count("One is worst.") >= 1
    assert "/points" in seen


def test_waiting_for_a_run_ends_at_a_question_of_its_child(tmp_path: Path) -> None:
    made = place(tmp_path / "ws")
    (made.root / "family.py").write_text(
        "from hermes_workflows import ask, workflow\n\n\n@workflow\nasync def kid() -> str:\n"
        "    return await ask('Which?', key='q', returns=str)\n\n\n"
        "@workflow\nasync def parent() -> str:\n    return await kid()\n",
    )
    assert made.run("run", "family.py:parent", "--id", "p", "--drain").code == 3
