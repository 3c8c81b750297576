"""What a runner records of a question: its evidence as it was, and who answers by rule."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.runner.desks import Desk

from hermes_workflows.review.evidence import Shown, evidence_of

ASKS = """
from hermes_workflows.authoring import approve, select

@workflow
async def flow(given: list[str]) -> Any:
    return await ask("Ship it?", key="ship", returns=str, evidence=["as said", *map(Path, given)])
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, environment={"API_TOKEN": "hunter2-is-long"})


def asked(desk: Desk, *paths: str) -> list[Shown]:
    desk.run(ASKS, list(paths))
    return list(evidence_of(desk.workspace.review("wf", "ship").request))


def test_a_text_is_kept_as_it_was_when_the_question_was_asked(desk: Desk) -> None:
    (desk.root / "plan.md").write_text("# One\n")
    assert asked(desk, "plan.md") == [Shown("evidence 1", "as said"), Shown("plan.md", "# One\n", "plan.md")]
    (desk.root / "plan.md").write_text("# Two\n")
    desk.workspace.wake("wf")
    desk.work()
    assert desk.marks() == []
    assert [each.value for each in evidence_of(desk.workspace.review("wf", "ship").request)] == ["as said", "# One\n"]


def test_what_differs_from_run_to_run_stands_in_the_execution_block(desk: Desk) -> None:
    (desk.root / "plan.md").write_text("# One\n")
    asked(desk, "plan.md")
    request = desk.receipt("reviews/ship/request.json")
    assert request.execution.evidence == {
        "plan.md": {"text": "# One\n", "bytes": 6, "sha256": hashlib.sha256(b"# One\n").hexdigest()}
    }
    assert "# One" not in str(request.request)
    assert desk.ledger.verify("wf") == []


@pytest.mark.parametrize(
    ("path", "why"), [("gone.md", "no such file"), ("folder", "no such file"), ("link", "outside")]
)
def test_a_text_that_is_not_there_is_said_to_be_missing(desk: Desk, path: str, why: str) -> None:
    (desk.root / "folder").mkdir()
    (desk.root / "link").symlink_to("/etc/hostname")
    (_, file) = asked(desk, path)
    assert file.value is None
    assert why in str(file.missing)
    assert desk.summary().status == "waiting"


def test_secrets_are_taken_out_of_evidence_before_it_is_hashed(desk: Desk) -> None:
    (desk.root / "log.txt").write_text("token hunter2-is-long\n")
    (_, file) = asked(desk, "log.txt")
    assert file.value == "token [redacted:API_TOKEN]\n"
    execution = desk.receipt("reviews/ship/request.json").execution
    assert execution.redactions == {"API_TOKEN": 1}
    assert (execution.evidence or {})["log.txt"]["sha256"] == hashlib.sha256(str(file.value).encode()).hexdigest()


def test_a_long_text_is_cut_and_says_so_and_bytes_that_are_no_text_are_shown_as_such(desk: Desk) -> None:
    (desk.root / "long.txt").write_text("x" * 300_000)
    (desk.root / "odd.bin").write_bytes(b"\xf0\x00")
    (_, long, odd) = asked(desk, "long.txt", "odd.bin")
    assert str(long.value).endswith("[… cut; the file has 300,000 bytes]")
    assert len(str(long.value)) < 263_000
    assert odd.value == "\ufffd\x00"


def test_approve_and_select_are_answered_through_the_same_door(desk: Desk) -> None:
    desk.run(
        ASKS
        + """
@workflow
async def other() -> Any:
    place = await select("place", {"Staging": 1, "Production": 2})
    approval = await approve("Ship it?", key="ship")
    return [place, approval.approved, approval.by, approval.kind]
""",
        [],
    )
    desk.start("two", ref="flow.py:other")
    desk.work()
    desk.answer("place", "Production", run_id="two")
    desk.work()
    desk.answer("ship", {"action": "approve"}, run_id="two")
    desk.work()
    assert desk.summary("two").result == [2, True, "ana", "test"]


def test_an_approval_by_rule_says_that_nobody_gave_it(desk: Desk) -> None:
    desk.run("""
from hermes_workflows.authoring import approve

@workflow
async def flow() -> Any:
    approval = await approve("Ship it?", key="ship", expires=60, on_expiry=True)
    return [approval.approved, approval.by, approval.kind]
""")
    desk.clock.advance(60)
    desk.work()
    assert desk.summary().result == [True, "expiry rule", "policy"]
