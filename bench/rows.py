"""What came out of a benchmark, as values, and how people and programs are shown it.

A row is always a comparison: with a peer, with what the disk or git allows, or with the number that was aimed at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from statistics import mean, median
from typing import Any, Literal

SCHEMA = "hermes.bench/1"

_HEADER = ("what", "against", "median (least to most)", "to reach", "by the median", "detail")


@dataclass(frozen=True)
class Aim:
    """What a row is to reach, by the median of its values."""

    way: Literal["at least", "at most"]
    value: float

    def reached(self, value: float) -> bool:
        return value >= self.value if self.way == "at least" else value <= self.value

    def text(self, unit: str) -> str:
        return f"{'≥' if self.way == 'at least' else '≤'} {number(self.value)} {unit}"


@dataclass(frozen=True)
class Row:
    """`values` are one a round, in `unit`; `×` is ours against the other. `detail` is what they were made of."""

    name: str
    what: str
    against: str
    values: tuple[float, ...]
    unit: str
    aim: Aim | None = None
    detail: str = ""

    @property
    def middle(self) -> float:
        return median(self.values)

    @property
    def measured(self) -> str:
        spread = f" ({number(min(self.values))} to {number(max(self.values))})" if len(self.values) > 1 else ""
        return f"{number(self.middle)} {self.unit}{spread}"

    @property
    def verdict(self) -> str:
        if self.aim is None:
            return ""
        return "yes" if self.aim.reached(self.middle) else "no"

    def cells(self) -> tuple[str, ...]:
        return (
            self.what,
            self.against,
            self.measured,
            self.aim.text(self.unit) if self.aim else "",
            self.verdict,
            self.detail,
        )


@dataclass(frozen=True)
class Missing:
    """Something that could not be measured here, and why."""

    name: str
    why: str


@dataclass(frozen=True)
class Report:
    """One benchmark: where it was made, of what, and what came out."""

    taken: str
    quick: bool
    machine: dict[str, str]
    versions: dict[str, str]
    rows: Sequence[Row] = ()
    missing: Sequence[Missing] = ()
    schema: str = field(default=SCHEMA)


def against_neighbours(values: Sequence[float], around: Sequence[float]) -> tuple[float, ...]:
    """Each value divided by the mean of what was measured before and after it: of those there is one more."""
    return tuple(value / mean(pair) for value, pair in zip(values, pairwise(around), strict=True))


def number(value: float) -> str:
    """Three digits that count; whole numbers in groups of three."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def as_json(report: Report) -> dict[str, Any]:
    rows = [
        asdict(row) | {"median": row.middle, "reached": row.aim.reached(row.middle) if row.aim else None}
        for row in report.rows
    ]
    return asdict(report) | {"rows": rows}


def from_json(document: dict[str, Any]) -> Report:
    """A report as `as_json` has written it. Raises ValueError for anything else."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"it is no {SCHEMA}")
    try:
        rows = [_row(row) for row in document["rows"]]
        return Report(**document | {"rows": rows, "missing": [Missing(**each) for each in document["missing"]]})
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"it is not as a benchmark writes it: {error}") from None


def _row(document: dict[str, Any]) -> Row:
    given = {name: value for name, value in document.items() if name not in {"median", "reached"}}
    aim = Aim(**given["aim"]) if given["aim"] else None
    return Row(**given | {"values": tuple(given["values"]), "aim": aim})


def as_text(row: Row) -> str:
    """Two lines for a terminal, since rows come one by one and minutes apart."""
    aim = f"   to reach {row.aim.text(row.unit)}: {row.verdict}" if row.aim else ""
    detail = f"\n      {row.detail}" if row.detail else ""
    return f"{row.what} · {row.against}\n      {row.measured}{aim}{detail}"


def as_markdown(report: Report) -> str:
    """The table of a page, with what is needed to know what it says."""
    size = "the small form of each, which says little about what is to be reached" if report.quick else "the whole size"
    machine = ", ".join(f"{name} {value}" for name, value in report.machine.items())
    versions = ", ".join(f"{name} {value}" for name, value in report.versions.items())
    lines = [f"Taken on {report.taken}, in {size}.", f"Machine: {machine}.", f"Versions: {versions}.", ""]
    lines += [_line(_HEADER), _line(["---"] * len(_HEADER)), *(_line(row.cells()) for row in report.rows)]
    if report.missing:
        lines += ["", "Not measured:", "", *(f"- {each.name}: {_inline(each.why)}" for each in report.missing)]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_inline(cell) for cell in cells) + " |"


def _inline(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
