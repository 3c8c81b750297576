"""Typed values and their plain forms, through pydantic.

    typed value --to_plain--> Plain (what `encoding` stores) --from_plain--> typed value

Both directions validate: a step may not return text where it declared a number, and an answer may have no field that
was not asked for. What JSON has a type for is strict (`"1"` is no 1, 1 is not true; an integer may stand for a
float); what it has none for (dates, decimals, paths, enums …) is read from its text.
What is written comes back as the same kinds of things, or is refused.
"""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar, cast, overload

import orjson
import pydantic
import pydantic_core

from ..errors import InvalidInput, UnstorableValue
from .canonical import Refused, hides_null, with_fragments
from .encoding import Plain, encode
from .flatten import ODD_KEY, Flattener, UnknownType
from .mismatch import ValueMismatch, reasons_of
from .records import RECORD
from .schemas import full_schema, name_of, reduced_schema
from .strictness import MARKER, StrictValidators, as_marker

__all__ = ["TypeCodec", "ValueMismatch", "check_schema", "codec_for", "plain"]

T = TypeVar("T")

_JSON = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
# What orjson and pydantic read and write as any other number; NaN is not less than anything.
_BIG = 1 << 60
_MARKER_START = orjson.dumps({MARKER: 0})[:-2]


_SCALARS = (bool, int, float, str)


class TypeCodec(Generic[T]):
    """One declared type: how its values are written, read and described. Made by `codec_for`."""

    def __init__(self, tp: Any) -> None:
        self.type_name = name_of(tp)
        with _author_errors(self.type_name):
            self._adapter: pydantic.TypeAdapter[T] = pydantic.TypeAdapter(tp)
            self._validators = StrictValidators(self._adapter)
        self._scalar = next((scalar for scalar in _SCALARS if scalar is tp), None)

    @functools.cached_property
    def json_schema(self) -> dict[str, Any]:
        """For forms and agents: with titles, descriptions and defaults. Shared; do not change it."""
        with _author_errors(self.type_name):
            return full_schema(self._adapter)

    @functools.cached_property
    def reduced_schema(self) -> dict[str, Any]:
        """For fingerprints: only what decides whether a value is valid. Shared; do not change it."""
        return reduced_schema(self.json_schema)

    def from_plain(self, plain: Plain) -> T:
        """The typed value, or `ValueMismatch` with every reason; `UnstorableValue` for what is no plain value."""
        if type(plain) is self._scalar and _is_itself(plain):
            return cast(T, plain)
        data = _json_text(plain)
        validator = self._validators.marked if _MARKER_START in data else self._validators.plain
        try:
            return cast(T, validator.validate_json(data, strict=True, by_name=True))
        except pydantic.ValidationError as error:
            raise ValueMismatch(self.type_name, reasons_of(error, plain)) from None
        except Exception as error:  # raised by the type's own code: a validator, `__post_init__`
            said = f"is refused by its own code: {type(error).__name__}: {error}"
            raise ValueMismatch(self.type_name, [("", said)]) from error

    def to_plain(self, value: T) -> Plain:
        """The plain form that reads back as this value.

        Raises `ValueMismatch` when it does not fit the declared type or would read back as another kind of thing, and
        `UnstorableValue`, with the place, when something in it cannot be written at all.
        """
        if type(value) is self._scalar and _is_itself(value):
            return cast(Plain, value)
        written, before = self._written(value)
        # Written anew from what was read: defaults filled in, 1 as 1.0 where a float is declared, one form of a date.
        canonical, after = self._written(self.from_plain(written))
        if before != after:
            self._check_kinds(value, Counter(before), Counter(after))
        return canonical

    def _written(self, value: T) -> tuple[Plain, list[str]]:
        walk = Flattener()
        try:
            return walk.value(value), walk.trace
        except UnknownType as refused:
            return self._written_by_pydantic(value, refused), []
        except Refused as refused:
            raise _unstorable(refused) from None

    def _written_by_pydantic(self, value: T, refused: UnknownType) -> Plain:
        """For types whose author taught pydantic how to write them."""
        try:
            written = self._adapter.dump_python(value, mode="json", by_alias=True, round_trip=True, warnings=False)
        except Exception:
            raise _unstorable(refused) from None
        return plain(written)

    def _check_kinds(self, value: T, before: Counter[str], after: Counter[str]) -> None:
        """Refuses a value that fits, and yet would read back as something else."""
        lost, gained = before - after, after - before
        if any(kind.startswith(ODD_KEY) for kind in lost):
            plain(value)  # names the place
        # A dict may stand for a dataclass. Under `Any` everything reads back as what JSON has.
        if not lost and any(kind.endswith(RECORD) for kind in gained):
            return
        if not gained and self._validators.has_any:
            return
        said = f"holds a {', '.join(lost) or 'plain value'} that would read back as {', '.join(gained) or 'plain'}"
        hint = "return what is declared; a Literal field tells the choices of a union apart"
        raise ValueMismatch(self.type_name, [("", said)], hint=hint)


@overload
def codec_for(tp: type[T]) -> TypeCodec[T]: ...
@overload
def codec_for(tp: Any) -> TypeCodec[Any]: ...
def codec_for(tp: Any) -> TypeCodec[Any]:
    """The codec of a declared type: anything pydantic knows, and what those are made of.

    Raises `InvalidInput` when pydantic cannot read or write it.
    """
    try:
        hash(tp)
    except TypeError:  # Annotated[int, […]]
        return TypeCodec(tp)
    # `int | str` and `str | int` are equal and hash alike, but are two declarations.
    return _cached(tp, repr(tp))


@functools.lru_cache(maxsize=1024)
def _cached(tp: Any, _: str) -> TypeCodec[Any]:
    return TypeCodec(tp)


def plain(value: object) -> Plain:
    """The plain form of a value of no declared type, such as `input=`: dataclasses and models become dicts.

    Raises `UnstorableValue` with the place.
    """
    try:
        return Flattener(text_keys_only=True).value(value)
    except Refused as refused:
        raise _unstorable(refused) from None


def check_schema(plain: Plain, schema: Mapping[str, Any]) -> list[tuple[str, str]]:
    """All reasons why a value does not fit a JSON Schema; see `schema_check.check_schema`."""
    # jsonschema takes longer to import than most commands take to run, and only answers need it.
    from .schema_check import check_schema as check  # noqa: PLC0415

    return check(plain, schema)


def _json_text(value: Plain) -> bytes:
    try:
        data = orjson.dumps(value, default=as_marker, option=_JSON)
    except TypeError:
        encode(value, {})  # names the place of what no receipt can hold; only huge integers pass
        data = orjson.dumps(with_fragments(value), default=as_marker, option=_JSON)
    if hides_null(data, value):
        encode(value, {})
    return data


def _is_itself(scalar: object) -> bool:
    """Whether an object of exactly the declared type is its own plain form, without asking anybody: most are."""
    if isinstance(scalar, str):
        return scalar.isascii()
    return isinstance(scalar, float | int) and -_BIG < scalar < _BIG


def _unstorable(refused: Refused) -> UnstorableValue:
    return UnstorableValue(refused.path, refused.reason, hint=refused.hint)


@contextlib.contextmanager
def _author_errors(type_name: str) -> Iterator[None]:
    try:
        yield
    except (pydantic.PydanticUserError, pydantic.PydanticUndefinedAnnotation, pydantic_core.SchemaError) as error:
        said = str(error).splitlines()[0]
        raise InvalidInput(f"{type_name} cannot be a declared type: {said}") from error
    except Refused as refused:
        raise InvalidInput(f"{type_name} cannot be a declared type: {refused.reason}", hint=refused.hint) from None
