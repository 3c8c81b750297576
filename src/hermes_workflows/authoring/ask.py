"""`ask(...)`: a typed question to a person, answered through the review queue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from ..core.calls import Call, CallSpec
from ..core.receipts import Receipt
from ..core.values import codec_for, plain
from ..errors import ReviewExpired

T = TypeVar("T")


@dataclass(frozen=True)
class AskOptions:
    """`expires` in seconds after the request was recorded."""

    expires: float | None


def ask(
    prompt: str,
    *,
    key: str | None = None,
    input: Any = None,
    returns: type[T] | Any = dict,
    assignee: str | None = None,
    expires: float | timedelta | None = None,
    on_expiry: Any = "raise",
) -> Call[T]:
    """Ask a person and wait, for as long as it takes.

    The form is made from `returns`: a dataclass with `action: Literal[…]` gives action buttons. `input` is the
    evidence shown beside the question. `expires` in seconds (or a timedelta): then `on_expiry="raise"` raises
    ReviewExpired at the await, any other value is the answer, recorded as a default and never as a person's.
    """
    codec = codec_for(returns)
    seconds = expires.total_seconds() if isinstance(expires, timedelta) else expires
    default = on_expiry if isinstance(on_expiry, str) and on_expiry == "raise" else codec.to_plain(on_expiry)
    request = {
        "prompt": prompt,
        "input": plain(input),
        "returns": codec.json_schema,
        "assignee": assignee,
        "expires_seconds": seconds,
        "on_expiry": default,
    }

    def decode(receipt: Receipt) -> T:
        value: T = codec.from_plain(receipt.output)
        return value

    return Call(
        CallSpec(
            kind="review",
            name="ask",
            request=request,
            decode=decode,
            failure=ReviewExpired,
            options=AskOptions(seconds),
            key=key,
        )
    )
