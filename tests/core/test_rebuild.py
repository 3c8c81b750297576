"""A body rebuilt from receipts at any await decides the same (SEMANTICS §1): random programs, orders and crashes."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.core.programs import PROGRAMS, is_structured, play

# `HERMES_FUZZ=20000 pytest tests/core/test_rebuild.py` for a night; a thousand a minute.
SETTINGS = settings(
    deadline=None, max_examples=int(os.environ.get("HERMES_FUZZ", "250")), suppress_health_check=list(HealthCheck)
)


@SETTINGS
@given(PROGRAMS, st.integers(0, 2**32))
def test_a_rebuilt_body_has_the_same_calls_open_at_every_step(program: Any, seed: int) -> None:
    driver = play(program, seed, crashes=0.1, cancels=0.02)
    rebuilt, decision = driver.rebuilt()
    assert decision.end == driver.decision.end
    assert decision.stuck == driver.decision.stuck
    assert len(driver.requested) == len(set(driver.requested))
    assert rebuilt.evict() == []
    assert driver.live.evict() == []


@SETTINGS
@given(PROGRAMS.filter(is_structured), st.integers(0, 2**32), st.integers(0, 2**32))
def test_keys_of_structured_code_do_not_depend_on_who_finishes_first(program: Any, one: int, two: int) -> None:
    first, second = play(program, one, 0), play(program, two, 0)
    assert set(first.requested) == set(second.requested)
    assert first.decision.end == second.decision.end
