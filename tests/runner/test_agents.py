"""Asking agents: a scripted command stands for the agent, and each test says what it does."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest

from hermes_workflows.core.redaction import Redactor
from hermes_workflows.core.values import codec_for
from hermes_workflows.runner.agents import AgentAttempt, AgentOutcome, AgentRequest, World, run_agent
from hermes_workflows.runner.processes import StopSignal
from hermes_workflows.settings import AgentSettings

NOW = datetime(2026, 11, 29, 10, 0, tzinfo=UTC)
SECRET = "hunter2-hunter2"
# Every scripted agent starts with this: `request` is what it was asked, `said` keeps all requests.
PRELUDE = """
import json, os, sys, time
line = sys.stdin.readline()
request = json.loads(line)
with open("said", "a") as said: said.write(line)
attempt = request["attempt"]
def respond(**fields): print(json.dumps({"schema": "hermes.agent-response/1", **fields}))
def result(**fields): print(json.dumps({"type": "result", "subtype": "success", **fields}))
"""


@dataclass(frozen=True)
class Answer:
    answer: int
    note: str = ""


class Agents:
    """Runs one call against a scripted agent and keeps what was said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stop = StopSignal()
        self.refused: list[AgentAttempt] = []
        self.on_attempt: Callable[[AgentAttempt], None] = self.refused.append

    def ask(self, script: str, *, returns: Any = Answer, timeout: float = 60.0, **fields: Any) -> AgentOutcome:
        (self.folder / "agent.py").write_text(PRELUDE + script)
        return self.ask_command((sys.executable, "agent.py"), returns=returns, timeout=timeout, **fields)

    def ask_command(self, argv: tuple[str, ...], *, returns: Any = Answer, **fields: Any) -> AgentOutcome:
        codec = codec_for(returns)
        asked = {"prompt": "What is it?", "input": {"topic": "docs"}, **fields}
        request = AgentRequest(
            run="wf_1",
            key="review/docs",
            operation_id="wf_1/review/docs",
            name="reviewer",
            prompt=asked["prompt"],
            input=asked["input"],
            model="small",
            returns=codec.json_schema,
        )
        return run_agent(
            request,
            AgentSettings("command", argv, timeout=fields.get("timeout", 60.0)),
            codec,
            World(self.folder, {"PATH": os.environ["PATH"]}, Redactor({"PW": SECRET}), self.stop, lambda: NOW),
            on_attempt=self.on_attempt,
            attempts=fields.get("attempts", 3),
        )

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "said").read_text().splitlines()]


@pytest.fixture
def agents(tmp_path: Path) -> Agents:
    return Agents(tmp_path)


def failure(outcome: AgentOutcome) -> tuple[str, str]:
    assert outcome.error is not None
    return outcome.error.type, outcome.error.message


def test_an_agent_reads_a_request_and_answers_with_a_response(agents: Agents) -> None:
    outcome = agents.ask(
        """respond(output={"answer": 42}, usage={"input_tokens": 812, "output_tokens": 96, "cost_usd": 0.0031})"""
    )
    assert (outcome.status, outcome.output, outcome.error) == ("completed", {"answer": 42, "note": ""}, None)
    assert outcome.usage is not None
    assert outcome.usage.model_dump() == {"input_tokens": 812, "output_tokens": 96, "cost_usd": 0.0031}
    (request,) = agents.requests
    assert request == {
        "schema": "hermes.agent-request/1",
        "run": "wf_1",
        "key": "review/docs",
        "operation_id": "wf_1/review/docs",
        "attempt": 1,
        "name": "reviewer",
        "prompt": "What is it?",
        "input": {"topic": "docs"},
        "model": "small",
        "returns": codec_for(Answer).json_schema,
        "tools": None,
        "files": [],
        "budget_usd": None,
        "previous": None,
    }


def test_a_bare_value_among_noise_is_an_answer_too(agents: Agents) -> None:
    outcome = agents.ask("""print("Loaded cached credentials."); print('{"answer": 42}')""")
    assert (outcome.status, outcome.output, outcome.usage) == ("completed", {"answer": 42, "note": ""}, None)
    assert outcome.attempts[0].transcript["stdout"] == 'Loaded cached credentials.\n{"answer": 42}\n'
    assert agents.refused == []


def test_a_refused_answer_is_asked_for_again_with_the_reasons(agents: Agents) -> None:
    outcome = agents.ask(
        """
usage = {"input_tokens": 10, "output_tokens": attempt, "cost_usd": 0.1}
output = {"answer": "forty-two", "extra": 1} if attempt == 1 else {"answer": 42}
respond(output=output, usage=usage)"""
    )
    assert (outcome.status, outcome.output) == ("completed", {"answer": 42, "note": ""})
    assert outcome.usage is not None
    assert outcome.usage.model_dump() == {"input_tokens": 20, "output_tokens": 3, "cost_usd": 0.2}
    first, second = agents.requests
    assert second["attempt"] == 2
    assert second["operation_id"] == first["operation_id"]
    assert len(second["previous"]["errors"]) == 2
    for number, reason in enumerate(second["previous"]["errors"], 1):
        assert f"\n{number}. {reason}\n" in second["prompt"]
    assert "/answer: " in second["prompt"]
    assert "forty-two" in second["previous"]["output"]
    assert second["prompt"].startswith("What is it?\n")
    assert json.dumps(first["returns"]) in second["prompt"]


def test_each_refused_attempt_is_reported_before_the_next_one(agents: Agents) -> None:
    def on_attempt(attempt: AgentAttempt) -> None:
        assert len(agents.requests) == attempt.number
        agents.refused.append(attempt)

    agents.on_attempt = on_attempt
    outcome = agents.ask('print("No JSON here."); print("talk", file=sys.stderr)', attempts=3)
    assert failure(outcome) == (
        "InvalidAnswer",
        "the answer is no Answer: /: there is no JSON value in the answer",
    )
    assert [attempt.number for attempt in agents.refused] == [1, 2]
    assert [attempt.number for attempt in outcome.attempts] == [1, 2, 3]
    refused = agents.refused[0]
    assert refused.errors == ("/: there is no JSON value in the answer",)
    assert refused.failure is not None
    assert refused.failure.details == {"stdout": "No JSON here.\n", "stderr": "talk\n", "errors": list(refused.errors)}
    assert (refused.transcript["stdout"], refused.transcript["stderr"]) == ("No JSON here.\n", "talk\n")


def test_an_ambiguous_answer_is_asked_for_again(agents: Agents) -> None:
    outcome = agents.ask("""print('{"answer": 1} or {"answer": 2}' if attempt == 1 else '{"answer": 2}')""")
    assert outcome.output == {"answer": 2, "note": ""}
    assert agents.refused[0].failure is not None
    assert agents.refused[0].failure.type == "AmbiguousAnswer"


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        ("""print('{"answer": 42}'); print("boom", file=sys.stderr); sys.exit(3)""", "AgentExit", "status 3: boom"),
        ("os.kill(os.getpid(), 9)", "AgentExit", "died of signal 9"),
        ("pass", "EmptyAnswer", "printed nothing"),
        ("print('  ')", "EmptyAnswer", "printed nothing"),
        ('respond(output={"answer": 1}, error="no quota")', "AgentError", "no quota"),
        ('result(is_error=True, result="API Error: 400"); sys.exit(1)', "AgentExit", "API Error: 400"),
        ('result(is_error=True, result="API Error: 400")', "AgentError", "API Error: 400"),
        ("""print('{"answer": 42}', flush=True); time.sleep(300)""", "Timeout", "timed out after 1 s"),
    ],
)
def test_an_attempt_that_did_not_end_well_is_no_answer(agents: Agents, script: str, kind: str, said: str) -> None:
    outcome = agents.ask(script, timeout=1.0 if kind == "Timeout" else 60.0)
    assert outcome.status == "failed"
    assert failure(outcome)[0] == kind
    assert said in failure(outcome)[1]
    assert len(outcome.attempts) == 1
    assert agents.refused == []


def test_an_agent_that_cannot_start_fails_once_and_says_why(agents: Agents) -> None:
    outcome = agents.ask_command(("no-such-agent",))
    kind, message = failure(outcome)
    assert kind == "NotStarted"
    assert message.startswith(
        "the agent could not be started: no-such-agent: there is no such command; is it on the PATH"
    )
    assert len(outcome.attempts) == 1


def test_usage_of_a_failed_call_is_kept(agents: Agents) -> None:
    outcome = agents.ask('respond(error="x", usage={"input_tokens": 7})')
    assert outcome.usage is not None
    assert outcome.usage.input_tokens == 7


def test_a_stop_cancels_and_nobody_is_asked_again(agents: Agents) -> None:
    def on_attempt(attempt: AgentAttempt) -> None:
        agents.stop.set("cancelled by ana")

    agents.on_attempt = on_attempt
    outcome = agents.ask('print("prose")')
    assert outcome.status == "cancelled"
    assert failure(outcome) == ("Cancelled", "stopped while the agent worked: cancelled by ana")
    assert len(agents.requests) == 1


@pytest.mark.parametrize("size", [200_000, 5_000_000])
def test_a_large_prompt_reaches_the_agent(agents: Agents, size: int) -> None:
    outcome = agents.ask("""print(json.dumps({"answer": len(request["prompt"])}))""", prompt="é" * size)
    assert outcome.output == {"answer": size, "note": ""}


def test_an_agent_that_does_not_read_its_input_may_answer(agents: Agents) -> None:
    argv = ("/bin/sh", "-c", """exec <&-; echo '{"answer": 42}'""")
    assert agents.ask_command(argv, prompt="x" * 1_000_000).status == "completed"


def test_a_request_is_one_line_without_secrets(agents: Agents) -> None:
    agents.ask(
        """print('{"answer": 1}')""",
        prompt=f"first line\nuse {SECRET}",
        input={"key": SECRET, "bytes": b"\x00\xff", "big": 2**70},
    )
    (request,) = agents.requests
    assert request["prompt"] == "first line\nuse [redacted:PW]"
    assert request["input"] == {"key": "[redacted:PW]", "bytes": "AP8=", "big": 2**70}


def test_a_secret_in_an_answer_is_replaced_however_it_is_escaped(agents: Agents) -> None:
    escaped = "".join(f"\\u{ord(character):04x}" for character in SECRET)
    outcome = agents.ask(f"""print(r'{{"answer": 1, "note": "{escaped}"}}')""")
    assert outcome.output == {"answer": 1, "note": "[redacted:PW]"}
    assert outcome.attempts[0].redactions == {"PW": 1}


def test_an_answer_that_redaction_makes_invalid_fails_and_says_so(agents: Agents) -> None:
    outcome = agents.ask(f"""print('{{"choice": "{SECRET}"}}')""", returns=Choice, attempts=1)
    kind, message = failure(outcome)
    assert kind == "InvalidAnswer"
    assert "secrets were replaced" in message
    assert SECRET not in message + str(outcome.attempts)


@dataclass(frozen=True)
class Choice:
    choice: Literal["hunter2-hunter2", "other"]


def test_an_answer_beyond_the_limit_is_not_guessed_at(agents: Agents) -> None:
    outcome = agents.ask("""print('{"answer": 1}'); print("x" * 17_000_000)""")
    assert failure(outcome)[0] == "TooLong"


def test_a_transcript_is_cut_and_a_message_is_short(agents: Agents) -> None:
    outcome = agents.ask("""print("y" * 1_000_000); print("z" * 1_000_000, file=sys.stderr)""", attempts=1)
    attempt = outcome.attempts[0]
    assert len(attempt.transcript["stdout"]) < 140_000
    assert attempt.transcript["stdout_bytes"] == 1_000_001
    assert outcome.error is not None
    assert outcome.error.details is not None
    assert (outcome.error.details["stdout"], outcome.error.details["stderr"]) == ("y" * 500, "z" * 500)


class Risk(Enum):
    low = "low"
    high = "high"


@dataclass(frozen=True)
class Part:
    risk: Risk
    price: Decimal
    at: datetime
    path: Path
    other: int | str | None = None


@dataclass(frozen=True)
class Report:
    parts: list[Part]
    names: dict[str, Part] = field(default_factory=dict)


def test_an_answer_of_a_rich_type_comes_back_as_it_is_written(agents: Agents) -> None:
    part = {"risk": "low", "price": "1.10", "at": "2026-11-29T10:00:00Z", "path": "docs/a.md", "other": None}
    outcome = agents.ask(f"print({json.dumps(json.dumps({'parts': [part]}))})", returns=Report)
    assert outcome.status == "completed"
    report = codec_for(Report).from_plain(outcome.output)
    assert report == Report([Part(Risk.low, Decimal("1.10"), NOW, Path("docs/a.md"))])
