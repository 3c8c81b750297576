"""The workspace: starting runs, finding them, asking for their end; everything that any door does with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contract.workspaces import desk, person

from hermes_workflows.core import layout
from hermes_workflows.errors import Conflict, InvalidInput, NotFound


def test_a_start_is_recorded_queued_and_shown(tmp_path: Path) -> None:
    made = desk(tmp_path)
    summary = made.workspace.start("flow.py:launch", {"topic": "docs"}, run_id="wf")
    assert (summary.run_id, summary.status, summary.workflow) == ("wf", "running", "flow.py:launch")
    assert made.queued() == ["wf"]


def test_the_input_is_recorded_as_its_type_says_it_defaults_filled_in(tmp_path: Path) -> None:
    made = desk(tmp_path)
    made.start("wf", topic="docs")
    assert made.receipts()[0].request.input == {"topic": "docs", "risk": 1}
    assert made.start("wf", topic="docs", risk=1) == "wf"
    assert len(made.receipts()) == 1


def test_the_start_carries_what_a_later_runner_needs(tmp_path: Path) -> None:
    made = desk(tmp_path)
    made.start()
    execution = made.receipts()[0].execution
    assert execution.workspace == made.ledger.home
    assert execution.seed
    assert execution.python
    assert made.ledger.file("wf", layout.source(str(execution.code), "flow.py")) == (tmp_path / "flow.py").read_bytes()


def test_two_runs_without_an_id_are_two_runs(tmp_path: Path) -> None:
    made = desk(tmp_path)
    one, other = made.start(None), made.start(None)
    assert one != other
    assert one.startswith("launch-20261129-")


def test_an_id_with_the_same_input_shows_the_state_and_queues_what_is_missing(tmp_path: Path) -> None:
    made = desk(tmp_path)
    made.start()
    made.empty_queue()
    assert made.start() == "wf"
    assert made.queued() == ["wf"]


def test_an_id_with_another_input_is_a_conflict_that_names_the_place(tmp_path: Path) -> None:
    made = desk(tmp_path)
    made.start("wf", topic="docs")
    with pytest.raises(Conflict, match="differs at /topic"):
        made.start("wf", topic="other")
    with pytest.raises(Conflict, match=r"is a run of flow\.py:launch"):
        made.workspace.start("flow.py:plain", None, run_id="wf")


def test_an_id_that_differs_only_in_case_is_refused(tmp_path: Path) -> None:
    made = desk(tmp_path)
    made.start("wf_launch")
    with pytest.raises(Conflict):
        made.start("WF_launch")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topic": 3}, "topic"),
        ({"topic": "docs", "rsk": 1}, "rsk"),
        ({"topic": "docs", "risk": "1"}, "risk"),
        ([], "flow.py:launch|object|dict|Topic"),
    ],
)
def test_an_input_that_does_not_fit_names_the_field_and_leaves_nothing(
    tmp_path: Path, given: object, said: str
) -> None:
    made = desk(tmp_path)
    with pytest.raises(InvalidInput, match=said):
        made.workspace.start("flow.py:launch", given, run_id="wf")  # type: ignore[arg-type]
    assert made.ledger.head("wf") is None


def test_a_missing_input_says_how_to_give_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        desk(tmp_path).workspace.start("flow.py:launch")
    assert caught.value.hint == "pass --input-json"
    with pytest.raises(InvalidInput, match="takes no input"):
        desk(tmp_path).workspace.start("flow.py:plain", {"topic": "docs"})


@pytest.mark.parametrize("run_id", ["../x", "", "a b", "x" * 101, "漢字", ".git"])
def test_an_id_that_no_path_may_have_is_refused(tmp_path: Path, run_id: str) -> None:
    made = desk(tmp_path)
    with pytest.raises(InvalidInput):
        made.workspace.start("flow.py:launch", {"topic": "docs"}, run_id=run_id)
    assert list(made.ledger.heads()) == []


def test_a_secret_in_the_input_never_reaches_the_ledger(tmp_path: Path) -> None:
    made = desk(tmp_path, '{"redact": ["DEPLOY_KEY"]}', {"DEPLOY_KEY": "hunter2-is-long"})
    made.start("wf", topic="use hunter2-is-long now")
    assert made.receipts()[0].request.input["topic"] == "use [redacted:DEPLOY_KEY] now"
    assert made.receipts()[0].execution.redactions == {"DEPLOY_KEY": 1}


def test_an_input_that_is_no_input_without_its_secret_is_refused(tmp_path: Path) -> None:
    made = desk(tmp_path, '{"redact": ["PIN"]}', {"PIN": "1234567890"})
    with pytest.raises(InvalidInput, match="holds a secret and does not fit its type without it"):
        made.start("wf", topic="docs", risk=1234567890)
    assert made.ledger.head("wf") is None


def test_a_source_that_holds_a_secret_is_refused_and_named(tmp_path: Path) -> None:
    made = desk(tmp_path, '{"redact": ["DEPLOY_KEY"]}', {"DEPLOY_KEY": "hunter2-is-long"})
    (tmp_path / "flow.py").write_text((tmp_path / "flow.py").read_text() + "KEY = 'hunter2-is-long'\n")
    with pytest.raises(InvalidInput, match=r"flow\.py contains a secret"):
        made.start()


def test_a_run_is_found_by_its_id_and_by_a_unique_beginning_of_it(tmp_path: Path) -> None:
    made = desk(tmp_path)
    for run_id in ("wf", "wf-launch-1", "wf-launch-2", "other"):
        made.start(run_id)
    assert made.workspace.resolve("wf") == "wf"
    assert made.workspace.resolve("oth") == "other"
    with pytest.raises(Conflict, match="wf-launch-1, wf-launch-2"):
        made.workspace.resolve("wf-l")
    with pytest.raises(NotFound) as caught:
        made.workspace.resolve("wf-lunch-1")
    assert caught.value.hint == "did you mean 'wf-launch-1'?"


def test_a_receipt_that_the_index_has_not_seen_is_seen_by_whoever_asks(tmp_path: Path) -> None:
    made = desk(tmp_path)
    made.start()
    made.empty_queue()
    made.ask()
    assert made.workspace.summary("wf").status == "waiting"
    assert made.queued() == ["wf"]
    made.end()
    assert [one.status for one in made.workspace.runs()] == ["completed"]


def test_a_cancel_request_is_one_result_however_often_it_is_asked_for(tmp_path: Path) -> None:
    made = desk(tmp_path)
    made.start()
    made.empty_queue()
    for _ in range(2):
        summary = made.workspace.control("wf", "cancel", reason="no longer needed", by=person())
        assert summary.cancel_requested == "no longer needed"
    assert [receipt.path for receipt in made.receipts()] == ["run.json", "control/1-cancel.json"]
    assert made.receipts()[1].execution.provenance == person()
    assert made.queued() == ["wf"]


def test_a_run_that_has_ended_cannot_be_cancelled_unless_it_was(tmp_path: Path) -> None:
    made = desk(tmp_path)
    made.start("done")
    made.end("done")
    with pytest.raises(Conflict, match="done is completed"):
        made.workspace.control("done", "cancel", reason="", by=person())
    made.start("gone")
    made.end("gone", "cancelled")
    assert made.workspace.control("gone", "cancel", reason="", by=person()).status == "cancelled"


def test_the_operator_of_the_registry_is_who_a_run_waits_on(tmp_path: Path) -> None:
    made = desk(tmp_path, '{"operator": "Skylar"}')
    made.start()
    made.ask("ok")
    shown = made.workspace.state("wf")
    assert (shown.state, shown.label) == ("waiting", "Waiting on Skylar")


def test_a_run_nobody_takes_is_queued_first_and_stuck_after_a_while(tmp_path: Path) -> None:
    made = desk(tmp_path)
    made.start()
    assert made.workspace.state("wf").state == "queued"
    made.clock.advance(61)
    assert made.workspace.state("wf").state == "stuck"


def test_verify_looks_at_one_run_or_at_all(tmp_path: Path) -> None:
    made = desk(tmp_path)
    made.start("one")
    made.start("two")
    assert made.workspace.verify("one") == {"one": []}
    assert set(made.workspace.verify()) == {"one", "two"}
