"""The environment of commands and agents."""

from __future__ import annotations

import pytest

from hermes_workflows.runner.environment import ORIGINAL_HASHSEED, clean_environment


@pytest.mark.parametrize(
    "name",
    [
        "GIT_DIR",
        "GIT_INDEX_FILE",
        "GIT_WORK_TREE",
        "GIT_AUTHOR_NAME",
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SSE_PORT",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
        "CODEX_THREAD_ID",
        "GEMINI_CLI",
        "OPENCODE",
        "OPENCODE_PID",
        "HERMES_SESSION",
        "HERMES_SESSION_ID",
        "FORCE_COLOR",
    ],
)
def test_marks_of_the_surroundings_are_removed(name: str) -> None:
    assert name not in clean_environment({name: "1"})


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "ANTHROPIC_API_KEY",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CODEX_HOME",
        "CODEX_API_KEY",
        "GEMINI_API_KEY",
        "OPENCODE_CONFIG",
        "HERMES_HOME",
        "GITHUB_TOKEN",
    ],
)
def test_keys_and_settings_stay(name: str) -> None:
    assert clean_environment({name: "value"})[name] == "value"


def test_nobody_draws_colours_or_asks() -> None:
    clean = clean_environment({"TERM": "xterm-256color", "CI": "", "NO_COLOR": ""})
    assert (clean["NO_COLOR"], clean["CI"], clean["TERM"]) == ("1", "1", "dumb")


@pytest.mark.parametrize(("original", "expected"), [("", None), ("7", "7"), ("random", "random")])
def test_the_hash_seed_is_as_the_user_had_it(original: str, expected: str | None) -> None:
    clean = clean_environment({"PYTHONHASHSEED": "0", ORIGINAL_HASHSEED: original})
    assert clean.get("PYTHONHASHSEED") == expected
    assert ORIGINAL_HASHSEED not in clean


def test_a_hash_seed_that_nobody_changed_stays() -> None:
    assert clean_environment({"PYTHONHASHSEED": "5"})["PYTHONHASHSEED"] == "5"


def test_what_the_author_wants_wins_and_the_given_mapping_is_not_touched() -> None:
    given = {"GIT_DIR": "/elsewhere"}
    clean = clean_environment(given, {"GIT_DIR": "/mine", "TERM": "vt100"})
    assert (clean["GIT_DIR"], clean["TERM"]) == ("/mine", "vt100")
    assert given == {"GIT_DIR": "/elsewhere"}
