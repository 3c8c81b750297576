"""`wait_for(...)`: an event from outside, sent with `hermes-workflows signal`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeVar, overload

from ..core.calls import Call, CallSpec
from ..core.names import check_name
from ..core.receipts import Receipt
from ..core.values import TypeCodec, codec_for
from ..errors import InvalidInput, SignalFailed, SignalTimedOut
from .requests import seconds_of

T = TypeVar("T")


@overload
def wait_for(
    name: str, *, key: str | None = None, key_by: object = None, timeout: float | timedelta | None = None
) -> Call[dict[str, Any]]: ...
@overload
def wait_for(
    name: str,
    *,
    returns: type[T],
    key: str | None = None,
    key_by: object = None,
    timeout: float | timedelta | None = None,
) -> Call[T]: ...
@overload
def wait_for(
    name: str, *, returns: Any, key: str | None = None, key_by: object = None, timeout: float | timedelta | None = None
) -> Call[Any]: ...
def wait_for(
    name: str,
    *,
    returns: Any = dict,
    key: str | None = None,
    key_by: object = None,
    timeout: float | timedelta | None = None,
) -> Call[Any]:
    """Wait for a signal of this name and return its payload, a value of type `returns`.

    Signals are taken in the order they came, each by one wait; one that comes before anybody waits is kept for the
    next wait for its name. While a wait is open, a payload that does not fit is refused at the door.
    Raises SignalTimedOut at the await when none came within `timeout` (seconds or a timedelta), SignalFailed when a
    kept one does not fit.
    """
    if not isinstance(name, str):
        raise InvalidInput(f"wait_for(): the name of a signal is a text, not {type(name).__name__}")
    check_name(name, "signal")
    codec = codec_for(returns)
    return Call(
        CallSpec(
            kind="signal",
            name=name,
            request={"name": name, "returns": codec.reduced_schema},
            decode=lambda receipt: _payload(codec, receipt),
            failure=SignalFailed,
            timed_out=SignalTimedOut,
            expires=seconds_of("wait_for(timeout=…)", timeout),
            key=key,
            key_by=key_by,
        )
    )


def _payload(codec: TypeCodec[T], receipt: Receipt) -> T:
    try:
        return codec.from_plain(receipt.output)
    except InvalidInput as error:
        raise SignalFailed(f"the signal {receipt.key!r} that was kept {error.message}", key=receipt.key) from None
