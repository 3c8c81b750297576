"""Which value in what an agent printed is its answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import pytest

from hermes_workflows.core.encoding import Plain
from hermes_workflows.core.values import codec_for
from hermes_workflows.runner.candidates import NoAnswer, Printed, choose, choose_from, find_response, readable

TICKS = "```"


@dataclass(frozen=True)
class Answer:
    answer: int
    note: str = ""


class Verdict(Enum):
    approve = "approve"
    reject = "reject"


def answer_in(text: str, returns: Any = Answer) -> Plain:
    codec = codec_for(returns)

    def validate(value: Plain) -> Plain:
        return codec.to_plain(codec.from_plain(value))

    printed = Printed.of(text)
    response = find_response(printed)
    return choose_from(response, validate) if response else choose(printed, validate)


def refusal(text: str, returns: Any = Answer) -> NoAnswer:
    with pytest.raises(NoAnswer) as caught:
        answer_in(text, returns)
    return caught.value


def envelope(**fields: Any) -> str:
    return json.dumps({"schema": "hermes.agent-response/1", **fields})


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": 42}',
        '\ufeff  {"answer": 42}\n',
        'Loaded cached credentials.\n{"answer": 42}',
        '{"answer": 42}\nDone in 1.2 s.',
        f'Sure! Here is the JSON:\n{TICKS}json\n{{"answer": 42}}\n{TICKS}',
        f"{TICKS}\n{TICKS}\n{TICKS}json\n" + '{"answer": 42}' + f"\n{TICKS}",
        f"{TICKS}python\nprint(1)\n{TICKS}\nand\n{TICKS}\n" + '{"answer": 42}' + f"\n{TICKS}",
        'Use {{ name }} and {% if x %} as in {"x": }, then {"answer": 42}.',
        "I set {answer} in function f() { return [1]; } and got {\"answer\": 42}",
        'First I thought [maybe], then [see the "docs"]: {"answer": 42}',
        '{"answer": 42}, to repeat: {"answer": 42, "note": ""}',
        '\x1b[32m{"answer":\x1b[0m 42}',
        '{"level": "info", "msg": "thinking {deeply}"}\n{"answer": 42}',
        "{'answer': 1} is no JSON; {\"answer\": 42} is",
    ],
)  # fmt: skip
def test_the_one_valid_value_is_found(text: str) -> None:
    assert answer_in(readable(text.encode())) == {"answer": 42, "note": ""}


def test_backticks_and_braces_inside_a_string_are_text() -> None:
    note = f'run {TICKS}sh\n}} ] {{ \\ " {TICKS} now'
    text = f"Here:\n{TICKS}json\n{json.dumps({'answer': 42, 'note': note})}\n{TICKS}\nBye {{}}."
    assert answer_in(text) == {"answer": 42, "note": note}


@pytest.mark.parametrize(
    "text",
    [
        'Either {"answer": 1} or {"answer": 2}.',
        'Option A:\n{"answer": 1}\nOption B:\n{"answer": 2}\n',
        '{\n"answer": 1}\n{\n"answer": 2}\n',
        f'For example {{"answer": 0}}.\n{TICKS}json\n{{"answer": 42}}\n{TICKS}',
    ],
)
def test_two_different_valid_values_are_ambiguous(text: str) -> None:
    error = refusal(text)
    assert error.ambiguous
    assert "2 different values fit" in error.message


@pytest.mark.parametrize("noise", ["", "Loaded cached credentials.\n", '{"type": "thinking"}\n'])
def test_the_last_of_json_lines_is_the_answer(noise: str) -> None:
    lines = noise + '{"answer": 1}\n{"answer": 2}\n{"type": "end"}\n{"answer": 1}\n'
    assert answer_in(lines) == {"answer": 1, "note": ""}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I am done.", "there is no JSON value in the answer"),
        ('{"answer": NaN}', "NaN is no number in JSON at /answer"),
        ('{"answer": 1, "x": [1e999]}', "/x/0"),
        ('{"answer": 1, "answer": 2}', "'answer' stands twice"),
        ('{"answer": ' + "9" * 5000 + "}", "at /answer"),
        ('{"answer": 42', "not JSON"),
        ('{"answer": 42,}', "not JSON"),
        ('{"answer": "42"}', "/answer"),
        ('{"answer": 42, "extra": 1}', "/extra"),
        ("[" * 100_000, "nested"),
        ('{"a":' * 100_000, "nested"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, reason: str) -> None:
    assert reason in refusal(text).message


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": "42", "previous": {"answer": 1}}',
        '{"previous": {"answer": 1}, "answer": NaN}',
        '{"previous": {"answer": 1}, "answer": oops}',
        '{"answer": oops, "previous": {"answer": 1}}',
        '[{"answer": 1}, {"ans',
        '{"text": "one\ntwo", "previous": {"answer": 1}, }',
        '{"log": "said {\\"answer\\": 1}"}',
    ],
)
def test_a_value_inside_a_broken_or_refused_one_is_no_answer(text: str) -> None:
    assert refusal(text).errors


@pytest.mark.parametrize("order", [1, -1])
def test_the_reasons_are_those_of_the_value_that_fits_most_nearly(order: int) -> None:
    text = "\n".join(['{"level": "info", "msg": "x"}', '{"answer": "42"}'][::order])
    assert [path for path, _ in refusal(text).errors] == ["/answer"]


@pytest.mark.parametrize(
    ("text", "returns", "value"),
    [
        ("A plain sentence.\n", str, "A plain sentence."),
        ('"A JSON string"', str, "A JSON string"),
        (f"# Title\n{TICKS}json\n{{}}\n{TICKS}", str, f"# Title\n{TICKS}json\n{{}}\n{TICKS}"),
        ('{"answer": 42}', str, '{"answer": 42}'),
        ("42\n", int, 42),
        (f"The number is:\n{TICKS}\n42\n{TICKS}", int, 42),
        ("approve", Literal["approve", "reject"], "approve"),
        ("reject", Verdict, "reject"),
        ("null", int | None, None),
        ("[1, 2]", list[int], [1, 2]),
        ('Some prose with {"x": 1}.', dict, {"x": 1}),
    ],
)
def test_answers_need_not_be_objects(text: str, returns: Any, value: Plain) -> None:
    assert answer_in(text, returns) == value


@pytest.mark.parametrize(
    "text",
    [
        envelope(output={"answer": 42}),
        "Loaded cached credentials.\n" + envelope(output={"answer": 42}, usage={"input_tokens": 1}) + "\nbye",
        envelope(output={"answer": 1}) + "\n" + envelope(output={"answer": 42}),
        envelope(output=f'Sure:\n{TICKS}json\n{{"answer": 42}}\n{TICKS}'),
        json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": '{"answer": 42}'}),
        json.dumps(
            {
                "type": "result",
                "subtype": "success",
                "is_error": False,
                "result": "{}",
                "structured_output": {"answer": 42},
            }
        ),
    ],
)
def test_the_field_of_a_response_is_the_answer(text: str) -> None:
    assert answer_in(text) == {"answer": 42, "note": ""}


def test_a_response_is_no_answer_itself_even_when_anything_fits() -> None:
    assert answer_in(envelope(output={"x": 1}), dict) == {"x": 1}
    assert answer_in(envelope(output=None), int | None) is None


def test_an_answer_inside_a_response_of_the_wrong_type_is_not_looked_for() -> None:
    assert refusal(envelope(output={"data": {"answer": 42}})).errors


def test_a_response_that_cannot_be_read_is_not_passed_over() -> None:
    text = '{"answer": 1}\n{"schema": "hermes.agent-response/1", "output": {"answer": NaN}}'
    assert "at /output/answer" in refusal(text).message


def test_a_response_without_output_says_so() -> None:
    assert "no output" in refusal(envelope(usage={})).message


@pytest.mark.parametrize(
    ("said", "error"), [(None, None), ("", None), ("boom", "boom"), ({"message": "boom"}, '{"message": "boom"}')]
)
def test_the_error_of_a_response_is_text(said: Any, error: str | None) -> None:
    response = find_response(Printed.of(envelope(error=said)))
    assert response is not None
    assert response.error == error


@pytest.mark.parametrize("usage", [{"input_tokens": -1}, {"cost_usd": "much"}, "none", {"input_tokens": 1.5}])
def test_unreadable_usage_does_not_cost_the_answer(usage: Any) -> None:
    response = find_response(Printed.of(envelope(output=1, usage=usage)))
    assert response is not None
    assert (response.output, response.usage) == (1, None)


def test_many_brackets_are_passed_over_in_linear_time() -> None:
    for noise in ("{ [ x ", "[" * 500 + "x", "[{x}] ", "[1 x] ", '{"', "```\n"):
        text = noise * (300_000 // len(noise))
        assert refusal(text).errors
        if '"' not in noise:
            assert answer_in(text + '{"answer": 42}') == {"answer": 42, "note": ""}
