"""When to try a failed call again: a value, decided here and acted on by the runner."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from ..errors import InvalidInput


@dataclass(frozen=True)
class Retry:
    """`attempts` in all; the first pause is `initial` seconds, each next one `factor` times longer, at most `maximum`.

    Up to `jitter` (a share of the pause) is added, so that calls that failed together do not return together.
    `never` names exception types that no further attempt can mend.
    """

    attempts: int = 1
    initial: float = 1.0
    factor: float = 2.0
    maximum: float = 60.0
    jitter: float = 0.1
    never: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InvalidInput("Retry: attempts counts the first one too, so it is at least 1")
        if not all(
            math.isfinite(each) and each >= 0 for each in (self.initial, self.factor, self.maximum, self.jitter)
        ):
            raise InvalidInput("Retry: pauses are finite and not negative")

    def pause_after(self, attempt: int, chance: float) -> float | None:
        """Seconds to wait after failed attempt number `attempt` (from 1), or None when it was the last.

        `chance` is a random number in [0, 1).
        """
        if attempt >= self.attempts:
            return None
        pause = self.maximum
        with suppress(OverflowError):  # beyond attempt 1,000 the power itself is too large for a float
            pause = min(self.initial * self.factor ** (attempt - 1), self.maximum)
        return pause * (1 + self.jitter * chance)

    def forbids(self, type_name: str) -> bool:
        """Whether an error of a type with this name, or one that is derived from it, is never tried again."""
        return any(type_name in _names(kind) for kind in self.never)


def _names(kind: type[BaseException]) -> Iterator[str]:
    yield kind.__name__
    for derived in kind.__subclasses__():
        yield from _names(derived)
