"""`ask(...)`: a typed question to a person, answered through the review queue."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeVar, overload

from ..core.calls import Call, CallSpec
from ..core.values import codec_for, plain
from ..errors import ReviewExpired
from .requests import check_text, part, request_of, seconds_of

T = TypeVar("T")


@overload
def ask(
    prompt: str,
    *,
    key: str | None = None,
    input: Any = None,
    assignee: str | None = None,
    expires: float | timedelta | None = None,
    on_expiry: Any = "raise",
) -> Call[dict[str, Any]]: ...
@overload
def ask(
    prompt: str,
    *,
    key: str | None = None,
    input: Any = None,
    returns: type[T],
    assignee: str | None = None,
    expires: float | timedelta | None = None,
    on_expiry: Any = "raise",
) -> Call[T]: ...
@overload
def ask(
    prompt: str,
    *,
    key: str | None = None,
    input: Any = None,
    returns: Any,
    assignee: str | None = None,
    expires: float | timedelta | None = None,
    on_expiry: Any = "raise",
) -> Call[Any]: ...
def ask(
    prompt: str,
    *,
    key: str | None = None,
    input: Any = None,
    returns: Any = dict,
    assignee: str | None = None,
    expires: float | timedelta | None = None,
    on_expiry: Any = "raise",
) -> Call[Any]:
    """Ask a person and wait, for as long as it takes.

    The form is made from `returns`: a dataclass with `action: Literal[…]` gives action buttons. `input` is the
    evidence shown beside the question. `expires` in seconds (or a timedelta): then `on_expiry="raise"` raises
    ReviewExpired at the await, any other value is the answer, recorded as a default and never as a person's.
    Raises InvalidInput for a default that does not fit `returns`.
    """
    codec = codec_for(returns)
    seconds = seconds_of("ask(expires=…)", expires)
    check_text("ask(prompt)", prompt)
    check_text("ask(assignee=…)", assignee)
    default = on_expiry if isinstance(on_expiry, str) and on_expiry == "raise" else codec.to_plain(on_expiry)
    request, refused = request_of(
        lambda: {
            "prompt": prompt,
            "input": part("input", plain, input),
            "returns": codec.json_schema,
            "assignee": assignee,
            "expires_seconds": seconds,
            "on_expiry": default,
        }
    )
    return Call(
        CallSpec(
            kind="review",
            name="ask",
            request=request,
            decode=lambda receipt: codec.from_plain(receipt.output),
            failure=ReviewExpired,
            expires=seconds,
            key=key,
            refused=refused,
        )
    )
