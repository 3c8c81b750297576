"""What must be true of one receipt by itself, beyond what `contents` asks: for `verify`, so of whoever wrote it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ..errors import HermesError
from . import layout
from .encoding import dumps, parse
from .layout import Place
from .names import clean_key
from .receipts import Receipt

# Where a call's key puts its receipt.
_PLACES: Mapping[str, Callable[[str, int], str]] = {
    "attempt": layout.attempt,
    "late": layout.late,
    "start": lambda key, _: layout.start(key),
    "step": lambda key, _: layout.step(key),
    "timer-start": lambda key, _: layout.timer_start(key),
    "timer": lambda key, _: layout.timer_fired(key),
    "request": lambda key, _: layout.request(key),
    "response": lambda key, _: layout.response(key),
    # A signal's receipt has its name as it was given.
    "signal": lambda key, number: layout.signal(clean_key(key), number),
}
# The receipts of a run itself have no call; those of operators name their verb, or the call they decide about.
_RUN = ("run", "end")
_CONTROLS = ("cancel", "control")

_SHA256 = re.compile(r"[0-9a-f]{64}")


def check_receipt(run_id: str | None, receipt: Receipt, data: bytes) -> Iterator[str]:
    """What is wrong with a receipt that could be read from `data`; of an adopted one nobody knows which run made it."""
    if not _is_canonical(data):
        yield "is not written as a receipt is: sorted keys, two spaces, LF"
    place = layout.place(receipt.path)
    if place is None or not _has_its_key(place, receipt):
        yield f"has the key {receipt.key!r}, which belongs elsewhere"
    operation = receipt.execution.operation_id
    if operation is not None and not _is_operation(operation, run_id, receipt.key):
        yield f"has the operation id {operation!r}, which is not its run and key"
    if receipt.kind == "bash" and (wrong := _wrong_in_bash(receipt.status, receipt.output)):
        yield f"has an output that no command leaves: {wrong}"


def _is_operation(operation: str, run_id: str | None, key: str) -> bool:
    run, _, called = operation.partition("/")
    return called == key and run_id in (None, run)


def _is_canonical(data: bytes) -> bool:
    # Whoever has read the receipt has parsed it, and what is parsed can be written.
    return dumps(parse(data)) == data


def _has_its_key(place: Place, receipt: Receipt) -> bool:
    if place.family in _RUN:
        return receipt.key == ""
    if place.family in _CONTROLS:
        about = receipt.request.get("key") if isinstance(receipt.request, dict) else None
        return receipt.key == (about if place.stem == "resolve" else receipt.status)
    try:
        return _PLACES[place.family](receipt.key, place.number) == receipt.path
    except HermesError:
        return False


def _wrong_in_bash(status: str, output: object) -> str:
    """What of a command's output is not as `bash` reads it, or ""."""
    if output is None:
        return "there is none" if status == "completed" else ""
    if not isinstance(output, dict):
        return "it is no object"
    if missing := sorted({"exit_code", "stdout", "stderr"} - output.keys()):
        return f"{missing[0]} is missing"
    for name, value in output.items():
        fits = _BASH.get(name)
        if fits is None:
            return f"{name} is unknown"
        if not fits(value) or (name == "exit_code" and value is None and status == "completed"):
            return f"{name} is {value!r:.40}"
    return ""


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_STREAM: Mapping[str, Callable[[object], bool]] = {
    "": lambda value: isinstance(value, str),
    "_bytes": lambda value: isinstance(value, bytes),
    "_total_bytes": _is_number,
    "_sha256": lambda value: isinstance(value, str) and _SHA256.fullmatch(value) is not None,
}
_BASH: Mapping[str, Callable[[object], bool]] = {
    # None: the command never started, or was killed without a signal to tell of.
    "exit_code": lambda value: value is None or _is_number(value),
    "truncated": lambda value: value is True,
    **{f"{name}{suffix}": fits for name in ("stdout", "stderr") for suffix, fits in _STREAM.items()},
}
