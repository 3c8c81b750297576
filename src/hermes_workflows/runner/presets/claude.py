"""Claude Code: `claude -p`, the prompt on standard input, one JSON object as the result.

Structured output comes beside the prose, from a tool that the program validates by itself. A failed session says
`subtype: success` and `is_error: true`, and may say nothing in `result`. Known of version 2.1.
"""

from __future__ import annotations

import json

from ..candidates import find_response
from ..protocol import AgentResponse
from .base import MODEL, TOOLS, Ask, Invocation, Said
from .dialect import Structured, structured

# Linux takes no longer word on a command line than 128 KiB; a schema of that size goes without.
_LONGEST_SCHEMA = 100_000


class Claude:
    install = "install it with `npm install -g @anthropic-ai/claude-code`"

    def enforces(self, ask: Ask) -> frozenset[str]:
        return frozenset({TOOLS, MODEL})

    def prepare(self, ask: Ask) -> Invocation:
        argv = [*ask.program("claude"), "-p", "--output-format", "json", *ask.model_words("--model")]
        if form := _form(ask):
            argv += ["--json-schema", json.dumps(form.schema)]
        if ask.budget is not None:
            argv += ["--max-budget-usd", f"{ask.budget:.6f}"]
        return Invocation((*argv, *_tools(ask), *ask.settings.args), ask.prompt.encode("utf-8", "replace"))

    def read(self, ask: Ask, said: Said) -> AgentResponse | None:
        response = find_response(said.printed)
        form = _form(ask)
        if response is None or form is None or not response.has_output:
            return response
        return response.model_copy(update={"output": form.unwrap(response.output)})


def _form(ask: Ask) -> Structured | None:
    if ask.settings.structured is False:
        return None
    form = structured(ask.request.returns or {})
    return form if form and len(json.dumps(form.schema)) <= _LONGEST_SCHEMA else None


def _tools(ask: Ask) -> list[str]:
    """`Bash(git *)` makes Bash available and allows only that; what is not listed is not even offered."""
    tools = ask.request.tools
    if tools is None:
        return []
    names = list(dict.fromkeys(tool.partition("(")[0] for tool in tools if not tool.startswith("mcp__")))
    words = ["--tools", ",".join(names)]
    if tools:
        words += ["--allowedTools", ",".join(tools)]
    # Servers of the user's own settings would bring tools that nobody listed.
    return words if any(tool.startswith("mcp__") for tool in tools) else [*words, "--strict-mcp-config"]


PRESET = Claude()
