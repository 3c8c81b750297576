"""What a runner wants from the queue: all kinds of work or some, within limits that hold for all runners together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from ..store.queue_port import DECIDING, Claim, Kind, Limits

# Deciding needs no executor, but many runs must not keep results waiting.
_DECISIONS_AT_ONCE = 16
EXECUTING: tuple[Kind, ...] = tuple(kind for kind in get_args(Kind) if kind not in DECIDING)
"""The kinds of work that `--only` chooses from."""


class Wanting:
    """`only` are the kinds it executes, all when empty; every runner decides, whatever it executes."""

    def __init__(self, only: Sequence[Kind] = (), limits: Limits = ()) -> None:
        chosen = tuple(only) or EXECUTING
        self._all: tuple[Kind, ...] = (*DECIDING, *chosen) if only else ()
        self._but_notices = (*DECIDING, *(kind for kind in chosen if kind != "notify"))
        self._limits = limits

    def claim(self, free: int, left: int | None, *, notices: bool) -> Claim | None:
        """`free` are executors, `left` the rows that may still be claimed; `notices` whether people may be told."""
        if left is not None and left <= 0:
            return None
        kinds = self._all if notices else self._but_notices
        limit = free if left is None else min(free, left)
        # A run whose timeout fired must move on while all executors are busy.
        decisions = _DECISIONS_AT_ONCE if left is None else min(left - limit, _DECISIONS_AT_ONCE)
        deciding = Claim(decisions, DECIDING) if decisions else None
        return Claim(limit, kinds, limits=self._limits, then=deciding) if limit else deciding

    def limits(self, name: str) -> bool:
        """Whether only so many calls of this kind may be executed at once."""
        return any(limited == name for limited, _ in self._limits)
