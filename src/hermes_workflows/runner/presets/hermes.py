"""Hermes Agent: `hermes -z`, the answer alone on standard output, usage in a file.

It ends with status 0 after a failure and prints the failure as if it were the answer; the usage file knows. A cost
of unknown origin is written as 0. It takes its prompt as a word of the command line only, which Linux limits to
128 KiB. An empty list of toolsets means the configured ones, and unknown names are passed over with a warning.
Known of version 0.19.
"""

from __future__ import annotations

from typing import Any

from ...core.canonical import parse
from ...errors import InvalidInput
from ..protocol import AgentResponse
from .base import MODEL, TOOLS, Ask, CannotEnforce, Invocation, Said, through_file
from .lines import count

_LONGEST_PROMPT = 120_000
_USAGE = "usage.json"
_UNKNOWN_TOOLSETS = "ignoring unknown --toolsets entries: "


class Hermes:
    install = "install it with `pip install hermes-agent`"

    def enforces(self, ask: Ask) -> frozenset[str]:
        return frozenset({TOOLS, MODEL})

    def prepare(self, ask: Ask) -> Invocation:
        prompt, files = through_file(ask, _LONGEST_PROMPT, "file")
        # A prompt that begins with a dash would be taken for an option.
        argv = [*ask.program("hermes"), f"--oneshot={prompt}", "--usage-file", ask.file(_USAGE)]
        argv += ask.model_words("--model")
        tools = ask.request.tools
        if tools is not None:
            if not tools:
                raise CannotEnforce("hermes cannot go without any tool", hint="name a toolset, as tools=['clarify']")
            argv += ["--toolsets", ",".join(tools)]
        return Invocation((*argv, *ask.settings.args), files=files, results=(_USAGE,))

    def read(self, ask: Ask, said: Said) -> AgentResponse | None:
        report = _report(said.files.get(_USAGE, ""))
        fields: dict[str, Any] = {
            "output": said.stdout.strip(),
            "usage": _usage(report),
            "model": report.get("model"),
            "session": report.get("session_id"),
        }
        if _UNKNOWN_TOOLSETS in said.stderr:
            fields["error"] = said.stderr[said.stderr.index(_UNKNOWN_TOOLSETS) :].splitlines()[0]
        elif report.get("failed") or report.get("completed") is False:
            fields["error"] = report.get("failure") or said.stdout.strip() or "it says that it did not complete"
        elif not said.stdout.strip():
            return None
        return AgentResponse.model_validate(fields)


def _report(text: str) -> dict[str, Any]:
    try:
        report = parse(text.encode("utf-8", "replace"))
    except InvalidInput:
        return {}
    return report if isinstance(report, dict) else {}


def _usage(report: dict[str, Any]) -> dict[str, Any] | None:
    if report.get("input_tokens") is None and report.get("output_tokens") is None:
        return None
    read = (report.get(name) for name in ("input_tokens", "cache_read_tokens", "cache_write_tokens"))
    cost = None if report.get("cost_status") in (None, "unknown") else report.get("estimated_cost_usd")
    return {"input_tokens": count(*read), "output_tokens": report.get("output_tokens"), "cost_usd": cost}


PRESET = Hermes()
