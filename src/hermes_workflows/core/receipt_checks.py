"""What must be true of one receipt by itself, beyond its model: for `verify`, so whoever may have written it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ..errors import HermesError
from . import layout
from .encoding import dumps, parse
from .layout import Place
from .names import clean_key
from .receipts import Receipt

_CALLS = frozenset({"agent", "bash", "step", "child", "artifact"})

# Where a call's key puts its receipt, and the kinds that may lie there.
_PLACES: Mapping[str, tuple[Callable[[str, int], str], frozenset[str]]] = {
    "attempt": (layout.attempt, _CALLS),
    "late": (layout.late, _CALLS),
    "start": (lambda key, _: layout.start(key), _CALLS | {"signal"}),
    "step": (lambda key, _: layout.step(key), _CALLS | {"signal"}),
    "timer-start": (lambda key, _: layout.timer_start(key), frozenset({"timer"})),
    "timer": (lambda key, _: layout.timer_fired(key), frozenset({"timer"})),
    "request": (lambda key, _: layout.request(key), frozenset({"review"})),
    "response": (lambda key, _: layout.response(key), frozenset({"review"})),
    # A signal's receipt has its name as it was given.
    "signal": (lambda key, number: layout.signal(clean_key(key), number), frozenset({"signal"})),
}
# The receipts of a run itself have no call; those of operators name their verb, or the call they decide about.
_RUN = {"run": "run", "end": "result"}
_CONTROLS = ("cancel", "control")

_SHA256 = re.compile(r"[0-9a-f]{64}")


def check_receipt(run_id: str | None, receipt: Receipt, data: bytes) -> Iterator[str]:
    """What is wrong with a receipt that could be read from `data`; of an adopted one nobody knows which run made it."""
    if not _is_canonical(data):
        yield "is not written as a receipt is: sorted keys, two spaces, LF"
    place = layout.place(receipt.path)
    if place is None or not _may_lie_there(place, receipt):
        yield f"may not hold a receipt of kind {receipt.kind!r}"
    elif not _has_its_key(place, receipt):
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
    try:
        return dumps(parse(data)) == data
    except HermesError:
        return False


def _may_lie_there(place: Place, receipt: Receipt) -> bool:
    if place.family in _PLACES:
        return receipt.kind in _PLACES[place.family][1]
    if place.family in _CONTROLS:
        return receipt.kind == "control" and receipt.status == (place.stem or "cancel")
    return receipt.kind == _RUN.get(place.family)


def _has_its_key(place: Place, receipt: Receipt) -> bool:
    if place.family in _RUN:
        return receipt.key == ""
    if place.family in _CONTROLS:
        about = receipt.request.get("key") if isinstance(receipt.request, dict) else None
        return receipt.key == (about if place.stem == "resolve" else receipt.status)
    try:
        return _PLACES[place.family][0](receipt.key, place.number) == receipt.path
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
