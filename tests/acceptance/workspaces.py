"""Workspaces for the tests that kill, share, starve and delete: flows of every kind, and what must be true after."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.acceptance.nursery import Child, environment, nursery

FLOWS = """
import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hermes_workflows import agent, ask, bash, goal, parallel, pipeline, workflow
from hermes_workflows.authoring import Retry, step

HERE = Path(__file__).parent


@dataclass
class Size:
    n: int = 5


@dataclass
class Review:
    action: Literal["approve", "revise"]
    feedback: str = ""


@step
def add(n: int, by: int = 1) -> int:
    return n + by


@step(retry=Retry(attempts=3, initial=0.02))
def shaky(mark: str) -> str:
    file = HERE / f"shaky-{mark}"
    if not file.exists():
        file.touch()
        raise ValueError("not yet")
    return mark


@workflow
async def steps(inputs: Size) -> int:
    n = 0
    for _ in range(inputs.n):
        n = await add(n)
    return n


@workflow
async def fan(inputs: Size) -> int:
    async def pair(n: int) -> int:
        return await add(await add(n), by=10)
    return sum(await parallel([pair(n) for n in range(inputs.n)], limit=3))


@workflow
async def shell(inputs: Size) -> list[str]:
    async def one(n: int) -> str:
        done = await bash(f"sleep 0.05; echo {n}; echo {n} >> {HERE}/bash-{n}", check=True)
        return done.stdout.strip()
    return await pipeline(range(inputs.n), one, lambda text: bash(["echo", text + "!"], name="shout"), text_of)


def text_of(done) -> str:
    return done.stdout.strip()


@workflow
async def asking(inputs: Size) -> str:
    draft = await agent("writer", "Write a draft.", input=inputs, returns=str)

    async def write(last: str, feedback: str | None) -> str:
        return await agent("writer", "Again.", input={"last": last, "feedback": feedback}, returns=str)

    async def check(text: str) -> Review:
        return await ask("Ship it?", key="review", input={"text": text}, returns=Review)

    return await goal(write, check, initial=draft)


@workflow
async def sleeping() -> str:
    try:
        async with asyncio.timeout(0.2):
            await ask("Anybody?", key="nobody", returns=str)
    except TimeoutError:
        pass
    await asyncio.gather(asyncio.sleep(0.1), asyncio.sleep(0.15), shaky("sleeping"))
    return "awake"


@workflow
async def family(inputs: Size) -> int:
    sums = await parallel({"one": steps(Size(2), key="one"), "two": fan(Size(2), key="two")})
    return sums["one"] + sums["two"]


@workflow
async def stopped() -> None:
    try:
        await ask("Go on?", key="go", returns=str)
    finally:
        await bash(f"echo tidy >> {HERE}/tidy")
"""
AGENT = """
import json, sys
request = json.loads(sys.stdin.read())
given = request["input"]
text = "draft" if "n" in given else f"{given['last']} {given['feedback']}".replace("None", "first")
usage = {"input_tokens": 3, "output_tokens": 1}
print(json.dumps({"schema": "hermes.agent-response/1", "output": text, "usage": usage}))
"""
# Flow → (input, status and result at the end, whatever happened on the way).
ENDS: Mapping[str, tuple[Any, str, Any]] = {
    "steps": ({"n": 40}, "completed", 40),
    "fan": ({"n": 9}, "completed", sum(n + 11 for n in range(9))),
    "shell": ({"n": 5}, "completed", [f"{n}!" for n in range(5)]),
    "asking": ({"n": 1}, "completed", "draft first shorter"),
    "sleeping": (None, "completed", "awake"),
    "family": ({"n": 2}, "completed", 2 + 11 + 12),
    "stopped": (None, "cancelled", None),
}


@dataclass
class Site:
    """A workspace of its own, whose commands are processes."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)
    flows: str = FLOWS

    def __post_init__(self) -> None:
        (self.root / ".hermes").mkdir(parents=True)
        (self.root / "agent.py").write_text(AGENT)
        (self.root / "flows.py").write_text(self.flows)
        names = re.findall(r"@workflow\nasync def (\w+)", self.flows)
        registry = {
            "dbs": {"default": "workflows.sqlite"},
            "workflows": {name: {"workflow_ref": f"flows.py:{name}"} for name in names},
        }
        (self.root / ".hermes" / "workflows.registry.json").write_text(json.dumps(registry))

    @property
    def sqlite(self) -> Path:
        return self.root / ".hermes" / "workflows.sqlite"

    @property
    def receipts(self) -> Path:
        return self.root / ".hermes" / "workflows.git"

    def command(self, *arguments: str, **env: str) -> Child:
        """A command that has been started and not waited for."""
        return nursery().start(arguments, self.root, environment(**self.env, **env))

    def run(self, *arguments: str) -> Child:
        """A command and its end, whatever that was."""
        child = self.command(*arguments)
        child.wait()
        return child

    def start(self, flow: str, run_id: str | None = None, given: Any = None) -> Child:
        text = [] if given is None else ["--input-json", json.dumps(given)]
        return self.run("run", flow, "--id", run_id or flow, *text)

    def runner(self, *arguments: str, idle: float | None = None) -> Child:
        agent = ("--agent-command", f"python3 -S -E {self.root / 'agent.py'}")
        until = () if idle is None else ("--idle-exit-after", str(idle))
        return self.command("runner", "run", *agent, *until, *arguments)

    def work(self, *arguments: str) -> Child:
        """A runner until it has nothing to do."""
        child = self.runner(*arguments, idle=0.1)
        assert child.wait() == 0, child.stderr
        return child

    def status(self, run_id: str) -> Any:
        return self.run("status", run_id).json

    def statuses(self) -> dict[str, Any]:
        """Every run by its id, as `list` shows it."""
        return {run["workflow_id"]: run for run in self.run("list", "--limit", "500").json}

    def respond(self, run_id: str, key: str, payload: Any, message: str) -> Child:
        arguments = ("--json", json.dumps(payload), "--by", "ana", "--channel", "tests", "--message-id", message)
        return self.run("review", "respond", run_id, key, *arguments, "--kind", "test")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", self.receipts, *arguments], capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, f"git {arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def tips(self) -> dict[str, str]:
        """The commit of every run that has a ref, and of the ledger."""
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/runs", "refs/heads/ledger")
        return dict(line.split() for line in lines.splitlines())

    def paths(self, run_id: str) -> list[str]:
        """Every file that any commit of the run added, in order; a path that was written twice stands twice."""
        named = self.git("log", "--reverse", "--name-only", "--format=", f"main..refs/runs/{run_id}")
        return [
            line.split(f"/{run_id}/", 1)[1] for line in named.splitlines() if line and not line.endswith("README.md")
        ]

    def assert_sound(self) -> None:
        """C git finds no fault, every run verifies, and no path of any run was written twice."""
        fsck = self.git("fsck", "--full", "--strict")
        assert not re.search(r"error|missing|corrupt|broken", fsck), fsck
        verified = self.run("verify")
        assert verified.code == 0, verified.stdout + verified.stderr
        for ref in self.tips():
            if ref.startswith("refs/runs/"):
                paths = self.paths(ref.removeprefix("refs/runs/"))
                assert len(paths) == len(set(paths)), paths


def observed(runs: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same after the index was lost: everything that receipts say."""
    told = ("status", "waiting_on", "result", "error", "reviews", "usage", "calls", "receipts", "children", "parent")
    return {name: {part: run[part] for part in told} for name, run in runs.items()}
