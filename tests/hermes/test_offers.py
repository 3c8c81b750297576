"""What Hermes is offered at its start, how little that costs, and what an older Hermes gets of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.hermes.place import Inside, inside, registry_with

from hermes_workflows.hermes_plugin import register
from hermes_workflows.hermes_plugin.offers import ANSWER_TOOL, HOOKS, METHODS, SKILLS, TOOLS

__all__ = ["inside"]

# Whatever takes time to import, and the terminal's and the web's worlds, which Hermes has its own versions of.
_HEAVY = {"asyncio", "click", "dulwich", "jinja2", "jsonschema", "orjson", "pydantic", "rich", "sqlite3", "starlette"}


class Context:
    """What Hermes hands to a plugin, with the methods that are named, and what was said to each."""

    def __init__(self, *methods: str) -> None:
        self.said: dict[str, list[dict[str, Any]]] = {}
        for method in methods:
            setattr(self, method, lambda method=method, **given: self.said.setdefault(method, []).append(given))

    def names(self, method: str) -> list[str]:
        return [given["name"] for given in self.said.get(method, [])]


def _allow_answers(inside: Inside) -> None:
    file = inside.work.root / ".hermes" / "workflows.registry.json"
    file.write_text(json.dumps(registry_with(hermes={"answer_tool": True})))


def test_importing_and_registering_loads_nothing_heavy(inside: Inside) -> None:
    script = "import sys; before = set(sys.modules); from hermes_workflows.hermes_plugin import register\n"
    script += "class Context:\n    def __getattr__(self, name): return lambda **given: None\n"
    script += "register(Context()); print(*sorted(set(sys.modules) - before))"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=inside.work.env(), stdout=subprocess.PIPE, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {name.partition(".")[0] for name in loaded} & _HEAVY == set()
    assert len(loaded) < 90, sorted(loaded)


def test_the_model_gets_tools_to_start_and_look_and_none_to_answer(inside: Inside) -> None:
    register(context := Context(*METHODS))
    assert context.names("register_tool") == [tool.name for tool in TOOLS]
    assert ANSWER_TOOL.name not in context.names("register_tool")


def test_a_registry_that_says_so_gives_the_model_a_tool_to_answer(inside: Inside) -> None:
    _allow_answers(inside)
    register(context := Context(*METHODS))
    assert context.names("register_tool") == [*(tool.name for tool in TOOLS), ANSWER_TOOL.name]


def test_a_registry_that_cannot_be_read_gives_no_tool_to_answer(inside: Inside) -> None:
    (inside.work.root / ".hermes" / "workflows.registry.json").write_text("{")
    register(context := Context(*METHODS))
    assert ANSWER_TOOL.name not in context.names("register_tool")


@pytest.mark.parametrize("missing", METHODS)
def test_a_hermes_without_one_of_the_methods_gets_the_rest(inside: Inside, missing: str) -> None:
    register(context := Context(*(method for method in METHODS if method != missing)))
    assert set(context.said) == set(METHODS) - {missing}


@pytest.mark.parametrize("refusing", METHODS)
def test_a_hermes_whose_method_wants_other_arguments_gets_the_rest(inside: Inside, refusing: str) -> None:
    context = Context(*METHODS)
    setattr(context, refusing, lambda name: None)
    register(context)
    assert set(context.said) == set(METHODS) - {refusing}


def test_every_argument_of_a_tool_says_its_type_and_every_required_one_is_there() -> None:
    for tool in (*TOOLS, ANSWER_TOOL):
        assert all("type" in field for field in tool.fields.values()), tool.name
        assert set(tool.required) <= set(tool.fields), tool.name


def test_every_function_that_is_offered_is_there(inside: Inside) -> None:
    from hermes_workflows.hermes_plugin import chat, gateway, shell, tools

    modules = {"chat": chat, "gateway": gateway, "shell": shell, "tools": tools}
    assert all(callable(getattr(tools, tool.function)) for tool in (*TOOLS, ANSWER_TOOL))
    assert all(callable(getattr(modules[module], function)) for module, function in HOOKS.values())
    assert callable(chat.command)
    assert callable(shell.run)


def test_every_skill_is_offered_with_a_name_and_a_description_of_its_own(inside: Inside) -> None:
    register(context := Context(*METHODS))
    offered = {given["name"]: Path(given["path"]) for given in context.said["register_skill"]}
    assert set(offered.values()) == set(SKILLS.glob("*/SKILL.md"))
    for name, path in offered.items():
        head = path.read_text(encoding="utf-8").split("---")[1]
        assert f"name: {name}\n" in head
        assert "description: " in head
