"""`/compare?a=<run>&b=<run>`: two runs, or two moments of one, side by side. `diff` asks the same function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...core.changes import ABSENT
from ...core.comparison import Asked, Comparison, Difference, compare
from ...core.plain import command_line
from ...core.told_calls import ToldCall
from ...core.usages import told
from ...errors import HermesError
from ...finding import Found, split
from ...store.wanted import Wanted
from ..evidence import SCHEMA, Piece, changed, piece_of, without
from ..rendering import opened, page, pretty, segment, since
from ..run_view import compare_href

# Calls that are shown; the command tells of all.
_MOST: Final = 200
# Runs that are offered to be compared with.
_OFFERED: Final = 20


@dataclass(frozen=True)
class Side:
    """One of the two runs. `name` is what was asked for."""

    name: str
    href: str
    usage: str


@dataclass(frozen=True)
class Offered:
    """Another run of the same workflow; `href` leads to both, side by side."""

    run_id: str
    href: str
    status: str
    age: str


@dataclass(frozen=True)
class Row:
    """One part of a call: what it was on either side, or with `diff` the lines of a text that changed."""

    of: str
    before: Piece | None = None
    after: Piece | None = None
    diff: Piece | None = None


@dataclass(frozen=True)
class Differing:
    """A call that differs: `what` is `changed`, `added` or `removed`."""

    what: str
    label: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class CompareView:
    """`sides` is empty while nobody has said which two runs; then others are `offered` for the one that is named."""

    a: str
    b: str
    offered: tuple[Offered, ...] = ()
    sides: tuple[Side, ...] = ()
    differences: tuple[Differing, ...] = ()
    beside: tuple[Differing, ...] = ()
    total: int = 0
    same: int = 0
    wide: bool = False

    @property
    def command(self) -> str:
        """The same from a terminal, as it is to be typed."""
        return command_line("diff", self.a, self.b, *(["--usage", "--execution"] * self.wide))


def show(request: Request) -> Response:
    given = request.query_params
    a, b, wide = given.get("a", "").strip(), given.get("b", "").strip(), "wide" in given
    if not (a and b):
        return page(request, "compare.html", CompareView(a, b, _offered(request, a, b), wide=wide))
    one, other = _found(request, a), _found(request, b)
    found = compare(one.receipts, other.receipts, Asked(execution=wide, usage=wide))
    view = CompareView(
        a=a,
        b=b,
        sides=(_side(a, found, 0), _side(b, found, 1)),
        differences=tuple(map(_differing, found.differences[:_MOST])),
        beside=tuple(map(_differing, found.beside[:_MOST])),
        total=len(found.differences),
        same=found.same,
        wide=wide,
    )
    return page(request, "compare.html", view)


def _offered(request: Request, a: str, b: str) -> tuple[Offered, ...]:
    """The newest runs of the same workflow, when one run is named, and is ours."""
    name = split(a or b)[0]
    if not name:
        return ()
    try:
        workspace = opened(request).of_run(name)
        this = workspace.summary(workspace.resolve(name))
    except HermesError:
        # What is wrong with it is said when both are named.
        return ()
    runs = workspace.runs(Wanted(workflow=this.workflow), limit=_OFFERED + 1)
    others = [run for run in runs if run.run_id != this.run_id][:_OFFERED]
    now = workspace.clock.now()
    return tuple(
        Offered(
            run.run_id,
            compare_href(a or run.run_id, b or run.run_id),
            run.status,
            since(run.started_at, now),
        )
        for run in others
    )


def _found(request: Request, text: str) -> Found:
    return opened(request).of_run(split(text)[0]).find(text)


def _side(name: str, found: Comparison, place: int) -> Side:
    return Side(name, f"/runs/{segment(name)}", told(found.usage[place]))


def _differing(each: Difference) -> Differing:
    call = each.call
    label = " ".join(filter(None, (call.kind, call.key)))
    return Differing(each.what, label, tuple(_changed(each) if each.what == "changed" else _alone(each, call)))


def _changed(each: Difference) -> Iterator[Row]:
    for part in each.parts:
        change = part.change
        of = f"{part.of} {change.place}".strip()
        if change.lines:
            yield Row(of, diff=changed(change))
        else:
            yield Row(of, _value(change.before), _value(change.after))


def _alone(each: Difference, call: ToldCall) -> Iterator[Row]:
    """What a call is about that only one of the two has."""
    for of, value in (("status", call.status), ("request", without(call.request, SCHEMA)), ("output", call.output)):
        if value is not None:
            shown = piece_of(of, value)
            yield Row(of, after=shown) if each.what == "added" else Row(of, before=shown)


def _value(value: object) -> Piece | None:
    return None if value is ABSENT else Piece("", "text", pretty(value))


ROUTES: Final = (Route("/compare", show, name="compare"),)
