"""Two runs compared: which calls are the same, what changed in them, and where the runs part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.core.bodies import one, tidy, two
from tests.core.driving import Driver

from hermes_workflows import agent, ask, bash, parallel, workflow
from hermes_workflows.authoring import wait_for
from hermes_workflows.core.changes import Change
from hermes_workflows.core.comparison import Asked, Comparison, Part, compare
from hermes_workflows.core.receipts import Provenance, Receipt, Usage


@dataclass
class Topic:
    topic: str
    extra: bool = False


@workflow
async def report(inputs: Topic) -> str:
    checked = await bash("make check", name="check")
    if inputs.extra:
        await one(7)
    draft = await agent("writer", f"Write about {inputs.topic}.", returns=str)
    answer = await ask("Ship it?", key="review", input={"draft": draft}, returns=str)
    return f"{checked.exit_code} {answer}"


def _run(
    topic: str = "docs", *, extra: bool = False, draft: str = "one\ntwo", code: int = 0, decision: str = "yes"
) -> list[Receipt]:
    driver = Driver(report, {"topic": topic, "extra": extra})
    streams = {"stdout": "", "stderr": "", "truncated": False}
    driver.answer("check", {"exit_code": code, **streams})
    if extra:
        driver.answer("one")
    driver.answer("writer", draft)
    if decision:
        driver.answer("review", decision)
    return driver.receipts


def _parts(found: Comparison) -> dict[str, list[Part]]:
    return {each.call.key: list(each.parts) for each in found.differences}


def test_two_runs_that_did_the_same_are_equal() -> None:
    found = compare(_run(), _run())
    assert found.equal
    assert found.first is None
    assert found.same == 4  # the start and three calls


def test_an_exit_code_and_a_decision_are_called_so() -> None:
    found = compare(_run(), _run(code=2, decision="no"))
    assert _parts(found) == {
        "check": [Part("exit code", Change("/exit_code", 0, 2))],
        "review": [Part("decision", Change("", "yes", "no"))],
    }


def test_a_text_that_changed_is_told_by_its_lines_where_it_was_made_and_where_it_was_used() -> None:
    found = compare(_run(), _run(draft="one\n2"))
    assert [(key, part.of, part.change.place) for key, parts in _parts(found).items() for part in parts] == [
        ("writer", "output", ""),
        ("review", "request", "/input/draft"),
    ]
    assert _parts(found)["writer"][0].change.lines == ("@@ -1,2 +1,2 @@", " one", "-two", "+2")


def test_the_first_divergence_is_the_first_in_the_order_of_deciding() -> None:
    found = compare(_run("docs"), _run("code", decision="no"))
    assert found.first is not None
    assert (found.first.call.kind, found.first.parts) == (
        "run",
        (Part("request", Change("/input/topic", "docs", "code")),),
    )
    assert [each.call.key for each in found.differences] == ["", "writer", "review"]


def test_calls_that_only_one_run_has_stand_where_it_made_them() -> None:
    more = compare(_run(), _run(extra=True, decision="no"))
    assert [(each.what, each.call.key) for each in more.differences] == [
        ("changed", ""),
        ("added", "one"),
        ("changed", "review"),
    ]
    less = compare(_run(extra=True, code=1), _run())
    assert [(each.what, each.call.key) for each in less.differences] == [
        ("changed", ""),
        ("changed", "check"),
        ("removed", "one"),
    ]


def test_a_question_that_one_run_still_waits_for_differs_in_its_status() -> None:
    assert [part.of for part in _parts(compare(_run(decision=""), _run()))["review"]] == ["status"]


def _keys(*calls: Any) -> list[Receipt]:
    """A run that makes these calls, one after the other; an agent answers with its prompt."""

    @workflow
    async def body() -> None:
        for call in calls:
            await call()

    driver = Driver(body)
    while driver.open:
        call = driver.call(driver.open[0])
        driver.answer(call.key, call.request["prompt"] if call.kind == "agent" else None)
    return driver.receipts


def _agent(name: str, prompt: str, key: str | None = None) -> Any:
    return lambda: agent(name, prompt, key=key, returns=str)


def test_a_call_with_another_key_is_found_by_its_fingerprint() -> None:
    before = _keys(_agent("writer", "one", "first"), _agent("writer", "two", "second"))
    after = _keys(_agent("writer", "two", "later"), _agent("writer", "one", "second"))
    assert [(each.call.key, each.parts) for each in compare(before, after).differences] == [
        ("first", (Part("key", Change("", "first", "later")), *_both("/prompt", "one", "two"))),
        ("second", _both("/prompt", "two", "one")),
    ]
    moved = compare(before, _keys(_agent("writer", "two", "later"), _agent("writer", "one", "sooner")))
    assert [each.parts for each in moved.differences] == [
        (Part("key", Change("", "first", "sooner")),),
        (Part("key", Change("", "second", "later")),),
    ]


def _both(place: str, before: str, after: str) -> tuple[Part, ...]:
    return Part("request", Change(place, before, after)), Part("output", Change("", before, after))


def test_a_call_with_another_key_and_request_is_found_by_its_name() -> None:
    renamed = compare(_keys(_agent("writer", "one")), _keys(_agent("writer", "two", "scope/writer-2")))
    assert [part.of for part in renamed.differences[0].parts] == ["key", "request", "output"]
    steps = compare(_keys(lambda: one(1)), _keys(lambda: one(1), lambda: one(1)))
    assert [(each.what, each.call.key) for each in steps.differences] == [("added", "one-2")]
    other = compare(_keys(lambda: one(1)), _keys(lambda: tidy(1)))
    assert [(each.what, each.call.key) for each in other.differences] == [("removed", "one"), ("added", "tidy")]


def test_the_order_in_which_branches_finished_is_no_difference() -> None:
    @workflow
    async def body() -> list[int]:
        return await parallel([one(1), two(2)])

    runs = []
    for order in (["one", "two"], ["two", "one"]):
        driver = Driver(body)
        for key in order:
            driver.answer(key)
        runs.append(driver.receipts)
    assert compare(*runs).equal


def test_a_call_that_was_asked_for_first_comes_first_though_it_ended_last() -> None:
    @workflow
    async def body() -> None:
        async def branch() -> None:
            await one(1)
            await two(2)

        await parallel([agent("slow", returns=str), branch()])

    def made(output: Any) -> list[Receipt]:
        driver = Driver(body)
        for key in ("parallel/1/one", "parallel/1/two"):
            driver.answer(key, output)
        driver.answer("slow", str(output))
        return driver.receipts

    assert [each.call.key for each in compare(made(1), made(2)).differences] == [
        "parallel/1/one",
        "slow",
        "parallel/1/two",
    ]


def _with(receipts: list[Receipt], key: str, **execution: Any) -> list[Receipt]:
    def changed(receipt: Receipt) -> Receipt:
        if receipt.key != key:
            return receipt
        return receipt.model_copy(update={"execution": receipt.execution.model_copy(update=execution)})

    return [changed(each) for each in receipts]


def test_signals_and_cancel_requests_are_compared_and_pauses_and_late_results_are_not() -> None:
    @workflow
    async def body() -> str:
        try:
            return await wait_for("paid", returns=str)
        finally:
            await one(1)

    def made(payload: str, *, cancelled: bool = False) -> list[Receipt]:
        driver = Driver(body)
        driver.signal("other", payload)
        if cancelled:
            driver.cancel()
        return driver.receipts

    assert compare(made("a"), made("a")).equal
    found = compare(made("a"), made("b", cancelled=True))
    assert [(each.what, each.call.kind, each.call.key) for each in found.differences] == [
        ("changed", "signal", "signals/other/1"),
        ("added", "control", "control/1-cancel"),
    ]
    pause = made("a", cancelled=True)[-1].model_copy(update={"status": "pause", "path": "control/1-pause.json"})
    assert compare(made("a"), [*made("a"), pause]).equal


def test_who_answered_stands_beside_the_differences() -> None:
    def by(kind: Any) -> Provenance:
        return Provenance(kind=kind, by="ana", channel="cli", message_id=kind)

    before, after = (_with(_run(), "review", provenance=by(kind)) for kind in ("human", "test"))
    found = compare(before, after)
    assert found.equal
    assert found.beside[0].parts == (Part("provenance", Change("/kind", "human", "test")),)


def test_usage_and_execution_count_only_where_they_are_asked_for() -> None:
    before, after = _run(), _with(_run(), "writer", usage=Usage(cost_usd=0.5), runner="ada", model="m-2")
    found = compare(before, after)
    assert found.equal
    assert found.usage == ({}, {"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.5})
    assert [part.of for part in found.beside[0].parts] == ["model"]
    assert {part.of for part in _parts(compare(before, after, Asked(usage=True)))["writer"]} == {"usage"}
    every = _parts(compare(before, after, Asked(execution=True)))
    assert {"/runner", "/model"} <= {part.change.place for part in every["writer"]}
