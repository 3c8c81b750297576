"""What the real programs printed: read as an answer where it is one, and as a failure where it only looks like one.

The texts in tests/fixtures/agents were printed by the programs themselves, in front of a model that always says the
same, or refuses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.runner.programs import Program, fixture

from hermes_workflows.runner.agents import AgentOutcome

REFUSED = "bad request from fake"


def outcome_of(folder: Path, preset: str, *, status: int = 0, **says: Any) -> AgentOutcome:
    return Program(folder, status=status, **says).ask(preset)


def failure(outcome: AgentOutcome) -> str:
    assert outcome.status == "failed"
    assert outcome.error is not None
    return f"{outcome.error.type}: {outcome.error.message}"


GOOD = {
    "claude": {"stdout": fixture("claude_ok.json")},
    "claude, structured": {"stdout": fixture("claude_schema_ok.json")},
    "codex": {"stdout": fixture("codex_ok.jsonl")},
    "gemini": {"stdout": fixture("gemini_ok.json")},
    "opencode": {"stdout": fixture("opencode_ok.jsonl")},
    "hermes": {"stdout": fixture("hermes_ok.stdout"), "writes": {"--usage-file": fixture("hermes_usage_ok.json")}},
    "llm": {"stdout": fixture("llm_ok.stdout"), "stderr": fixture("llm_ok.stderr")},
}
# Tokens in and out, cost in USD (None: it does not say), session.
BOOKED = {
    "claude": (11, 7, 0.00023, "8793ed4b-f73f-422b-8875-42d912e47064"),
    "claude, structured": (11, 7, 0.00023, "fe589873-fb28-47a6-bf8f-a12116cd831c"),
    "codex": (11, 7, None, "01a227df-36fa-7091-b632-fbdd4da3fccf"),
    "gemini": (11, 7, None, "c375e8a9-4e04-4c33-8c16-cd519a96e9be"),
    "opencode": (11, 7, 0.0, "ses_dd82ad842fferxjxBnKdEiwTne"),
    "hermes": (11, 7, None, "20261129_150048_a98603"),
    "llm": (1011, 7, None, None),
}


@pytest.mark.parametrize("case", GOOD)
def test_the_answer_is_found_in_what_the_program_printed(tmp_path: Path, case: str) -> None:
    outcome = outcome_of(tmp_path, case.partition(",")[0], **GOOD[case])
    assert (outcome.status, outcome.output, outcome.error) == ("completed", {"answer": 42}, None)


@pytest.mark.parametrize("case", GOOD)
def test_usage_cost_and_session_are_booked_as_far_as_they_are_said(tmp_path: Path, case: str) -> None:
    (attempt,) = outcome_of(tmp_path, case.partition(",")[0], **GOOD[case]).attempts
    assert attempt.usage is not None
    booked = (attempt.usage.input_tokens, attempt.usage.output_tokens, attempt.cost, attempt.session)
    assert booked == BOOKED[case]


@pytest.mark.parametrize(
    ("preset", "model"), [("claude", "claude-opus-4-8[1m]"), ("gemini", "fake"), ("hermes", "fake-model")]
)
def test_the_model_that_answered_is_booked(tmp_path: Path, preset: str, model: str) -> None:
    (attempt,) = outcome_of(tmp_path, preset, **GOOD[preset]).attempts
    assert attempt.model == model


BAD = {
    "claude": (1, {"stdout": fixture("claude_api400_rc1.json")}),
    "codex": (1, {"stdout": fixture("codex_api400_rc1.jsonl")}),
    "gemini": (144, {"stderr": fixture("gemini_api400_rc144.stderr")}),
    "opencode": (1, {"stdout": fixture("opencode_api400_rc1.jsonl")}),
}


@pytest.mark.parametrize("preset", BAD)
def test_a_refusal_of_the_provider_fails_the_call_with_its_message(tmp_path: Path, preset: str) -> None:
    status, says = BAD[preset]
    said = failure(outcome_of(tmp_path, preset, status=status, **says))
    assert said.startswith(f"AgentExit: the agent exited with status {status}")
    assert said.endswith(REFUSED)


@pytest.mark.parametrize("preset", ["claude", "codex", "opencode", "gemini"])
def test_exit_status_0_makes_no_answer_of_a_failure(tmp_path: Path, preset: str) -> None:
    said = failure(outcome_of(tmp_path, preset, **BAD[preset][1]))
    assert said == f"AgentError: the agent reports an error: {'API Error: 400 ' if preset == 'claude' else ''}{REFUSED}"


def test_hermes_says_its_failure_as_if_it_were_the_answer(tmp_path: Path) -> None:
    program = Program(
        tmp_path,
        stdout=fixture("hermes_failed_rc0.stdout"),
        writes={"--usage-file": fixture("hermes_usage_failed_rc0.json")},
    )
    said = failure(program.ask("hermes", returns=str))
    assert said == "AgentError: the agent reports an error: API call failed after 3 retries: Connection error."


def test_hermes_passes_over_a_toolset_it_does_not_know_and_the_call_fails(tmp_path: Path) -> None:
    stderr = "hermes -z: ignoring unknown --toolsets entries: nonsense\n"
    program = Program(tmp_path, **{**GOOD["hermes"], "stderr": stderr})
    said = failure(program.ask("hermes", request={"tools": ("file", "nonsense")}))
    assert said.endswith("ignoring unknown --toolsets entries: nonsense")


def test_claude_says_why_it_stopped_where_it_has_no_result(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, "claude", status=1, stdout=fixture("claude_budget_rc1.json"))
    assert failure(outcome).endswith("Reached maximum budget ($0.0001)")
    assert outcome.usage is not None
    # The sum beside the tokens by model is empty when a session ends in an error.
    assert (outcome.usage.input_tokens, outcome.usage.cost_usd) == (11, 0.00023)


def test_gemini_answers_nothing_when_a_prompt_is_too_long(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, "gemini", stdout=fixture("gemini_too_long_rc0.json"))
    assert "too long for the model" in failure(outcome)


def test_a_warning_of_codex_is_no_failure_and_a_lost_turn_is_one(tmp_path: Path) -> None:
    record = fixture("codex_ok.jsonl").splitlines(keepends=True)
    assert '"type":"error"' in record[1]
    lost = "".join([*record[:3], '{"type":"error","message":"stream disconnected"}\n'])
    assert failure(outcome_of(tmp_path, "codex", stdout=lost)).endswith("stream disconnected")


def test_an_answer_among_the_noise_of_a_program_is_found(tmp_path: Path) -> None:
    noisy = f"Loaded cached credentials.\n{fixture('gemini_ok.json')}bye\n"
    outcome = outcome_of(tmp_path, "gemini", stdout=noisy)
    assert outcome.output == {"answer": 42}
    assert outcome.attempts[0].transcript["stdout"] == noisy


def test_the_last_message_of_a_turn_is_the_answer(tmp_path: Path) -> None:
    first = '{"type":"item.completed","item":{"type":"agent_message","text":"{\\"answer\\": 1}"}}\n'
    outcome = outcome_of(tmp_path, "codex", stdout=first + fixture("codex_ok.jsonl"))
    assert outcome.output == {"answer": 42}


def test_prose_of_claude_does_not_hide_the_structured_field(tmp_path: Path) -> None:
    said = fixture("claude_schema_ok.json").replace(r'"{\"answer\":42}"', '"Done! The answer is {\\"answer\\": 7}."')
    assert "Done!" in said
    assert outcome_of(tmp_path, "claude", stdout=said).output == {"answer": 42}


@pytest.mark.parametrize("preset", ["claude", "codex", "gemini", "opencode", "hermes", "llm"])
def test_a_program_that_says_nothing_has_failed(tmp_path: Path, preset: str) -> None:
    assert failure(outcome_of(tmp_path, preset)).startswith("EmptyAnswer: ")


@pytest.mark.parametrize(
    ("preset", "install"),
    [("claude", "npm install -g @anthropic-ai/claude-code"), ("llm", "pip install llm"), ("command", "PATH")],
)
def test_a_program_that_is_not_there_says_how_to_get_it(tmp_path: Path, preset: str, install: str) -> None:
    said = failure(Program(tmp_path).ask(preset, command=("no-such-program",)))
    assert said.startswith("NotStarted: the agent could not be started: no-such-program")
    assert install in said
