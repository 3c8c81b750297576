"""The `llm` command line: one question to one model, the prompt on standard input, the answer on standard output.

Tokens are said on standard error; there is no cost. Tools are those that are named, and none otherwise.
Structured output is asked for when the agent's entry says `"structured": true`: a model that has none makes the
program fail. Known of version 0.36.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..protocol import AgentResponse
from .base import MODEL, TOOLS, Ask, Invocation, Said
from .dialect import Structured, structured

_SCHEMA = "schema.json"
_USAGE = re.compile(r"^Token usage: ([0-9][0-9,]{0,30}) input, ([0-9][0-9,]{0,30}) output", re.M)


class Llm:
    install = "install it with `pip install llm`"

    def enforces(self, ask: Ask) -> frozenset[str]:
        return frozenset({TOOLS, MODEL})

    def prepare(self, ask: Ask) -> Invocation:
        argv = [*ask.program("llm"), "--no-stream", "--usage", *ask.model_words("--model")]
        files = {}
        for tool in ask.request.tools or ():
            argv += ["--tool", tool]
        if form := _form(ask):
            files[_SCHEMA] = json.dumps(form.schema).encode()
            argv += ["--schema", ask.file(_SCHEMA)]
        return Invocation((*argv, *ask.settings.args), ask.prompt.encode("utf-8", "replace"), files)

    def read(self, ask: Ask, said: Said) -> AgentResponse | None:
        text = said.stdout.strip()
        if not text:
            return None
        form = _form(ask)
        fields: dict[str, Any] = {"output": form.unwrap(text) if form else text, "model": ask.model}
        if used := _USAGE.search(said.stderr):
            read, written = (int(number.replace(",", "")) for number in used.groups())
            fields["usage"] = {"input_tokens": read, "output_tokens": written}
        return AgentResponse.model_validate(fields)


def _form(ask: Ask) -> Structured | None:
    return structured(ask.request.returns or {}, closed=True) if ask.settings.structured else None


PRESET = Llm()
