"""opencode: `opencode run`, the prompt on standard input, JSON Lines as the record of its work.

Each step is a message of its own, in parts; the answer is what the last one says. Older versions end with status 0
after an `error` event. Tools are limited by permissions in its configuration, which a variable may carry.
Known of version 1.18.
"""

from __future__ import annotations

import json
from typing import Any

from ..protocol import AgentResponse
from .base import MODEL, TOOLS, Ask, Invocation, Said
from .lines import amount, count, events, message_in


class Opencode:
    install = "install it with `npm install -g opencode-ai`"

    def enforces(self, ask: Ask) -> frozenset[str]:
        return frozenset({TOOLS, MODEL})

    def prepare(self, ask: Ask) -> Invocation:
        argv = (*ask.program("opencode"), "run", "--format", "json", *ask.model_words("--model"), *ask.settings.args)
        env = {}
        if ask.request.tools is not None:
            permission = {"*": "deny"} | dict.fromkeys(ask.request.tools, "allow")
            env["OPENCODE_CONFIG_CONTENT"] = json.dumps({"permission": permission})
        return Invocation(argv, ask.prompt.encode("utf-8", "replace"), env=env)

    def read(self, ask: Ask, said: Said) -> AgentResponse | None:
        record = events(said.printed)
        if not record:
            return None
        errors = [event.get("error") for event in record if event["type"] == "error"]
        fields: dict[str, Any] = {
            "usage": _usage([_part(event) for event in record if event["type"] == "step_finish"]),
            "error": message_in(errors[-1]) if errors else None,
            "session": next((event["sessionID"] for event in record if "sessionID" in event), None),
        }
        if text := _last_message([_part(event) for event in record if event["type"] == "text"]):
            fields["output"] = text
        return AgentResponse.model_validate(fields)


def _last_message(texts: list[dict[str, Any]]) -> str:
    last = texts[-1].get("messageID") if texts else None
    return "\n".join(str(part.get("text", "")) for part in texts if part.get("messageID") == last).strip()


def _part(event: dict[str, Any]) -> dict[str, Any]:
    part = event.get("part")
    return part if isinstance(part, dict) else {}


def _usage(steps: list[dict[str, Any]]) -> dict[str, Any] | None:
    tokens = [step["tokens"] for step in steps if isinstance(step.get("tokens"), dict)]
    if not tokens:
        return None
    cached = [each["cache"] for each in tokens if isinstance(each.get("cache"), dict)]
    costs = [step["cost"] for step in steps if "cost" in step]
    return {
        "input_tokens": count(
            *(each.get("input") for each in tokens),
            *(each.get(name) for each in cached for name in ("read", "write")),
        ),
        "output_tokens": count(*(each.get(name) for each in tokens for name in ("output", "reasoning"))),
        "cost_usd": amount(*costs) if costs else None,
    }


PRESET = Opencode()
