"""A Mermaid diagram of what ran: calls in the boxes of their scopes, an arrow from what each one waited for.

Labels are made of keys, kinds and times alone, in characters that mean nothing to Mermaid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from .outline import Branch, Ran, duration, tree_of

MOST = 60
"""Calls in a diagram: more are no picture any more, and forges draw 500 arrows at most."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_/.-]+")
_LABEL = 60
_SHAPES: Mapping[str, tuple[str, str]] = {
    "review": ("{{", "}}"),
    "signal": (">", "]"),
    "timer": ("([", "])"),
    "child": ("[[", "]]"),
}
_STYLES = (
    "classDef open stroke-dasharray:4",
    "classDef failed stroke:crimson,stroke-width:2px",
)
_FAILED = frozenset({"failed", "cancelled", "expired", "withdrawn", "unknown"})


def diagram(status: str, calls: Sequence[Ran]) -> list[str]:
    """The lines of a flowchart of at most `MOST` of the calls, from the start of the run to `status`."""
    shown = calls[:MOST]
    names = {id(ran): f"c{number}" for number, ran in enumerate(shown)}
    lines = ["flowchart TD", '  start(["started"])', *_nodes(tree_of(shown), names, "  ")]
    lines += [f"  {source} --> {target}" for source, target in _arrows(shown, names)]
    if status in ("completed", "failed", "cancelled"):
        last = max(shown, key=lambda ran: ran.seq, default=None)
        lines += [f'  finish(["{status}"])', f"  {names[id(last)] if last else 'start'} --> finish"]
    for style, marked in (("open", [ran for ran in shown if ran.is_open]), ("failed", _failed(shown))):
        if marked:
            lines.append(f"  class {','.join(names[id(ran)] for ran in marked)} {style}")
    return [*lines, *(f"  {style}" for style in _STYLES)]


def _failed(calls: Sequence[Ran]) -> list[Ran]:
    return [ran for ran in calls if ran.status in _FAILED]


def _nodes(branch: Branch, names: Mapping[int, str], indent: str) -> Iterator[str]:
    for number, part in enumerate(branch.parts):
        if isinstance(part, Ran):
            left, right = _SHAPES.get(part.kind, ("[", "]"))
            yield f'{indent}{names[id(part)]}{left}"{_label(part)}"{right}'
            continue
        # The name of a scope's box must differ from all others: the first call in it tells it from its namesakes.
        yield f'{indent}subgraph s{number}_{names[id(_first(part))]}_{len(indent)}["{_safe(part.name)}"]'
        yield from _nodes(part, names, indent + "  ")
        yield f"{indent}end"


def _first(branch: Branch) -> Ran:
    part = branch.parts[0]
    return part if isinstance(part, Ran) else _first(part)


def _label(ran: Ran) -> str:
    facts = ", ".join(filter(None, [ran.kind, ran.status if ran.status != "completed" else "", duration(ran.seconds)]))
    return f"{_safe(ran.key.rpartition('/')[2])}<br/>{facts}"


def _safe(text: str) -> str:
    return _UNSAFE.sub("-", text)[:_LABEL] or "-"


def _arrows(calls: Sequence[Ran], names: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    """From the call whose result a decision had before it, to the call which that decision asked for."""
    ended = sorted((ran.seq, names[id(ran)]) for ran in calls if not ran.is_open)
    for ran in calls:
        if ran.after is not None:
            before = [name for seq, name in ended if seq <= (ran.after or 0)]
            yield (before[-1] if before else "start"), names[id(ran)]
