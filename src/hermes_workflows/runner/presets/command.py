"""A command of one's own: the JSON protocol on standard input, or any program by a template of its command line.

Words may hold `{prompt_file}`, `{request_file}`, `{schema_file}`, `{output_file}`, `{model}`, `{workspace}` and
`{tools}`. The answer is what it leaves in the output file, else what it prints: a response, or just the value.
"""

from __future__ import annotations

import json
import re

from ...errors import InvalidInput
from ..candidates import Printed, find_response
from ..protocol import AgentResponse
from .base import MODEL, TOOLS, Ask, Invocation, Said
from .prompts import as_json

_PLACE = re.compile(r"\{(prompt_file|request_file|schema_file|output_file|model|workspace|tools)\}")
_OUTPUT = "output"
_FILES = {"prompt_file": "prompt.md", "request_file": "request.json", "schema_file": "schema.json"}


class Command:
    install = "is it on the PATH that the runner was started with?"

    def enforces(self, ask: Ask) -> frozenset[str]:
        """What a command can be held to by its template; the JSON protocol says the model by itself."""
        settings = ask.settings
        used = places(*settings.command, *settings.args, *settings.model_args)
        speaks_json = "request_file" in used or _speaks(ask, used) == "json"
        held = {MODEL: speaks_json or "model" in used, TOOLS: "tools" in used}
        return frozenset(name for name, is_held in held.items() if is_held) | frozenset(settings.enforces)

    def prepare(self, ask: Ask) -> Invocation:
        settings = ask.settings
        template = (*settings.command, *settings.args, *(settings.model_args if ask.model else ()))
        used = places(*template)
        if "model" in used and not ask.model:
            raise InvalidInput(
                "the command has a place for {model}, and neither the call nor the agent's entry names one",
                hint="put those words into model_args, which are left out then",
            )
        contents = {"prompt_file": ask.prompt, "request_file": _request(ask), "schema_file": _schema(ask)}
        return Invocation(
            argv=tuple(_PLACE.sub(lambda place: _filled(ask, place[1]), word) for word in template),
            stdin=_stdin(ask, used),
            files={_FILES[name]: contents[name].encode("utf-8", "replace") for name in _FILES if name in used},
            results=(_OUTPUT,) if "output_file" in used else (),
        )

    def read(self, ask: Ask, said: Said) -> AgentResponse | None:
        written = said.files.get(_OUTPUT, "")
        if not written.strip():
            return find_response(said.printed)
        # A bare value in the file is the output itself, as text: whoever reads it looks for the value in it.
        return find_response(Printed.of(written)) or AgentResponse(output=written.strip())


def places(*words: str) -> frozenset[str]:
    """The placeholders in a template."""
    return frozenset(place for word in words for place in _PLACE.findall(word))


def _filled(ask: Ask, place: str) -> str:
    if place in _FILES:
        return ask.file(_FILES[place])
    texts = {
        "output_file": ask.file(_OUTPUT),
        "model": ask.model or "",
        "workspace": str(ask.cwd),
        "tools": ",".join(ask.request.tools or ()),
    }
    return texts[place]


def _speaks(ask: Ask, used: frozenset[str]) -> str:
    """A program that is given a file has been asked; standard input is for the others."""
    return ask.settings.stdin or ("none" if used & {"prompt_file", "request_file"} else "json")


def _stdin(ask: Ask, used: frozenset[str]) -> bytes | None:
    text = {"json": _request(ask), "prompt": ask.prompt, "none": None}[_speaks(ask, used)]
    return None if text is None else text.encode("utf-8", "replace")


def _request(ask: Ask) -> str:
    # One line, so that an agent may read a line as well as everything.
    return as_json(ask.request.model_dump(by_alias=True)) + "\n"


def _schema(ask: Ask) -> str:
    return json.dumps(ask.request.returns or {}, indent=2)


PRESET = Command()
