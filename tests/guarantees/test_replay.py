"""A run is decided by its receipts alone: again at every await, and to one result whatever the order they came in.

Covered by `always_replay`:

- Each workflow of `src/hermes_workflows/examples` and `examples`, found by looking, with answers made from schemas:
  here, at every await, and in processes with other hash seeds.
- Every run that any test makes in its own process, through a runner, `run_workflow` or the core's `Driver`, whatever
  that test is about: tests/conftest.py and tests/core/conftest.py hook it in, and a test whose bodies do decide by
  something else says so with the mark `decides_otherwise`. Commands that tests start as processes are not watched.

Shuffled: which open call ends next, in each example and in the workflows of `orders`. `REPLAY_ORDERS` says how many
orders each, `REPLAY_SEED` which; the seed is printed. `make soak` takes 1,000.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import random
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.core.driving import Driver, run_step
from tests.guarantees import orders, watching
from tests.guarantees.answering import PRINTED, input_of, value_of

from hermes_workflows.authoring.workflow import Workflow
from hermes_workflows.core.receipts import Receipt
from hermes_workflows.testing import RunResult, run_workflow

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "src" / "hermes_workflows" / "examples", ROOT / "examples")
ORDERS = int(os.environ.get("REPLAY_ORDERS", "100"))
KEPT = hashlib.sha256(b"kept\n").hexdigest()
SEED = int(os.environ.get("REPLAY_SEED", "1"))


@cache
def module_of(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"replayed_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def workflows_of(module: Any) -> Iterator[Workflow[Any]]:
    yield from (each for each in vars(module).values() if isinstance(each, Workflow))


FILES = [file for folder in FOLDERS for file in sorted(folder.glob("*.py"))]
EXAMPLES = [each for file in FILES for each in workflows_of(module_of(file))]
SHUFFLED = [*EXAMPLES, *workflows_of(orders)]


def named(workflow: Workflow[Any]) -> str:
    return workflow.name


# -- always_replay ---------------------------------------------------------------------------------------------------


def test_every_folder_of_examples_has_some() -> None:
    assert {file.parent for file in FILES if list(workflows_of(module_of(file)))} == {*FOLDERS}


def run(workflow: Workflow[Any], *, always_replay: bool = False) -> RunResult[Any]:
    """In memory, by the runner's own dispatcher."""

    def answer(asked: Any) -> Any:
        return value_of(asked.returns, asked.key)

    answers = {"*": answer}
    return run_workflow(
        workflow,
        input_of(workflow),
        agents=answers,
        answers=answers,
        signals=answers,
        commands={"*": PRINTED},
        always_replay=always_replay,
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=named)
def test_an_example_is_decided_the_same_again_at_every_await(example: Workflow[Any]) -> None:
    assert run(example, always_replay=True).status == "completed"


@pytest.mark.decides_otherwise("that it is found is what is tested")
def test_what_a_test_decides_by_something_else_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    decided: list[int] = []

    async def by_count() -> None:
        decided.append(0)
        await orders.add(len(decided))

    monkeypatch.setattr("hermes_workflows.runner.records.Bodies", watching.NotedBodies)
    watching.NOTED.clear()
    run_workflow(Workflow(by_count))
    assert any("has another request: at /arguments" in said for said in watching.NOTED)


# -- orders ----------------------------------------------------------------------------------------------------------


def content(receipt: Receipt) -> str:
    """All that a receipt says but for when, where and in which order."""
    return f"{receipt.path} {receipt.model_dump_json(exclude={'execution'})}"


Outcome = tuple[Any, frozenset[str]]


def outcome(workflow: Workflow[Any], given: Any, chance: random.Random) -> Outcome:
    """The end, and the content of all receipts, of the run and of its children."""
    driver = Driver(workflow, given)
    below: set[str] = set()
    while driver.decision.end is None:
        assert driver.decision.stuck is None
        key = chance.choice(sorted(driver.open))
        call = driver.call(key)
        if call.kind == "timer":
            driver.answer(key)
        else:
            below |= finish(driver, call, chance)
    driver.live.evict()
    Driver.alive.remove(driver.live)
    Driver.made.remove(driver)
    end = driver.decision.end
    return (end.status, end.output, end.error), frozenset(below.union(map(content, driver.receipts)))


def finish(driver: Driver, call: Any, chance: random.Random) -> frozenset[str]:
    """End an open call; gives what a child run of it has written."""
    key, request, options = call.key, call.request, call.spec.options
    match call.kind:
        case "bash":
            driver.answer(key, {"exit_code": 0, "stdout": PRINTED, "stderr": ""})
        case "agent" if options.mocked:
            driver.answer(key, options.codec.to_plain(options.mock_output))
        case "agent" | "review":
            driver.answer(key, value_of(request["returns"], key))
        case "artifact":
            driver.answer(key, {"name": "kept.txt", "sha256": KEPT, "size": 5, "media_type": "text/plain"})
        case "signal":
            driver.signal(request["name"], value_of(request["returns"], key))
        case "step":
            execute(driver, call)
        case "child":
            end, written = outcome(options, request["input"], chance)
            driver.answer(key, end[1])
            return frozenset(f"{key} {each}" for each in written)
    return frozenset()


def execute(driver: Driver, call: Any) -> None:
    try:
        output = run_step(call)
    except ValueError as error:
        driver.answer(call.key, error=str(error))
    else:
        driver.answer(call.key, output)


@pytest.mark.parametrize("workflow", SHUFFLED, ids=named)
def test_whatever_order_calls_end_in_there_is_one_result(workflow: Workflow[Any]) -> None:
    print(f"REPLAY_SEED={SEED} REPLAY_ORDERS={ORDERS}")
    given = input_of(workflow)
    ends, written = outcome(workflow, given, random.Random(0))
    for number in range(1, ORDERS):
        end, again = outcome(workflow, given, random.Random(f"{SEED} {workflow.name} {number}"))
        assert end == ends, number
        assert again == written, (number, sorted(again ^ written)[:4])


@pytest.mark.parametrize("workflow", SHUFFLED, ids=named)
def test_a_runner_comes_to_the_result_that_every_order_has(workflow: Workflow[Any]) -> None:
    (status, output, _), _ = outcome(workflow, input_of(workflow), random.Random(0))
    ran = run(workflow)
    assert (ran.status, workflow.output_codec.to_plain(ran.result)) == (status, output)
