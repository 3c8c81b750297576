"""`approve` and `select`: the two questions that are asked most, with answers that need no type of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, TypeVar, overload

from ..core.calls import Call
from ..core.encoding import Plain
from ..core.receipts import Receipt
from ..core.values import codec_for
from ..errors import InvalidInput
from .question import RAISE, Answers, Span, Terms, question

T = TypeVar("T")
E = TypeVar("E", bound=Enum)


@dataclass(frozen=True)
class Approval:
    """What somebody decided. `by` is who, `kind` how that is known: human, manual, agent, test, or policy (a rule)."""

    approved: bool
    feedback: str
    by: str
    kind: str


@dataclass(frozen=True)
class _Verdict:
    action: Literal["approve", "reject"]
    feedback: str = ""


_VERDICT = codec_for(_Verdict)


def approve(
    prompt: str,
    *,
    key: str | None = None,
    input: Any = None,
    assignee: str | None = None,
    expires: Span = None,
    on_expiry: Literal["raise"] | bool = RAISE,
    remind_every: Span = None,
    evidence: Any = None,
) -> Call[Approval]:
    """Ask a person to approve or reject, with feedback; everything else is as for `ask`.

    The answer tells who gave it. `on_expiry=False` rejects by rule what nobody has answered in time, `True` approves.
    As the check of a `goal` it accepts what was approved, and hands the feedback on.
    """
    default: Plain = RAISE
    if isinstance(on_expiry, bool):
        default = {"action": "approve" if on_expiry else "reject", "feedback": ""}
    elif on_expiry != RAISE:
        raise InvalidInput(f"approve(on_expiry={on_expiry!r}): it is True, False or 'raise'")
    terms = Terms("approve", key, input, evidence, assignee, expires, remind_every)
    return question(prompt, Answers(_VERDICT.json_schema, _approval, default), terms)


def _approval(receipt: Receipt) -> Approval:
    verdict = _VERDICT.from_plain(receipt.output)
    by = receipt.execution.provenance
    return Approval(verdict.action == "approve", verdict.feedback, by.by if by else "", by.kind if by else "")


@overload
def select(
    key: str,
    options: type[E],
    *,
    prompt: str | None = None,
    input: Any = None,
    assignee: str | None = None,
    expires: Span = None,
    on_expiry: Any = RAISE,
    remind_every: Span = None,
    evidence: Any = None,
) -> Call[E]: ...
@overload
def select(
    key: str,
    options: Mapping[str, T] | Sequence[T],
    *,
    prompt: str | None = None,
    input: Any = None,
    assignee: str | None = None,
    expires: Span = None,
    on_expiry: Any = RAISE,
    remind_every: Span = None,
    evidence: Any = None,
) -> Call[T]: ...
def select(
    key: str,
    options: Any,
    *,
    prompt: str | None = None,
    input: Any = None,
    assignee: str | None = None,
    expires: Span = None,
    on_expiry: Any = RAISE,
    remind_every: Span = None,
    evidence: Any = None,
) -> Call[Any]:
    """Ask a person for one of several options, and return it; everything else is as for `ask`.

    `options` are texts, numbers or members of an enum, the enum itself, or a dict from what the person reads to
    anything at all. `on_expiry` is one of them, or `"raise"`.
    Raises InvalidInput for options that cannot be told apart, and for a default that is none of them.
    """
    offered = _offered(options)
    default: Plain = RAISE
    if not (isinstance(on_expiry, str) and on_expiry == RAISE):
        default = _label_of(on_expiry, offered)
    answers = Answers({"enum": list(offered.labels)}, lambda receipt: offered.of(receipt.output), default)
    terms = Terms("select", key, input, evidence, assignee, expires, remind_every)
    return question(prompt if prompt is not None else f"Which {key}?", answers, terms)


@dataclass(frozen=True)
class _Offered:
    """What a person reads, and what the body gets for it."""

    labels: tuple[Plain, ...]
    values: tuple[Any, ...]

    def of(self, label: Plain) -> Any:
        place = next(n for n, each in enumerate(self.labels) if _same(each, label))
        return self.values[place]


def _offered(options: Any) -> _Offered:
    if isinstance(options, type) and issubclass(options, Enum):
        options = list(options)
    if isinstance(options, Mapping):
        labels, values = tuple(options), tuple(options.values())
    elif isinstance(options, Sequence) and not isinstance(options, str | bytes):
        labels, values = tuple(_label(each) for each in options), tuple(options)
    else:
        raise InvalidInput(f"select(options=…): {type(options).__name__} is no list, dict or enum")
    for label in labels:
        if isinstance(label, bool) or not isinstance(label, str | int | float):
            hint = "give a dict from what the person reads to what it means"
            raise InvalidInput(f"select(options=…): {label!r} is no text and no number", hint=hint)
    if not labels or any(_same(one, other) for n, one in enumerate(labels) for other in labels[:n]):
        raise InvalidInput(f"select(options=…): {list(labels)} are no options that can be told apart")
    return _Offered(labels, values)


def _label(option: Any) -> Any:
    if not isinstance(option, Enum):
        return option
    return option.value if isinstance(option.value, str) else option.name


def _label_of(value: Any, offered: _Offered) -> Plain:
    for label, each in zip(offered.labels, offered.values, strict=True):
        if each is value or (type(each) is type(value) and each == value):
            return label
    raise InvalidInput(f"select(on_expiry={value!r}): it is none of {list(offered.labels)}")


def _same(one: Plain, other: Plain) -> bool:
    return type(one) is type(other) and one == other
