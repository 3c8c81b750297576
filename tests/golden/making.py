"""Makes the golden runs of a new format: `python -m tests.golden.making NUMBER`, from the top folder.

It needs `tests/golden/NUMBER/flows.py`, and never touches what is there: what a version wrote is read for ever.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.acceptance.command_line import PROGRAM, Place, Said, place

import hermes_workflows
from hermes_workflows.core.receipts import json_schemas

HERE = Path(__file__).parent
RUNS = ("everything", "cancelled", "failing", "resolved", "accepted", "paused", "forked")
AGENT = """
import json, sys
json.load(sys.stdin)
usage = {"input_tokens": 3, "output_tokens": 2, "cost_usd": 0.001}
print(json.dumps({"schema": "hermes.agent-response/1", "output": "read", "usage": usage}))
"""


def schema() -> Any:
    """What validates in the published schema: no titles and no descriptions, which are free to change."""
    return _validating(json_schemas())


def _validating(part: Any) -> Any:
    if isinstance(part, list):
        return [_validating(each) for each in part]
    if not isinstance(part, dict):
        return part
    words = {name: value for name, value in part.items() if name not in ("title", "description")}
    # Below `properties` a title is the name of a field.
    return {
        name: _fields(value) if name in ("properties", "$defs") else _validating(value) for name, value in words.items()
    }


def _fields(part: Any) -> Any:
    return {name: _validating(value) for name, value in part.items()}


def make(number: str, folder: Path) -> None:
    target = HERE / number
    if (target / "schema.json").exists():
        raise SystemExit(f"{target} is there: golden files are never made anew")
    made = workspace(target, folder, "flows.py")
    (made.root / "agent.py").write_text(AGENT)
    old = (target / "flows.py").read_text().replace("asked as it is now", "asked as it was")
    (made.root / "flows.py").write_text(old)
    _everything(made)
    _cancelled(made)
    _resolved(made)
    _accepted(made, target)
    _paused(made)
    did(made.run("fork", "everything@add", "--id", "forked", "--set", 'reader="by hand"', "--by", "ana"))
    _work(made)
    for run in RUNS:
        keep(made, run, target)
    (target / "schema.json").write_text(json.dumps(schema(), indent=2, sort_keys=True) + "\n")


def workspace(target: Path, folder: Path, flows: str, **environment: str) -> Place:
    """A workspace with the flows of a format, and a copy of the program, in `folder`."""
    registry = {"dbs": {"default": "workflows.sqlite"}, "workflows": {}}
    # Tracebacks name files: nobody's folders are kept for ever.
    shutil.copytree(Path(hermes_workflows.__file__).parent, folder / "lib" / "hermes_workflows")
    made = place(folder / "ws", registry, PYTHONPATH=str(folder / "lib"), **environment)
    (made.root / flows).write_text((target / flows).read_text())
    return made


def did(said: Said) -> Said:
    assert said.code == 0, said.stderr
    return said


def _work(made: Place, code: int = 0) -> None:
    program = ("--agent-command", f"python3 -S -E {made.root / 'agent.py'}", "--worker-id", "golden")
    assert made.work(*program, "--lease-seconds", "0.5", "--idle-exit-after", "1").code == code


def _start(made: Place, run: str, *more: str) -> None:
    did(made.run("run", f"flows.py:{run}", "--id", run, *more))


def _answer(made: Place, run: str, key: str, answer: Any) -> None:
    who = ("--by", "ana", "--kind", "test", "--channel", "golden", "--message-id", f"{run}-{key}")
    did(made.run("review", "respond", run, key, "--json", json.dumps(answer), *who))


def _everything(made: Place) -> None:
    _start(made, "everything", "--input-json", json.dumps({"topic": "тема"}))
    _start(made, "failing")
    _work(made)
    did(made.run("signal", "everything", "event", "--json", '{"n": 1}', "--by", "ana", "--kind", "test"))
    _work(made)
    _answer(made, "everything", "review", {"action": "revise", "feedback": "shorter\nplease"})
    _work(made)
    _answer(made, "everything", "review-2", {"action": "approve", "feedback": ""})
    _work(made)


def _cancelled(made: Place) -> None:
    _start(made, "cancelled")
    _work(made)
    did(made.run("cancel", "cancelled", "--reason", "no longer wanted", "--by", "ana"))
    _work(made)


def _resolved(made: Place) -> None:
    """A runner dies inside an at-most-once step, and a person says what became of it."""
    _start(made, "resolved")
    command = [*PROGRAM, "runner", "run", "--lease-seconds", "0.5", "--worker-id", "killed"]
    runner = subprocess.Popen(command, cwd=made.root, env=made.env(), stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not (made.root / "begun").exists() and time.monotonic() < until:
        time.sleep(0.01)
    runner.kill()
    runner.wait()
    _work(made)
    said = ("--happened", '{"paid": 7}', "--why", "seen in the books", "--by", "ana", "--kind", "test")
    did(made.run("resolve", "resolved", "held", *said))
    _work(made)


def _accepted(made: Place, target: Path) -> None:
    """The code changes while a run waits, and its recorded answer is kept."""
    _start(made, "accepted")
    _work(made)
    (made.root / "flows.py").write_text((target / "flows.py").read_text())
    did(made.run("accept", "accepted", "echo", "--why", "it says the same", "--by", "ana", "--kind", "test"))
    _answer(made, "accepted", "go", "yes")
    _work(made)


def _paused(made: Place) -> None:
    _start(made, "paused")
    did(made.run("pause", "paused", "--reason", "lunch", "--by", "ana"))
    did(made.run("resume", "paused", "--by", "ana"))
    _work(made)
    _answer(made, "paused", "go", "yes")
    _work(made)


def keep(made: Place, run: str, target: Path) -> None:
    (target / "runs").mkdir(exist_ok=True)
    did(made.run("export", run, "--bundle", str(target / "runs" / f"{run}.bundle")))
    if run != "forked":  # the same bytes
        keep_receipts(made, run, target)


def keep_receipts(made: Place, run: str, target: Path) -> None:
    status = did(made.run("status", run)).json
    print(run, status["status"], status["reason"] if status["status"] not in ("completed",) else "")
    folder = did(made.run("log", run)).json["folder"]
    names = made.git("ls-tree", "-r", "--name-only", f"refs/runs/{run}", f"{folder}/").splitlines()
    for name in names:
        inside = name.removeprefix(f"{folder}/")
        if inside.endswith(".json") or inside.startswith("artifacts/"):
            file = target / "receipts" / run / inside
            file.parent.mkdir(parents=True, exist_ok=True)
            show = ["git", "-C", str(made.receipts), "cat-file", "blob", f"refs/runs/{run}:{name}"]
            data = subprocess.run(show, capture_output=True, check=True).stdout
            # A traceback names the folder that this was made in, which is nobody's.
            file.write_bytes(data.replace(str(made.root.parent).encode(), b"/srv/golden"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        make(sys.argv[1], Path(folder))
