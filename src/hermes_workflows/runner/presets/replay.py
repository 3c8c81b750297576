"""Recorded answers: from a file, or from the receipts of an earlier run. Nothing is started and nothing is spent.

A file holds a list of entries; the first that fits the call answers it:

    [{"key": "research/docs", "output": {"risk": "low"}},
     {"name": "writer", "attempt": 1, "output": "no JSON", "usage": {"input_tokens": 12}},
     {"name": "writer", "error": "out of quota"},
     {"output": "whatever else is asked"}]

`key`, `name` and `attempt` say what an entry is for; the rest is a `hermes.agent-response/1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import InvalidInput, NotFound
from ..protocol import RESPONSE_SCHEMA, AgentRequest, AgentResponse
from .base import MODEL, TOOLS, Ask, Said

_FOR = ("key", "name", "attempt")
_SAYS = frozenset(AgentResponse.model_fields) - {"schema_"} | {"schema"}


class Replay:
    # Whatever the first run was held to; nothing is executed here that could go beyond it.
    install = ""

    def enforces(self, ask: Ask) -> frozenset[str]:
        return frozenset({TOOLS, MODEL})

    def prepare(self, ask: Ask) -> AgentResponse:
        request = ask.request
        for entry in ask.recorded:
            if _fits(entry, request):
                return AgentResponse.model_validate({name: part for name, part in entry.items() if name in _SAYS})
        source = ask.settings.answers or f"run {ask.settings.run}"
        raise NotFound(
            f"{source} has no answer for the call {request.key} (agent {request.name}, attempt {request.attempt})",
            hint="add an entry with this key, or one without key and name for everything else",
        )

    def read(self, ask: Ask, said: Said) -> AgentResponse | None:
        raise AssertionError("a replay starts nothing that could say something")


def entries_of(data: Any, source: str) -> tuple[Mapping[str, Any], ...]:
    """The entries in a file's JSON. Raises InvalidInput that names the place."""
    if not isinstance(data, list):
        raise InvalidInput(f"{source}: must be a list of answers", hint='[{"name": "writer", "output": …}, …]')
    for number, entry in enumerate(data):
        if not isinstance(entry, dict) or not entry.keys() & {"output", "error"}:
            raise InvalidInput(f"{source}: entry {number} must be an object with an output or an error")
        if unknown := sorted(entry.keys() - {*_FOR, *_SAYS}):
            raise InvalidInput(f"{source}: entry {number}: {unknown[0]!r} is not known; known: {', '.join(_FOR)}, …")
        if entry.get("schema", RESPONSE_SCHEMA) != RESPONSE_SCHEMA:
            raise InvalidInput(f"{source}: entry {number}: its schema is not {RESPONSE_SCHEMA}")
    return tuple(data)


def _fits(entry: Mapping[str, Any], request: AgentRequest) -> bool:
    return all(entry[name] == getattr(request, name) for name in _FOR if name in entry)


PRESET = Replay()
