"""The primitives: what they put into a request, what they give back, and what they refuse (SEMANTICS §9)."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from tests.core.bodies import one
from tests.core.driving import Driver, ended, result_of

from hermes_workflows.authoring import Retry, agent, ask, bash, goal, parallel, pipeline, secret, step, workflow
from hermes_workflows.core.live import LiveRun
from hermes_workflows.errors import AuthoringError, InvalidInput, ReviewExpired


class Risk(Enum):
    LOW = "low"


@dataclass
class Finding:
    risk: Risk
    cost: Decimal
    day: date
    file: Path
    note: str | None = None


FINDING = Finding(Risk.LOW, Decimal("1.10"), date(2026, 11, 29), Path("a/b.py"))


def request_of(make: Any, **surroundings: Any) -> dict[str, Any]:
    """The request of the one call that `make` writes."""

    @workflow
    async def body() -> Any:
        await make()

    driver = Driver(body, **surroundings)
    return dict(driver.call(driver.open[0]).request)


def refusal_of(make: Any) -> Any:
    """The error that `make` raises where it is written."""

    @workflow
    async def body() -> Any:
        make()

    return ended(Driver(body).decision).error


# -- agent -------------------------------------------------------------------------------------------------------


def test_an_agent_request_holds_what_the_author_wrote_and_the_reduced_schema() -> None:
    request = request_of(lambda: agent("writer", "Write", input=FINDING, returns=Finding, model="large"))
    assert request["name"] == "writer"
    assert request["prompt"] == "Write"
    assert request["model"] == "large"
    assert request["input"] == {"risk": "low", "cost": "1.10", "day": "2026-11-29", "file": "a/b.py", "note": None}
    assert "title" not in str(request["returns"]["properties"])


def test_an_answer_comes_back_type_exact() -> None:
    @workflow
    async def body() -> Any:
        return await agent("finder", returns=Finding) == FINDING

    output = {"risk": "low", "cost": "1.10", "day": "2026-11-29", "file": "a/b.py", "note": None}
    assert ended(Driver(body).answer("finder", output)).output is True


def test_without_a_type_an_answer_is_a_dict() -> None:
    @workflow
    async def body() -> Any:
        return await agent("finder")

    assert ended(Driver(body).answer("finder", {"a": 1})).output == {"a": 1}


def test_a_mock_is_an_option_and_none_is_one_too() -> None:
    @workflow
    async def body() -> Any:
        await asyncio.gather(agent("a", mock_output=None), agent("b"))

    driver = Driver(body)
    assert [driver.live.outstanding[key].spec.options.mocked for key in "ab"] == [True, False]  # type: ignore[union-attr]


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e12, "5", True])
def test_a_timeout_that_is_no_span_of_time_is_refused(seconds: Any) -> None:
    for make in (
        lambda: agent("a", timeout=seconds),
        lambda: bash("ls", timeout=seconds),
        lambda: ask("well?", expires=seconds),
        lambda: step(timeout=seconds)(print),
    ):
        error = refusal_of(make)
        assert error.type == "InvalidInput"
        assert "no number of seconds" in error.message


def test_what_must_be_text_is_refused_where_it_is_written() -> None:
    for make in (
        lambda: agent("a", prompt=5),  # type: ignore[call-overload]
        lambda: agent("a", model=5),  # type: ignore[call-overload]
        lambda: ask({"a": 1}),  # type: ignore[call-overload]
        lambda: ask("ok?", assignee=5),  # type: ignore[call-overload]
    ):
        error = refusal_of(make)
        assert (error.type, "must be text, not" in error.message) == ("InvalidInput", True)


# -- ask ---------------------------------------------------------------------------------------------------------


def test_a_question_holds_the_full_schema_that_its_form_is_made_of() -> None:
    request = request_of(
        lambda: ask("ok?", key="k", input=FINDING, returns=Finding, assignee="you", expires=timedelta(hours=1))
    )
    assert request["returns"]["title"] == "Finding"
    assert (request["assignee"], request["expires_seconds"], request["on_expiry"]) == ("you", 3600.0, "raise")


def test_a_default_answer_is_an_answer_and_must_fit_the_type() -> None:
    @workflow
    async def body() -> Any:
        return await ask("ok?", returns=bool, expires=5, on_expiry=False)

    driver = Driver(body)
    assert driver.call("ask").request["on_expiry"] is False
    expired = driver.receipt_for(driver.call("ask"), output=False).model_copy(update={"status": "expired"})
    assert ended(driver.record(expired)).output is False
    assert refusal_of(lambda: ask("ok?", returns=bool, expires=5, on_expiry="maybe")).type == "ValueMismatch"


def test_an_expired_question_raises() -> None:
    @workflow
    async def body() -> Any:
        try:
            await ask("ok?", expires=5)
        except ReviewExpired as error:
            return str(error)

    driver = Driver(body)
    expired = driver.receipt_for(driver.call("ask"), error="nobody answered in time")
    expired = expired.model_copy(update={"status": "expired"})
    assert ended(driver.record(expired)).output == "review call ask: nobody answered in time"


# -- bash --------------------------------------------------------------------------------------------------------


def test_a_command_line_goes_to_the_shell_and_a_list_is_taken_as_it_is() -> None:
    assert request_of(lambda: bash("ls | wc"))["shell"] == "/bin/bash"
    assert request_of(lambda: bash("ls", shell="/bin/sh"))["shell"] == "/bin/sh"
    request = request_of(lambda: bash(["ls", Path("a b")]))  # type: ignore[list-item]
    assert (request["shell"], request["command"]) == (None, ["ls", "a b"])


def test_paths_in_a_request_are_relative_to_the_workspace() -> None:
    assert request_of(lambda: bash("ls"))["cwd"] == "."
    assert request_of(lambda: bash("ls", cwd="/srv/space/docs"), root="/srv/space")["cwd"] == "docs"
    assert request_of(lambda: bash("ls", cwd="/srv/space"), root="/srv/space")["cwd"] == "."
    assert request_of(lambda: bash("ls", cwd="/elsewhere"), root="/srv/space")["cwd"] == "/elsewhere"


def test_values_to_be_hidden_are_hidden_in_the_request_and_kept_for_the_executor() -> None:
    @workflow
    async def body() -> Any:
        await bash("login hunter2-hunter2", redact=["hunter2-hunter2"])

    call: Any = Driver(body).call("bash")
    assert call.request["command"] == "login [redacted:redact-1]"
    assert call.spec.options.argv == ("/bin/bash", "-c", "login hunter2-hunter2")


def test_a_value_that_is_hidden_twice_has_one_name() -> None:
    @workflow
    async def body() -> Any:
        await parallel([bash("a hunter2-hunter2", redact=["hunter2-hunter2"], key=key) for key in ("a", "b")])

    driver = Driver(body)
    assert {driver.call(key).request["command"] for key in ("a", "b")} == {"a [redacted:redact-1]"}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: bash([]), "a command line or a list of words"),
        (lambda: bash(["head", "-n", 5]), "a command line or a list of words"),  # type: ignore[list-item]
        (lambda: bash("ls", env={"N": 5}), "'N' must be text or secret(…), not int"),  # type: ignore[dict-item]
        (lambda: bash("ls", env={"N": None}), "'N' must be text or secret(…), not NoneType"),  # type: ignore[dict-item]
    ],
)
def test_what_makes_no_command_is_refused_where_it_is_written(make: Any, said: str) -> None:
    error = refusal_of(make)
    assert error.type == "InvalidInput"
    assert said in error.message


def test_an_environment_names_its_secrets() -> None:
    request = request_of(lambda: bash("ls", env={"A": "b", "T": secret("TOKEN")}))
    assert request["env"] == {"A": "b", "T": {"secret": "TOKEN"}}


# -- steps -------------------------------------------------------------------------------------------------------


@step
def joined(first: str, *rest: int, when: datetime, **named: Decimal) -> str:
    """Arguments of every kind."""
    return "|".join([first, *map(str, rest), when.isoformat(), *(f"{key}={value}" for key, value in named.items())])


def test_arguments_of_a_step_travel_as_json_by_their_annotations() -> None:
    @workflow
    async def body() -> Any:
        return await joined("a", 1, 2, when=datetime(2026, 11, 29, tzinfo=UTC), x=Decimal("1.50"))

    driver = Driver(body)
    arguments = driver.call("joined").request["arguments"]
    assert arguments == {"first": "a", "rest": [1, 2], "when": "2026-11-29T00:00:00Z", "named": {"x": "1.50"}}
    assert ended(driver.to_the_end()).output == "a|1|2|2026-11-29T00:00:00+00:00|x=1.50"


def test_a_wrong_argument_is_refused_where_it_is_written_and_named() -> None:
    @step
    def add(value: int) -> int:
        return value

    error = refusal_of(lambda: add("x"))  # type: ignore[arg-type]
    assert (error.type, error.message) == (
        "InvalidInput", "step add: argument 'value' does not fit int: should be a valid integer, not 'x'",
    )  # fmt: skip
    assert refusal_of(add).type == "TypeError"  # type: ignore[call-arg]


def test_a_step_keeps_the_name_and_the_words_of_its_function() -> None:
    assert (joined.__name__, joined.__doc__) == ("joined", "Arguments of every kind.")
    assert joined.ref == f"{__name__}:joined"


def test_a_step_may_have_options() -> None:
    @step(retry=Retry(attempts=3), timeout=5, at_most_once=True)
    async def pays(amount: int) -> int:
        return amount

    assert (pays.is_async, pays.at_most_once, pays.timeout, pays.retry) == (True, True, 5, Retry(attempts=3))


@pytest.mark.parametrize("thing", [5, int, "text"])
def test_what_is_no_function_is_no_step(thing: Any) -> None:
    with pytest.raises(AuthoringError, match="needs a function"):
        step(thing)


# -- workflows ---------------------------------------------------------------------------------------------------


@workflow
async def child(inputs: Finding) -> Decimal:
    """A child."""
    return inputs.cost


def test_awaiting_another_workflow_is_a_call_with_its_typed_input_and_result() -> None:
    @workflow
    async def body() -> Any:
        return [await child(FINDING) == Decimal("1.10"), await child(FINDING, key="again") * 2]

    driver = Driver(body)
    request = driver.call("child").request
    assert request["workflow"] == f"{__name__}:child"
    assert request["input"]["risk"] == "low"  # type: ignore[index,call-overload]
    driver.answer("child", "1.10")
    assert ended(driver.answer("again", "2.20")).output == [True, "4.40"]


def test_a_childs_input_of_another_type_is_refused_where_it_is_written() -> None:
    error = refusal_of(lambda: child({"risk": "high"}))
    assert error.type == "InvalidInput"
    assert error.message.startswith("workflow child: its input does not fit Finding: /")


def test_a_workflow_takes_one_argument_or_none() -> None:
    @workflow
    async def none() -> str:
        return "none"

    @workflow()
    async def defaulted(inputs: int = 5) -> int:
        return inputs

    assert (result_of(none), result_of(defaulted), result_of(defaulted, 6)) == ("none", 5, 6)
    assert none.input_codec is None


@pytest.mark.parametrize(
    "fn", ["async def f(a, b): ...", "async def f(*, a): ...", "async def f(*a): ...", "def f(): ..."]
)
def test_any_other_signature_is_refused(fn: str) -> None:
    namespace: dict[str, Any] = {}
    exec(fn, namespace)
    with pytest.raises(AuthoringError):
        workflow(namespace["f"])


def test_an_input_that_names_the_argument_is_refused_with_how_to_write_it() -> None:
    @workflow
    async def count(n: int) -> int:
        return n

    with pytest.raises(InvalidInput, match="not an object") as refused:
        count.arguments({"n": 40})
    assert refused.value.hint == "the input is the value of 'n' itself, without an object around it"
    with pytest.raises(InvalidInput) as refused:
        count.arguments({"n": 40, "m": 1})
    assert refused.value.hint is None


def test_annotations_may_name_types_that_come_later() -> None:
    assert later.input_codec is not None
    assert later.input_codec.type_name == "Later"


@workflow
async def later(inputs: Later) -> Later:
    return inputs


@dataclass
class Later:
    name: str


def test_a_workflow_keeps_its_words_and_knows_its_place() -> None:
    assert (child.name, child.__doc__, child.ref) == ("child", "A child.", f"{__name__}:child")
    assert repr(child) == f"<workflow {__name__}:child>"


# -- retries -----------------------------------------------------------------------------------------------------


def test_pauses_grow_to_their_maximum_with_a_share_of_chance_and_end() -> None:
    retry = Retry(attempts=5, initial=1, factor=3, maximum=5, jitter=0.5)
    assert [retry.pause_after(attempt, chance=0) for attempt in range(1, 6)] == [1, 3, 5, 5, None]
    assert retry.pause_after(1, chance=1) == 1.5


def test_a_thousandth_retry_is_no_number_too_large() -> None:
    assert Retry(attempts=5000, maximum=60, jitter=0).pause_after(4000, chance=0) == 60


def test_an_exception_that_is_never_tried_again_counts_with_what_is_derived_from_it() -> None:
    retry = Retry(attempts=3, never=(OSError, KeyError))
    assert retry.forbids("FileNotFoundError")
    assert retry.forbids("KeyError")
    assert not retry.forbids("LookupError")
    assert not Retry().forbids("OSError")


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"initial": -1}, {"jitter": -0.1}, {"maximum": float("nan")}])
def test_a_retry_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Retry(**wrong)


def test_partials_types_and_steps_may_be_goals_and_stages() -> None:
    @workflow
    async def body() -> Any:
        done = await goal(functools.partial(one, 7), lambda value: value == 7)
        return [done, await pipeline([1, 2], one, str, functools.partial(int, base=10))]

    assert result_of(body) == [7, [1, 2]]


def test_a_secret_that_a_call_names_is_hidden_in_its_request_where_there_is_one() -> None:
    @workflow
    async def body() -> Any:
        await bash("login hunter2-hunter2", env={"PW": secret("PW")})

    for known, command in (({"PW": "hunter2-hunter2"}, "login [redacted:PW]"), ({}, "login hunter2-hunter2")):
        live = LiveRun("run", body, Driver(body).started, secret=known.get)
        Driver.alive.append(live)
        (call,) = live.start().requested
        assert call.request["command"] == command
