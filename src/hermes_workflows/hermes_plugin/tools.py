"""The tools of the model: a JSON document for each call, an error with what to do about it for each mistake.

Nothing here answers a question unless the registry says so, and then as an agent (SEMANTICS §8).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..core.encoding import Plain
from ..core.receipts import Provenance
from ..errors import HermesError, InvalidInput
from .host import registry_here
from .service import read_json, service, workflows
from .service import start as start_run

LONGEST: Final = 24_000
"""Characters of one result. A model reads all of it, so long texts in it are cut; the receipts have them whole."""

CHANNEL: Final = "hermes-tool"

_CUTS: Final = (8_000, 2_000, 500, 120)


def list_workflows(args: Any, **_: Any) -> str:
    return _told(workflows)


def start(args: Any, **_: Any) -> str:
    def begin() -> Plain:
        given = args.get("input_json") if isinstance(args, Mapping) else None
        # Models also hand over the value itself.
        text = given if isinstance(given, str) or given is None else json.dumps(given)
        return start_run(_text(args, "workflow"), text or None, _optional(args, "run_id"))

    return _told(begin)


def status(args: Any, **_: Any) -> str:
    def look() -> Plain:
        with service() as here:
            run = _optional(args, "run")
            return here.status(run) if run else here.newest()

    return _told(look)


def receipt(args: Any, **_: Any) -> str:
    def look() -> Plain:
        with service() as here:
            return here.receipt(_text(args, "run"), _optional(args, "key"))

    return _told(look)


def reviews(args: Any, **_: Any) -> str:
    def look() -> Plain:
        with service() as here:
            return here.reviews(_optional(args, "run"))

    return _told(look)


def answer(args: Any, **about: Any) -> str:
    def record() -> Plain:
        # Asked again: the registry may have changed since Hermes started.
        if not registry_here().hermes.answer_tool:
            hint = 'a person answers; or set "hermes": {"answer_tool": true} in the registry'
            raise InvalidInput("the registry lets no model answer questions", hint=hint)
        run, key, payload = _text(args, "run"), _text(args, "key"), _value(args, "answer_json")
        by = Provenance(kind="agent", by="hermes", channel=CHANNEL, origin=_session(about))
        with service() as here:
            return here.answer(run, key, payload, by)

    return _told(record)


def _session(about: Mapping[str, Any]) -> dict[str, str] | None:
    """Which of Hermes' sessions called, as far as it says."""
    named = {name: about.get(name) for name in ("session_id", "task_id", "tool_call_id")}
    return {name: str(value) for name, value in named.items() if value} or None


def _told(work: Callable[[], Plain]) -> str:
    try:
        return _short(work())
    except HermesError as error:
        said = {"code": error.code, "message": error.message, "hint": error.hint}
        return json.dumps({"error": said}, ensure_ascii=False)


def _short(document: Plain) -> str:
    """The document as JSON; when it is too long, with its texts and lists cut, shorter and shorter until it fits."""
    text = json.dumps(document, ensure_ascii=False)
    for most in _CUTS:
        if len(text) <= LONGEST:
            return text
        told = {"cut": f"texts are cut at {most} characters; `hermes-workflows show RUN@KEY` has them whole"}
        text = json.dumps(told | {"document": _cut(document, most)}, ensure_ascii=False)
    return text


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= most else f"{value[:most]}… ({len(value):,} characters)"
    if isinstance(value, list):
        kept = [_cut(each, most) for each in value[: max(8, most // 40)]]
        return kept if len(kept) == len(value) else [*kept, f"… {len(value) - len(kept):,} more"]
    if isinstance(value, Mapping):
        return {name: _cut(each, most) for name, each in value.items()}
    return value


def _text(args: Any, name: str) -> str:
    given = _optional(args, name)
    if given is None:
        raise InvalidInput(f"{name} is missing", hint=f"give {name} as a text")
    return given


def _optional(args: Any, name: str) -> str | None:
    given = args.get(name) if isinstance(args, Mapping) else None
    if given is None or given == "":
        return None
    if not isinstance(given, str) or not _can_be_written(given):
        raise InvalidInput(f"{name} is no text", hint=f"give {name} as a text")
    return given


def _can_be_written(text: str) -> bool:
    """What models write as JSON may have halves of characters in it."""
    return not any("\ud800" <= each <= "\udfff" for each in text)


def _value(args: Any, name: str) -> Plain:
    """JSON as a text, as it is asked for; models also hand over the value itself."""
    given = args.get(name) if isinstance(args, Mapping) else None
    if isinstance(given, str) and given.strip():
        return read_json(given, name)
    return None if isinstance(given, str) else given
