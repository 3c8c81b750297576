"""Typed values survive a receipt: equal, and of the same types."""

# ruff: noqa: UP007, UP045 (authors write types in the older ways too)

from __future__ import annotations

import collections
import datetime as dt
import enum
import fractions
import ipaddress
import pathlib
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional, Union

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.kinds import (
    Aliased,
    Box,
    Case,
    Dated,
    Draft,
    Level,
    Mark,
    Money,
    Node,
    Note,
    Open,
    Pair,
    Place,
    Point,
    Priced,
    Rights,
    Risk,
    Summed,
)

from hermes_workflows.core.encoding import decode, dumps, encode, parse
from hermes_workflows.core.values import ValueMismatch, check_schema, codec_for, plain
from hermes_workflows.errors import InvalidInput, UnstorableValue


def in_bytes(tp: Any, value: Any) -> bytes:
    return dumps(encode(codec_for(tp).to_plain(value), {}))


def through_a_receipt(tp: Any, value: Any) -> Any:
    no_blobs: dict[str, bytes] = {}
    return codec_for(tp).from_plain(decode(parse(in_bytes(tp, value)), no_blobs.__getitem__))


UTC = dt.UTC
ROUND_TRIPS: list[tuple[Any, Any]] = [
    (int, 10**40),
    (float, 1e300),
    (str, "é\nb"),
    (bool, True),
    (None, None),
    (bytes, b"\xff\x00"),
    (dt.datetime, dt.datetime(2020, 1, 1, 3, 4, 5, 6, UTC)),
    (dt.datetime, dt.datetime(2020, 1, 1)),  # noqa: DTZ001
    (dt.datetime, dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=-3, minutes=-30)))),
    (dt.date, dt.date(2020, 1, 1)),
    (dt.time, dt.time(1, 2, 3, 4)),
    (dt.timedelta, dt.timedelta(days=-400, microseconds=7)),
    (Decimal, Decimal("1.50")),
    (pathlib.Path, pathlib.Path("/a/b")),
    (pathlib.PurePosixPath, pathlib.PurePosixPath("a")),
    (uuid.UUID, uuid.UUID(int=5)),
    (Risk, Risk.LOW),
    (Risk, Risk.HIGH),
    (Level, Level.TWO),
    (Mark, Mark.YES),
    (Pair, Pair.B),
    (Rights, Rights.READ | Rights.WRITE),
    (Optional[int], None),
    (Union[int, str], "1"),
    (int | str, 1),
    (float | int, 1),
    (int | float, 1.0),
    (bytes | str, "text"),
    (bytes | str, b"text"),
    (str | bytes, b"\xff"),
    (Literal[1, "a"], 1),
    (Literal[True, None], None),
    (Literal[Risk.LOW, Risk.HIGH], Risk.HIGH),
    (Annotated[int, pydantic.Field(gt=3)], 4),
    (tuple[int, str], (1, "a")),
    (tuple[int, ...], (1, 2)),
    (set[str], {"a", "b", "c"}),
    (set[int | str | None], {1, "a", None}),
    (set[bytes], {b"a", b"b"}),
    (frozenset[Point], frozenset({Point(1), Point(2)})),
    (dict[int, str], {1: "a"}),
    (dict[float, str], {1.5: "a"}),
    (dict[bool, str], {True: "a"}),
    (dict[dt.date, int], {dt.date(2020, 1, 1): 1}),
    (dict[uuid.UUID, int], {uuid.UUID(int=1): 1}),
    (dict[Risk, int], {Risk.LOW: 1, Risk.HIGH: 2}),
    (dict[Level, Level], {Level.ONE: Level.TWO}),
    (dict[Mark, int], {Mark.YES: 1}),
    (dict[Literal[1, 2], int], {1: 3}),
    (Place, Place("a.py")),
    (collections.deque[int], collections.deque([1])),
    (collections.Counter[str], collections.Counter("aab")),
    (collections.OrderedDict[str, int], collections.OrderedDict(a=1)),
    (Mapping[str, int], {"a": 1}),
    (Sequence[int], [1]),
    (re.Pattern[str], re.compile("(?i)a+")),
    (ipaddress.IPv6Network, ipaddress.ip_network("::/64")),
    (fractions.Fraction, fractions.Fraction(1, 3)),
    (complex, 1 - 2j),
    (Any, {"a": [1, b"\xff", {"$b": b""}], "n": None}),
    (dict, {"$lines": ["a"]}),
    (Node, Node(value=1, children=[Node(value=2, data=b"\xfe")], path=pathlib.Path("x"))),
    (Draft, Draft(when=dt.datetime(2020, 1, 1, tzinfo=UTC), node=Node(value=1), anything={"z": b"\x80"}, Score=2)),
    (Open, Open(x=1, y=[b"\xff"])),  # type: ignore[call-arg]
    (Note, {"text": "a", "place": (1, "b")}),
    (Box[int], Box[int](item=3)),
    (Case[dt.date], Case(dt.date(2020, 1, 1))),
    (list[Money], [Money("3 EUR")]),
    (Aliased, Aliased(one=1, two=2, three=3, four=4)),
    (Dated, Dated(day=dt.date(2020, 1, 1), tags={"b", "a"})),
    (pydantic.RootModel[list[Point]], pydantic.RootModel[list[Point]]([Point(1)])),
    (Point | Risk, Risk.HIGH),
    (pydantic.AnyUrl, pydantic.AnyUrl("https://example.org/a")),
]


# By position: values show addresses and sets in an order of their own, and parallel test processes compare names.
_IDS = [f"{position}-{getattr(tp, '__name__', 'type')}" for position, (tp, _) in enumerate(ROUND_TRIPS)]


@pytest.mark.parametrize(("tp", "value"), ROUND_TRIPS, ids=_IDS)
def test_a_value_comes_back_equal_and_of_its_type(tp: Any, value: Any) -> None:
    back = through_a_receipt(tp, value)
    assert back == value
    assert type(back) is type(value)
    assert in_bytes(tp, back) == in_bytes(tp, value)


@pytest.mark.parametrize(("tp", "value"), ROUND_TRIPS, ids=_IDS)
def test_what_is_stored_fits_the_published_schema(tp: Any, value: Any) -> None:
    codec = codec_for(tp)
    assert check_schema(codec.to_plain(value), codec.json_schema) == []


def test_a_field_is_written_as_its_author_says() -> None:
    priced = Priced(name="a", cents=350, rate=1 - 2j)
    assert codec_for(Priced).to_plain(priced) == {"name": "a", "cents": "3.50", "rate": [1.0, -2.0]}
    assert through_a_receipt(list[Priced], [priced]) == [priced]


def test_a_whole_model_is_written_as_its_author_says() -> None:
    assert codec_for(list[Summed]).to_plain([Summed(a=1, b=2)]) == ["1+2"]
    assert through_a_receipt(Summed, Summed(a=1, b=2)) == Summed(a=1, b=2)


def test_fields_go_by_the_names_of_the_schema() -> None:
    written = codec_for(Aliased).to_plain(Aliased(one=1, two=2, three=3, four=4))
    assert written == {"uno": 1, "due": 2, "three": 3, "quattro": 4}
    assert set(codec_for(Aliased).json_schema["required"]) == {"uno", "due", "three", "quattro"}
    assert codec_for(Aliased).from_plain({"one": 1, "due": 2, "three": 3, "quatre": 4}).four == 4


BY_HYPOTHESIS = st.one_of(
    st.tuples(st.just(dt.datetime), st.datetimes(timezones=st.none() | st.just(UTC))),
    st.tuples(st.just(dt.timedelta), st.timedeltas()),
    st.tuples(st.just(dt.date), st.dates()),
    st.tuples(st.just(dt.time), st.times()),
    st.tuples(st.just(Decimal), st.decimals(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just(float), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just(fractions.Fraction), st.fractions()),
    st.tuples(st.just(uuid.UUID), st.uuids()),
    st.tuples(st.just(list[bytes | str]), st.lists(st.binary() | st.text(st.characters(exclude_categories=["Cs"])))),
    st.tuples(
        st.just(dict[int, Decimal | None]),
        st.dictionaries(st.integers(), st.none() | st.decimals(allow_nan=False, allow_infinity=False)),
    ),
    st.tuples(st.just(set[int | str]), st.sets(st.integers() | st.sampled_from("abc1"))),
)


@settings(deadline=None)
@given(BY_HYPOTHESIS)
def test_any_value_of_a_type_that_json_lacks_comes_back(case: tuple[Any, Any]) -> None:
    tp, value = case
    back = through_a_receipt(tp, value)
    assert back == value
    assert repr(back) == repr(value) or tp not in (float, Decimal, dt.timedelta)


@pytest.mark.parametrize(
    "choice", [Union[int, str], Optional[Point], list[Point], Annotated[int, []], Literal["a"], None, "int"]
)
def test_a_codec_is_made_for_every_way_to_write_a_type(choice: Any) -> None:
    assert codec_for(choice).json_schema == codec_for(choice).json_schema


def test_a_codec_is_made_once() -> None:
    assert codec_for(list[Point]) is codec_for(list[Point])
    assert codec_for(int | str) is not codec_for(str | int), "they are equal, and two declarations"


@pytest.mark.parametrize(
    ("tp", "name"),
    [
        (Point, "Point"),
        (None, "None"),
        (list[Point], "list[Point]"),
        (Optional[int], "int | None"),
        (dict[str, tuple[int, ...]], "dict[str, tuple[int, ...]]"),
        (Literal["a", 1], "Literal['a', 1]"),
        (Annotated[Point, object()], "Point"),
        (Any, "Any"),
        (Box[int], "Box[int]"),
    ],
)
def test_a_type_has_the_name_people_write(tp: Any, name: str) -> None:
    assert codec_for(tp).type_name == name


class NotForPydantic:
    pass


class Odd(enum.Enum):
    """A choice that no receipt can hold."""

    ONE = object()


UNKNOWN: Any = list["Unknown"]  # type: ignore[name-defined] # noqa: F821


@pytest.mark.parametrize(
    "tp", [NotForPydantic, list[NotForPydantic], UNKNOWN, Iterator[int], Iterable[int], Odd], ids=str
)
def test_a_type_that_cannot_be_read_is_refused_where_it_is_declared(tp: Any) -> None:
    with pytest.raises(InvalidInput) as refusal:
        codec_for(tp)
    assert "\n" not in refusal.value.message


def test_an_untyped_value_becomes_plain_by_what_it_is() -> None:
    value = {"point": Point(1), "draft": Open(x=1, y=2), "when": dt.date(2020, 1, 1), "set": {3, 1}, "raw": b"\xff"}  # type: ignore[call-arg]
    assert plain(value) == {
        "point": {"x": 1, "y": "q"},
        "draft": {"x": 1, "y": 2},
        "when": "2020-01-01",
        "set": [1, 3],
        "raw": b"\xff",
    }


@pytest.mark.parametrize(
    ("value", "path"), [({"a": {1: 2}}, "/a/1"), ([object()], "/0"), ({"a": (0, float("nan"))}, "/a/1")]
)
def test_an_untyped_value_that_cannot_be_written_is_refused_with_its_place(value: Any, path: str) -> None:
    with pytest.raises(UnstorableValue) as refusal:
        plain(value)
    assert refusal.value.path == path


def test_an_integer_may_stand_for_a_float_and_is_stored_as_one() -> None:
    assert repr(codec_for(list[float]).to_plain([1])) == "[1.0]"
    assert repr(codec_for(float).from_plain(1)) == "1.0"


def test_a_dict_may_stand_for_a_dataclass_and_gets_its_defaults() -> None:
    assert codec_for(list[Point]).to_plain([{"x": 1}, Point(2)]) == [{"x": 1, "y": "q"}, {"x": 2, "y": "q"}]  # type: ignore[list-item]


class Unwritable(pydantic.BaseModel):
    x: int

    @pydantic.field_serializer("x")
    def broken(self, value: int) -> int:
        raise ValueError(f"not {value}")


def test_a_serializer_that_fails_is_named_with_what_it_said() -> None:
    with pytest.raises(UnstorableValue, match=r"the serializer of Unwritable failed: .*not 1"):
        plain(Unwritable(x=1))


def test_an_object_whose_field_was_taken_away_is_refused_by_its_name() -> None:
    point = Point(1)
    object.__delattr__(point, "x")
    with pytest.raises(UnstorableValue, match="a Point without its field 'x'"):
        plain(point)


@pytest.mark.parametrize(
    ("value", "path"), [(object(), ""), ({"a": [object()]}, "/a/0"), ({"a": float("nan"), "b": None}, "/a")]
)
def test_what_no_receipt_can_hold_is_no_value_of_any_type(value: Any, path: str) -> None:
    with pytest.raises(UnstorableValue) as refusal:
        codec_for(Any).from_plain(value)
    assert refusal.value.path == path


def test_an_integer_beyond_64_bits_is_read_exactly() -> None:
    assert codec_for(int).from_plain(10**30) == 10**30


class Cat(pydantic.BaseModel):
    lives: int


class Dog(pydantic.BaseModel):
    tricks: int


def _animal(value: Any) -> str:
    return "cat" if "lives" in (value if isinstance(value, dict) else vars(value)) else "dog"


def test_a_union_that_its_author_decides_is_read_by_the_label() -> None:
    labelled = Annotated[Cat, pydantic.Tag("cat")] | Annotated[Dog, pydantic.Tag("dog")]
    codec = codec_for(Annotated[labelled, pydantic.Discriminator(_animal)])
    for animal in (Cat(lives=9), Dog(tricks=2)):
        assert codec.from_plain(codec.to_plain(animal)) == animal


def test_a_null_beside_an_integer_that_no_float_holds_stays_one() -> None:
    value = {"nothing": None, "many": 10**400}
    assert codec_for(dict[str, int | None]).from_plain(value) == value


_NUMBERS = st.integers() | st.integers(min_value=2**58, max_value=2**70) | st.floats()
_SCALARS = st.one_of(st.booleans(), _NUMBERS, _NUMBERS.map(lambda number: -number), st.text(), st.none())


@pytest.mark.parametrize("tp", [bool, int, float, str])
@given(_SCALARS)
def test_a_scalar_is_read_and_written_as_inside_of_a_list(tp: Any, value: Any) -> None:
    # A list always takes the long way, through pydantic.
    codec, long_way = codec_for(tp), codec_for(list[tp])
    for one, of_list in ((codec.to_plain, long_way.to_plain), (codec.from_plain, long_way.from_plain)):
        try:
            expected = repr(of_list([value]))
        except (ValueMismatch, UnstorableValue):
            with pytest.raises((ValueMismatch, UnstorableValue)):
                one(value)
        else:
            assert repr([one(value)]) == expected
