"""How agents and the environment are said: in the registry, by flags; and who is found for a name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes_workflows.errors import InvalidInput
from hermes_workflows.registry import Registry, parse
from hermes_workflows.settings import (
    Agents,
    AgentSettings,
    EnvironmentRules,
    FromEnvironment,
    Prices,
    PullRequests,
    chosen_agent,
)

PLACE = Path("/ws/.hermes/workflows.registry.json")


def parsed(**data: Any) -> Registry:
    return parse(json.dumps(data), PLACE)


def entry(**fields: Any) -> AgentSettings:
    return parsed(agents={"writer": fields}).agents["writer"]


def test_a_name_alone_is_a_preset() -> None:
    assert parsed(agents={"writer": "claude"}).agents == {"writer": AgentSettings("claude")}


def test_a_command_needs_no_preset_and_may_be_written_as_in_a_shell() -> None:
    assert entry(command="my-agent --fast 'a b'").command == ("my-agent", "--fast", "a b")
    assert entry(command=["my-agent", "a b"]) == AgentSettings("command", ("my-agent", "a b"))


def test_every_part_of_an_entry_is_read() -> None:
    made = entry(
        preset="codex",
        command="/opt/codex",
        args=["--sandbox", "read-only"],
        model="big",
        timeout=60,
        budget=1.5,
        prices={"input": 1.25, "output": 10},
        env={"MODE": "fast", "TOKEN": {"from": "MY_TOKEN"}},
        structured=False,
    )
    assert (made.command, made.args, made.model) == (("/opt/codex",), ("--sandbox", "read-only"), "big")
    assert (made.timeout, made.budget, made.prices) == (60.0, 1.5, Prices(1.25, 10.0))
    assert made.env == {"MODE": "fast", "TOKEN": FromEnvironment("MY_TOKEN")}
    assert made.structured is False


@pytest.mark.parametrize(
    ("fields", "message", "hint"),
    [
        ({"preset": "cloude"}, "agents.writer.preset names no preset: 'cloude'", "did you mean 'claude'?"),
        ({"preset": "claude", "modle": "x"}, "agents.writer.modle is not a known key", "did you mean 'model'?"),
        ({}, "agents.writer.preset is missing", None),
        ({"preset": "command"}, "agents.writer.command is missing", None),
        ({"preset": "claude", "stdin": "json"}, "agents.writer.stdin belongs to the preset 'command'", None),
        ({"command": "x", "answers": "a.json"}, "agents.writer.answers belongs to the preset 'replay'", None),
        ({"command": "x", "stdin": "file"}, "agents.writer.stdin must be one of json, prompt, none", None),
        ({"preset": "replay"}, "agents.writer needs one of answers (a file) and run (an id)", None),
        ({"preset": "claude", "timeout": 0}, "agents.writer.timeout must be a number above 0", None),
        ({"preset": "claude", "timeout": True}, "agents.writer.timeout must be a number above 0", None),
        ({"preset": "claude", "budget": "1"}, "agents.writer.budget must be a number above 0", None),
        ({"preset": "llm", "prices": {"input": -1, "output": 1}}, "prices.input must be a number of at least 0", None),
        ({"preset": "llm", "prices": {"input": 1}}, "agents.writer.prices.output is missing", None),
        ({"command": "it's"}, "agents.writer.command cannot be split into words", None),
        ({"command": "x", "args": [1]}, "agents.writer.args must be a text or a list of texts", None),
        ({"command": "x", "env": {"A": 1}}, "agents.writer.env.A must be a JSON object", None),
        ({"command": "x", "env": {"A": {}}}, "agents.writer.env.A.from is missing", None),
        ({"preset": "llm", "structured": 1}, "agents.writer.structured must be true or false", None),
    ],
)
def test_what_an_entry_cannot_be_is_named_by_its_place(fields: Any, message: str, hint: str | None) -> None:
    with pytest.raises(InvalidInput) as caught:
        entry(**fields)
    assert message in caught.value.message
    assert hint is None or caught.value.hint == hint


def test_a_flag_chooses_a_preset_and_perhaps_its_model() -> None:
    assert chosen_agent("writer=claude") == ("writer", AgentSettings("claude"))
    assert chosen_agent("*=llm:llama3:8b") == ("*", AgentSettings("llm", model="llama3:8b"))
    assert chosen_agent("*=replay:a.json") == ("*", AgentSettings("replay", answers="a.json"))
    assert chosen_agent("*=replay:wf_1") == ("*", AgentSettings("replay", run="wf_1"))


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("claude", "is not NAME=PRESET"),
        ("=claude", "is not NAME=PRESET"),
        ("writer=cloude", "did you mean 'claude'?"),
        ("writer=command", "use --agent-command"),
        ("writer=replay", "NAME=replay:FILE.json"),
    ],
)
def test_a_flag_that_says_nothing_clear_is_refused(flag: str, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        chosen_agent(flag)
    assert message in str(caught.value)


def test_the_nearest_word_on_a_name_wins() -> None:
    made = {name: AgentSettings("command", (name,)) for name in ("flag", "flag*", "registry", "registry*", "variable")}
    agents = Agents({"a": made["flag"]}, {"a": made["registry"], "b": made["registry"], "*": made["registry*"]})
    assert [agents.find(name) for name in "abc"] == [made["flag"], made["registry"], made["registry*"]]
    agents = Agents({"*": made["flag*"]}, {"a": made["registry"]})
    assert agents.find("a") == made["flag*"]
    agents = Agents({}, {"a": made["registry"], "*": made["registry*"]}, made["variable"])
    assert [agents.find(name) for name in "ab"] == [made["registry"], made["variable"]]
    assert Agents({}, {}).find("a") is None


def test_rules_of_the_environment_are_read() -> None:
    assert parsed().environment == EnvironmentRules()
    assert parsed(environment={"deny": ["AWS_*"]}).environment == EnvironmentRules(None, ("AWS_*",))
    with pytest.raises(InvalidInput, match=r"environment\.alow is not a known key"):
        parsed(environment={"alow": []})
    with pytest.raises(InvalidInput, match=r"environment\.allow must be a list"):
        parsed(environment={"allow": "PATH"})


def test_rules_pass_what_every_program_needs_and_deny_wins() -> None:
    rules = EnvironmentRules(("APP_*",), ("APP_KEY", "LC_*"))
    assert [rules.passes(name) for name in ("APP_MODE", "PATH", "HOME", "LANG")] == [True] * 4
    assert [rules.passes(name) for name in ("APP_KEY", "LC_ALL", "OTHER", "app_mode")] == [False] * 4
    assert EnvironmentRules(None, ("X",)).passes("ANYTHING")


def test_pull_requests_name_a_repository_and_how_often_to_look() -> None:
    assert parsed(pull_requests="acme/runs").pull_requests == PullRequests("acme/runs", 60.0)
    told = parsed(pull_requests={"repository": "ghe.example.org/acme/runs", "every": 5})
    assert told.pull_requests == PullRequests("ghe.example.org/acme/runs", 5.0)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"every": 5}, "pull_requests.repository is missing"),
        ("runs", "pull_requests.repository names no repository"),
        ({"repository": "a/b", "every": 0}, "pull_requests.every must be a number above 0"),
        ({"repositry": "a/b"}, "pull_requests.repositry is not a known key"),
    ],
)
def test_pull_requests_that_nobody_could_look_at_are_refused(said: Any, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        parsed(pull_requests=said)
