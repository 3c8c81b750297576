"""Sleeping, deadlines of calls, signals and approvals with the kit: time passes at once, and all of it replays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from freezegun import freeze_time

from hermes_workflows import ask, workflow
from hermes_workflows.authoring import approve, child, now, select, sleep, wait_for
from hermes_workflows.testing import run_workflow

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)


@workflow
async def below() -> str:
    return await ask("Anybody?", key="nobody", returns=str)


@workflow
async def year() -> list[Any]:
    await sleep(until=NEW_YEAR)
    seen = [now().isoformat()]
    for make in (lambda: wait_for("never", timeout=timedelta(days=30)), lambda: child(below, timeout=86400)):
        try:
            await make()
        except TimeoutError as error:
            seen.append(type(error).__name__)
    await sleep(timedelta(days=365))
    return [*seen, now().isoformat()]


@workflow
async def release() -> Any:
    build = await wait_for("build", returns=str)
    place = await select("place", ["staging", "production"])
    approval = await approve(f"{build} to {place}?", key="release", evidence=[build])
    return [build, place, approval.approved, approval.by, approval.kind]


def test_more_than_a_year_passes_at_once() -> None:
    run = run_workflow(year, clock=NEW_YEAR - timedelta(days=90), always_replay=True)
    first, *late, last = run.result or []
    assert (first, late) == (NEW_YEAR.isoformat(), ["SignalTimedOut", "ChildTimedOut"])
    assert datetime.fromisoformat(last) >= NEW_YEAR + timedelta(days=30 + 1 + 365)


def test_a_frozen_time_passes_too() -> None:
    with freeze_time("2026-12-31T23:00:00Z") as frozen:
        run = run_workflow(year)
        assert run.status == "completed"
        assert frozen().year == 2028


def test_signals_choices_and_approvals_are_scripted_by_their_names() -> None:
    answers = {"place": "production", "release": {"action": "approve"}}
    run = run_workflow(release, signals={"build": "1.2"}, answers=answers, always_replay=True)
    assert run.result == ["1.2", "production", True, "test", "test"]
