"""Gemini CLI: the prompt on standard input, one JSON object as the result.

It prints the object of a failure on standard error, among warnings. A prompt that is too long for the model ends with
status 0, no request and an empty response. It reports tokens and no cost. Which tools an agent may use is said in a
policy file; without one, those that change nothing. Known of version 0.61.
"""

from __future__ import annotations

import json
from typing import Any

from ..candidates import Printed
from ..protocol import AgentResponse
from .base import MODEL, TOOLS, Ask, Invocation, Said, through_file
from .lines import count, message_in

# By its own estimate non-Latin text has more than a token a character, and a model a window of a million.
_LONGEST_PROMPT = 500_000
_POLICY = "policy.toml"


class Gemini:
    install = "install it with `npm install -g @google/gemini-cli`"

    def enforces(self, ask: Ask) -> frozenset[str]:
        return frozenset({TOOLS, MODEL})

    def prepare(self, ask: Ask) -> Invocation:
        prompt, files = through_file(ask, _LONGEST_PROMPT, "read_file")
        argv = [*ask.program("gemini"), "--output-format", "json", *ask.model_words("--model")]
        if files:
            # Its tools read nothing outside of its folders.
            argv += ["--include-directories", str(ask.folder)]
        if ask.request.tools is not None:
            files = {**files, _POLICY: _policy(ask.request.tools).encode()}
            argv += ["--policy", ask.file(_POLICY)]
        # Nobody is there to be asked whether the folder is to be trusted; whoever configured this agent has said so.
        env = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
        return Invocation((*argv, *ask.settings.args), prompt.encode("utf-8", "replace"), files, env=env)

    def read(self, ask: Ask, said: Said) -> AgentResponse | None:
        result = _result(said.printed) or _result(Printed.of(said.stderr))
        if result is None:
            return None
        fields: dict[str, Any] = {"session": result.get("session_id"), **_used(result.get("stats"))}
        if result.get("error"):
            fields["error"] = message_in(result["error"])
        elif not str(result.get("response") or "").strip():
            fields["error"] = "it answered nothing, which is what it does when a prompt is too long for the model"
        else:
            fields["output"] = result["response"]
        return AgentResponse.model_validate(fields)


def _policy(tools: tuple[str, ...]) -> str:
    rules = ['[[rule]]\ntoolName = "*"\ndecision = "deny"\npriority = 900\n']
    # A JSON string is a TOML string, too.
    rules += [f'[[rule]]\ntoolName = {json.dumps(tool)}\ndecision = "allow"\npriority = 950\n' for tool in tools]
    return "\n".join(rules)


def _result(printed: Printed) -> dict[str, Any] | None:
    values = [one.value for one in printed.found]
    ours = [value for value in values if isinstance(value, dict) and value.keys() & {"response", "error"}]
    return next((value for value in reversed(ours) if "session_id" in value or "stats" in value), None)


def _used(stats: Any) -> dict[str, Any]:
    models = stats.get("models") if isinstance(stats, dict) else None
    if not isinstance(models, dict) or not models:
        return {}
    said = (model.get("tokens") for model in models.values() if isinstance(model, dict))
    tokens = [each for each in said if isinstance(each, dict)]
    usage = {
        "input_tokens": count(*(each.get("prompt") for each in tokens)),
        "output_tokens": count(*(each.get(name) for each in tokens for name in ("candidates", "thoughts"))),
    }
    return {"usage": usage, "model": "+".join(models)}


PRESET = Gemini()
