"""How the comparison of two runs looks: as a JSON document, and as text for a person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..core.changes import ABSENT, Change
from ..core.comparison import Comparison, Difference, Part
from ..core.told_calls import ToldCall
from ..core.usages import told
from .told import counted
from .writing import one_line

_MARKS = {"added": "+", "removed": "-", "changed": "~"}
# Lines of one text's diff that a terminal is given; JSON has all.
_LINES = 40
_VALUE = 100


def comparison_document(found: Comparison) -> dict[str, Any]:
    first = found.first
    return {
        "equal": found.equal,
        "first": None if first is None else {"what": first.what, **_named(first.call)},
        "differences": [_difference(each) for each in found.differences],
        "beside": [_difference(each) for each in found.beside],
        "same": found.same,
        "usage": {"a": dict(found.usage[0]), "b": dict(found.usage[1])},
    }


def comparison_text(before: str, after: str, found: Comparison) -> str:
    lines = [_headline(before, after, found), *([""] if found.differences else [])]
    for each in found.differences:
        lines += _difference_lines(each)
    if found.beside:
        lines += ["", "not counted as differences:"]
        for each in found.beside:
            lines += _difference_lines(each)
    used = [told(each) or "nothing" for each in found.usage]
    if used[0] != used[1]:
        lines += ["", f"usage: {used[0]}; then {used[1]}"]
    return "\n".join(lines).rstrip()


def _headline(before: str, after: str, found: Comparison) -> str:
    first = found.first
    if first is None:
        return f"{before} and {after} did the same: {found.same} calls"
    only = {"added": f", which only {after} has", "removed": f", which only {before} has"}.get(first.what, "")
    return (
        f"{before} and {after} part at {_label(first.call)}{only}: "
        f"{counted(len(found.differences), 'difference')}, {counted(found.same, 'call')} the same"
    )


def _difference(each: Difference) -> dict[str, Any]:
    document: dict[str, Any] = {"what": each.what, **_named(each.call)}
    if each.what == "changed":
        return document | {"changes": [_part(part) for part in each.parts]}
    call = each.call
    return document | {"status": call.status, "request": call.request, "output": call.output, "error": call.error}


def _named(call: ToldCall) -> dict[str, str]:
    return {"kind": call.kind, "key": call.key}


def _part(part: Part) -> dict[str, Any]:
    change = part.change
    document: dict[str, Any] = {"of": part.of, "at": change.place}
    for name, value in (("before", change.before), ("after", change.after)):
        if value is not ABSENT:
            document[name] = value
    return document | ({"lines": list(change.lines)} if change.lines else {})


def _difference_lines(each: Difference) -> Iterator[str]:
    call = each.call
    yield f"{_MARKS[each.what]} {_label(call)}" + ("" if each.what == "changed" else f": {_outcome(call)}")
    for part in each.parts:
        yield from _change_lines(_where(part), part.change)


def _where(part: Part) -> str:
    # A command has one exit code: its place in the output says nothing more.
    return part.of if part.of == "exit code" else f"{part.of}{part.change.place}"


def _label(call: ToldCall) -> str:
    """`agent writer`; the run's start and end have no key."""
    return {"run": "the start", "result": "the end"}.get(call.kind) or f"{call.kind} {call.key}"


def _outcome(call: ToldCall) -> str:
    if call.error:
        return f"{call.status}, {one_line(str(call.error.get('message')), _VALUE)}"
    return call.status if call.output is None else f"{call.status}, {_value(call.output)}"


def _change_lines(where: str, change: Change) -> Iterator[str]:
    if not change.lines:
        yield f"    {where}: {_value(change.before)} → {_value(change.after)}"
        return
    yield f"    {where}:"
    yield from (f"      {line}" for line in change.lines[:_LINES])
    if len(change.lines) > _LINES:
        yield f"      … and {len(change.lines) - _LINES} more lines; --json has all"


def _value(value: Any) -> str:
    if value is ABSENT:
        return "nothing"
    return one_line(json.dumps(value, ensure_ascii=False, sort_keys=True, default=_bytes), _VALUE)


def _bytes(value: object) -> str:
    return f"{len(value):,} bytes" if isinstance(value, bytes) else str(value)
