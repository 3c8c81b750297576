"""Questions: what is shown beside them, and the two that need no type of their own."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from tests.core.bodies import one
from tests.core.driving import Driver, ended, result_of

from hermes_workflows.authoring import approve, ask, bash, goal, select, workflow
from hermes_workflows.core.receipts import Provenance, Receipt
from hermes_workflows.errors import InvalidInput


@dataclass
class Draft:
    title: str


class Place(Enum):
    STAGING = "staging"
    PRODUCTION = "production"


class Level(Enum):
    LOW = 1
    HIGH = 2


def request(body: Any, given: Any = None, root: str | None = None) -> Any:
    (call,) = Driver(body, given, root=root).live.outstanding.values()
    return call.request


def given_by(receipt: Receipt, by: str = "ana", kind: Any = "human") -> Receipt:
    provenance = Provenance(kind=kind, by=by, channel="web")
    execution = receipt.execution.model_copy(update={"provenance": provenance})
    return receipt.model_copy(update={"execution": execution})


def answered(body: Any, output: Any, key: str | None = None, **who: Any) -> Any:
    driver = Driver(body)
    receipt = driver.receipt_for(driver.call(key or driver.open[0]), output)
    decision = driver.record(given_by(receipt, **who))
    _, again = driver.rebuilt()
    assert again.end == decision.end
    return ended(decision).output


# -- evidence ----------------------------------------------------------------------------------------------------


def test_evidence_is_titled_by_what_it_is() -> None:
    @workflow
    async def body() -> Any:
        await ask("Ship?", evidence=[Draft("One"), Path("docs/plan.md"), "as said"])

    assert request(body)["evidence"] == [
        {"title": "evidence 1", "value": {"title": "One"}, "path": None},
        {"title": "docs/plan.md", "value": None, "path": "docs/plan.md"},
        {"title": "evidence 3", "value": "as said", "path": None},
    ]


def test_evidence_may_have_titles_and_paths_are_the_workspaces() -> None:
    @workflow
    async def body() -> Any:
        await ask("Ship?", evidence={"Plan": Path("/ws/plan.md"), "Draft": Draft("One")})

    plan, draft = request(body, root="/ws")["evidence"]
    assert (plan["title"], plan["path"]) == ("Plan", "plan.md")
    assert (draft["title"], draft["value"]) == ("Draft", {"title": "One"})


def test_what_a_command_printed_is_shown_once() -> None:
    @workflow
    async def body() -> Any:
        await ask("Ship?", key="ship", evidence=[await bash("make test")])

    driver = Driver(body)
    driver.answer("bash", {"exit_code": 0, "stdout": "ok\n", "stderr": ""})
    evidence: Any = driver.call("ship").request["evidence"]
    assert evidence[0]["value"] == {"exit_code": 0, "stdout": "ok\n", "stderr": ""}


def test_evidence_is_part_of_the_question_and_its_reminders_are_not() -> None:
    @workflow
    async def body(given: Any) -> Any:
        await ask("Ship?", key="ship", remind_every=given.get("remind"), evidence=given.get("evidence"))

    plain, reminded, shown = (
        Driver(body, given).call("ship").fingerprint for given in ({}, {"remind": 60}, {"evidence": ["x"]})
    )
    assert plain == reminded
    assert plain != shown


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        ("a text", "str is no list"),
        ([Path("../secrets")], "lies outside the workspace"),
        ([Path("/etc/passwd")], "lies outside the workspace"),
    ],
)
def test_evidence_that_is_none_is_refused_where_it_is_written(evidence: Any, said: str) -> None:
    @workflow
    async def body() -> Any:
        try:
            await ask("Ship?", evidence=evidence)
        except InvalidInput as error:
            return error.message

    assert said in result_of(body)


def test_evidence_that_cannot_be_stored_fails_the_question_naming_its_place() -> None:
    @workflow
    async def body() -> Any:
        try:
            await ask("Ship?", key="ship", evidence=["fine", {"nan": float("nan")}])
        except Exception as error:
            return str(error)

    assert "/evidence/1/value/nan" in result_of(body)


# -- approve -----------------------------------------------------------------------------------------------------


@workflow
async def approves() -> Any:
    approval = await approve("Ship it?", key="ship")
    return [approval.approved, approval.feedback, approval.by, approval.kind]


@pytest.mark.parametrize(("action", "approved"), [("approve", True), ("reject", False)])
def test_an_approval_says_who_gave_it_and_what_that_is_worth(action: str, approved: bool) -> None:
    said = answered(approves, {"action": action, "feedback": "Because."}, by="bo", kind="manual")
    assert said == [approved, "Because.", "bo", "manual"]


def test_its_form_has_two_actions_and_feedback_that_may_be_left_out() -> None:
    schema = request(approves)["returns"]
    assert schema["properties"]["action"]["enum"] == ["approve", "reject"]
    assert schema["required"] == ["action"]
    assert answered(approves, {"action": "approve"})[:2] == [True, ""]


def test_it_is_a_check_for_goal_that_hands_the_feedback_on() -> None:
    @workflow
    async def body() -> Any:
        async def write(last: Any, feedback: Any) -> str:
            return f"draft {await one()} {feedback or ''}".strip()

        return await goal(write, lambda draft: approve("Ship it?", key="ship", input=draft))

    driver = Driver(body)
    driver.answer("goal/1/one")
    driver.answer("ship", {"action": "reject", "feedback": "shorter"})
    driver.answer("goal/2/one")
    assert ended(driver.answer("ship-2", {"action": "approve"})).output == "draft 1 shorter"


@pytest.mark.parametrize(("on_expiry", "default"), [("raise", "raise"), (True, "approve"), (False, "reject")])
def test_what_nobody_answered_is_approved_or_rejected_by_rule(on_expiry: Any, default: str) -> None:
    @workflow
    async def body() -> Any:
        await approve("Ship it?", expires=60, on_expiry=on_expiry)

    recorded = request(body)["on_expiry"]
    assert (recorded if isinstance(recorded, str) else recorded["action"]) == default


# -- select ------------------------------------------------------------------------------------------------------


def test_an_option_is_answered_by_what_the_person_reads() -> None:
    @workflow
    async def body() -> Any:
        return (await select("place", {"Staging": 1, "Production": 2})) * 10

    assert dict(request(body)["returns"]) == {"enum": ["Staging", "Production"]}
    assert request(body)["prompt"] == "Which place?"
    assert answered(body, "Production", "place") == 20


@pytest.mark.parametrize(
    ("options", "label", "value"),
    [(["a", "b"], "b", "b"), ([1, 2], 2, 2), (Place, "production", "PRODUCTION"), (list(Level), "HIGH", "HIGH")],
)
def test_options_come_back_as_what_they_were(options: Any, label: Any, value: Any) -> None:
    @workflow
    async def body() -> Any:
        chosen = await select("which", options)
        return chosen.name if isinstance(chosen, Enum) else chosen

    assert answered(body, label, "which") == value


def test_a_default_is_recorded_as_the_option_it_is() -> None:
    @workflow
    async def body() -> Any:
        await select("place", Place, expires=60, on_expiry=Place.STAGING)

    assert request(body)["on_expiry"] == "staging"


@pytest.mark.parametrize(
    ("options", "more", "said"),
    [
        ([], {}, "no options"),
        (["a", "a"], {}, "told apart"),
        ("abc", {}, "str is no list"),
        ([True, False], {}, "True is no text"),
        ([Draft("One")], {}, "is no text and no number"),
        (["a", "b"], {"on_expiry": "c"}, "none of ['a', 'b']"),
    ],
)
def test_what_is_no_choice_is_refused_where_it_is_written(options: Any, more: Any, said: str) -> None:
    @workflow
    async def body() -> Any:
        try:
            await select("which", options, **more)
        except InvalidInput as error:
            return error.message

    assert said in result_of(body)
