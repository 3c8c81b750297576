"""Durations and instants as people and receipts read them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from hermes_workflows.core.durations import lasting
from hermes_workflows.core.timestamps import parse_time, render_time


@pytest.mark.parametrize(
    ("seconds", "said"), [(-1, "0 s"), (59.9, "59 s"), (61, "1 min 1 s"), (7200, "2 h"), (90_000, "1 d 1 h")]
)
def test_what_still_goes_on_is_told_in_whole_units(seconds: float, said: str) -> None:
    assert lasting(seconds) == said


def test_an_instant_of_another_zone_is_written_in_utc() -> None:
    moment = datetime(2026, 11, 29, 12, tzinfo=timezone(timedelta(hours=2)))
    assert render_time(moment) == "2026-11-29T10:00:00.000Z"
    assert parse_time(render_time(moment)) == moment
