"""People are told once of each question, reminder and expiry; what the command does changes nothing for the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.runner.desks import Desk, Fate, Killed

NOTES = '{"notify": ["sh", "-c", "cat >> notices; echo >> notices", "tell"], "redact": ["API_TOKEN"]}'
ASKS = """
@workflow
async def flow() -> str:
    try:
        return await ask("Ship it?", key="ship", input={{"draft": "One"}}, returns=str, assignee="ana"{more})
    except Exception as error:
        return type(error).__name__
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, registry=NOTES)


def told(desk: Desk) -> list[dict[str, Any]]:
    file = desk.root / "notices"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def events(desk: Desk) -> list[str]:
    return [notice["event"] for notice in told(desk)]


def asks(desk: Desk, more: str = "") -> None:
    desk.run(ASKS.format(more=more))


def test_a_new_question_is_told_with_everything_needed_to_answer_it(desk: Desk) -> None:
    asks(desk, ", expires=60")
    (notice,) = told(desk)
    assert notice["schema"] == "hermes.notice/1"
    assert (notice["event"], notice["workflow_id"], notice["key"]) == ("requested", "wf", "ship")
    assert (notice["prompt"], notice["input"], notice["assignee"]) == ("Ship it?", {"draft": "One"}, "ana")
    assert notice["returns"] == {"type": "string"}
    assert notice["workflow"] == "flow.py:flow"
    assert notice["respond"] == "hermes-workflows review respond wf ship"
    assert notice["expires_at"] > notice["requested_at"]


def test_it_is_told_once_whoever_looks_again(desk: Desk) -> None:
    asks(desk)
    for worker in ("ada", "bo"):
        desk.workspace.wake("wf")
        desk.work(worker)
    assert events(desk) == ["requested"]
    assert desk.state().state == "waiting"


def test_reminders_come_at_their_times_while_nobody_answers(desk: Desk) -> None:
    asks(desk, ", remind_every=60")
    for seconds in (59, 1, 59, 1):
        desk.clock.advance(seconds)
        desk.work()
    assert events(desk) == ["requested", "reminder", "reminder"]
    desk.answer("ship", "yes")
    desk.clock.advance(600)
    desk.work()
    assert events(desk) == ["requested", "reminder", "reminder"]
    assert (desk.summary().result, desk.rows()) == ("yes", [])


def test_a_late_reminder_puts_off_none_after_it(desk: Desk) -> None:
    asks(desk, ", remind_every=60")
    desk.clock.advance(150)
    desk.work()
    desk.clock.advance(30)
    desk.work()
    assert events(desk) == ["requested", "reminder", "reminder"]


@pytest.mark.parametrize("more", ["", ', on_expiry="later"'])
def test_an_expiry_is_told_although_the_run_ends_with_it(desk: Desk, more: str) -> None:
    asks(desk, ", expires=60" + more)
    desk.clock.advance(60)
    desk.work()
    desk.work()
    assert desk.summary().status == "completed"
    assert (events(desk), desk.rows()) == (["requested", "expired"], [])


def test_a_question_answered_in_time_does_not_expire(desk: Desk) -> None:
    asks(desk, ", expires=60")
    desk.answer("ship", "yes")
    desk.clock.advance(60)
    desk.work()
    assert events(desk) == ["requested"]


def test_a_question_that_was_answered_before_anybody_was_told_is_not_told(desk: Desk) -> None:
    desk.write(ASKS.format(more=""))
    desk.start()
    desk.work(max_commands=1)
    desk.answer("ship", "yes")
    desk.work()
    assert (desk.summary().result, events(desk)) == ("yes", [])


@pytest.mark.parametrize("command", ["exit 3", "no-such-program", "kill -9 $$"])
def test_a_command_that_fails_is_logged_and_fails_no_run(
    tmp_path: Path, command: str, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(tmp_path, registry=json.dumps({"notify": ["sh", "-c", command]}))
    asks(desk)
    assert "notify (requested of ship)" in caplog.text
    desk.answer("ship", "yes")
    desk.work()
    assert desk.summary().result == "yes"


def test_a_program_that_is_not_there_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(tmp_path, registry='{"notify": ["no-such-program"]}')
    asks(desk)
    assert "notify (requested of ship)" in caplog.text
    assert desk.state().state == "waiting"


def test_words_of_the_command_name_run_key_event_and_assignee(tmp_path: Path) -> None:
    words = ["sh", "-c", 'printf "%s|" "$@" > args', "x", "{event}", "{run}/{key}", "for {assignee}", "{other}"]
    desk = Desk(tmp_path, registry=json.dumps({"notify": words}))
    asks(desk)
    assert (desk.root / "args").read_text() == "requested|wf/ship|for ana|{other}|"


def test_a_secret_in_a_question_is_not_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path, registry=NOTES, environment={"API_TOKEN": "hunter2-is-long"})
    asks(desk, ', evidence=["use hunter2" + "-is-long"]')
    assert "hunter2" not in (desk.root / "notices").read_text()
    assert told(desk)[0]["evidence"][0]["value"] == "use [redacted:API_TOKEN]"


def test_without_a_command_there_are_no_rows(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    asks(desk, ", remind_every=60")
    assert desk.rows() == []


def test_after_the_loss_of_the_index_it_is_told_again_rather_than_never(desk: Desk) -> None:
    asks(desk, ", remind_every=60")
    desk.lose_index()
    desk.clock.advance(61)
    desk.work()
    assert events(desk) == ["requested", "requested"]
    desk.clock.advance(59)
    desk.work()
    assert events(desk)[2:] == ["reminder"]


@pytest.mark.parametrize("writes", range(8))
@pytest.mark.parametrize("after", [True, False])
def test_whoever_dies_when_somebody_is_told_of_it(desk: Desk, writes: int, after: bool) -> None:
    """At least once, for the question and for its expiry, wherever a runner dies."""
    desk.write(ASKS.format(more=", expires=60"))
    desk.start()
    try:
        desk.work("mortal", on=desk.process(Fate(writes, after)))
    except Killed:
        desk.clock.advance(35)
    desk.work()
    assert set(events(desk)) == {"requested"}
    desk.clock.advance(61)
    try:
        desk.work("mortal", on=desk.process(Fate(writes, after)))
    except Killed:
        desk.clock.advance(35)
    desk.work()
    assert desk.summary().result == "ReviewExpired"
    assert set(events(desk)) == {"requested", "expired"}


def test_many_notices_hold_up_no_call(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(tmp_path, registry='{"notify": ["sh", "-c", "while [ ! -e go ]; do sleep 0.02; done"]}')
    desk.write("""
@step
def opens() -> None:
    (HERE / "go").touch()

@workflow
async def flow() -> None:
    questions = [asyncio.ensure_future(ask(f"{n}?", key=f"q{n}", returns=str)) for n in range(8)]
    await asyncio.sleep(0)
    await opens()
    for question in questions:
        question.cancel()
""")
    desk.start()
    desk.work()
    assert desk.summary().status == "completed"
    assert "timed out" not in caplog.text  # what would have let the call through in the end
