"""`operation_id`: one name for an effect, however often it is executed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runner.desks import Desk

from hermes_workflows.authoring import operation_id
from hermes_workflows.errors import NotInAWorkflow

STEPS = """
from hermes_workflows.authoring import operation_id

{decorator}
{kind} pay() -> str:
    effect(operation_id())
    if len((HERE / "effects").read_text().splitlines()) < 2:
        raise ValueError("not yet")
    return operation_id()

@workflow
async def flow() -> str:
    return await pay()
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize("timeout", ["None", "10"])
def test_a_step_has_the_same_id_in_each_of_its_attempts(desk: Desk, kind: str, timeout: str) -> None:
    decorator = f"@step(retry=Retry(attempts=2, initial=0), timeout={timeout})"
    done = desk.run(STEPS.format(kind=kind, decorator=decorator))
    assert done.result == "wf/pay"
    assert desk.effects() == ["wf/pay", "wf/pay"]
    assert desk.receipt("steps/pay.json").execution.operation_id == "wf/pay"


def test_a_command_finds_it_in_its_environment_and_may_be_given_another(desk: Desk) -> None:
    done = desk.run("""
@workflow
async def flow() -> list[str]:
    mine = await bash("echo $HERMES_OPERATION_ID", name="mine")
    given = await bash("echo $HERMES_OPERATION_ID", name="given", env={"HERMES_OPERATION_ID": "x"})
    return [mine.stdout.strip(), given.stdout.strip()]
""")
    assert done.result == ["wf/mine", "x"]
    assert desk.receipt("steps/mine.json").request["env"] == {}


def test_outside_of_a_step_there_is_none() -> None:
    with pytest.raises(NotInAWorkflow, match="outside a step"):
        operation_id()
