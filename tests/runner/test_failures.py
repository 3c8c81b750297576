"""Calls that fail: tried again, recorded once, loudly, and never a reason for the runner to stumble."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runner.desks import Desk, scripted_agent

OTHER = """
@workflow
async def well() -> str:
    return (await bash("echo well")).stdout.strip()
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def _one_step(body: str, returns: str = "Any", decorator: str = "@step") -> str:
    return f"""
{decorator}
def work() -> {returns}:
    effect("work")
    {body}

@workflow
async def flow() -> Any:
    return await work()
"""


def test_each_failed_attempt_is_a_note_and_the_last_one_the_result(desk: Desk) -> None:
    desk.write(_one_step('raise ValueError("broken")', decorator="@step(retry=Retry(attempts=3, initial=5.0))"))
    desk.start()
    for _ in range(3):
        desk.work()
        desk.clock.advance(60.0)
    assert desk.summary().status == "failed"
    assert desk.paths() == [
        "run.json",
        "steps/work.attempt-1.json",
        "steps/work.attempt-2.json",
        "steps/work.json",
        "result.json",
    ]
    assert [desk.receipt(path).execution.attempt for path in desk.paths()[1:4]] == [1, 2, 3]
    assert len(desk.effects()) == 3


def test_a_retry_waits_for_its_pause_and_other_runs_do_not(desk: Desk) -> None:
    desk.write(
        _one_step('raise ValueError("broken")', decorator="@step(retry=Retry(attempts=2, initial=5.0, jitter=0))")
    )
    desk.write(OTHER, "other.py")
    desk.start()
    desk.work()
    desk.clock.advance(4.9)
    desk.start("other", ref="other.py:well")
    desk.work()
    assert desk.summary("other").result == "well"
    assert len(desk.effects()) == 1
    desk.clock.advance(0.2)
    desk.work()
    assert len(desk.effects()) == 2


def test_a_retry_that_succeeds_is_the_result(desk: Desk) -> None:
    done = desk.run("""
@step(retry=Retry(attempts=3, initial=0))
def work() -> str:
    effect("work")
    if len((HERE / "effects").read_text().splitlines()) < 2:
        raise ValueError("not yet")
    return "well"

@workflow
async def flow() -> str:
    return await work()
""")
    assert (done.result, desk.receipt("steps/work.json").execution.attempt) == ("well", 2)


def test_what_the_author_excludes_is_not_tried_again(desk: Desk) -> None:
    desk.run(
        _one_step('raise KeyError("broken")', decorator="@step(retry=Retry(attempts=3, initial=0, never=(KeyError,)))")
    )
    assert desk.effects() == ["work"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('float("nan")', "nan"),
        ('{"a": [float("inf")]}', "/a/0"),
        ('"\\ud800"', "surrogate"),
        ("{1: 2}", "key"),
        ("object()", "object"),
        ('["x" * 60000] * 20', "1,048,576"),
        ('"x" * (21 << 20)', "bytes"),
    ],
)
def test_a_result_that_cannot_be_stored_fails_the_call_once_and_says_where(desk: Desk, value: str, said: str) -> None:
    done = desk.run(_one_step(f"return {value}", decorator="@step(retry=Retry(attempts=3, initial=0))"))
    assert done.status == "failed"
    assert done.error["type"] == "StepFailed"
    assert "work" in done.error["message"]
    assert said in done.error["message"]
    assert (desk.effects(), desk.paths()) == (["work"], ["run.json", "steps/work.json", "result.json"])


def test_a_result_of_another_type_names_the_field(desk: Desk) -> None:
    done = desk.run(_one_step('return {"n": "three"}', returns="dict[str, int]"))
    assert done.status == "failed"
    assert "n" in done.error["message"]
    assert desk.effects() == ["work"]


@pytest.mark.parametrize("value", ['float("nan")', "object()", "{1: 2}", '["x" * 60000] * 20'])
def test_a_run_whose_result_cannot_be_stored_fails_once(desk: Desk, value: str) -> None:
    done = desk.run(f"@workflow\nasync def flow() -> Any:\n    return {value}\n")
    assert done.status == "failed"
    desk.work()
    assert desk.paths() == ["run.json", "result.json"]


def test_a_body_that_returns_a_datetime_completes_once(desk: Desk) -> None:
    done = desk.run("@workflow\nasync def flow() -> datetime:\n    return datetime(2026, 11, 29)\n")
    assert (done.status, done.result) == ("completed", "2026-11-29T00:00:00")
    untyped = "@workflow\nasync def untyped():\n    return datetime(2026, 11, 29)\n"
    desk.write(untyped, "untyped.py")
    desk.start("second", ref="untyped.py:untyped")
    assert desk.work().commands == 1
    assert desk.summary("second").ended


@pytest.mark.parametrize(
    "line",
    [
        'raise ValueError("\\udcff in a name")',
        'raise ValueError("x" * 30_000_000)',
        'raise type("Odd" * 5000, (Exception,), {})("odd")',
        'raise type("Mute", (Exception,), {"__str__": lambda self: 1 / 0})()',
        "raise SystemExit(3)",
        "raise KeyboardInterrupt",
        "raise GeneratorExit",
        "raise BaseException",
    ],
)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_whatever_a_step_raises_is_one_recorded_failure(desk: Desk, line: str, kind: str) -> None:
    code = _one_step(line)
    done = desk.run(code if kind == "sync" else code.replace("def work", "async def work"))
    assert (done.status, done.error["type"]) == ("failed", "StepFailed")
    assert desk.effects() == ["work"]
    assert len(desk.ledger.file("wf", "steps/work.json") or b"") < 20_000


@pytest.mark.parametrize(
    "line",
    [
        'raise ValueError("\\udcff in a name")',
        'raise ValueError("x" * 30_000_000)',
        "raise SystemExit(3)",
        "raise BaseException('odd')",
    ],
)
def test_whatever_a_body_raises_ends_its_run(desk: Desk, line: str) -> None:
    done = desk.run(f"@workflow\nasync def flow() -> None:\n    {line}\n")
    assert done.status == "failed"
    assert done.error["type"] in ("ValueError", "SystemExit", "BaseException")
    assert len(desk.ledger.file("wf", "result.json") or b"") < 40_000


def test_a_request_that_no_receipt_can_hold_fails_its_call_and_names_it(desk: Desk) -> None:
    done = desk.run("""
@step
def work(lines: list[str]) -> None:
    effect("work")

@workflow
async def flow() -> str:
    try:
        await work(["x" * 60000] * 20)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "never"
""")
    assert str(done.result).startswith("StepFailed: step call work: ")
    assert desk.effects() == []


def test_a_question_that_no_receipt_can_hold_fails_its_call(desk: Desk) -> None:
    done = desk.run("""
@workflow
async def flow() -> None:
    await ask("Well?", key="q", input=["x" * 60000] * 20, returns=str)
""")
    assert done.status == "failed"
    assert "review call q" in done.error["message"]


def test_a_body_that_catches_everything_does_not_see_the_wait(desk: Desk) -> None:
    done = desk.run("""
@workflow
async def flow() -> str:
    try:
        return (await bash("echo ran")).stdout.strip()
    except Exception:
        return "swallowed"
""")
    assert done.result == "ran"


# -- deadlines ---------------------------------------------------------------------------------------------------


def test_a_sync_step_over_its_deadline_is_left_behind_counted_and_failed(desk: Desk) -> None:
    desk.write("""
import time

@step(timeout=0.1)
def slow() -> str:
    while not (HERE / "go").exists():
        time.sleep(0.01)
    effect("late")
    return "late"

@workflow
async def flow() -> str:
    return await slow()
""")
    desk.start()
    runner = desk.runner()
    runner.run()
    assert desk.summary().status == "failed"
    assert "0.1 s" in desk.summary().error["message"]
    assert any("$left-behind 1" in note for note in runner._notes())
    assert desk.effects() == []
    (desk.root / "go").touch()


def test_an_async_step_over_its_deadline_is_cancelled(desk: Desk) -> None:
    done = desk.run("""
@step(timeout=0.1)
async def slow() -> str:
    try:
        await asyncio.sleep(60)
    finally:
        effect("cancelled")

@workflow
async def flow() -> str:
    return await slow()
""")
    assert (done.status, desk.effects()) == ("failed", ["cancelled"])
    assert "0.1 s" in done.error["message"]


def test_an_async_step_that_swallows_its_cancellation_does_not_hold_the_runner(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hermes_workflows.runner import steps

    monkeypatch.setattr(steps, "_CANCEL_GRACE", 0.1)
    done = desk.run("""
@step(timeout=0.1)
async def slow() -> str:
    while not (HERE / "go").exists():
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            pass

@workflow
async def flow() -> str:
    return await slow()
""")
    assert done.status == "failed"
    assert "ran over" in done.error["message"]
    (desk.root / "go").touch()


def test_a_command_over_its_deadline_raises_whatever_check_says(desk: Desk) -> None:
    done = desk.run("""
@workflow
async def flow() -> str:
    try:
        await bash("sleep 60", timeout=0.2)
    except Exception as error:
        return type(error).__name__
    return "never"
""")
    assert done.result == "BashTimedOut"
    assert desk.receipt("steps/bash.json").error.type == "Timeout"


def test_an_exit_code_is_a_result_and_only_check_raises(desk: Desk) -> None:
    done = desk.run("""
@workflow
async def flow() -> list[str]:
    plain = await bash("exit 3")
    try:
        await bash("exit 4", check=True)
    except Exception as error:
        return [str(plain.exit_code), type(error).__name__]
    return []
""")
    assert done.result == ["3", "BashFailed"]


# -- agents ------------------------------------------------------------------------------------------------------


def test_each_refused_answer_is_a_note_with_its_own_usage(desk: Desk) -> None:
    desk.write("""
@workflow
async def flow() -> int:
    return await agent("counter", "How many?", returns=int)
""")
    desk.start()
    desk.work(
        agents=scripted_agent(desk.root, "say(7 if request['previous'] else 'seven', input_tokens=10, output_tokens=1)")
    )
    done = desk.summary()
    assert done.result == 7
    assert desk.paths()[1:3] == ["steps/counter.attempt-1.json", "steps/counter.json"]
    assert (done.usage["input_tokens"], done.usage["output_tokens"]) == (20, 2)


def test_an_agent_over_its_deadline_fails_and_is_killed(desk: Desk) -> None:
    desk.write("""
@workflow
async def flow() -> int:
    return await agent("counter", "How many?", returns=int, timeout=0.3)
""")
    desk.start()
    desk.work(agents=scripted_agent(desk.root, "import time; time.sleep(60)"))
    assert desk.summary().status == "failed"
    assert desk.receipt("steps/counter.json").error.type == "Timeout"


def test_a_changed_prompt_never_takes_the_old_answer(desk: Desk) -> None:
    code = """
@workflow
async def flow() -> str:
    text = await agent("writer", "%s", returns=str)
    await ask("Ship it?", key="ship", returns=str)
    return text
"""
    writer = scripted_agent(desk.root, "say(request['prompt'])")
    desk.write(code % "old")
    desk.start()
    desk.work(agents=writer)
    desk.write(code % "new")
    desk.answer("ship", "yes")
    desk.work(agents=writer)
    assert desk.marks() == ["divergence"]


# -- secrets -----------------------------------------------------------------------------------------------------


def test_a_secret_never_enters_an_object(tmp_path: Path) -> None:
    desk = Desk(tmp_path, environment={"API_TOKEN": "kT9-secret-value-31", "PATH": "/usr/bin:/bin"})
    desk.run("""
from hermes_workflows.authoring import secret

@step
def leak() -> str:
    return "step kT9-" + "secret-value-31"

@step
def shout() -> None:
    raise ValueError("error kT9-" + "secret-value-31")

@workflow
async def flow() -> list[str]:
    shown = [(await bash("echo token: $TOKEN", env={"TOKEN": secret("API_TOKEN")})).stdout]
    shown.append((await bash("echo p4ssphrase-of-mine", redact=["p4ssphrase-of-mine"])).stdout)
    shown.append(await leak())
    try:
        await shout()
    except Exception as error:
        shown.append(str(error))
    return shown
""")
    assert desk.summary().status == "completed", desk.summary().error
    assert all("[redacted:" in text for text in desk.summary().result)
    files = desk.ledger._runs["wf"].files
    kept = b"".join(data for path, data in files.items() if not path.startswith("source/"))
    assert b"kT9-secret" not in kept
    assert b"p4ssphrase" not in kept
    assert desk.receipt("steps/bash.json").execution.redactions == {"API_TOKEN": 1}
