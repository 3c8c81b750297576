"""What a review of a pull request says, and who may say it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hermes_workflows.errors import InvalidInput
from hermes_workflows.review.pull_requests import (
    ForgeReview,
    PullRequest,
    Said,
    answers_of,
    is_answer,
    objections,
    provenance_of,
    pull_request_of,
    review_of,
)

PULL = PullRequest("acme/runs", 7, "https://github.com/acme/runs/pull/7", "robot", "run/wf")
REVIEW = ForgeReview("31", "ana", is_bot=False, state="APPROVED", text="Ship it.", commit="a" * 40, url="https://x/31")


def verdict(*choices: str, feedback: bool = True) -> dict[str, Any]:
    properties: dict[str, Any] = {"action": {"enum": list(choices)}}
    if feedback:
        properties["feedback"] = {"type": "string"}
    return {"type": "object", "properties": properties, "required": list(properties)}


def said(schema: dict[str, Any], **review: Any) -> Any:
    (answer,) = answers_of(replace(REVIEW, **review), {"ok": schema})
    return answer.payload


@pytest.mark.parametrize(
    ("choices", "approved", "changes"),
    [
        (("approve", "revise"), "approve", "revise"),
        (("reject", "approve"), "approve", "reject"),
        (("approve", "reject", "request changes"), "approve", "request changes"),
        (("Accepted", "Declined"), "Accepted", "Declined"),
        (("yes", "no"), "yes", "no"),
    ],
)
def test_an_approval_and_a_request_for_changes_are_choices(
    choices: tuple[str, ...], approved: str, changes: str
) -> None:
    assert said(verdict(*choices)) == {"action": approved, "feedback": "Ship it."}
    assert said(verdict(*choices), state="CHANGES_REQUESTED", text="") == {"action": changes, "feedback": ""}


def test_answers_of_one_value_are_chosen_too() -> None:
    assert said({"enum": ["approve", "revise"]}) == "approve"
    assert said({"type": "boolean"}, state="CHANGES_REQUESTED") is False
    assert said(verdict("approve", "revise", feedback=False)) == {"action": "approve"}


@pytest.mark.parametrize(
    "schema",
    [verdict("red", "green"), {"type": "string"}, {"type": "object", "properties": {"n": {"type": "integer"}}}],
)
def test_an_approval_that_means_no_choice_is_refused_with_the_way_out(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        said(schema)
    assert "```json" in str(refused.value.hint)


def test_a_json_block_is_the_whole_answer() -> None:
    quoted = '> ```json\n> {"action": "approve"}\n> ```\n'
    text = f'Mine:\n\n```json\n{{"action": "revise", "feedback": "shorter"}}\n```\n\n{quoted}'
    schema = verdict("approve", "revise")
    assert said(schema, state="COMMENTED", text=text) == {"action": "revise", "feedback": "shorter"}


def test_blocks_name_their_questions() -> None:
    text = "```json one\n1\n```\n~~~json two\n2\n~~~\n"
    forms = {"one": {"type": "integer"}, "two": {"type": "integer"}}
    assert answers_of(replace(REVIEW, text=text), forms) == [Said("one", 1), Said("two", 2)]


@pytest.mark.parametrize(
    ("review", "why"),
    [
        (
            {"text": '```json\n{"action": "revise", "feedback": ""}\n```'},
            "is an approval, and its JSON block says revise",
        ),
        ({"text": '```json\n{"action": NaN}\n```'}, "NaN"),
        ({"text": '```json\n{"a": 1, "a": 2}\n```'}, "twice"),
        ({"text": "```json\n1\n```\n```json ok\n2\n```"}, "several JSON blocks"),
        ({"text": "```json other\n1\n```"}, "'other', which does not wait"),
    ],
)
def test_a_block_that_cannot_be_meant_is_refused(review: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        said(verdict("approve", "revise"), **review)


def test_an_approval_of_two_questions_is_an_answer_to_neither() -> None:
    schema = verdict("approve", "revise")
    with pytest.raises(InvalidInput, match=r"several questions wait \(one, two\)"):
        answers_of(REVIEW, {"two": schema, "one": schema})


@pytest.mark.parametrize("state", ["COMMENTED", "DISMISSED", "PENDING"])
def test_talk_and_what_was_taken_back_are_no_answers(state: str) -> None:
    assert not is_answer(replace(REVIEW, state=state))
    assert is_answer(REVIEW)
    assert not is_answer(replace(REVIEW, state="DISMISSED", text="```json\n1\n```"))


@pytest.mark.parametrize("permission", ["read", "triage", "none", ""])
def test_whoever_cannot_write_cannot_answer(permission: str) -> None:
    assert any("no write access" in each for each in objections(REVIEW, PULL, permission))


def test_every_objection_is_told() -> None:
    own = replace(REVIEW, login="Robot")
    told = objections(own, replace(PULL, foreign=True), "read")
    assert len(told) == 3
    assert objections(REVIEW, PULL, "write") == []
    assert objections(replace(REVIEW, login=""), PULL, "admin")


def test_only_what_the_forge_has_told_is_a_persons() -> None:
    assert (provenance_of(REVIEW, PULL, verified=True).kind, provenance_of(REVIEW, PULL, verified=False).kind) == (
        "human",
        "manual",
    )
    bot = provenance_of(replace(REVIEW, is_bot=True), PULL, verified=True)
    assert (bot.kind, bot.verified) == ("agent", "forge-login")


def test_provenance_leads_back_to_the_review() -> None:
    origin = provenance_of(REVIEW, PULL, verified=True).origin
    assert origin == {
        "repository": "acme/runs",
        "number": "7",
        "review": "31",
        "login": "ana",
        "commit": "a" * 40,
        "url": "https://x/31",
    }


def test_the_forges_json_is_read_strictly() -> None:
    data = {
        "number": 7,
        "html_url": PULL.url,
        "user": {"login": "robot"},
        "head": {"ref": "run/wf", "repo": {"full_name": "acme/runs"}},
        "base": {"ref": "main", "repo": {"full_name": "acme/runs"}},
    }
    assert pull_request_of(data) == PULL
    assert pull_request_of({**data, "head": {"ref": "run/wf", "repo": None}}).foreign
    with pytest.raises(InvalidInput, match="no user"):
        pull_request_of({**data, "user": None})
    for number in ("x", None, [7], True):
        with pytest.raises(InvalidInput, match="has no number"):
            pull_request_of({**data, "number": number})
    told = {
        "id": 31,
        "user": {"login": "ana", "type": "User"},
        "state": "approved",
        "body": None,
        "commit_id": "a" * 40,
    }
    assert review_of(told) == replace(REVIEW, text="", url="")
    assert review_of({**told, "user": {"login": "b[bot]", "type": "Bot"}}).is_bot
