"""A command of one's own, recorded answers, and what a call may cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.runner.programs import Program
from tests.runner.test_presets_real import GOOD

from hermes_workflows.errors import InvalidInput, NotFound
from hermes_workflows.settings import Prices


def costing(folder: Path, cost: float | None) -> Program:
    usage = {"input_tokens": 1000, "output_tokens": 100} | ({} if cost is None else {"cost_usd": cost})
    return Program(folder, stdout=json.dumps({"schema": "hermes.agent-response/1", "output": "?", "usage": usage}))


def test_no_attempt_starts_that_the_budget_does_not_cover(tmp_path: Path) -> None:
    made = costing(tmp_path, 0.04)
    outcome = made.ask("command", attempts=9, budget=0.10)
    assert [attempt.number for attempt in outcome.attempts] == [1, 2, 3]
    assert [json.loads(asked.stdin)["budget_usd"] for asked in made.asked] == [0.10, 0.06, pytest.approx(0.02)]
    assert outcome.error is not None
    assert outcome.error.type == "BudgetExceeded"
    assert "budget of 0.1 USD: it is used up" in outcome.error.message


def test_a_cost_that_is_not_reported_covers_nothing_more(tmp_path: Path) -> None:
    outcome = costing(tmp_path, None).ask("command", attempts=9, budget=0.10)
    assert len(outcome.attempts) == 1
    assert outcome.error is not None
    assert "did not report what that cost" in outcome.error.message


def test_prices_of_the_registry_make_the_cost(tmp_path: Path) -> None:
    (attempt,) = costing(tmp_path, 7.0).ask("command", prices=Prices(3.0, 15.0)).attempts
    assert attempt.cost == pytest.approx(0.0045)
    assert attempt.usage is not None
    assert attempt.usage.cost_usd == pytest.approx(0.0045)


def test_claude_is_told_what_is_left(tmp_path: Path) -> None:
    made = Program(tmp_path, **GOOD["claude"])
    made.ask("claude", budget=0.5)
    assert float(made.last.after("--max-budget-usd")) == 0.5


# -- a command of one's own ----------------------------------------------------------------------------------------


def test_a_template_is_filled_with_files_model_and_folder(tmp_path: Path) -> None:
    made = Program(tmp_path, stdout='{"answer": 42}')
    args = ("{prompt_file}", "{schema_file}", "--request={request_file}", "m={model}", "{workspace}", "{other}", "{}")
    made.ask("command", args=args, model="big", returns=int | dict)
    prompt, schema, request, model, workspace, *rest = made.last.argv
    assert [Path(each).name for each in (prompt, schema)] == ["prompt.md", "schema.json"]
    assert request.endswith("/request.json")
    assert made.last.files["prompt.md"].startswith("What is it?\n")
    assert "anyOf" in json.loads(made.last.files["schema.json"])
    assert json.loads(made.last.files["request.json"])["schema"] == "hermes.agent-request/1"
    assert (model, workspace, rest) == ("m=big", str(tmp_path), ["{other}", "{}"])
    # Whoever is given a file is not given the same on standard input, which is closed.
    assert made.last.stdin == ""
    assert not Path(prompt).exists()


def test_words_for_a_model_are_left_out_without_one(tmp_path: Path) -> None:
    made = Program(tmp_path, stdout='{"answer": 42}')
    made.ask("command", stdin="prompt", model_args=("--model={model}",))
    assert made.last.argv == []
    made.ask("command", stdin="prompt", model_args=("--model={model}",), request={"model": "big"})
    assert made.last.argv == ["--model=big"]
    with pytest.raises(InvalidInput, match=r"a place for \{model\}"):
        made.ask("command", args=("{model}",))


@pytest.mark.parametrize(("stdin", "start"), [("prompt", "What is it?\n\nAnswer"), ("json", '{"schema"'), ("none", "")])
def test_standard_input_is_what_the_entry_says(tmp_path: Path, stdin: str, start: str) -> None:
    made = Program(tmp_path, stdout='{"answer": 42}')
    made.ask("command", stdin=stdin)
    assert made.last.stdin.startswith(start)
    assert bool(made.last.stdin) == bool(start)


@pytest.mark.parametrize(
    "left",
    [
        '{"answer": 42}',
        'Here:\n```json\n{"answer": 42}\n```',
        '{"schema": "hermes.agent-response/1", "output": {"answer": 42}}',
    ],
)
def test_the_answer_may_be_left_in_a_file(tmp_path: Path, left: str) -> None:
    made = Program(tmp_path, stdout='I wrote {"answer": 7} first.', writes={"-o": left})
    outcome = made.ask("command", args=("-o", "{output_file}"))
    assert outcome.output == {"answer": 42}
    assert outcome.attempts[0].transcript["files"]["output"] == left


def test_what_is_left_in_a_file_is_redacted(tmp_path: Path) -> None:
    made = Program(tmp_path, writes={"-o": "the password is hunter2-hunter2"})
    outcome = made.ask("command", args=("-o", "{output_file}"), returns=str)
    assert outcome.output == "the password is [redacted:PW]"
    assert outcome.attempts[0].redactions == {"PW": 1}


def test_an_empty_file_leaves_the_word_to_standard_output(tmp_path: Path) -> None:
    made = Program(tmp_path, stdout='{"answer": 42}', writes={"-o": "\n"})
    assert made.ask("command", args=("-o", "{output_file}")).output == {"answer": 42}


# -- recorded answers ----------------------------------------------------------------------------------------------

ENTRIES: tuple[dict[str, Any], ...] = (
    {"key": "other/key", "output": {"answer": 1}},
    {"name": "reviewer", "attempt": 1, "output": "no JSON", "usage": {"input_tokens": 12}},
    {"key": "review/docs", "output": {"answer": 42}},
    {"error": "nobody else is expected"},
)


def test_a_replay_answers_with_the_first_entry_that_fits(tmp_path: Path) -> None:
    made = Program(tmp_path)
    outcome = made.ask("replay", command=(), recorded=ENTRIES, attempts=2, answers="answers.json")
    assert outcome.output == {"answer": 42}
    (refused,) = made.refused
    assert refused.usage is not None
    assert (refused.usage.input_tokens, refused.errors) == (12, ("/: there is no JSON value in the answer",))
    assert not (tmp_path / "asked").exists()


def test_a_replay_says_when_it_has_no_answer(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"answers\.json has no answer for the call review/docs \(agent reviewer"):
        Program(tmp_path).ask("replay", command=(), recorded=ENTRIES[:1], answers="answers.json")
    outcome = Program(tmp_path).ask("replay", command=(), recorded=ENTRIES[3:], answers="answers.json")
    assert outcome.error is not None
    assert outcome.error.message.endswith("nobody else is expected")
