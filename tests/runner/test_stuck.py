"""Runs that a runner cannot move: said why, left alone, and gone on with as soon as it is not true any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.runner.desks import QUICK, Desk, Fate, Killed, scripted_agent, until

from hermes_workflows.core import layout
from hermes_workflows.core.receipts import Author, Execution, draft
from hermes_workflows.settings import AgentSettings
from hermes_workflows.store.ports import Entry

OTHERS = """
@workflow
async def well() -> str:
    return (await bash("echo well")).stdout.strip()
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def _other_goes_on(desk: Desk) -> None:
    desk.write(OTHERS, "other.py")
    desk.start("other", ref="other.py:well")
    desk.work()
    assert desk.summary("other").result == "well"


# -- bodies that cannot go on ------------------------------------------------------------------------------------


def test_a_body_that_nothing_can_wake_is_stuck_at_its_line(desk: Desk) -> None:
    desk.run("""
@workflow
async def flow() -> None:
    await asyncio.Event().wait()  # here
""")
    state = desk.state()
    assert (state.state, desk.marks()) == ("stuck", ["deadlock"])
    assert f"flow.py:{_line_of(desk, '# here')}" in state.reason
    _other_goes_on(desk)


def _line_of(desk: Desk, mark: str) -> int:
    return next(n for n, line in enumerate((desk.root / "flow.py").read_text().splitlines(), 1) if mark in line)


def test_a_blocking_body_is_reported_with_its_line_then_stopped(desk: Desk) -> None:
    desk.write("""
import time

@workflow
async def flow() -> None:
    until = time.monotonic() + 2
    while time.monotonic() < until:
        pass  # here
""")
    desk.start()
    with desk.working(slices=QUICK.__class__(soft=0.05, hard=1.5, grace=0.2), lease_seconds=0.5):
        until(lambda: "flow.py" in desk.state().reason)
        assert desk.state().state == "running"
        until(lambda: desk.marks() == ["blocked"])
    assert "flow.py" in desk.state().reason
    assert "@step" in str(desk.state().next_action)
    _other_goes_on(desk)


def test_a_body_that_holds_on_to_its_thread_is_left_behind(desk: Desk) -> None:
    desk.write("""
import threading

@workflow
async def flow() -> None:
    threading.Event().wait(3)
""")
    desk.start()
    desk.work(slices=QUICK)
    assert desk.marks() == ["blocked"]
    _other_goes_on(desk)


def test_mended_code_revives_a_blocked_run(desk: Desk) -> None:
    test_a_body_that_holds_on_to_its_thread_is_left_behind(desk)
    desk.write('@workflow\nasync def flow() -> str:\n    return "mended"\n')
    desk.work()
    assert (desk.summary().status, desk.summary().result, desk.marks()) == ("completed", "mended", [])


@pytest.mark.parametrize(
    "line",
    [
        "open(HERE / 'file', 'w')",
        "(HERE / 'file').write_text('x')",
        "__import__('subprocess').run(['true'])",
        "__import__('os').system('true')",
        "__import__('socket').create_connection(('127.0.0.1', 9))",
        "__import__('sqlite3').connect(':memory:')",
        "__import__('os').listdir('.')",
    ],
)
def test_a_body_that_works_itself_is_refused_at_the_line(desk: Desk, line: str) -> None:
    done = desk.run(f"""
@workflow
async def flow() -> None:
    {line}  # here
""")
    assert done.status == "failed"
    assert done.error["type"] == "NotInAWorkflow"
    traceback = str(desk.receipt("result.json").execution.transcript)
    assert f'flow.py", line {_line_of(desk, "# here")}' in traceback
    assert not (desk.root / "file").exists()


# -- code that is not there or has changed -----------------------------------------------------------------------


def test_a_run_whose_code_cannot_be_imported_is_stuck_until_it_is_mended(desk: Desk) -> None:
    desk.run('@workflow\nasync def flow() -> str:\n    return await ask("Well?", key="q", returns=str)\n')
    desk.write("import nothing_of_that_name\n")
    desk.answer("q", "yes")
    desk.work()
    assert desk.marks() == ["import"]
    assert "flow.py" in desk.state().reason
    assert "nothing_of_that_name" in desk.state().reason
    _other_goes_on(desk)
    desk.write('@workflow\nasync def flow() -> str:\n    return await ask("Well?", key="q", returns=str)\n')
    desk.work()
    assert (desk.summary().result, desk.marks()) == ("yes", [])


def test_a_missing_file_is_stuck_until_it_comes_back(desk: Desk) -> None:
    desk.run('@workflow\nasync def flow() -> str:\n    return await ask("Well?", key="q", returns=str)\n')
    code = (desk.root / "flow.py").read_text()
    (desk.root / "flow.py").unlink()
    desk.clock.advance(1.0)
    desk.answer("q", "yes")
    desk.work()
    assert desk.state().state == "stuck"
    (desk.root / "flow.py").write_text(code)
    desk.clock.advance(1.0)
    desk.work()
    assert desk.summary().result == "yes"


ONE_THEN_ASK = """
@step
def one(n: int) -> int:
    effect(f"one {n}")
    return n

@workflow
async def flow() -> int:
    n = await one(%s)
    await ask("Go on?", key="go", returns=str)
    return n
"""


def test_a_divergence_is_stuck_says_the_difference_and_three_ways_out(desk: Desk) -> None:
    desk.run(ONE_THEN_ASK % "1")
    desk.write(ONE_THEN_ASK % "2")
    desk.answer("go", "yes")
    desk.work()
    (mark,) = desk.queue.stuck("wf")
    assert mark.kind == "divergence"
    assert "one" in mark.reason
    assert '-    "n": 1' in mark.reason
    assert '+    "n": 2' in mark.reason
    for way in ("restore the code", "hermes-workflows accept wf one"):
        assert way in mark.hint
    assert desk.summary().status == "running"
    _other_goes_on(desk)


def test_restored_code_clears_a_divergence(desk: Desk) -> None:
    desk.run(ONE_THEN_ASK % "1")
    desk.write(ONE_THEN_ASK % "2")
    desk.answer("go", "yes")
    desk.work()
    desk.write(ONE_THEN_ASK % "1")
    desk.work()
    assert (desk.summary().result, desk.marks(), desk.effects()) == (1, [], ["one 1"])


def test_a_runner_with_fitting_code_goes_on_where_another_is_stuck(desk: Desk, tmp_path: Path) -> None:
    desk.run(ONE_THEN_ASK % "1")
    other = Desk(tmp_path / "other", desk.clock, desk.ledger)
    other.root.mkdir()
    other.queue = desk.queue
    other.workspace = other.process()
    other.write(ONE_THEN_ASK % "2")
    desk.answer("go", "yes")
    other.work("bob")
    assert desk.marks() == ["divergence"]
    desk.work()
    assert (desk.summary().status, desk.marks()) == ("completed", [])


def test_changed_code_is_loaded_and_recorded_before_it_decides(desk: Desk) -> None:
    ask_then = 'await ask("Well?", key="q", returns=str)'
    desk.run(f"@workflow\nasync def flow() -> str:\n    {ask_then}\n    return 'old'\n")
    with desk.working():
        desk.write(f"@workflow\nasync def flow() -> str:\n    {ask_then}\n    return 'new'\n")
        desk.answer("q", "yes")
        until(lambda: desk.summary().ended)
    code = desk.receipt("result.json").execution.code
    assert desk.summary().result == "new"
    assert code != desk.receipt("run.json").execution.code
    source = desk.ledger.file("wf", layout.source(str(code), "flow.py"))
    assert source == (desk.root / "flow.py").read_bytes()


def test_a_new_version_that_holds_a_secret_is_not_recorded(tmp_path: Path) -> None:
    desk = Desk(tmp_path, environment={"API_TOKEN": "kT9-secret-value-31"})
    code = '@workflow\nasync def flow() -> str:\n    return await ask("Well?", key="q", returns=str)\n'
    desk.run(code)
    desk.write(f'KEY = "kT9-secret-value-31"\n\n{code}')
    desk.answer("q", "yes")
    desk.work()
    assert desk.marks() == ["secret"]
    assert "flow.py" in desk.state().reason
    assert not any(b"kT9-secret" in data for data in desk.ledger._runs["wf"].files.values())


def test_a_call_that_nobody_has_executed_takes_its_new_request(desk: Desk) -> None:
    code = '@workflow\nasync def flow() -> str:\n    return (await bash("echo %s")).stdout.strip()\n'
    desk.write(code % "old")
    desk.start()
    assert desk.work(once=True).commands == 1
    assert desk.rows() == ["bash bash"]
    desk.write(code % "new")
    desk.work()
    assert (desk.summary().status, desk.summary().result) == ("completed", "new")


def test_two_modules_with_a_step_of_one_name_run_their_own(desk: Desk) -> None:
    for name in ("here", "there"):
        desk.write(f'@step\ndef fetch() -> str:\n    return "{name}"\n', f"{name}.py")
    done = desk.run("""
import here, there

@workflow
async def flow() -> list[str]:
    return [await here.fetch(), await there.fetch()]
""")
    assert done.result == ["here", "there"]


# -- whose run it is ---------------------------------------------------------------------------------------------


def test_a_run_of_another_workspace_is_never_advanced(desk: Desk) -> None:
    desk.write(OTHERS)
    recorded = desk.workspace.started(desk.workspace.loader.load("flow.py:well"), None)
    foreign = recorded.model_copy(
        update={"execution": recorded.execution.model_copy(update={"workspace": "elsewhere"})}
    )
    desk.ledger.create(Entry("wf", (draft(foreign, Author("somebody")),)), "2026-11-29")
    desk.workspace.refresh()
    desk.work()
    assert (desk.paths(), desk.rows()) == (["run.json"], [])
    assert desk.summary().home == "elsewhere"


def test_a_run_goes_on_only_under_the_python_that_started_it(desk: Desk) -> None:
    desk.write(OTHERS)
    recorded = desk.workspace.started(desk.workspace.loader.load("flow.py:well"), None)
    older = recorded.model_copy(update={"execution": recorded.execution.model_copy(update={"python": "3.9"})})
    desk.ledger.create(Entry("wf", (draft(older, Author("somebody")),)), "2026-11-29")
    desk.workspace.went_on("wf")
    desk.work()
    state = desk.state()
    assert (state.state, desk.marks(), desk.paths()) == ("stuck", ["python"], ["run.json"])
    assert "3.9" in state.reason


# -- what only a person or another runner can mend ---------------------------------------------------------------

AT_MOST_ONCE = """
@step(at_most_once=True)
def pay(amount: int) -> str:
    effect(f"paid {amount}")
    return "receipt"

@workflow
async def flow() -> str:
    return await pay(5)
"""


def test_an_at_most_once_step_leaves_its_intent_before_it_runs(desk: Desk) -> None:
    done = desk.run(AT_MOST_ONCE)
    assert (done.result, desk.effects()) == ("receipt", ["paid 5"])
    assert desk.paths() == ["run.json", "steps/pay.start.json", "steps/pay.json", "result.json"]


def test_an_intent_without_a_result_needs_a_decision_and_never_runs_again(desk: Desk) -> None:
    desk.write(AT_MOST_ONCE)
    desk.start()
    # Writes: claim, offer and claim, intent; then the result, which never arrives.
    fate = Fate(writes=3)
    with pytest.raises(Killed):
        desk.work(on=desk.process(fate))
    assert desk.paths() == ["run.json", "steps/pay.start.json"]
    desk.clock.advance(31.0)
    for _ in range(3):
        desk.work()
        desk.clock.advance(31.0)
    assert (desk.marks(), desk.effects()) == (["needs-decision"], ["paid 5"])
    assert "at most once" in desk.state().reason
    _other_goes_on(desk)


def test_a_result_that_comes_after_all_lifts_the_need_for_a_decision(desk: Desk) -> None:
    test_an_intent_without_a_result_needs_a_decision_and_never_runs_again(desk)
    start = desk.receipt("steps/pay.start.json")
    late = start.model_copy(
        update={
            "path": "steps/pay.json",
            "status": "completed",
            "output": "late receipt",
            "execution": Execution(requested_after=start.execution.requested_after),
        }
    )
    desk.ledger.append([Entry("wf", (draft(late, Author("step")),))])
    desk.work()
    assert (desk.summary().result, desk.marks(), desk.effects()) == ("late receipt", [], ["paid 5"])


def test_an_at_most_once_step_that_fails_is_not_tried_again(desk: Desk) -> None:
    done = desk.run("""
@step(at_most_once=True, retry=Retry(attempts=3, initial=0))
def pay() -> None:
    effect("paid")
    raise ValueError("declined")

@workflow
async def flow() -> None:
    await pay()
""")
    assert (done.status, desk.effects()) == ("failed", ["paid"])
    assert "declined" in done.error["message"]


AGENT = """
@workflow
async def flow() -> str:
    text = await agent("writer", "Write.", returns=str)
    return text
"""


def test_a_mistyped_agent_program_leaves_the_run_for_a_runner_that_has_the_right_one(desk: Desk) -> None:
    desk.run(AGENT, agents={"*": AgentSettings("command", (str(desk.root / "nothere"),))})
    assert desk.marks() == ["agent-not-started"]
    assert "the agent 'writer' was not asked" in desk.state().reason
    desk.work("bob", agents=scripted_agent(desk.root, "say('written')"))
    assert desk.summary().result == "written"


def test_an_agent_call_waits_for_a_runner_that_has_an_agent(desk: Desk) -> None:
    desk.run(AGENT)
    assert desk.marks() == ["no-agent"]
    assert "--agent-command" in str(desk.state().next_action)
    desk.work(agents=scripted_agent(desk.root, "say('written')"))
    assert (desk.summary().result, desk.marks()) == ("written", [])


# -- slices that end their process -------------------------------------------------------------------------------


def test_a_run_that_ended_its_process_three_times_is_not_leased_again_until_it_is_mended(desk: Desk) -> None:
    desk.write('@workflow\nasync def flow() -> str:\n    return "well"\n')
    desk.start()
    for _ in range(3):
        _claim_and_die(desk)
    desk.work()
    assert (desk.marks(), desk.paths()) == (["poison"], ["run.json"])
    desk.work()
    assert desk.marks() == ["poison"]
    desk.write('@workflow\nasync def flow() -> str:\n    return "mended"\n')
    desk.work()
    assert (desk.summary().result, desk.marks()) == ("mended", [])


def _claim_and_die(desk: Desk, writes: int = 1) -> None:
    with pytest.raises(Killed):
        desk.work(on=desk.process(Fate(writes)))
    desk.clock.advance(31.0)


def test_deaths_over_the_decision_that_follows_a_result_count_as_well(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write("""
@step
def look() -> str:
    effect("looked")
    return "seen"

@workflow
async def flow() -> str:
    return await look()
""")
    desk.start()
    # Two claims and the result; the body goes on with it at once, under the lease of the step's row.
    _claim_and_die(desk, writes=3)
    assert desk.paths() == ["run.json", "steps/look.json"]

    def deadly(*_: object) -> None:
        raise Killed

    monkeypatch.setattr("hermes_workflows.runner.bodies.rebuild", deadly)
    (dispatcher,) = desk.runner("bob", desk.process())._dispatchers
    desk.clock.advance(31.0)
    dispatcher.turn(1, None)  # the step's row, which is answered
    with pytest.raises(Killed):
        dispatcher.turn(1, None)
    desk.clock.advance(31.0)
    for _ in range(2):
        _claim_and_die(desk, writes=100)
    desk.work()
    assert (desk.marks(), desk.effects()) == (["poison"], ["looked"])


def test_deaths_count_only_against_the_run_that_was_being_decided(desk: Desk) -> None:
    desk.write('@workflow\nasync def flow() -> str:\n    return "well"\n')
    for name in ("one", "two", "three"):
        desk.start(name)
    # All three were claimed when the first process died; from then on a suspect is alone.
    _claim_and_die(desk)
    for _ in range(2):
        _claim_and_die(desk, writes=2)
    desk.work()
    assert desk.marks("one") == ["poison"]
    assert [desk.summary(name).result for name in ("two", "three")] == ["well", "well"]


def test_a_run_whose_slice_is_survived_by_a_probe_is_innocent(desk: Desk) -> None:
    desk.write('@workflow\nasync def flow() -> str:\n    return "well"\n')
    desk.start()
    for _ in range(5):
        _claim_and_die(desk)
    asked: list[str] = []
    desk.work(survives=lambda workspace, run_id: asked.append(run_id) is None)
    assert (desk.summary().result, desk.marks(), asked) == ("well", [], ["wf"])


# -- cancelled while stuck ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("why", ["import", "deadlock", "divergence", "python"])
def test_a_stuck_run_that_is_cancelled_ends_at_once_and_names_the_skipped_cleanup(desk: Desk, why: str) -> None:
    _STUCK[why](desk)
    assert desk.marks() == [why]
    desk.cancel()
    desk.work()
    done = desk.summary()
    assert (done.status, done.error["type"], desk.marks(), desk.rows()) == ("cancelled", "CleanupSkipped", [], [])
    assert "cleanup was skipped" in done.error["message"]
    assert desk.ledger.verify("wf") == []


def _stuck_by_import(desk: Desk) -> None:
    desk.run(ONE_THEN_ASK % "1")
    desk.write("import nothing_of_that_name\n")
    desk.workspace.wake("wf")
    desk.work()


def _stuck_by_divergence(desk: Desk) -> None:
    desk.run(ONE_THEN_ASK % "1")
    desk.write(ONE_THEN_ASK % "2")
    desk.workspace.wake("wf")
    desk.work()


_STUCK: dict[str, Any] = {
    "import": _stuck_by_import,
    "deadlock": test_a_body_that_nothing_can_wake_is_stuck_at_its_line,
    "divergence": _stuck_by_divergence,
    "python": test_a_run_goes_on_only_under_the_python_that_started_it,
}


def test_the_open_question_of_a_stuck_run_is_withdrawn_at_its_end(desk: Desk) -> None:
    _stuck_by_import(desk)
    desk.cancel()
    desk.work()
    assert desk.receipt("reviews/go/response.json").status == "withdrawn"
    assert desk.workspace.reviews() == []


def test_a_run_without_an_agent_cleans_up_when_it_is_cancelled(desk: Desk) -> None:
    desk.run("""
@step
def tidy() -> None:
    effect("tidy")

@workflow
async def flow() -> None:
    try:
        await agent("writer", "Write.", returns=str)
    finally:
        await tidy()
""")
    assert desk.marks() == ["no-agent"]
    desk.cancel()
    desk.work()
    assert (desk.summary().status, desk.summary().error, desk.effects()) == ("cancelled", None, ["tidy"])
