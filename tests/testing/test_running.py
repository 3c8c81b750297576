"""`run_workflow`: a whole run in memory, with agents, people and commands as the test scripts them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.testing.flows import Draft, Review, Topic, family, publish

from hermes_workflows import agent, ask, bash, parallel, workflow
from hermes_workflows.authoring import BashResult, Retry, step, wait_for
from hermes_workflows.errors import AgentFailed, BashFailed, InvalidInput, SignalTimedOut
from hermes_workflows.runner.protocol import AgentUsage
from hermes_workflows.testing import (
    AgentRequest,
    AgentResponse,
    CommandRequest,
    Question,
    TookTooLong,
    Unscripted,
    Wait,
    later,
    run_workflow,
)

DRAFT = Draft("News", "It is here.")
OK = Review("approve")


def test_a_run_ends_with_a_typed_result() -> None:
    run = run_workflow(publish, Topic("docs"), agents={"writer": DRAFT}, answers={"review": OK})
    assert (run.status, run.result, run.error, run.stuck) == ("completed", "News: 3 words", None, None)


def test_commands_and_steps_are_executed_for_real_and_leave_receipts() -> None:
    run = run_workflow(publish, Topic("docs"), agents={"writer": DRAFT}, answers={"review": OK})
    assert run.keys == ("goal/1/writer", "review", "count_words", "send")
    assert run.receipt("send").output["stdout"] == "News: 3 words\n"
    assert run.receipt("send").execution.mock is None


def test_answers_never_pass_for_a_persons_and_agents_are_marked_as_mocks() -> None:
    run = run_workflow(publish, Topic("docs"), agents={"writer": DRAFT}, answers={"review": OK})
    provenance = run.receipt("review").execution.provenance
    assert provenance is not None
    assert provenance.kind == "test"
    assert run.receipt("goal/1/writer").execution.mock is True


def test_a_list_answers_one_round_of_a_loop_after_the_other() -> None:
    reviews = [Review("revise", "shorter"), OK]
    prompts: list[str] = []

    def writer(request: AgentRequest) -> Draft:
        prompts.append(request.prompt)
        return DRAFT

    run = run_workflow(publish, Topic("docs"), agents={"writer": writer}, answers={"review": reviews})
    assert run.result == "News: 3 words"
    assert prompts == ["Write on docs. ", "Write on docs. shorter"]
    assert [run.receipt(key).output["action"] for key in ("review", "review-2")] == ["revise", "approve"]


def test_a_list_that_is_used_up_fails_the_test_and_names_itself() -> None:
    revise = Review("revise", "again")
    with pytest.raises(Unscripted, match=r"agents\['writer'\] was asked more often than it has answers, 1"):
        run_workflow(publish, Topic("docs"), agents={"writer": [DRAFT]}, answers={"review": revise})


def test_an_agent_nobody_has_scripted_fails_the_test_and_says_what_to_write() -> None:
    with pytest.raises(Unscripted, match=r"agent call goal/1/writer \(Write on docs.\).*agents=\{'writer': …\}"):
        run_workflow(publish, Topic("docs"))


def test_a_question_that_nobody_answers_leaves_the_run_waiting() -> None:
    run = run_workflow(publish, Topic("docs"), agents={"writer": DRAFT})
    assert (run.status, run.waiting_on, run.result) == ("waiting", ("review",), None)
    assert "waiting_on=review" in repr(run)


def test_a_scripted_person_sees_the_question_and_its_evidence() -> None:
    seen: list[Question] = []

    def person(question: Question) -> Review:
        seen.append(question)
        return OK

    run_workflow(publish, Topic("docs"), agents={"writer": DRAFT}, answers={"review": person})
    (question,) = seen
    assert (question.prompt, question.input) == ("May it go out?", {"title": "News", "body": "It is here."})


def test_a_failed_assertion_of_a_script_fails_the_test_and_not_the_call() -> None:
    def writer(request: AgentRequest) -> Draft:
        assert "docs" in request.prompt, "the prompt has lost its topic"
        return DRAFT

    with pytest.raises(AssertionError, match="the prompt has lost its topic"):
        run_workflow(publish, Topic("other"), agents={"writer": writer})


def test_answers_are_found_by_key_before_name_before_pattern() -> None:
    @workflow
    async def three() -> list[str]:
        return await parallel([agent("a", key="x/one", returns=str), agent("a", returns=str), agent("b", returns=str)])

    run = run_workflow(three, agents={"*": "pattern", "a": "name", "x/one": "key"})
    assert run.result == ["key", "name", "pattern"]


# -- what goes wrong with an agent -------------------------------------------------------------------------------


@workflow
async def titled() -> str:
    try:
        return (await agent("writer", returns=Draft)).title
    except AgentFailed as error:
        return f"failed: {error}"


def test_an_exception_fails_the_call_with_its_type_and_message() -> None:
    run = run_workflow(titled, agents={"writer": ConnectionError("no network")})
    assert run.result == "failed: agent call writer: the agent reports an error: ConnectionError: no network"
    error = run.receipt("writer").error
    assert error is not None
    assert error.type == "AgentError"


def test_a_failed_agent_is_tried_again_as_its_policy_says() -> None:
    @workflow
    async def patient() -> str:
        return await agent("writer", returns=str, retry=Retry(attempts=3, initial=30, jitter=0))

    run = run_workflow(patient, agents={"writer": [ConnectionError("no network"), OSError("busy"), "text"]})
    assert (run.result, run.took.total_seconds()) == ("text", 90)


def test_what_an_agent_uses_counts_against_its_budget() -> None:
    answer = AgentResponse(output={"title": "News"}, usage=AgentUsage(cost_usd=0.4))

    @workflow
    async def thrifty() -> Draft:
        return await agent("writer", returns=Draft, budget=0.5)

    run = run_workflow(thrifty, agents={"writer": answer})
    error, usage = run.receipt("writer").error, run.receipt("writer").execution.usage
    assert error is not None
    assert error.type == "BudgetExceeded"
    assert usage is not None
    assert usage.cost_usd == 0.4


def test_an_answer_that_does_not_fit_is_asked_for_again_with_the_reasons() -> None:
    requests: list[AgentRequest] = []

    def writer(request: AgentRequest) -> Any:
        requests.append(request)
        return {"title": "News"} if request.previous is None else DRAFT

    run = run_workflow(titled, agents={"writer": writer})
    assert run.result == "News"
    previous = requests[1].previous
    assert previous is not None
    assert previous.errors == ("/body: is missing",)
    assert [each.path for each in run.receipts if each.status == "failed"] == ["steps/writer.attempt-1.json"]


def test_an_answer_that_never_fits_fails_the_call_after_as_many_attempts_as_it_has() -> None:
    run = run_workflow(titled, agents={"writer": [{}, {"title": 1}, 3]})
    assert run.result is not None
    assert run.result.startswith("failed: agent call writer: the answer is no Draft")


def test_a_mock_of_the_workflow_answers_unless_the_test_names_the_agent() -> None:
    @workflow
    async def mocked() -> str:
        return await agent("writer", returns=str, mock_output="mock")

    assert run_workflow(mocked).result == "mock"
    assert run_workflow(mocked, agents={"*": "anything"}).result == "mock"
    assert run_workflow(mocked, agents={"writer": "script"}).result == "script"


# -- commands ----------------------------------------------------------------------------------------------------


@workflow
async def commands() -> list[Any]:
    pushed = await bash("git push", name="push")
    tested = await bash(["make", "test"])
    real = await bash("echo real")
    return [pushed.stdout, tested.exit_code, real.stdout]


def test_a_scripted_command_is_found_by_name_or_text_and_others_run() -> None:
    run = run_workflow(commands, commands={"push": "pushed", "make test": 2})
    assert run.result == ["pushed", 2, "real\n"]


def test_a_command_may_be_scripted_with_all_that_it_leaves_behind() -> None:
    def push(request: CommandRequest) -> BashResult:
        assert (request.command, request.cwd, request.timeout) == ("git push", ".", 300.0)
        return BashResult(1, "\ufffd", "denied", b"\xff", b"denied")

    run = run_workflow(commands, commands={"push": push, "make test": None})
    assert run.result == ["\ufffd", 0, "real\n"]
    assert run.receipt("push").output["stdout_bytes"] == b"\xff"


def test_a_command_that_is_scripted_to_fail_is_tried_again_as_its_policy_says() -> None:
    @workflow
    async def fetched() -> str:
        return (await bash("fetch", name="fetch", retry=Retry(attempts=2, initial=3600))).stdout

    run = run_workflow(fetched, commands={"fetch": [OSError("busy"), "there"]})
    assert run.result == "there"
    assert 60 <= run.took.total_seconds() <= 66, "the pause is at most a minute, with a tenth of it by chance"


def test_a_command_with_nothing_sensible_fails_the_test() -> None:
    with pytest.raises(Unscripted, match="nothing that a command gives back"):
        run_workflow(commands, commands={"push": object()})


# -- other ends --------------------------------------------------------------------------------------------------


def test_child_runs_are_results_of_their_own_by_the_parents_key() -> None:
    run = run_workflow(family)
    assert run.result == 203
    assert {key: child.result for key, child in run.children.items()} == {"patient_child": 3, "patient_child-2": 200}


def test_a_body_that_raises_is_a_failed_run_with_its_error() -> None:
    @workflow
    async def broken() -> None:
        await bash("exit 3", check=True)

    run = run_workflow(broken)
    assert run.status == "failed"
    assert run.error is not None
    assert run.error.type == BashFailed.__name__


def test_a_body_that_nothing_can_wake_is_stuck_and_says_where() -> None:
    @workflow
    async def asleep() -> None:
        await asyncio.Event().wait()

    run = run_workflow(asleep)
    assert run.status == "running"
    assert run.stuck is not None
    assert "tests/testing/test_running.py:" in run.stuck


def test_an_input_that_does_not_fit_is_refused_and_names_the_field() -> None:
    with pytest.raises(InvalidInput, match="/risk"):
        run_workflow(publish, {"name": "docs", "risk": "high"})


def test_an_answer_that_does_not_fit_its_form_is_refused_with_the_reason() -> None:
    with pytest.raises(InvalidInput, match=r"the answer to review does not fit: /action"):
        run_workflow(publish, Topic("docs"), agents={"writer": DRAFT}, answers={"review": Review("reject")})  # type: ignore[arg-type]


def test_a_run_that_goes_on_for_ever_is_given_up() -> None:
    @workflow
    async def endless() -> None:
        while True:
            await asyncio.sleep(60)
            await agent("looker")

    with pytest.raises(TookTooLong, match=r"not over after 0\.3 s: it goes on and on, with \d+ receipts so far"):
        run_workflow(endless, agents={"looker": {}}, timeout=0.3)


def test_a_command_that_hangs_is_named_and_killed() -> None:
    @workflow
    async def hanging() -> None:
        await bash("sleep 600", name="hang")

    with pytest.raises(TookTooLong, match="bash 'hang' is still executing"):
        run_workflow(hanging, timeout=0.3)


def test_something_that_is_no_workflow_is_refused() -> None:
    @step
    def nothing() -> None: ...

    with pytest.raises(InvalidInput, match="is no workflow"):
        run_workflow(nothing)  # type: ignore[arg-type]


def test_a_key_without_a_result_is_an_error_that_knows_the_others() -> None:
    run = run_workflow(publish, Topic("docs"), agents={"writer": DRAFT}, answers={"review": OK})
    with pytest.raises(KeyError, match=r"no call 'sent' has a result; .*send"):
        run.receipt("sent")


def test_secrets_of_the_environment_are_redacted_as_in_a_real_run() -> None:
    token = "tok-" + "3f9a" * 8

    @workflow
    async def telling() -> str:
        return (await bash(f"echo {token}", name="tell")).stdout

    run = run_workflow(telling, environment={"PATH": "/usr/bin:/bin", "API_TOKEN": token})
    assert run.result == "[redacted:API_TOKEN]\n"


def test_an_ask_inside_a_child_is_answered_by_its_key() -> None:
    @workflow
    async def inner() -> str:
        return (await ask("Which?", key="which", returns=str)).upper()

    @workflow
    async def outer() -> str:
        return await inner()

    assert run_workflow(outer, answers={"which": "this"}).result == "THIS"


# -- signals -----------------------------------------------------------------------------------------------------


@workflow
async def paid() -> list[int]:
    first = await wait_for("payment", returns=int)
    try:
        return [first, await wait_for("payment", returns=int, timeout=60)]
    except SignalTimedOut:
        return [first]


def test_a_signal_is_sent_to_who_waits_for_it() -> None:
    run = run_workflow(paid, signals={"payment": [3, 4]}, always_replay=False)
    assert run.result == [3, 4]
    provenance = next(each.execution.provenance for each in run.receipts if each.kind == "signal" and each.output)
    assert provenance is not None
    assert provenance.kind == "test"


def test_a_signal_may_come_too_late_or_not_at_all() -> None:
    assert run_workflow(paid, signals={"payment": [3, later(60, 4)]}).result == [3]
    waiting = run_workflow(paid)
    assert (waiting.status, waiting.waiting_on) == ("running", ("payment",))


def test_a_scripted_sender_sees_who_waits() -> None:
    def sender(wait: Wait) -> int:
        return len(wait.key)

    assert run_workflow(paid, signals={"*": sender}).result == [len("payment"), len("payment-2")]
