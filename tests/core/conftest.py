"""What every test of a body ends with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.core.driving import Driver


@pytest.fixture(autouse=True)
def _bodies_are_decided_again_and_taken_down(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every body that a test leaves suspended must go when it is told to, without a word on stderr."""
    Driver.made.clear()
    yield
    while Driver.alive:
        assert Driver.alive.pop().evict() == []
    again, Driver.made = Driver.made, []
    if not request.node.get_closest_marker("decides_otherwise"):
        for driver in again:
            driver.decide_again()
