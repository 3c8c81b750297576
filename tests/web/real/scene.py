"""The workspace that pictures are taken of: a release that agents wrote and checked, and that waits for a person.

Its runner is a real one, but lives by a clock that agents and commands move as long as their work would take:
so that all times of the pictures are those of people, and the same each time.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.acceptance import clocks
from tests.acceptance.workspaces import Site

MORNING = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
FLOWS = '''
from dataclasses import dataclass
from typing import Literal

from hermes_workflows import agent, ask, bash, goal, parallel, workflow


@dataclass
class Release:
    version: str
    audience: Literal["everybody", "developers"] = "everybody"


@dataclass
class Note:
    title: str
    body: str


@dataclass
class Verdict:
    action: Literal["approve", "revise"]
    feedback: str = ""


@workflow
async def release_note(release: Release) -> Note:
    """Collect what changed, write a note about it, check it, and ask a person until it is right."""
    changes = await bash("sh changes", name="changes", check=True)

    async def write(last: Note | None, feedback: str | None) -> Note:
        given = {"version": release.version, "changes": changes.stdout, "last": last, "feedback": feedback}
        note = await agent("writer", "Write a release note from these changes.", input=given, returns=Note)
        await parallel([bash(f"sh check {name}", name=name) for name in ("links", "spelling")])
        return note

    async def review(note: Note) -> Verdict:
        question = f"May this note of {release.version} go out?"
        return await ask(question, key="review", input=note, returns=Verdict, assignee="ana")

    return await goal(write, review)


@workflow
async def nightly(release: Release) -> str:
    """Check the links of all pages."""
    done = await bash("sh check nightly", name="links", check=True)
    return done.stdout
'''
_TICK = """
import fcntl, struct, sys
with open("clock", "r+b", buffering=0) as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    wall, boot = struct.unpack("dd", file.read(16))
    file.seek(0)
    file.write(struct.pack("dd", wall + float(sys.argv[1]), boot))
"""
_AGENT = """
import json, subprocess, sys
request = json.load(sys.stdin)
given = request["input"]
subprocess.run([sys.executable, "tick.py", "64" if given["feedback"] else "95"], check=True)
lines = ["**Faster.** Replaying a run of 1,000 steps takes a third of the time.", "",
         "- `fork` takes another input", "- a stuck run says what to do next"]
if given["feedback"]:
    lines += ["- nothing to migrate: runs of 1.3 go on"]
    lines[0] = lines[0].replace("takes a third of the time", "takes 0.4 s instead of 1.2 s")
output = {"title": f"Release {given['version']}", "body": chr(10).join(lines)}
usage = {"input_tokens": 1840, "output_tokens": 412, "cost_usd": 0.0117}
print(json.dumps({"schema": "hermes.agent-response/1", "output": output, "usage": usage, "model": "small-1"}))
"""
_CHANGES = """
python3 tick.py 2
echo "replay: read packs once"
echo "fork: take another input"
echo "states: say what to do next"
"""
_CHECK = """
case $1 in
links) python3 tick.py 21; touch linked; echo "12 links, all of them lead somewhere" ;;
spelling) until test -e linked; do sleep 0.01; done; rm linked; python3 tick.py 9; echo "no misspelt words" ;;
*) python3 tick.py 40; echo "docs/old.md: leads nowhere" >&2; exit 1 ;;
esac
"""


def scene(folder: Path) -> Site:
    """Two runs that wait, one of them for the second time; others that ended well, badly, and by somebody's wish."""
    clock = folder / "clock"
    site = Site(folder, {clocks.VARIABLE: str(clock)}, FLOWS)
    registry = {
        "dbs": {"default": "workflows.sqlite"},
        "workflows": {
            "release-note": {
                "workflow_ref": "flows.py:release_note",
                "description": "From changes to an approved note.",
            },
            "nightly": {"workflow_ref": "flows.py:nightly", "description": "Checks the links of all pages."},
        },
    }
    (folder / ".hermes" / "workflows.registry.json").write_text(json.dumps(registry))
    for name, text in {"tick.py": _TICK, "agent.py": _AGENT, "changes": _CHANGES, "check": _CHECK}.items():
        (folder / name).write_text(text)
    clocks.set_clock(clock, (MORNING - datetime.now(UTC)).total_seconds())
    _run(site, "release-note", "release-1.3", {"version": "1.3"})
    _answer(site, "release-1.3", "review", "approve", "Clear and short.")
    _run(site, "nightly", "nightly-0302", {"version": "1.3"})
    _run(site, "release-note", "release-1.3-mail", {"version": "1.3", "audience": "developers"})
    assert site.run("cancel", "release-1.3-mail", "--reason", "one note is enough", "--by", "ana").code == 0
    site.work()
    _run(site, "release-note", "release-1.4", {"version": "1.4"})
    _answer(site, "release-1.4", "review", "revise", "Say how much faster, and what to migrate.")
    _run(site, "release-note", "release-1.4-mail", {"version": "1.4", "audience": "developers"})
    return site


def _run(site: Site, workflow: str, run_id: str, given: object) -> None:
    assert site.start(workflow, run_id, given).wait() == 0
    site.work()
    later(site, 240)


def _answer(site: Site, run_id: str, key: str, action: str, feedback: str) -> None:
    payload = {"action": action, "feedback": feedback}
    child = site.respond(run_id, key, payload, f"{run_id}-{key}")
    assert child.code == 0, child.stderr
    site.work()
    later(site, 180)


def later(site: Site, seconds: float) -> datetime:
    """Let the time pass, to the next full minute after that; whatever this machine took on the way is lost in it."""
    clock = clocks.ShiftedClock(site.env[clocks.VARIABLE])
    now = clock.now()
    then = (now + timedelta(seconds=seconds + 59)).replace(second=0, microsecond=0)
    wall, boot = clock.shift
    clocks.set_clock(Path(site.env[clocks.VARIABLE]), wall + (then - now).total_seconds(), boot)
    return then
