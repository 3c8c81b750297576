"""Effects, files and decisions through the command line: runners are killed, sinks count, bytes arrive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.command_line import Place, place

# A step before the payment, the payment, a step after it. Each may be the death of its process, once.
FLOW = """
import os
import signal
from pathlib import Path

from hermes_workflows import agent, ask, workflow
from hermes_workflows.authoring import artifact, operation_id, step

HERE = Path(__file__).parent


def die(moment: str) -> None:
    marker = HERE / f"died-{moment}"
    if os.environ.get("DIES") == moment and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)


@step
def prepare() -> None:
    die("before")


@step(at_most_once=True)
def pay(amount: int) -> str:
    die("in")
    with (HERE / "sink").open("a") as sink:
        sink.write(f"{operation_id()} {amount}\\n")
    die("after")
    return "receipt"


@step
def tell() -> None:
    die("recorded")


@workflow
async def flow() -> str:
    await prepare()
    paid = await pay(5)
    await tell()
    return paid


@workflow
async def keeping() -> None:
    await artifact(Path("flows/logo.bin"))
    await artifact("# Report\\n", name="report.md")
    await artifact("# Report 2\\n", name="report.md")


@workflow
async def asking() -> str:
    said = await agent("writer", "Write it", returns=str, mock_output="draft")
    await ask("Go on?", key="go", returns=str)
    return said
"""
IMPURE = """import time

from hermes_workflows import workflow


@workflow
async def flow() -> float:
    return time.time()
"""
LOGO = bytes(range(256)) * 300


@pytest.fixture
def here(tmp_path: Path) -> Place:
    made = place(tmp_path / "ws")
    (made.root / "flows" / "effects.py").write_text(FLOW)
    (made.root / "flows" / "logo.bin").write_bytes(LOGO)
    return made


def sink(made: Place) -> list[str]:
    path = made.root / "flows" / "sink"
    return path.read_text().splitlines() if path.exists() else []


def status(made: Place) -> Any:
    return made.run("status", "wf").json


@pytest.mark.parametrize(
    ("moment", "decision"),
    [("before", None), ("in", ["--did-not-happen"]), ("after", ["--happened", '"receipt"']), ("recorded", None)],
)
def test_killed_at_any_moment_a_payment_is_made_once(here: Place, moment: str, decision: list[str] | None) -> None:
    here.environment["DIES"] = moment
    here.run("run", "flows/effects.py:flow", "--id", "wf")
    assert here.work("--worker-id", "one").code == -9
    here.work("--worker-id", "one")
    if decision is not None:
        stuck = status(here)
        assert (stuck["state"], stuck["status"]) == ("stuck", "running")
        assert "hermes-workflows resolve wf pay" in stuck["next_action"]
        said = here.run("resolve", "wf", "pay", *decision, "--why", "the bank's list", "--by", "ana")
        assert (said.code, said.json["provenance"]["kind"], said.json["state"]) == (0, "manual", "queued")
        here.work()
    done = status(here)
    assert (done["status"], done["result"]) == ("completed", "receipt")
    assert sink(here) == ["wf/pay 5"]
    assert here.run("verify").code == 0
    here.git("fsck", "--full")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["wf", "pay"], 2, "did it happen or not?"),
        (["wf", "pay", "--happened", "1", "--did-not-happen"], 2, "did it happen or not?"),
        (["wf", "pay", "--happened", "5"], 2, "the result of pay"),
        (["wf", "pay", "--happened", "{"], 2, "--happened: not JSON"),
        (["wf", "pay", "--did-not-happen", "--kind", "human"], 2, "only when a person types it"),
        (["wf", "pya", "--did-not-happen"], 4, "no decision is needed about 'pya'"),
        (["wx", "pay", "--did-not-happen"], 4, "no run 'wx'"),
    ],
)
def test_a_decision_that_cannot_be_taken_says_why_and_records_nothing(
    stuck: Place, arguments: list[str], code: int, said: str
) -> None:
    answer = stuck.run("resolve", *arguments)
    assert (answer.code, said in answer.error["message"]) == (code, True), answer.error
    assert "resolve" not in stuck.git("ls-tree", "-r", "--name-only", "runs/wf")


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A run whose payment was interrupted; its tests record nothing."""
    made = place(tmp_path_factory.mktemp("stuck") / "ws", DIES="after")
    (made.root / "flows" / "effects.py").write_text(FLOW)
    made.run("run", "flows/effects.py:flow", "--id", "wf")
    made.work()
    made.work()
    return made


def test_kept_files_are_listed_and_come_out_as_they_went_in(here: Place) -> None:
    here.run("run", "flows/effects.py:keeping", "--id", "wf", "--drain")
    listed = here.run("artifact", "list", "wf").json
    assert [(each["name"], each["size"], each["key"]) for each in listed] == [
        ("logo.bin", len(LOGO), "logo-bin"),
        ("report.md", 9, "report-md"),
        ("report.md", 11, "report-md-2"),
    ]
    assert here.run("artifact", "get", "wf", "report.md").stdout == "# Report 2\n"
    assert here.run("artifact", "get", "wf", listed[1]["sha256"][:8]).stdout == "# Report\n"
    into = here.run("artifact", "get", "wf", "logo.bin", "--output", "out.bin").json
    assert (into["output"], (here.root / "out.bin").read_bytes()) == ("out.bin", LOGO)
    readme = here.git("show", f"runs/wf:{_folder(here)}/README.md")
    assert f"Artifact `logo.bin`: {len(LOGO):,} bytes" in readme
    missing = here.run("artifact", "get", "wf", "reprot.md")
    assert (missing.code, missing.error["hint"]) == (4, "did you mean 'report.md'?")


def test_a_terminal_is_shown_text_and_no_bytes(here: Place) -> None:
    here.run("run", "flows/effects.py:keeping", "--id", "wf", "--drain")
    code, seen = here.terminal("artifact", "get", "wf", "logo.bin")
    assert (code, "logo.bin is no text" in seen) == (2, True)
    assert here.terminal("artifact", "get", "wf", "report.md") == (0, "# Report 2\n")


def test_a_changed_request_is_accepted_and_the_run_goes_on(here: Place) -> None:
    here.run("run", "flows/effects.py:asking", "--id", "wf")
    here.work()
    flow = here.root / "flows" / "effects.py"
    flow.write_text(FLOW.replace("Write it", "Write it well"))
    here.run("review", "respond", "wf", "go", "--json", '"on"', "--kind", "test")
    here.work()
    assert "accept wf writer" in status(here)["next_action"]
    assert here.run("accept", "wf", "writer").code == 2
    assert here.run("accept", "wf", "--why", "x").error["message"] == "what is to be accepted?"
    assert here.run("accept", "wf", "writer", "--why", " ").error["message"] == "--why says nothing"
    said = here.run("accept", "wf", "writer", "--why", "wording only", "--by", "ana")
    assert (said.code, said.json["remaining"]) == (0, None), said.stderr
    assert [each["key"] for each in said.json["accepted"]] == ["writer"]
    assert '+  "prompt": "Write it well"' in said.json["accepted"][0]["request_diff"]
    here.work()
    assert (status(here)["status"], status(here)["result"]) == ("completed", "draft")
    again = here.run("accept", "wf", "--all", "--why", "x")
    assert (again.code, "wf is completed" in again.error["message"]) == (5, True)


def _folder(made: Place) -> str:
    paths = made.git("ls-tree", "-r", "--name-only", "runs/wf").splitlines()
    return next(path.removesuffix("/run.json") for path in paths if path.endswith("/run.json"))


def test_the_doctor_of_the_registry_reads_bodies(here: Place) -> None:
    (here.root / "flows" / "impure.py").write_text(IMPURE)
    registry = {"workflows": {"impure": {"workflow_ref": "flows/impure.py:flow"}}}
    (here.root / ".hermes" / "workflows.registry.json").write_text(json.dumps(registry))
    said = here.run("registry", "doctor")
    warned = [each["what"] for each in said.json["findings"] if each["level"] == "warning"]
    assert (said.code, warned) == (0, ["flows/impure.py:8: time.time in a workflow's body"])
