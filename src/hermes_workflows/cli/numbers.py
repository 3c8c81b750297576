"""Numbers on the command line: what SQLite, the clock and a comparison can work with, and nothing else.

NaN is in every range, as no comparison with it is true: a limit of NaN seconds never comes.
"""

from __future__ import annotations

import math
from typing import Any

import click

_YEAR_SECONDS = 366 * 86_400
_MOST = 2**31 - 1


class Seconds(click.FloatRange):
    """A length of time: from `least` to a year."""

    name = "seconds"

    def __init__(self, least: float = 0, *, least_open: bool = False) -> None:
        super().__init__(least, _YEAR_SECONDS, min_open=least_open)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value} is no number", param, ctx)
        return seconds


def count(least: int = 0) -> click.IntRange:
    """So many of something, `least` or more."""
    return click.IntRange(least, _MOST)
