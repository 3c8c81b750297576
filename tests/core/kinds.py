"""Types of every sort that workflows declare."""

from __future__ import annotations

import datetime as dt
import enum
import pathlib
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import pydantic
from typing_extensions import TypedDict

T = TypeVar("T")


class Risk(enum.Enum):
    LOW = "low"
    HIGH = 2


class Level(enum.IntEnum):
    ONE = 1
    TWO = 2


class Mark(enum.StrEnum):
    YES = "yes"


class Pair(enum.Enum):
    A = (1, 2)
    B = (3, 4)


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Place(NamedTuple):
    path: str
    line: int = 1


@dataclass(frozen=True)
class Point:
    x: int
    y: str = "q"


@dataclass(slots=True, kw_only=True)
class Node:
    value: int
    children: list[Node] = field(default_factory=list)
    path: pathlib.Path | None = None
    data: bytes = b""


class Draft(pydantic.BaseModel):
    when: dt.datetime
    node: Node
    anything: Any = None
    score: float = pydantic.Field(default=0.5, alias="Score")


class Open(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    x: int


class Note(TypedDict, total=False):
    text: str
    place: tuple[int, str]


class Box(pydantic.BaseModel, Generic[T]):
    item: T


@dataclass
class Case(Generic[T]):
    item: T


class Dated(pydantic.BaseModel):
    day: dt.date
    tags: set[str]

    @pydantic.field_serializer("day")
    def _write(self, day: dt.date) -> str:
        return day.isoformat()


class Priced(pydantic.BaseModel):
    """Its author says how two of its fields are written and read."""

    name: str
    cents: int
    rate: Annotated[complex, pydantic.PlainSerializer(lambda rate: [rate.real, rate.imag])]

    @pydantic.field_serializer("cents")
    def _write(self, cents: int) -> str:
        return f"{cents / 100:.2f}"

    @pydantic.field_validator("cents", mode="before")
    @classmethod
    def _read_cents(cls, cents: int | str) -> int:
        return round(float(cents) * 100) if isinstance(cents, str) else cents

    @pydantic.field_validator("rate", mode="before")
    @classmethod
    def _read_rate(cls, rate: Any) -> Any:
        return complex(*rate) if isinstance(rate, list) else rate


class Summed(pydantic.BaseModel):
    """Its author says how the whole is written and read."""

    a: int
    b: int

    @pydantic.model_serializer
    def _write(self) -> str:
        return f"{self.a}+{self.b}"

    @pydantic.model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        return dict(zip("ab", map(int, value.split("+")), strict=True)) if isinstance(value, str) else value


class Aliased(pydantic.BaseModel):
    """Each way to name a field otherwise."""

    model_config = pydantic.ConfigDict(populate_by_name=True)
    one: int = pydantic.Field(alias="uno")
    two: int = pydantic.Field(validation_alias="due")
    three: int = pydantic.Field(serialization_alias="tre")
    four: int = pydantic.Field(validation_alias=pydantic.AliasChoices("quattro", "quatre"))
    hidden: int = pydantic.Field(default=0, exclude=True)

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def sum(self) -> int:
        return self.one + self.two


class Money:
    def __init__(self, amount: str) -> None:
        self.amount = amount

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and other.amount == self.amount

    def __hash__(self) -> int:
        return hash(self.amount)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        write = core_schema.plain_serializer_function_ser_schema(lambda money: money.amount)
        return core_schema.no_info_after_validator_function(cls, core_schema.str_schema(), serialization=write)


class Pointed(pydantic.BaseModel):
    x: int


class OpenAround(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    point: Box[int] | Pointed


class Judged(pydantic.BaseModel):
    score: int

    @pydantic.field_validator("score")
    @classmethod
    def _check(cls, score: int) -> int:
        if score > 10:
            raise ValueError("at most ten")
        return {n: n for n in range(5)}[score]  # a bug of the author: 5 to 10


@dataclass
class Approve:
    feedback: str


@dataclass
class Reject:
    feedback: str


@dataclass(frozen=True)
class Wide(Point):
    z: int = 0
