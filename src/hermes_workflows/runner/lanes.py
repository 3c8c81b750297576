"""How the databases of a runner share its executors: none of them waits for another one's queue to be empty.

Whoever got nothing the last time comes first, and each may take its share of what is free; what it leaves is there for
those behind it. A single database gets everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .dispatch import Dispatcher
    from .upkeep import Upkeep

Lane = tuple["Dispatcher", "Upkeep"]


class Lanes:
    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = list(lanes)

    def shares(self, concurrency: int) -> Iterator[tuple[Dispatcher, Upkeep, int]]:
        """Each database with the executors it may take now, to be asked for its turn before the next one is named."""
        took: list[Lane] = []
        for place, lane in enumerate(self._lanes):
            dispatcher, upkeep = lane
            free = max(concurrency - sum(len(each.active) for each, _ in self._lanes), 0)
            before = len(dispatcher.active)
            yield dispatcher, upkeep, -(-free // (len(self._lanes) - place))
            if len(dispatcher.active) > before:
                took.append(lane)
        if took:
            self._lanes = [*(lane for lane in self._lanes if lane not in took), *took]
