"""OpenAI Codex: `codex exec`, the prompt on standard input, JSON Lines as the record of its work.

The answer is the last message of the turn. An `error` among the items is a warning; a failed turn says `turn.failed`,
with the provider's JSON inside a text. It reports tokens and no cost, takes no prompt of more than 1,048,576
characters, and cannot be limited to some tools. Known of version 0.171.
"""

from __future__ import annotations

import json
from typing import Any

from ..protocol import AgentResponse
from .base import MODEL, Ask, Invocation, Said, through_file
from .dialect import Structured, structured
from .lines import count, events, message_in

_LONGEST_PROMPT = 1_000_000
_SCHEMA = "schema.json"


class Codex:
    install = "install it with `npm install -g @openai/codex`"

    def enforces(self, ask: Ask) -> frozenset[str]:
        return frozenset({MODEL})

    def prepare(self, ask: Ask) -> Invocation:
        prompt, files = through_file(ask, _LONGEST_PROMPT)
        argv = [*ask.program("codex"), "exec", "--json", "--skip-git-repo-check", "--color", "never"]
        argv += ask.model_words("--model")
        if form := _form(ask):
            files = {**files, _SCHEMA: json.dumps(form.schema).encode()}
            argv += ["--output-schema", ask.file(_SCHEMA)]
        return Invocation((*argv, *ask.settings.args, "-"), prompt.encode("utf-8", "replace"), files)

    def read(self, ask: Ask, said: Said) -> AgentResponse | None:
        record = events(said.printed)
        if not record:
            return None
        fields: dict[str, Any] = {"usage": _usage(record), "error": _error(record)}
        for event in record:
            if event["type"] == "thread.started":
                fields["session"] = event.get("thread_id")
            if text := _message(event):
                fields["output"] = text
        if (form := _form(ask)) and "output" in fields:
            fields["output"] = form.unwrap(fields["output"])
        return AgentResponse.model_validate(fields)


def _form(ask: Ask) -> Structured | None:
    return None if ask.settings.structured is False else structured(ask.request.returns or {}, closed=True)


def _message(event: dict[str, Any]) -> str:
    item = event.get("item")
    if event["type"] != "item.completed" or not isinstance(item, dict) or item.get("type") != "agent_message":
        return ""
    return str(item.get("text", "")).strip()


def _error(record: list[dict[str, Any]]) -> str | None:
    failed = [event for event in record if event["type"] == "turn.failed"]
    if failed:
        return message_in(failed[-1].get("error"))
    # Errors on the way, as of a connection that was then made again, do not count once the turn is complete.
    lost = [event for event in record if event["type"] == "error"]
    done = any(event["type"] == "turn.completed" for event in record)
    return message_in(lost[-1].get("message")) if lost and not done else None


def _usage(record: list[dict[str, Any]]) -> dict[str, int] | None:
    turns = [event["usage"] for event in record if isinstance(event.get("usage"), dict)]
    if not turns:
        return None
    return {name: count(*(turn.get(name) for turn in turns)) for name in ("input_tokens", "output_tokens")}


PRESET = Codex()
