"""`ask(...)`: a typed question to a person, answered through the review queue."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from ..core.calls import Call
from ..core.values import codec_for
from .question import RAISE, Answers, Span, Terms, question

T = TypeVar("T")


@overload
def ask(
    prompt: str,
    *,
    key: str | None = None,
    input: Any = None,
    assignee: str | None = None,
    expires: Span = None,
    on_expiry: Any = RAISE,
    remind_every: Span = None,
    evidence: Any = None,
) -> Call[dict[str, Any]]: ...
@overload
def ask(
    prompt: str,
    *,
    key: str | None = None,
    input: Any = None,
    returns: type[T],
    assignee: str | None = None,
    expires: Span = None,
    on_expiry: Any = RAISE,
    remind_every: Span = None,
    evidence: Any = None,
) -> Call[T]: ...
@overload
def ask(
    prompt: str,
    *,
    key: str | None = None,
    input: Any = None,
    returns: Any,
    assignee: str | None = None,
    expires: Span = None,
    on_expiry: Any = RAISE,
    remind_every: Span = None,
    evidence: Any = None,
) -> Call[Any]: ...
def ask(
    prompt: str,
    *,
    key: str | None = None,
    input: Any = None,
    returns: Any = dict,
    assignee: str | None = None,
    expires: Span = None,
    on_expiry: Any = RAISE,
    remind_every: Span = None,
    evidence: Any = None,
) -> Call[Any]:
    """Ask a person and wait, for as long as it takes.

    The form is made from `returns`: a dataclass with `action: Literal[…]` gives action buttons. `input` is what the
    question is about, `evidence` a list or a dict of what else is shown beside it: values, results of calls, artifacts,
    and paths of texts in the workspace, which are kept as they are when the question is asked.
    `expires` in seconds (or a timedelta): then `on_expiry="raise"` raises ReviewExpired at the await, any other value
    is the answer, recorded as a default and never as a person's. `remind_every` (seconds or a timedelta) calls the
    registry's `notify` command again while nobody answers.
    Raises InvalidInput for a default that does not fit `returns`.
    """
    codec = codec_for(returns)
    default = on_expiry if isinstance(on_expiry, str) and on_expiry == RAISE else codec.to_plain(on_expiry)
    answers = Answers(codec.json_schema, lambda receipt: codec.from_plain(receipt.output), default)
    return question(prompt, answers, Terms("ask", key, input, evidence, assignee, expires, remind_every))
