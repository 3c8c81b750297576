"""`sleep(...)`: time that passes without a runner, for a while or until an instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ..core.calls import Call, CallSpec
from ..core.encoding import Plain
from ..core.timestamps import in_milliseconds, render_time
from ..errors import InvalidInput
from .requests import check_seconds

_MILLISECOND = timedelta(milliseconds=1)
_END = datetime.max.replace(tzinfo=UTC) - _MILLISECOND


def sleep(
    seconds: float | timedelta | None = None, *, until: datetime | None = None, key: str | None = None
) -> Call[None]:
    """Wait for `seconds` (or a timedelta), or `until` an instant; no process is needed meanwhile.

    `asyncio.sleep(seconds)` does the same. An instant that lies behind, or less than no time, is over at once.
    Raises InvalidInput for an instant without a zone, which would be another one on another machine.
    """
    if (seconds is None) == (until is None):
        raise InvalidInput("sleep() takes seconds or until=", hint="sleep(60), or sleep(until=now() + timedelta(1))")
    request: dict[str, Plain] = {
        "seconds": None if seconds is None else _span(seconds),
        "until": None if until is None else _instant(until),
    }
    return Call(CallSpec(kind="timer", name="timer", request=request, decode=lambda receipt: None, key=key))


def _span(span: float | timedelta) -> float:
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    if type(seconds) in (int, float) and seconds <= 0:
        return 0.0
    check_seconds("sleep()", seconds)
    # As the loop's own timers do: the sum of two numbers of seconds is not exactly that.
    return round(float(seconds), 6)


def _instant(until: datetime) -> str:
    if not isinstance(until, datetime):
        raise InvalidInput(f"sleep(until=…): {type(until).__name__} is no datetime")
    if until.tzinfo is None:
        raise InvalidInput(f"sleep(until=…): {until} has no zone", hint="write datetime(…, tzinfo=UTC)")
    short = in_milliseconds(moment := until.astimezone(UTC))
    # Up, never down: nobody may wake before the instant that was asked for.
    return render_time(short + _MILLISECOND if short < moment < _END else short)
