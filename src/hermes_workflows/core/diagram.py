"""A Mermaid diagram of what ran: calls in the boxes of their scopes, an arrow from what each one waited for.

Labels are made of keys, kinds and times alone, in characters that mean nothing to Mermaid.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from .durations import duration
from .outline import Branch, Ran, tree_of

MOST = 60
"""Calls in a diagram: more are no picture any more, and forges draw 500 arrows at most."""

# Arrows to one call: of more that were gathered, the newest stand for all.
_JOINED = 8
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
_ENDED = ("completed", "failed", "cancelled")
_FAILED = frozenset({"failed", "cancelled", "expired", "withdrawn", "unknown"})


def diagram(status: str, calls: Sequence[Ran]) -> list[str]:
    """The lines of a flowchart of at most `MOST` of the calls, from the start of the run to `status`."""
    shown = calls[:MOST]
    names = {id(ran): f"c{number}" for number, ran in enumerate(shown)}
    lines = ["flowchart TD", '  start(["started"])', *_nodes(tree_of(shown), names, "  ")]
    lines += [f'  finish(["{status}"])'] if status in _ENDED else []
    lines += [f"  {source} --> {target}" for source, target in _arrows(status, shown, names)]
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


def _arrows(status: str, calls: Sequence[Ran], names: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    """To a call from the result whose decision asked for it, and from those in or below its scope that led nowhere yet.

    So calls that were gathered meet again in the call that came after all of them, or in the end.
    """
    newest, loose = "start", dict[str, Ran]()
    ended = deque(sorted((ran for ran in calls if not ran.is_open), key=lambda ran: ran.seq))
    asked = sorted((ran for ran in calls if ran.after is not None), key=lambda ran: ran.after or 0)
    for after, group in groupby(asked, key=lambda ran: ran.after or 0):
        while ended and ended[0].seq <= after:
            newest = names[id(ended[0])]
            loose[newest] = ended.popleft()
        arrows = [(source, names[id(ran)]) for ran in group for source in _before(ran.key, loose, newest)]
        yield from arrows
        for source, _ in arrows:
            loose.pop(source, None)
    if status in _ENDED:
        loose |= {names[id(ran)]: ran for ran in ended}
        yield from ((source, "finish") for source in _before("", loose, next(reversed(loose), newest)))


def _before(key: str, loose: Mapping[str, Ran], newest: str) -> list[str]:
    scope = key.rpartition("/")[0]
    below = [name for name, ran in loose.items() if not scope or ran.key.startswith(f"{scope}/")]
    return list(dict.fromkeys([*below[-_JOINED:], newest]))
