"""What every test of a body ends with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.core.driving import Driver


@pytest.fixture(autouse=True)
def _bodies_are_taken_down() -> Iterator[None]:
    """Every body that a test leaves suspended must go when it is told to, without a word on stderr."""
    yield
    while Driver.alive:
        assert Driver.alive.pop().evict() == []
