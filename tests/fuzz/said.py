"""Targets of what agents say: each program's own output, and the one answer in it by its declared type."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import itertools
import re
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal

from tests.fuzz.target import AGENTS, Target, joined, parts, refused_as

from hermes_workflows.core.encoding import Json, encode, parse
from hermes_workflows.core.redaction import Redactor
from hermes_workflows.core.values import TypeCodec, check_schema, codec_for
from hermes_workflows.errors import InvalidInput, NotFound
from hermes_workflows.runner.candidates import NoAnswer, Printed, readable
from hermes_workflows.runner.presets import PRESETS
from hermes_workflows.runner.presets.base import Ask, Said
from hermes_workflows.runner.presets.replay import entries_of
from hermes_workflows.runner.protocol import AgentRequest
from hermes_workflows.runner.verdicts import Judge
from hermes_workflows.settings import AgentSettings


class Risk(enum.Enum):
    LOW = "low"
    HIGH = "high"


@dataclasses.dataclass
class Draft:
    """A bit of everything that an agent may be asked for."""

    answer: int
    title: str = ""
    risk: Risk = Risk.LOW
    share: float = 0.0
    price: decimal.Decimal | None = None
    part: fractions.Fraction | None = None
    at: dt.datetime | None = None
    on: dt.date | None = None
    lasting: dt.timedelta | None = None
    names: list[str] = dataclasses.field(default_factory=list)
    counts: dict[str, int] = dataclasses.field(default_factory=dict)
    choice: Literal["a", 1, True, None] = None
    raw: bytes = b""
    of: uuid.UUID | None = None
    file: Path | None = None
    anything: Any = None
    below: list[Draft] = dataclasses.field(default_factory=list)


TYPES: tuple[Any, ...] = (
    *(Draft, dict[str, int], str, int, float, bytes, list[Draft] | None, decimal.Decimal, fractions.Fraction),
    *(dt.datetime, dt.timedelta, re.Pattern[str], Any, Literal["yes", "no"], set[int], tuple[int, ...]),
)


@cache
def codec(tp: Any) -> TypeCodec[Any]:
    return codec_for(tp)


ASKED = AgentRequest(
    run="wf_a", key="draft", operation_id="op", name="writer", prompt="?", returns=codec(Draft).json_schema
)


def agent(preset: str, file: str | None = None) -> Callable[[bytes], None]:
    """Standard output, standard error and the file that a program leaves, as the runner reads them."""
    ask = Ask(ASKED, "?", AgentSettings(preset, ("program",), structured=True), Path("/nowhere"), Path("/nowhere"))

    def consume(data: bytes) -> None:
        out, err, left = map(readable, parts(data, 3))
        said = Said(out, err, {file: left} if file else {})
        response, unreadable = None, None
        try:
            response = PRESETS[preset].read(ask, said)
        except NoAnswer as error:
            unreadable = error
        for tp in (Draft, str):
            verdict = Judge(codec(tp), Redactor(), None, said).verdict(response, unreadable)
            encode(verdict.output, {})
        if response is not None and response.usage is not None:
            recorded = response.usage.recorded()
            with refused_as(InvalidInput):
                encode(recorded.model_dump(), {})

    return consume


def fixtures(preset: str) -> list[bytes]:
    """What the real programs printed, and a form that all of them may print."""
    outs = sorted(file for file in AGENTS.glob(f"{preset}_*") if not file.match("*usage*") and file.suffix != ".stderr")
    errs = [file.read_bytes() for file in sorted(AGENTS.glob(f"{preset}_*.stderr"))] or [b""]
    left = [file.read_bytes() for file in sorted(AGENTS.glob(f"{preset}_usage*"))] or [b""]
    response = b'{"schema": "hermes.agent-response/1", "output": {"answer": 42}, "usage": {"input_tokens": 3}}'
    said = [file.read_bytes() for file in outs] + [response]
    return [joined(out, errs[number % len(errs)], left[number % len(left)]) for number, out in enumerate(said)]


def answer(data: bytes) -> None:
    """One value by each declared type, and by that type's JSON Schema, which must never let more pass."""
    with refused_as(InvalidInput):
        value: Json = parse(data)
        for tp in TYPES:
            typed(codec(tp), value)


def typed(codec: TypeCodec[Any], value: Any) -> None:
    check_schema(value, codec.json_schema)
    with refused_as(InvalidInput):
        plain = codec.to_plain(codec.from_plain(value))
        assert codec.to_plain(codec.from_plain(plain)) == plain


def printed(data: bytes) -> None:
    found = Printed.of(readable(data)).found
    assert all(one.start < one.end for one in found)
    assert all(one.end <= other.start for one, other in itertools.pairwise(found))


def replayed(data: bytes) -> None:
    with refused_as(InvalidInput):
        entries = entries_of(parse(data), "answers.json")
        ask = Ask(ASKED, "?", AgentSettings("replay"), Path("/nowhere"), Path("/nowhere"), recorded=entries[:1])
        if entries:
            with contextlib.suppress(NotFound):
                PRESETS["replay"].prepare(ask)


VALUES = [
    b'{"answer": 42, "title": "x", "risk": "high", "share": 0.5, "price": "1.10", "part": "1/3", "names": ["a"]}',
    b'{"answer": 1, "at": "2026-01-01T00:00:00Z", "on": "2026-01-01", "lasting": "P1DT2H", "counts": {"a": 1}}',
    b'{"answer": 1, "choice": 1, "raw": "eA==", "of": "12345678-1234-5678-1234-567812345678", "file": "a/b"}',
    b'{"answer": 1, "below": [{"answer": 2, "below": [{"answer": 3}]}], "anything": {"$lines": [1, null]}}',
    *(b'"1/3"', b'"1.5e10"', b"[1, 2]", b'"P1D"', b'"2026-01-01T00:00:00Z"', b'"(a|b)*"', b'{"a": 1}', b"1.5"),
]
RECORDED = (
    b'[{"schema": "hermes.agent-response/1", "name": "writer", "attempt": 1, "output": "x"},'
    b' {"error": "quota", "usage": {"input_tokens": 12}}]'
)
FILES = {"hermes": "usage.json", "command": "output"}

TARGETS = (
    *(
        Target(f"agent-{name}", agent(name, FILES.get(name)), lambda name=name: fixtures(name))
        for name in PRESETS
        if name != "replay"
    ),
    Target("answer", answer, lambda: VALUES),
    Target("printed", printed, lambda: [seed for name in PRESETS for seed in fixtures(name)]),
    Target("recorded-answers", replayed, lambda: [RECORDED]),
)
