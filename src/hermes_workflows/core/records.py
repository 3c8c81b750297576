"""The shape of dataclasses and pydantic models: which attributes are written, under which names, and how.

Fields go by the names that validation and the JSON Schema use. Where an author said how a field or a whole model is
to be written, pydantic writes it.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import pydantic

from .canonical import Refused

RECORD: Final = "()"
"""How the kinds of records end in a trace of kinds."""

WHOLE: Final = ""
"""The only name of a record that is written as one value: a root model, or one with a serializer of its own."""

Reader: TypeAlias = "Callable[[Any], Sequence[Any]]"


@dataclass(frozen=True)
class Shape:
    """How the records of one class are told."""

    kind: str
    """For traces; `Box` where `Box[int]` is declared is no other kind."""
    names: tuple[str, ...]
    read: Reader
    """The values of `names`, in their order."""


def shape_of(kind: type) -> Shape:
    """The shape of a dataclass or model class."""
    origin = getattr(kind, "__pydantic_generic_metadata__", {}).get("origin") or kind
    label = f"{origin.__qualname__}{RECORD}"
    decorators = getattr(kind, "__pydantic_decorators__", None)
    if decorators is not None and decorators.model_serializers:
        return Shape(label, (WHOLE,), _by_pydantic)
    attributes, names = _fields(kind)
    if issubclass(kind, pydantic.RootModel):
        names = (WHOLE,)
    return Shape(label, names, _naming_what_is_absent(_reader(attributes, _custom_fields(kind, decorators))))


def _fields(kind: type) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The attributes of a record, and the names they are written under."""
    fields: dict[str, Any] | None = getattr(kind, "__pydantic_fields__", None)
    if fields is None:
        own = tuple(field.name for field in dataclasses.fields(kind) if field.init)
        return own, own
    written = {name: field for name, field in fields.items() if not field.exclude and field.init is not False}
    return tuple(written), tuple(_alias(name, field.validation_alias) for name, field in written.items())


def _alias(name: str, alias: Any) -> str:
    if isinstance(alias, pydantic.AliasChoices):
        alias = alias.choices[0]
    return alias if isinstance(alias, str) else name


def _custom_fields(kind: type, decorators: Any) -> frozenset[str]:
    """The fields whose author said how to write them."""
    own = (pydantic.PlainSerializer, pydantic.WrapSerializer)
    fields: dict[str, Any] = getattr(kind, "__pydantic_fields__", {})
    annotated = {name for name, field in fields.items() if any(isinstance(m, own) for m in field.metadata)}
    decorated = {name for d in (decorators.field_serializers.values() if decorators else ()) for name in d.info.fields}
    return frozenset(fields) if "*" in decorated else frozenset(annotated | decorated)


def _reader(attributes: tuple[str, ...], custom: frozenset[str]) -> Reader:
    if len(attributes) > 1 and not custom:
        return operator.attrgetter(*attributes)  # twice as fast, but for one attribute it gives no tuple
    return lambda value: [_custom(value, name) if name in custom else getattr(value, name) for name in attributes]


def _custom(value: Any, name: str) -> Any:
    written = _by_pydantic(value, include={name}, by_alias=False)[0]
    return written if isinstance(value, pydantic.RootModel) else written[name]


def _by_pydantic(value: Any, **options: Any) -> Sequence[Any]:
    try:
        return [value.__pydantic_serializer__.to_python(value, mode="json", **{"by_alias": True, **options})]
    except Exception as error:  # whatever the author's serializer raises
        raise Refused(f"the serializer of {type(value).__name__} failed: {error}") from error


def _naming_what_is_absent(get: Reader) -> Reader:
    def read(value: Any) -> Sequence[Any]:
        try:
            return get(value)
        except AttributeError as error:
            raise Refused(f"a {type(value).__name__} without its field {cast(str, error.name)!r}") from None

    return read
