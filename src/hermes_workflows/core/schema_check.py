"""The check of a value against a JSON Schema, with every reason and its place.

Stricter than the standard where our typed reader is: 1.0 is no integer, and `1`, `1.0` and `true` are three values.
Nothing is ever fetched.
"""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import ipaddress
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import jsonschema
import jsonschema.validators
import orjson
import referencing
import referencing.exceptions
from pydantic import TypeAdapter, ValidationError

from ..errors import InvalidInput
from .canonical import pointer
from .encoding import Plain
from .mismatch import few, shown

_FORMATS: Final[Mapping[str, Any]] = {
    "date-time": dt.datetime,
    "date": dt.date,
    "time": dt.time,
    "duration": dt.timedelta,
    "decimal": decimal.Decimal,
    "fraction": fractions.Fraction,
    "uuid": uuid.UUID,
    "regex": re.Pattern,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
}

# What stands behind a format has more words than pydantic: `re` says OverflowError for `a{99999999999}`.
_REFUSALS: Final = (ValidationError, ArithmeticError, RecursionError, ValueError)

# Errors that are made, of one value or against one choice.
_MOST: Final = 1000

_Reason = tuple[str, str]


def check_schema(plain: Plain, schema: Mapping[str, Any]) -> list[_Reason]:
    """The reasons why a value does not fit, as (JSON pointer, reason), in the order of their places.

    Raises `InvalidInput` for a schema that is none, or that refers to something outside of itself.
    """
    try:
        _Checker.check_schema(schema)
        checker = _Checker(schema, registry=referencing.Registry(), format_checker=_formats())
        errors = list(islice(checker.iter_errors(_without_bytes(plain)), _MOST))
    except (jsonschema.SchemaError, referencing.exceptions.Unresolvable, re.error) as error:
        raise InvalidInput(f"the JSON Schema cannot be used: {str(error).splitlines()[0]}") from None
    except RecursionError:
        return [("", "is nested too deep to be checked")]
    except OverflowError:
        return [("", "has a number that is too large to be checked")]
    # Where the choices are named, their type goes without saying.
    named = {tuple(error.absolute_path) for error in errors if error.validator in ("const", "enum")}
    told = [error for error in errors if error.validator != "type" or tuple(error.absolute_path) not in named]
    return list(few(sorted({reason for error in told for reason in _reasons(error)})))


def _without_bytes(plain: Plain) -> Any:
    """Bytes as text of the same length, as the schema describes them."""
    if isinstance(plain, bytes):
        return plain.decode("latin-1")
    if isinstance(plain, list):
        return [_without_bytes(item) for item in plain]
    if isinstance(plain, dict):
        return {key: _without_bytes(item) for key, item in plain.items()}
    return plain


def _formats() -> jsonschema.FormatChecker:
    checker = jsonschema.FormatChecker(formats=())
    for name, declared in _FORMATS.items():
        checker.checks(name, raises=_REFUSALS)(_format_check(TypeAdapter(declared)))
    return checker


def _format_check(adapter: TypeAdapter[Any]) -> Callable[[object], bool]:
    def check(text: object) -> bool:
        # JSON mode, as answers are read; a format says nothing about what is no text.
        return not isinstance(text, str) or adapter.validate_json(orjson.dumps(text), strict=True) is not None

    return check


def _same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other) if not isinstance(one, dict | list) else bool(one == other)


def _enum(_: Any, choices: Any, instance: Any, __: Any) -> Iterator[jsonschema.ValidationError]:
    if not any(_same(instance, choice) for choice in choices):
        yield jsonschema.ValidationError("")


def _const(_: Any, choice: Any, instance: Any, __: Any) -> Iterator[jsonschema.ValidationError]:
    if not _same(instance, choice):
        yield jsonschema.ValidationError("")


def _any_of(validator: Any, choices: Any, instance: Any, _: Any) -> Iterator[jsonschema.ValidationError]:
    against: list[jsonschema.ValidationError] = []
    for number, choice in enumerate(choices):
        # An error of jsonschema's is some kilobytes, and a list of the wrong things has one for each.
        errors = list(islice(validator.descend(instance, choice, schema_path=number), _MOST))
        if not errors:
            return
        against += errors
    yield jsonschema.ValidationError("", context=against)


def _one_of(validator: Any, choices: Any, instance: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    fitting = sum(validator.evolve(schema=choice).is_valid(instance) for choice in choices)
    if fitting == 0:
        yield from _any_of(validator, choices, instance, schema)
    elif fitting > 1:
        yield jsonschema.ValidationError("")


def _is_integer(_: Any, instance: Any) -> bool:
    return isinstance(instance, int) and not isinstance(instance, bool)


_Checker = jsonschema.validators.extend(  # type: ignore[no-untyped-call]  # its stubs leave it open
    jsonschema.Draft202012Validator,
    validators={"enum": _enum, "const": _const, "anyOf": _any_of, "oneOf": _one_of},
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


def _reasons(error: jsonschema.ValidationError) -> Iterator[_Reason]:
    path = pointer(error.absolute_path)
    expected: Any = error.validator_value
    instance: Any = error.instance
    schema: Any = error.schema
    match error.validator:
        case "required":
            for name in expected:
                if name not in instance:
                    yield path + pointer([name]), "is missing"
        case "additionalProperties" if expected is False:
            for name in sorted(instance.keys() - schema.get("properties", {}).keys()):
                yield path + pointer([name]), "is unknown"
        case "anyOf" | "oneOf" if error.context:
            yield from _reasons_of_choice(path, error)
        case _:
            key = pointer([instance]) if "propertyNames" in error.relative_schema_path else ""
            yield path + key, f"{_wanted(error, expected)}, not {shown(instance)}"


def _reasons_of_choice(path: str, error: jsonschema.ValidationError) -> Iterator[_Reason]:
    """The reasons of the one choice that was meant; of all together nobody can make sense."""
    choices: dict[Any, list[jsonschema.ValidationError]] = {}
    for reason in error.context or ():
        choices.setdefault(reason.schema_path[0], []).append(reason)
    meant = [reasons for reasons in choices.values() if not any(_is_other_kind(reason, 0) for reason in reasons)]
    if meant:
        # A field that tells the choices apart counts more than the number of faults.
        for reason in min(meant, key=lambda reasons: (sum(_is_other_kind(r, 1) for r in reasons), len(reasons))):
            yield from _reasons(reason)
        return
    wanted = dict.fromkeys(_wanted(reason, reason.validator_value) for reason in error.context or ())
    yield path, f"{' or '.join(wanted).replace(' or should be', ' or')}, not {shown(error.instance)}"


def _is_other_kind(reason: jsonschema.ValidationError, depth: int) -> bool:
    kinds = ("const", "enum") if depth else ("type", "const", "enum", "format")
    return reason.validator in kinds and len(reason.relative_path) == depth


_BOUNDS: Final[Mapping[str, str]] = {
    "minimum": "should be at least {}",
    "maximum": "should be at most {}",
    "exclusiveMinimum": "should be more than {}",
    "exclusiveMaximum": "should be less than {}",
    "multipleOf": "should be a multiple of {}",
    "minLength": "should have at least {} characters",
    "maxLength": "should have at most {} characters",
    "minItems": "should have at least {} items",
    "maxItems": "should have at most {} items",
    "uniqueItems": "should have no item twice",
    "pattern": "should match {!r}",
    "format": "should be text of the format {}",
    "const": "should be {!r}",
}


def _wanted(error: jsonschema.ValidationError, expected: Any) -> str:
    name = str(error.validator)
    if name == "type":
        return f"should be {expected if isinstance(expected, str) else ' or '.join(expected)}"
    if name == "enum":
        return f"should be one of {', '.join(map(repr, expected))}"
    return _BOUNDS.get(name, f"should fit {name}").format(expected)
