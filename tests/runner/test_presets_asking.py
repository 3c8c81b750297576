"""How each program is asked: its flags, where the prompt goes, and what it is held to."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from tests.runner.programs import Program
from tests.runner.test_presets_real import GOOD

from hermes_workflows.runner.presets import PRESETS
from hermes_workflows.runner.presets.base import CannotEnforce
from hermes_workflows.settings import PRESETS as NAMES

# A word of a command line has at most 128 KiB on Linux.
LONGEST_WORD = 128 * 1024 - 1
PROGRAMS = ("claude", "codex", "gemini", "hermes", "llm", "opencode")
READERS = {"claude": "Read", "gemini": "read_file", "hermes": "file", "llm": "fetch", "opencode": "read"}


def program(folder: Path, preset: str) -> Program:
    return Program(folder, **GOOD[preset])


def test_the_registry_knows_the_presets_that_are_there() -> None:
    assert sorted(PRESETS) == sorted(NAMES)


FLAGS = {
    "claude": ["-p", "--output-format", "json", "--model", "big"],
    "codex": ["exec", "--json", "--skip-git-repo-check", "--color", "never", "--model", "big"],
    "gemini": ["--output-format", "json", "--model", "big"],
    "opencode": ["run", "--format", "json", "--model", "big"],
    "llm": ["--no-stream", "--usage", "--model", "big"],
}


@pytest.mark.parametrize("preset", FLAGS)
def test_a_program_is_asked_without_a_head_and_reads_the_prompt_from_its_input(tmp_path: Path, preset: str) -> None:
    made = program(tmp_path, preset)
    made.ask(preset, returns=str, model="big", prompt="What is it?")
    assert made.last.argv == [*FLAGS[preset], *(["-"] if preset == "codex" else [])]
    assert made.last.stdin == "What is it?\n"


def test_hermes_takes_its_prompt_as_a_word(tmp_path: Path) -> None:
    made = program(tmp_path, "hermes")
    made.ask("hermes", returns=str, model="big", prompt="-- What is it?")
    prompt, *options = made.last.argv
    assert prompt == "--oneshot=-- What is it?\n"
    assert options == ["--usage-file", made.last.after("--usage-file"), "--model", "big"]


@pytest.mark.parametrize("preset", PROGRAMS)
def test_arguments_of_the_entry_come_last_and_the_call_names_the_model(tmp_path: Path, preset: str) -> None:
    made = program(tmp_path, preset)
    made.ask(preset, model="small", args=("--effort", "high"), request={"model": "big"})
    words = made.last.argv[:-1] if preset == "codex" else made.last.argv
    assert words[-2:] == ["--effort", "high"]
    assert made.last.after("--model") == "big"


@pytest.mark.parametrize("preset", [*PROGRAMS, "command"])
@pytest.mark.parametrize("size", [200_000, 5_000_000])
def test_a_large_prompt_arrives_whole(tmp_path: Path, preset: str, size: int) -> None:
    made = program(tmp_path, preset) if preset != "command" else Program(tmp_path, stdout='{"answer": 42}')
    prompt = "é" * (size // 2 - 100) + "This is the end."
    assert made.ask(preset, prompt=prompt).status == "completed"
    asked = made.last
    assert all(len(word.encode()) <= LONGEST_WORD for word in asked.argv)
    assert any(prompt in heard for heard in (asked.stdin, *asked.files.values()))


@pytest.mark.parametrize(("preset", "size"), [("codex", 1_100_000), ("gemini", 600_000), ("hermes", 130_000)])
def test_a_prompt_that_a_program_does_not_take_is_in_a_file_that_it_is_told_to_read(
    tmp_path: Path, preset: str, size: int
) -> None:
    made = program(tmp_path, preset)
    assert made.ask(preset, prompt="x" * size + "the end").status == "completed"
    assert made.last.files["prompt.md"].startswith("x" * size + "the end")
    assert len(made.last.stdin) + sum(map(len, made.last.argv)) < 2000
    if preset == "gemini":
        # Its tools read nothing outside of its folders.
        assert Path(made.last.after("--include-directories")).name.startswith("hermes-agent-")


def test_a_prompt_in_a_file_needs_the_tool_that_reads_it(tmp_path: Path) -> None:
    made = program(tmp_path, "hermes")
    with pytest.raises(CannotEnforce, match=r"130,... bytes has to be read from a file"):
        made.ask("hermes", prompt="x" * 130_000, request={"tools": ("terminal",)})
    assert made.ask("hermes", prompt="x" * 130_000, request={"tools": ("file",)}).status == "completed"


def test_the_input_the_files_and_the_form_of_the_answer_stand_in_the_prompt(tmp_path: Path) -> None:
    made = program(tmp_path, "gemini")
    made.ask("gemini", request={"input": {"topic": "docs"}, "files": ("a.md", "b.md")})
    task, given, files, form = made.last.stdin.split("\n\n")
    assert task == "What is it?"
    assert json.loads(given.removeprefix("Input (JSON):\n")) == {"topic": "docs"}
    assert files.endswith("- a.md\n- b.md")
    assert "one JSON value and nothing else" in form
    assert '"answer"' in form


def test_a_repeated_prompt_says_what_was_wrong_and_the_schema_once(tmp_path: Path) -> None:
    made = Program(tmp_path, stdout="It is forty-two.")
    outcome = made.ask("llm", request={"input": 1}, attempts=2)
    assert [attempt.number for attempt in outcome.attempts] == [1, 2]
    first, second = (asked.stdin for asked in made.asked)
    assert "refused" not in first
    assert second.startswith("What is it?\n\nInput (JSON):\n1\n\nYour previous answer was refused:\n1. /: ")
    assert "It was:\nIt is forty-two.\n" in second
    assert second.count("JSON Schema") == 1


def test_the_answer_is_quoted_back_and_not_the_record_around_it(tmp_path: Path) -> None:
    record = GOOD["codex"]["stdout"].replace(r"{\"answer\": 42}", r"{\"answer\": \"forty-two\"}")
    made = Program(tmp_path, stdout=record)
    made.ask("codex", attempts=2)
    assert "It was:\nSure! Here is the JSON:\n```json\n" in made.last.stdin
    assert "thread.started" not in made.last.stdin


# -- what a program is held to -------------------------------------------------------------------------------------


def test_claude_is_offered_the_named_tools_and_allowed_what_they_say(tmp_path: Path) -> None:
    made = program(tmp_path, "claude")
    made.ask("claude", request={"tools": ("Read", "Bash(git *)", "Bash(ls)")})
    assert made.last.after("--tools") == "Read,Bash"
    assert made.last.after("--allowedTools") == "Read,Bash(git *),Bash(ls)"
    assert "--strict-mcp-config" in made.last.argv
    made.ask("claude", request={"tools": ()})
    assert made.last.after("--tools") == ""
    made.ask("claude", request={"tools": ("mcp__docs__find",)})
    assert "--strict-mcp-config" not in made.last.argv


def test_opencode_is_denied_every_other_tool(tmp_path: Path) -> None:
    made = program(tmp_path, "opencode")
    made.ask("opencode", request={"tools": ("read", "grep")})
    permission = json.loads(made.last.env["OPENCODE_CONFIG_CONTENT"])["permission"]
    assert permission == {"*": "deny", "read": "allow", "grep": "allow"}
    made.ask("opencode")
    assert "OPENCODE_CONFIG_CONTENT" not in made.last.env


def test_gemini_has_a_policy_that_denies_every_other_tool(tmp_path: Path) -> None:
    made = program(tmp_path, "gemini")
    made.ask("gemini", request={"tools": ("read_file",)})
    rules = tomllib.loads(made.last.files["policy.toml"])["rule"]
    assert [(rule["toolName"], rule["decision"]) for rule in rules] == [("*", "deny"), ("read_file", "allow")]
    assert rules[0]["priority"] < rules[1]["priority"]


def test_hermes_and_llm_name_the_tools(tmp_path: Path) -> None:
    made = program(tmp_path, "hermes")
    made.ask("hermes", request={"tools": ("file", "web")})
    assert made.last.after("--toolsets") == "file,web"
    with pytest.raises(CannotEnforce, match="cannot go without any tool"):
        made.ask("hermes", request={"tools": ()})
    made = program(tmp_path, "llm")
    made.ask("llm", request={"tools": ("one", "two")})
    assert [word for word in made.last.argv if word in ("--tool", "one", "two")] == ["--tool", "one", "--tool", "two"]


def test_a_limit_that_a_program_cannot_be_held_to_stops_the_call(tmp_path: Path) -> None:
    made = program(tmp_path, "codex")
    with pytest.raises(CannotEnforce, match=r"the preset codex cannot limit an agent to tools=\['shell'\]"):
        made.ask("codex", request={"tools": ("shell",)})
    with pytest.raises(CannotEnforce, match="no place for model='big'"):
        made.ask("command", stdin="prompt", request={"model": "big"})
    assert not (tmp_path / "asked").exists()


def test_a_command_may_promise_to_keep_a_limit(tmp_path: Path) -> None:
    made = Program(tmp_path, stdout='{"answer": 42}')
    made.ask("command", enforces=("tools",), request={"tools": ("read",)})
    assert json.loads(made.last.stdin)["tools"] == ["read"]
