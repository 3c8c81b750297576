"""The time, chance and ids of a body: what it may use in place of `datetime.now`, `random` and `uuid`.

They come from the receipts and from the run's recorded seed, so a replay sees the same.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from ..core.calls import current_run


def now() -> datetime:
    """The run's own time, in UTC: that of its newest delivered receipt. It never goes back."""
    return current_run("now()").now or datetime.fromtimestamp(0, UTC)


def random() -> float:
    """A number in [0, 1)."""
    return current_run("random()").random.random()


def uuid4() -> uuid.UUID:
    """A random id."""
    return uuid.UUID(int=current_run("uuid4()").random.getrandbits(128), version=4)
