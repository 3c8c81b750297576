"""Signals: checked against the wait they end, kept when nobody waits, counted by name, recorded once a message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.contract.workspaces import Desk, desk, person

from hermes_workflows.core import layout
from hermes_workflows.core.receipts import Execution, SignalReceipt, SignalRequest
from hermes_workflows.errors import Conflict, InvalidInput, NotFound
from hermes_workflows.review.signals import InvalidSignal, Sent

VERSION = {
    "type": "object",
    "properties": {"version": {"type": "string"}, "canary": {"type": "boolean"}},
    "required": ["version"],
    "additionalProperties": False,
}
ONE = {"version": "1.0"}


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    made = desk(tmp_path, '{"redact": ["DEPLOY_KEY"]}', {"DEPLOY_KEY": "hunter2-is-long"})
    made.start()
    made.empty_queue()
    return made


def wait(made: Desk, key: str = "deploy", name: str = "deploy", returns: Any = VERSION) -> None:
    """What a runner records when the body waits for a signal."""
    note = SignalReceipt(
        path=layout.start(key),
        key=key,
        status="started",
        fingerprint="fp1:sha256:" + "0" * 64,
        request=SignalRequest(name=name, returns=returns),
        execution=Execution(started_at=made.now(), requested_after=0),
    )
    made.append("wf", note)


def end_wait(made: Desk, key: str, status: Any = "cancelled") -> None:
    _, receipts = made.ledger.read("wf")
    start = next(receipt for receipt in receipts if receipt.path == layout.start(key))
    made.append("wf", start.model_copy(update={"path": layout.step(key), "status": status}))


def send(made: Desk, payload: Any = ONE, name: str = "deploy", **who: Any) -> Sent:
    return made.workspace.signal("wf", name, payload, person(**who))


def paths(made: Desk) -> list[str]:
    return [receipt.path for receipt in made.receipts()]


def test_a_signal_is_recorded_with_its_provenance_and_queues_the_run(made: Desk) -> None:
    wait(made)
    made.empty_queue()
    sent = send(made, by="ana", message_id="m-1")
    receipt = made.receipts()[-1]
    assert (receipt.path, receipt.key, receipt.output) == ("signals/deploy/1.json", "deploy", ONE)
    assert receipt.execution.provenance == person("ana", message_id="m-1")
    assert (sent.number, sent.wait) == (1, "deploy")
    assert made.queued() == ["wf"]


def test_a_payload_that_does_not_fit_the_open_wait_is_refused_with_every_reason(made: Desk) -> None:
    wait(made)
    with pytest.raises(InvalidSignal) as caught:
        send(made, {"versio": "1.0", "canary": 3})
    assert {place for place, _ in caught.value.errors} >= {"/versio", "/canary"}
    assert "version" in caught.value.message
    assert "signals/deploy/1.json" not in paths(made)
    assert list(made.workspace.summary("wf").open_waits) == ["deploy"]


def test_an_early_one_is_kept_as_it_is(made: Desk) -> None:
    assert send(made, {"anything": 1}).wait is None
    assert send(made, ["goes"]).number == 2
    assert paths(made) == ["run.json", "signals/deploy/1.json", "signals/deploy/2.json"]


def test_each_name_is_counted_by_itself_and_names_written_alike_are_one(made: Desk) -> None:
    numbers = [send(made, name=name).number for name in ("deploy", "Go now", "deploy", "Go now")]
    assert numbers == [1, 1, 2, 2]
    assert made.receipts()[2].key == "Go now"


def test_a_signal_ends_the_oldest_wait_for_its_name(made: Desk) -> None:
    wait(made, "first")
    wait(made, "second", returns={"type": "integer"})
    wait(made, "other", name="other")
    assert send(made).wait == "first"
    assert list(made.workspace.summary("wf").open_waits) == ["second", "other"]
    with pytest.raises(InvalidSignal, match="what second waits for"):
        send(made)
    assert send(made, 7).wait == "second"


def test_a_signal_that_met_a_wait_already_dropped_has_ended_the_next_one(made: Desk) -> None:
    """The body knew it before the runner could say so."""
    wait(made, "dropped")
    wait(made, "second")
    assert send(made).wait == "dropped"
    end_wait(made, "dropped")
    assert made.workspace.summary("wf").open_waits == {}


def test_a_wait_that_is_over_takes_none(made: Desk) -> None:
    wait(made, "first")
    end_wait(made, "first", "failed")
    assert made.workspace.summary("wf").open_waits == {}
    assert send(made, {"of": "any form"}).wait is None


def test_the_same_message_again_is_the_same_receipt(made: Desk) -> None:
    first = send(made, message_id="m-1")
    assert send(made, message_id="m-1").receipt == first.receipt
    assert paths(made) == ["run.json", "signals/deploy/1.json"]
    assert send(made, message_id="m-1", channel="web").number == 2


@pytest.mark.parametrize("other", [{"payload": {"version": "2"}}, {"name": "roll-back"}])
def test_the_same_message_with_something_else_is_a_conflict(made: Desk, other: Any) -> None:
    send(made, message_id="m-1")
    with pytest.raises(Conflict, match="message m-1 of cli was recorded as another signal, deploy 1"):
        send(made, message_id="m-1", **other)
    assert len(paths(made)) == 2


def test_a_signal_after_the_end_is_refused_with_the_state(made: Desk) -> None:
    made.end(status="failed")
    with pytest.raises(Conflict, match="wf is failed and takes no more signals"):
        send(made)


@pytest.mark.parametrize("name", ["", "/"])
def test_a_name_that_is_none_is_refused(made: Desk, name: str) -> None:
    with pytest.raises(InvalidInput):
        send(made, name=name)


def test_a_run_that_is_not_there_gets_no_signals(made: Desk) -> None:
    with pytest.raises(NotFound):
        made.workspace.signal("nobody", "deploy", {}, person())


def test_a_secret_is_redacted_before_it_is_stored_and_the_message_is_known_again(made: Desk) -> None:
    secret = {"version": "hunter2-is-long"}
    send(made, secret, message_id="m-1")
    assert made.receipts()[-1].output == {"version": "[redacted:DEPLOY_KEY]"}
    assert made.receipts()[-1].execution.redactions == {"DEPLOY_KEY": 1}
    send(made, secret, message_id="m-1")
    assert len(paths(made)) == 2


def test_the_readme_travels_with_the_signal_and_says_what_kind_it_was(made: Desk) -> None:
    send(made, by="ana")
    readme = (made.ledger.file("wf", layout.README) or b"").decode()
    assert '- Signal `deploy`: `{"version": "1.0"}`, sent manually, not verified as a person, by `ana`' in readme


def test_waiting_for_a_signal_is_no_waiting_for_a_person(made: Desk) -> None:
    wait(made, name="deploy now")
    made.empty_queue()
    summary, state = made.workspace.summary("wf"), made.workspace.state("wf")
    assert (summary.status, summary.waiting_on) == ("running", None)
    reason = "waiting for the signal deploy now, an event from outside"
    assert (state.state, state.reason) == ("running", reason)
    assert state.next_action == "hermes-workflows signal wf 'deploy now' --json …"


def test_verify_finds_nothing_wrong_with_waits_and_signals(made: Desk) -> None:
    from hermes_workflows.core.identity import request_fingerprint

    wait(made)
    send(made)
    start = made.receipts()[1]
    assert request_fingerprint("signal", start.request.model_dump()) == request_fingerprint(
        "signal", {"name": "deploy", "returns": VERSION}
    )
