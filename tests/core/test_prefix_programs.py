"""Whatever a run begins with replays to the moment it was cut at: random programs, orders, crashes and cuts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.core.driving import Driver
from tests.core.programs import PROGRAMS, play

from hermes_workflows.core.history import fold
from hermes_workflows.core.layout import Role
from hermes_workflows.core.live import LiveRun, rebuild
from hermes_workflows.core.prefix import Prefix, longest_prefix, whole_prefix
from hermes_workflows.core.receipts import Receipt

SETTINGS = settings(
    deadline=None, max_examples=int(os.environ.get("HERMES_FUZZ", "100")), suppress_health_check=list(HealthCheck)
)


def body(driver: Driver) -> LiveRun:
    return LiveRun("run", driver.workflow, driver.started)


def began(driver: Driver, prefix: Prefix) -> tuple[Any, ...]:
    """Where a runner finds the new run: from its own start and the adopted receipts, every decision checked."""
    live = body(driver)
    rebuild(live, fold([driver.started, *prefix.receipts]))
    state = live.state()
    assert live.evict() == []
    return state


def then(driver: Driver, receipts: Sequence[Receipt]) -> tuple[Any, ...]:
    """Where the old run was when only the results among `receipts` had come."""
    live = body(driver)
    live.start()
    for receipt in receipts:
        if receipt.role is Role.RESULT:
            live.take(receipt)
    state = live.state()
    assert live.evict() == []
    return state


@SETTINGS
@given(PROGRAMS, st.integers(0, 2**32), st.integers(0, 2**32))
def test_a_run_begins_where_the_other_one_was(program: Any, seed: int, place: int) -> None:
    driver = play(program, seed, crashes=0.05)
    results = [receipt for receipt in driver.receipts if receipt.role is Role.RESULT]
    if not results:
        return
    cut = results[place % len(results)].seq
    receipts = [receipt for receipt in driver.receipts if receipt.seq <= cut]
    prefix = whole_prefix(lambda: body(driver), receipts)
    assert [each.seq for each in prefix.receipts if each.role is Role.RESULT] == [
        each.seq for each in results if each.seq <= cut
    ]
    assert began(driver, prefix) == then(driver, receipts)


@SETTINGS
@given(PROGRAMS, st.integers(0, 2**32))
def test_the_longest_prefix_holds_no_failure_and_no_cancel_request(program: Any, seed: int) -> None:
    driver = play(program, seed, crashes=0.05, cancels=0.02)
    prefix = longest_prefix(lambda: body(driver), driver.receipts)
    live = body(driver)
    decision = rebuild(live, fold([driver.started, *prefix.receipts]))
    assert not any(each.path.endswith("cancel.json") for each in prefix.receipts)
    # A body that fails before any result has come begins anew, and fails again.
    assert decision.end is None or decision.end.status == "completed" or not prefix.receipts
    assert live.evict() == []
