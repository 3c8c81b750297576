"""What every question to a person has in common: a prompt, what is shown beside it, and its terms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import PurePath
from typing import Any, Final, Generic, TypeAlias, TypeVar

from ..core.calls import Call, CallSpec
from ..core.encoding import Plain
from ..core.receipts import Receipt
from ..core.values import plain
from ..errors import InvalidInput, ReviewExpired, ReviewFailed
from .artifact import Artifact
from .bash import BashResult
from .requests import check_text, part, relative, request_of, seconds_of

T = TypeVar("T")
Span: TypeAlias = "float | timedelta | None"

RAISE: Final = "raise"


@dataclass(frozen=True)
class Terms:
    """For whom and how long: `expires` and `remind_every` in seconds or as timedeltas, `what` is the primitive."""

    what: str
    key: str | None
    input: Any
    evidence: Any
    assignee: str | None
    expires: Span
    remind_every: Span


@dataclass(frozen=True)
class Answers(Generic[T]):
    """The form of an answer, how a recorded one is read, and the one that expiry gives (`"raise"` for none)."""

    schema: Mapping[str, Any]
    read: Callable[[Receipt], T]
    default: Plain


def question(prompt: str, answers: Answers[T], terms: Terms) -> Call[T]:
    """The call. Raises InvalidInput for terms that are none."""
    expires = seconds_of(f"{terms.what}(expires=…)", terms.expires)
    remind = seconds_of(f"{terms.what}(remind_every=…)", terms.remind_every)
    check_text(f"{terms.what}(prompt)", prompt)
    check_text(f"{terms.what}(assignee=…)", terms.assignee)
    request, refused = request_of(
        lambda: {
            "prompt": prompt,
            "input": part("input", plain, terms.input),
            "evidence": part("evidence", _evidence, terms),
            "returns": dict(answers.schema),
            "assignee": terms.assignee,
            "expires_seconds": expires,
            "on_expiry": answers.default,
            "remind_seconds": remind,
        }
    )
    return Call(
        CallSpec(
            kind="review",
            name=terms.what,
            request=request,
            decode=answers.read,
            failure=ReviewFailed,
            timed_out=ReviewExpired,
            expires=expires,
            key=terms.key,
            refused=refused,
        )
    )


def _evidence(terms: Terms) -> Plain:
    given = terms.evidence
    if given is None:
        return []
    if isinstance(given, str | bytes) or not isinstance(given, Mapping | list | tuple):
        raise InvalidInput(f"{terms.what}(evidence=…): {type(given).__name__} is no list", hint="evidence=[draft]")
    named = given.items() if isinstance(given, Mapping) else ((None, each) for each in given)
    return [dict(_shown(terms.what, number, title, each)) for number, (title, each) in enumerate(named, 1)]


def _shown(what: str, number: int, title: object, value: Any) -> Iterator[tuple[str, Plain]]:
    path = _path(what, value) if isinstance(value, PurePath) else None
    name = value.name if isinstance(value, Artifact) else path
    yield "title", str(title) if title is not None else name or f"evidence {number}"
    yield "value", None if path is not None else part(f"{number - 1}/value", plain, _readable(value))
    yield "path", path


def _path(what: str, path: PurePath) -> str:
    inside = relative(f"{what}()", path)
    if PurePath(inside).is_absolute() or ".." in PurePath(inside).parts:
        raise InvalidInput(f"{what}(evidence=…): {inside} lies outside the workspace")
    return inside


def _readable(value: Any) -> Any:
    if isinstance(value, BashResult):
        # Not its bytes, which say the same once more.
        return {"exit_code": value.exit_code, "stdout": value.stdout, "stderr": value.stderr}
    return value
