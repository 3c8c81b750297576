"""Answers: checked before they are accepted, first one wins, and whoever comes second is told who was first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.contract.workspaces import SHIP, Desk, desk, person

from hermes_workflows.core import layout
from hermes_workflows.errors import AlreadyAnswered, Conflict, NotFound
from hermes_workflows.review.answer import InvalidAnswer


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    made = desk(tmp_path, '{"redact": ["DEPLOY_KEY"]}', {"DEPLOY_KEY": "hunter2-is-long"})
    made.start()
    made.ask("ok")
    made.empty_queue()
    return made


def answer(made: Desk, payload: Any = SHIP, key: str = "ok", **who: Any) -> Any:
    return made.workspace.answer("wf", key, payload, person(**who))


def paths(made: Desk) -> list[str]:
    return [receipt.path for receipt in made.receipts()]


def test_an_answer_is_recorded_with_its_provenance_and_queues_the_run(made: Desk) -> None:
    answered = answer(made, by="ana", message_id="m-1")
    response = made.receipts()[-1]
    assert (response.path, response.output) == (layout.response("ok"), SHIP)
    assert response.execution.provenance == person("ana", message_id="m-1")
    assert response.fingerprint == made.receipts()[1].fingerprint
    assert answered.response.output == SHIP
    assert made.queued() == ["wf"]


def test_a_wrong_answer_is_refused_with_every_reason_and_nothing_is_recorded(made: Desk) -> None:
    with pytest.raises(InvalidAnswer) as caught:
        answer(made, {"action": "aprove", "feedbck": 3})
    assert {place for place, _ in caught.value.errors} >= {"/action", "/feedbck"}
    assert "feedback" in caught.value.message
    assert paths(made) == ["run.json", layout.request("ok")]
    assert made.workspace.summary("wf").status == "waiting"


def test_the_second_answer_is_told_who_answered_and_when(made: Desk) -> None:
    answer(made, by="ana")
    with pytest.raises(AlreadyAnswered, match=r"answered by ana \(manual, cli\) at 2026-11-29T12:00:00"):
        answer(made, by="bo")
    assert len(paths(made)) == 3


def test_the_same_message_again_is_the_same_receipt(made: Desk) -> None:
    first = answer(made, message_id="m-1")
    assert answer(made, message_id="m-1") == first
    assert len(paths(made)) == 3


def test_the_same_message_with_another_answer_is_a_conflict(made: Desk) -> None:
    answer(made, message_id="m-1")
    with pytest.raises(Conflict, match="message m-1 of cli was recorded with another answer"):
        answer(made, {**SHIP, "action": "revise"}, message_id="m-1")
    with pytest.raises(AlreadyAnswered):
        answer(made, message_id="m-1", channel="web")


def test_two_questions_are_answered_in_any_order(made: Desk) -> None:
    made.ask("legal/ok")
    answer(made, key="legal/ok")
    assert made.workspace.summary("wf").waiting_on.key == "ok"  # type: ignore[union-attr]
    answer(made, key="ok")
    assert made.workspace.summary("wf").status == "running"


def test_an_answer_before_the_question_says_where_the_run_stands(made: Desk) -> None:
    with pytest.raises(NotFound, match=r"wf \(waiting\) has no review 'okk'") as caught:
        answer(made, key="okk")
    assert caught.value.hint == "did you mean 'ok'?"


def test_an_answer_after_the_end_is_refused_with_the_state(made: Desk) -> None:
    made.end(status="cancelled")
    for payload in (SHIP, {"no": "answer"}):
        with pytest.raises(Conflict, match="wf is cancelled and takes no more answers"):
            answer(made, payload)


def test_expiry_binds_by_the_clock_of_whoever_answers(made: Desk) -> None:
    made.ask("soon", expires=60)
    made.empty_queue()
    made.clock.advance(59.9)
    assert made.workspace.review("wf", "soon").open
    made.clock.advance(0.1)
    with pytest.raises(Conflict, match="soon of wf expired at 2026-11-29T12:01:00"):
        answer(made, key="soon")
    assert made.workspace.review("wf", "soon").open
    assert made.queued() == ["wf"]


def test_a_secret_in_an_answer_is_redacted_before_it_is_stored(made: Desk) -> None:
    answer(made, {**SHIP, "feedback": "use hunter2-is-long"}, message_id="m-1")
    assert made.receipts()[-1].output["feedback"] == "use [redacted:DEPLOY_KEY]"
    assert made.receipts()[-1].execution.redactions == {"DEPLOY_KEY": 1}
    again = answer(made, {**SHIP, "feedback": "use hunter2-is-long"}, message_id="m-1")
    assert again.response.output["feedback"] == "use [redacted:DEPLOY_KEY]"


def test_the_readme_travels_with_the_answer_and_says_what_kind_it_was(made: Desk) -> None:
    answer(made)
    readme = (made.ledger.file("wf", layout.README) or b"").decode()
    assert "not a verified person's approval" in readme
    assert "`ana`" in readme


def test_the_inbox_shows_open_questions_and_on_request_the_answered_ones(made: Desk) -> None:
    made.ask("later")
    answer(made, by="ana")
    assert [row.key for row in made.workspace.reviews()] == ["later"]
    rows = {row.key: row for row in made.workspace.reviews(status=None)}
    assert rows["ok"].answer == SHIP
    assert rows["ok"].provenance["by"] == "ana"
