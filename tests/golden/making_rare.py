"""Makes the golden runs of the rarer receipts: `python -m tests.golden.making_rare NUMBER`, from the top folder.

Failures of each kind of call, late results, retries, children, and a whole repository with its ledger.
It needs `tests/golden/NUMBER/rare.py`, and never touches what is there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.acceptance.command_line import PROGRAM, Place
from tests.golden.making import HERE, did, keep_receipts, workspace

from hermes_workflows.clock import SystemClock
from hermes_workflows.opening import open_workspace
from hermes_workflows.registry import load
from hermes_workflows.runner.worker import Runner, RunnerOptions
from hermes_workflows.store.liveness import Process, this_host
from hermes_workflows.workspace import Surroundings

RUNS = ("failures", "shapes", "reproduced", "late", "unknown", "parent", "again", "mended")
CHILDREN = ("parent.below", "parent.second", "failures.impatient", "failures.dropped")
AGENT = """
import json, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback that names a folder
asked = json.load(sys.stdin)
usage = {"input_tokens": 3, "output_tokens": 2, "cost_usd": 0.001}
said = {"schema": "hermes.agent-response/1", "usage": usage, "model": "some-model-1", "session": "s-1"}
if asked["name"] == "sleeping":
    time.sleep(60)
if asked["name"] == "refusing":
    print(json.dumps({**said, "error": "no, thanks"}))
else:
    print(json.dumps({**said, "output": "read"}))
"""
_DEADLINE = 60.0


def make(number: str, folder: Path) -> None:
    target = HERE / number
    if (target / "receipts" / RUNS[0]).exists():
        raise SystemExit(f"the rarer runs of {target} are there: golden files are never made anew")
    made = workspace(target, folder, "rare.py", GOLDEN_TOKEN="kT9-a-golden-token-31")
    (made.root / "agent.py").write_text(AGENT)
    (made.root / "notes.txt").write_text("noted\n")
    _commit(made)
    for run in ("failures", "shapes", "parent", "again"):
        _start(made, run)
    _work(made)
    _answer(made, "shapes", "ask", "it is")
    (made.root / "mended").touch()
    _work(made)
    did(made.run("reproduce", "shapes", "--reuse", "agent,ask", "--id", "reproduced"))
    did(made.run("retry", "again", "--id", "mended", "--by", "ana"))
    _work(made)
    _late(made)
    _unknown(made)
    _work(made)
    for run in (*RUNS, *CHILDREN):
        keep_receipts(made, run, target)
    _whole(made, target)


def _commit(made: Place) -> None:
    """The project is a checkout: runs say of which commit."""
    who = ("-c", "user.name=golden", "-c", "user.email=golden@example.org")
    for command in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "The project")):
        subprocess.run(["git", *command], cwd=made.root, check=True)


def _work(made: Place) -> None:
    program = ("--agent-command", f"python3 -S -E {made.root / 'agent.py'}", "--worker-id", "golden")
    did(made.work(*program, "--lease-seconds", "0.5", "--idle-exit-after", "1"))


def _start(made: Place, run: str) -> None:
    did(made.run("run", f"rare.py:{run}", "--id", run, "--deadline", "86400"))


def _answer(made: Place, run: str, key: str, answer: str) -> None:
    who = ("--by", "ana", "--kind", "test", "--channel", "golden", "--message-id", f"{run}-{key}")
    did(made.run("review", "respond", run, key, "--json", json.dumps(answer), *who))


def _until(found: Callable[[], bool]) -> None:
    until = time.monotonic() + _DEADLINE
    while not found():
        if time.monotonic() > until:
            raise SystemExit("it never came")
        time.sleep(0.01)


def _late(made: Place) -> None:
    """A runner that passes for dead brings its result after a person has decided."""
    _start(made, "late")
    registry = load(made.root / ".hermes" / "workflows.registry.json")
    opened = open_workspace(registry, registry.dbs["default"], Surroundings(SystemClock(), made.env()))
    # A process that lives would have to be asked: this one says that it is another, which does not.
    runner = Runner([opened], RunnerOptions("holds-late", process=Process(this_host(), 1 << 30, "1")))
    thread = threading.Thread(target=runner.run)
    thread.start()
    _until((made.root / "late-begun").exists)
    opened.queue.goodbye("holds-late")
    said = ("--happened", '{"paid": "by hand"}', "--why", "seen in the books", "--by", "ana", "--kind", "test")
    did(made.run("resolve", "late", "held", *said))
    (made.root / "late-go").touch()
    _until(lambda: "late-1" in made.git("ls-tree", "-r", "--name-only", "refs/runs/late"))
    runner.request_stop()
    thread.join()
    opened.close()
    _answer(made, "late", "go", "yes")


def _unknown(made: Place) -> None:
    """A run is cancelled while nobody knows what became of its step."""
    _start(made, "unknown")
    command = [*PROGRAM, "runner", "run", "--lease-seconds", "0.5", "--worker-id", "killed"]
    runner = subprocess.Popen(command, cwd=made.root, env=made.env(), stderr=subprocess.DEVNULL)
    _until((made.root / "unknown-begun").exists)
    runner.kill()
    runner.wait()
    did(made.run("cancel", "unknown", "--now", "--reason", "nobody knows", "--by", "ana"))


def _whole(made: Place, target: Path) -> None:
    """The repository with all of its refs, as `git clone --mirror` has it: sealed runs lie in the ledger."""
    did(made.run("maintenance", "run"))
    file = target / "runs" / "whole.mirror"
    made.git("bundle", "create", "-q", str(file.resolve()), "--all")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        make(sys.argv[1], Path(folder))
