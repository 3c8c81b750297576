"""The tools of the model: documents, mistakes that say what to do, and no answer in a person's name."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from tests.acceptance.command_line import LAUNCH
from tests.hermes.place import Inside, inside, registry_with

from hermes_workflows.hermes_plugin import tools

__all__ = ["inside"]


def _told(text: str) -> Any:
    return json.loads(text)


def _waiting(inside: Inside) -> None:
    """A run that waits for the answer to `review_draft`."""
    inside.work.start("one")
    inside.work.work()


def _let_answer(inside: Inside, allowed: bool = True) -> None:
    file = inside.work.root / ".hermes" / "workflows.registry.json"
    file.write_text(json.dumps(registry_with(hermes={"answer_tool": allowed})))


def test_the_list_has_each_alias_with_the_schema_of_its_input(inside: Inside) -> None:
    (found,) = _told(tools.list_workflows({}))
    assert found["workflow"] == "launch"
    assert set(found["input"]["properties"]) == {"topic", "risk"}


def test_a_workflow_that_cannot_be_loaded_says_why_and_hides_no_other(inside: Inside) -> None:
    file = inside.work.root / ".hermes" / "workflows.registry.json"
    more = {**registry_with()["workflows"], "broken": {"workflow_ref": "flows/none.py:none"}}
    file.write_text(json.dumps(registry_with(workflows=more)))
    found = {each["workflow"]: each for each in _told(tools.list_workflows({}))}
    assert "input" in found["launch"]
    assert "none.py" in found["broken"]["error"]


def test_a_start_records_a_run_and_the_same_start_shows_it_again(inside: Inside) -> None:
    given = {"workflow": "launch", "input_json": '{"topic": "docs"}', "run_id": "one"}
    first, second = _told(tools.start(given)), _told(tools.start(given))
    assert (first["workflow_id"], first["state"]) == ("one", second["state"])
    assert len(_told(tools.status({}))) == 1


def test_no_code_of_the_project_is_imported_into_this_process(inside: Inside) -> None:
    (inside.work.root / "flows" / "launch.py").write_text(f"import utils\n{LAUNCH}")
    (inside.work.root / "flows" / "utils.py").write_text("")
    before = set(sys.modules)
    assert "input" in _told(tools.list_workflows({}))[0]
    assert "workflow_id" in _told(tools.start({"workflow": "launch", "input_json": '{"topic": "docs"}'}))
    places = {name: getattr(sys.modules[name], "__file__", None) or "" for name in set(sys.modules) - before}
    assert [name for name, place in places.items() if place.startswith(str(inside.work.root))] == []


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ({"workflow": "lunch"}, "not_found", "launch"),
        ({"workflow": "flows/launch.py:launch"}, "not_found", "no workflow"),
        ({"workflow": "launch", "input_json": '{"topic": 1}'}, "invalid_input", "topic"),
        ({"workflow": "launch", "input_json": "{"}, "invalid_input", "the input"),
        ({"workflow": "launch", "input_json": "@/etc/passwd"}, "invalid_input", "the input"),
        ({"workflow": "launch", "input_json": '{"topic": "x"}', "run_id": "a\0b"}, "invalid_input", "NUL"),
        ({"workflow": "launch", "input_json": '{"topic": "x"}', "run_id": "\ud800"}, "invalid_input", "run_id"),
        ({"workflow": 7}, "invalid_input", "workflow"),
        ({}, "invalid_input", "workflow"),
        (None, "invalid_input", "workflow"),
    ],
)
def test_a_start_that_cannot_be_says_what_is_wrong_and_records_nothing(
    inside: Inside, given: Any, code: str, says: str
) -> None:
    error = _told(tools.start(given))["error"]
    assert error["code"] == code
    assert says in f"{error['message']} {error['hint']}"
    assert _told(tools.status({})) == []


def test_status_says_why_a_run_is_where_it_is_and_what_to_do(inside: Inside) -> None:
    _waiting(inside)
    said = _told(tools.status({"run": "on"}))
    assert (said["workflow_id"], said["state"]) == ("one", "waiting")
    assert "review_draft" in said["next_action"]


def test_a_receipt_shows_the_calls_of_a_run_and_one_call_in_full(inside: Inside) -> None:
    _waiting(inside)
    assert [call["key"] for call in _told(tools.receipt({"run": "one"}))["calls"]] == ["writer", "review_draft"]
    (writer,) = _told(tools.receipt({"run": "one", "key": "writer"}))["receipts"]
    assert writer["output"] == "Draft of docs"


def test_the_list_of_reviews_has_the_question_and_its_key(inside: Inside) -> None:
    _waiting(inside)
    (row,) = _told(tools.reviews({}))
    assert (row["workflow_id"], row["key"], row["prompt"]) == ("one", "review_draft", "Ship it?")


def test_what_the_environment_has_as_a_secret_is_shown_to_no_model(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools.start({"workflow": "launch", "input_json": '{"topic": "zebra-in-plain-sight"}', "run_id": "one"})
    inside.work.work()
    monkeypatch.setenv("WRITERS_API_KEY", "zebra-in-plain-sight")
    assert "zebra" not in tools.receipt({"run": "one", "key": "writer"})


def test_an_error_shows_no_secret_either_and_takes_any_text(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    _waiting(inside)
    monkeypatch.setenv("WRITERS_API_KEY", "zebra-in-plain-sight")
    for tool in (tools.status, tools.receipt, tools.reviews):
        said = tool({"run": "zebra-in-plain-sight"})
        assert ("zebra" in said, "error" in said) == (False, True)
        assert "error" in _told(tool({"run": "\ud800"}))


def test_a_long_result_is_cut_and_says_so(inside: Inside) -> None:
    topic = "long " * 20_000
    tools.start({"workflow": "launch", "input_json": json.dumps({"topic": topic}), "run_id": "one"})
    inside.work.work()
    said = tools.receipt({"run": "one", "key": "writer"})
    assert len(said) <= tools.LONGEST
    assert "hermes-workflows show" in _told(said)["cut"]


def test_a_model_that_calls_the_tool_unasked_answers_nothing(inside: Inside) -> None:
    _waiting(inside)
    error = _told(tools.answer({"run": "one", "key": "review_draft", "answer_json": '{"action": "approve"}'}))["error"]
    assert "no model" in error["message"]
    assert len(_told(tools.reviews({}))) == 1


def test_an_answer_of_the_model_is_an_agents_whatever_it_says(inside: Inside) -> None:
    _waiting(inside)
    _let_answer(inside)
    given = {"run": "one", "key": "review_draft", "answer_json": '{"action": "approve"}', "kind": "human", "by": "Ada"}
    said = _told(tools.answer(given, session_id="s-1", kind="human"))
    by = said["provenance"]
    assert (by["kind"], by["by"], by["channel"], by["verified"]) == ("agent", "hermes", "hermes-tool", "none")
    assert by["origin"] == {"session_id": "s-1"}


def test_a_permission_that_was_taken_back_counts_at_once(inside: Inside) -> None:
    _waiting(inside)
    _let_answer(inside)
    _let_answer(inside, allowed=False)
    assert "error" in _told(tools.answer({"run": "one", "key": "review_draft", "answer_json": '{"action": "approve"}'}))
