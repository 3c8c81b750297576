"""What runners take: within limits that hold for all of them, some kinds only, each run and database in its turn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.runner.desks import GONE, Desk, until

from hermes_workflows.errors import InvalidInput
from hermes_workflows.registry import parse
from hermes_workflows.runner.worker import Runner, RunnerOptions

FAN = '''
COUNT = """
n=$(mkdir slots/$$ && ls slots | wc -l); echo $n >> most
while [ ! -e go ]; do sleep 0.01; done
rmdir slots/$$
"""

@workflow
async def flow() -> None:
    await parallel([bash(COUNT, key=f"b-{n}", check=True) for n in range(8)])
'''


def limited(root: Path, **limits: int) -> Desk:
    desk = Desk(root, registry=json.dumps({"limits": limits}))
    (root / "slots").mkdir()
    return desk


def test_a_limit_of_the_registry_holds_across_runners(tmp_path: Path) -> None:
    desk = limited(tmp_path, bash=3)
    desk.write(FAN)
    desk.start("one")
    desk.start("two")
    with desk.working("ada"), desk.working("bob"), desk.working("eve"):
        until(lambda: (tmp_path / "most").exists() and (tmp_path / "most").read_text().count("\n") == 3)
        rows = [row.status for run in ("one", "two") for row in desk.queue.work(run) if row.work.kind == "bash"]
        assert (rows.count("leased"), rows.count("queued")) == (3, 13)
        (tmp_path / "go").touch()
        until(lambda: desk.summary("one").ended and desk.summary("two").ended)
    most = [int(line) for line in (tmp_path / "most").read_text().split()]
    assert len(most) == 16
    assert max(most) == 3


def test_an_agent_may_be_limited_by_its_name(tmp_path: Path) -> None:
    from tests.runner.desks import scripted_agent

    desk = limited(tmp_path, **{"agent:writer": 1})
    agents = scripted_agent(
        tmp_path,
        "import os, time\n"
        "mine = HERE / 'slots' / f'{request[\"name\"]}-{os.getpid()}'\n"
        "mine.touch()\n"
        "named = [each for each in os.listdir(HERE / 'slots') if each.startswith('writer')]\n"
        "print(len(named), file=open(HERE / 'most', 'a'))\n"
        "(HERE / f'begun-{os.getpid()}').touch()\n"
        "while request['name'] == 'writer' and len(list(HERE.glob('begun-*'))) < 3:\n"
        "    time.sleep(0.01)\n"
        "mine.unlink()\n"
        "say('done')\n",
    )
    desk.write("""
@workflow
async def flow() -> None:
    names = ["writer", "editor", "writer", "editor", "writer"]
    await parallel([agent(name, "Go.", returns=str, key=f"a-{n}") for n, name in enumerate(names)])
""")
    desk.start()
    desk.work(agents=agents)
    assert desk.summary().status == "completed"
    assert max(int(line) for line in (tmp_path / "most").read_text().split()) == 1


def test_a_limit_that_limits_nothing_is_refused_with_the_nearest_word(tmp_path: Path) -> None:
    for text, said in (
        ('{"limits": {"bsh": 4}}', "did you mean 'bash'"),
        ('{"limits": {"agent:": 4}}', "agent:NAME"),
        ('{"limits": {"bash": 0}}', "whole number, 1 or more"),
    ):
        with pytest.raises(InvalidInput) as refused:
            parse(text, tmp_path / ".hermes" / "workflows.registry.json")
        assert said in f"{refused.value.message} {refused.value.hint}"


def test_a_limit_on_an_agent_that_the_registry_almost_has_is_warned_of(tmp_path: Path) -> None:
    text = json.dumps({"agents": {"writer": "claude"}, "limits": {"agent:wrtier": 2}})
    registry = parse(text, tmp_path / ".hermes" / "workflows.registry.json")
    assert registry.limits == (("agent:wrtier", 2),)
    assert registry.warnings[0].endswith("limits.agent:wrtier names no agent of the registry; did you mean 'writer'?")


def test_a_runner_of_some_kinds_leaves_the_others_and_decides_all_the_same(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.write("""
@step
def late() -> str:
    return "done"

@workflow
async def flow() -> str:
    await bash("true")
    return await late()
""")
    desk.start()
    desk.work("ada", only=("bash", "agent"))
    assert (desk.paths(), desk.rows()) == (["run.json", "steps/bash.json"], ["step late"])
    desk.work("bob", only=("step",))
    assert desk.summary().result == "done"


def test_a_run_with_thousands_of_queued_calls_does_not_starve_the_others(tmp_path: Path) -> None:
    desk = Desk(tmp_path, on_disk=True)
    desk.write("""
@step
def count(n: int) -> int:
    return n

@workflow
async def big() -> None:
    await parallel([count(n) for n in range(2000)])

@workflow
async def small() -> int:
    return await count(await count(await count(0)))
""")
    desk.start("big", ref="flow.py:big")
    desk.work(max_commands=1)
    for n in range(5):
        desk.start(f"small-{n}", ref="flow.py:small")
    # Five runs of three steps each, and as many of the big one's: each has its turn.
    desk.work(max_commands=5 + 2 * 15 + 8)
    assert [desk.summary(f"small-{n}").status for n in range(5)] == ["completed"] * 5
    assert desk.summary("big").calls["completed"] < 60
    desk.close()


def test_a_database_with_a_long_queue_does_not_starve_another_one(tmp_path: Path) -> None:
    desks = []
    for name, steps in (("long", 60), ("short", 6)):
        (tmp_path / name).mkdir()
        desks.append(Desk(tmp_path / name))
        desks[-1].write("""
@step
def slow(n: int) -> None:
    import time
    with (HERE.parent / "order").open("a") as file:
        file.write(f"{HERE.name}\\n")
    time.sleep(0.01)

@workflow
async def flow(inputs: dict[str, int]) -> None:
    await parallel([slow(n) for n in range(inputs["steps"])])
""")
        desks[-1].start(given={"steps": steps})
    options = RunnerOptions("ada", idle_exit_after=0.0, concurrency=2, process=GONE)
    Runner([desk.workspace for desk in desks], options).run()
    order = (tmp_path / "order").read_text().split()
    assert (order.count("long"), order.count("short")) == (60, 6)
    # Turn by turn; without that the second database would come last.
    assert order[:16].count("short") == 6
