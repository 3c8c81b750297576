"""What Hermes is given when it starts: tools, commands, hooks and skills, each with a function that is found later.

A Hermes that lacks one of the methods gets the rest: `hermes-workflows hermes doctor` says what is left out.
Nothing is opened or read here but the registry, which says whether the model may answer questions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from ..errors import HermesError
from .host import registry_here

log = logging.getLogger(__name__)

NAME: Final = "hermes-workflows"
TOOLSET: Final = "workflows"
SKILLS: Final = Path(__file__).parent / "skills"

METHODS: Final = ("register_tool", "register_command", "register_cli_command", "register_skill", "register_hook")
"""All that is asked of Hermes' context."""


class Tool(NamedTuple):
    """A tool of the model. `function` is one of `tools.py`; `fields` are its arguments as JSON Schema."""

    name: str
    function: str
    description: str
    fields: Mapping[str, Any]
    required: tuple[str, ...] = ()

    @property
    def schema(self) -> dict[str, Any]:
        parameters = {"type": "object", "properties": dict(self.fields), "required": list(self.required)}
        return {"name": self.name, "description": self.description, "parameters": parameters}


_RUN: Final = {"run": {"type": "string", "description": "The run's id, or the beginning of it."}}
_KEY: Final = {"key": {"type": "string", "description": "The call's key, as status and the list of reviews have it."}}

TOOLS: Final = (
    Tool(
        "workflow_list",
        "list_workflows",
        "List the workflows that can be started here: alias, what each does, and the JSON Schema of its input.",
        {},
    ),
    Tool(
        "workflow_start",
        "start",
        "Start a workflow and return the new run. A runner executes it; this does not wait. "
        "Give the same run_id to try again without starting twice.",
        {
            "workflow": {"type": "string", "description": "An alias that workflow_list shows."},
            "input_json": {"type": "string", "description": "The input as JSON; left out when it takes none."},
            "run_id": {"type": "string", "description": "An id of your own for the run."},
        },
        ("workflow",),
    ),
    Tool(
        "workflow_status",
        "status",
        "Where a run stands: its state, why, what to do next, its result. Without a run: the newest runs.",
        _RUN,
    ),
    Tool(
        "workflow_receipt",
        "receipt",
        "What a run recorded: its calls, or with a key the request, output and transcript of one call.",
        _RUN | _KEY,
        ("run",),
    ),
    Tool(
        "workflow_reviews",
        "reviews",
        "List the questions that wait for a person, oldest first. They are for people to answer: show them, "
        "and do not answer for them.",
        _RUN,
    ),
)

ANSWER_TOOL: Final = Tool(
    "workflow_answer",
    "answer",
    "Answer a question of a run in your own name. It is recorded as an agent's answer, never as a person's.",
    _RUN | _KEY | {"answer_json": {"type": "string", "description": "The answer as JSON, as the question wants it."}},
    ("run", "key", "answer_json"),
)

HOOKS: Final[Mapping[str, tuple[str, str]]] = {"pre_gateway_dispatch": ("gateway", "on_message")}
"""Hook → (module, function) of this package."""

COMMANDS_HINT: Final = "list | start NAME [JSON] | status [RUN] | review [RUN KEY] | answer RUN KEY JSON"

_SKILLS: Final = {
    "running-workflows": "Starting workflows, following runs, and what to do when one waits or is stuck.",
    "writing-workflows": "Writing a durable workflow in Python: agents, commands, questions, tests.",
}


def register(ctx: Any) -> None:
    """The entry point `hermes_agent.plugins`."""
    offer = _Offer(ctx)
    for tool in (*TOOLS, *([ANSWER_TOOL] if _may_answer() else [])):
        offer(
            "register_tool",
            name=tool.name,
            toolset=TOOLSET,
            schema=tool.schema,
            handler=later("tools", tool.function),
            description=tool.description,
            emoji="🧾",
        )
    offer(
        "register_command",
        name="workflow",
        handler=later("chat", "command", ctx),
        description="Workflows: list, start, status, review, answer",
        args_hint=COMMANDS_HINT,
    )
    offer(
        "register_cli_command",
        name="workflows",
        help="Everything that hermes-workflows can do",
        setup_fn=_arguments,
        handler_fn=later("shell", "run"),
        description="`hermes workflows ARGUMENTS…` is `hermes-workflows ARGUMENTS…`.",
    )
    for hook, (module, function) in HOOKS.items():
        offer("register_hook", hook_name=hook, callback=later(module, function))
    for name, description in _SKILLS.items():
        offer("register_skill", name=name, path=SKILLS / name / "SKILL.md", description=description)


class _Offer:
    """Calls a method of the context, if this Hermes has it."""

    def __init__(self, ctx: Any) -> None:
        self._ctx = ctx

    def __call__(self, method: str, **given: Any) -> None:
        if not callable(found := getattr(self._ctx, method, None)):
            return
        try:
            found(**given)
        except Exception as error:
            # Another version may want other arguments: that costs this part, and not the rest.
            log.warning("Hermes does not take %s: %s", given.get("name") or given.get("hook_name"), error)


def later(module: str, function: str, *first: Any) -> Callable[..., Any]:
    """The function of this package, imported when it is called: Hermes starts without what few sessions need."""

    def called(*args: Any, **kwargs: Any) -> Any:
        return getattr(import_module(f"{__package__}.{module}"), function)(*first, *args, **kwargs)

    return called


def _may_answer() -> bool:
    try:
        return registry_here().hermes.answer_tool
    except (HermesError, OSError):
        return False


def _arguments(parser: Any) -> None:
    parser.add_argument("arguments", nargs="...", help="as for hermes-workflows; without any, they are shown")
