"""Secrets let loose wherever text comes in: no byte of what is kept, logged, shown or sent has one of them."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest
from tests.acceptance.command_line import PROGRAM, Place, Said
from tests.guarantees.canaries import SECRETS, Leak, files, leaks_in, objects, told, workspace
from tests.web.browser import BASE, TOKEN, browser
from tests.web.walking import links_in

from hermes_workflows.clock import SystemClock
from hermes_workflows.registry import load
from hermes_workflows.web.app import create_app
from hermes_workflows.web.opened import Opened
from hermes_workflows.web.settings import WebSettings
from hermes_workflows.workspace import Surroundings

# The workspace takes as long to make as half of all that is asked of it: one worker makes it, and asks.
pytestmark = pytest.mark.xdist_group("canaries")

UNHURT = ("run", "work", "signal", "answer", "fork", "list", "log", "show", "bundle", "tar", "pages", "push", "publish")


LOOKS = {
    "status": ("status", "wf"),
    "status of what failed": ("status", "failing"),
    "list": ("list",),
    "log": ("log", "wf"),
    "show": ("show", "wf"),
    "diff": ("diff", "wf", "wf2"),
    "replay": ("replay", "--all", "--summary", "told.md"),
    "verify": ("verify", "--all"),
    "doctor": ("doctor",),
    "registry": ("registry", "list"),
    "bundle": ("export", "wf", "--bundle", "out/wf.bundle"),
    "tar": ("export", "wf", "--tar", "out/wf.tar"),
    "pages": ("dashboard", "export", "out/site", "--compare", "wf", "wf2"),
    "push": ("push", "away"),
    "publish": ("publish", "wf", "--remote", "away", "--body-file", "out/body.md"),
    "maintenance": ("maintenance", "run"),
    "no such run": ("status", SECRETS["INPUT_TOKEN"]),
    "no such option": ("list", "--state", SECRETS["INPUT_TOKEN"]),
    "no such file": ("run", f"flows/{SECRETS['FILE_TOKEN']}.py", "--id", "no"),
    "a secret as an id": ("run", "failing", "--id", SECRETS["FILE_TOKEN"]),
    "no JSON": ("run", "everything", "--input-json", SECRETS["INPUT_TOKEN"]),
}


def everything_kept(made: Place) -> list[Leak]:
    kept = [*files(made.root / ".hermes"), *objects(made.receipts)]
    assert len(kept) > 20
    return [leak for where, data in kept for leak in leaks_in(where, data)]


def everything_told(said: dict[str, Said]) -> list[Leak]:
    return [leak for name, each in said.items() for where, data in told(each, name) for leak in leaks_in(where, data)]


def work(made: Place) -> Said:
    program = f"python3 -S -E {made.root / 'agent.py'}"
    return made.work("--agent-command", program, "--log-file", ".hermes/runner.log", "--debug")


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, dict[str, Said]]:
    """A workspace in which a run met everything, and what every command said of it."""
    made, said = workspace(tmp_path_factory.mktemp("canaries") / "ws"), {}
    (made.root / "out").mkdir()
    subprocess.run(["git", "init", "-q", "--bare", made.root / "out" / "away.git"], check=True)
    words = SECRETS
    given = json.dumps({"text": words["INPUT_TOKEN"]})
    said["init"] = made.run("doctor")
    said["run"] = made.run("run", "everything", "--id", "wf", "--input-json", given)
    said["again"] = made.run("run", "everything", "--id", "wf", "--input-json", '{"text": "other"}')
    said["bad"] = made.run("run", "everything", "--id", "bad", "--input-json", json.dumps({words["INPUT_TOKEN"]: 1}))
    said["failing"] = made.run("run", "failing", "--id", "failing")
    said["work"] = work(made)
    person = (
        "--by",
        f"ana {words['PERSON_TOKEN']}",
        "--channel",
        words["PERSON_TOKEN"],
        "--message-id",
        words["PERSON_TOKEN"],
    )
    said["pause"] = made.run("pause", "wf", "--reason", words["REASON_TOKEN"], "--by", words["PERSON_TOKEN"])
    said["resume"] = made.run("resume", "wf", "--reason", words["REASON_TOKEN"])
    event = json.dumps({words["SIGNAL_TOKEN"]: words["SIGNAL_TOKEN"]})
    said["signal"] = made.run("signal", "wf", "event", "--json", event, *person)
    said["work 2"] = work(made)
    said["inbox"] = made.run("review", "list")
    said["question"] = made.run("review", "show", "wf", "ok")
    answer = json.dumps({words["ANSWER_TOKEN"]: words["ANSWER_TOKEN"]})
    said["wrong"] = made.run("review", "respond", "wf", "ok", "--json", f'"{words["ANSWER_TOKEN"]}"', *person)
    said["answer"] = made.run("review", "respond", "wf", "ok", "--json", answer, *person)
    said["work 3"] = work(made)
    made.git("remote", "add", "away", str(made.root / "out" / "away.git"))
    said["fork"] = made.run("fork", "wf@ok", "--id", "wf2", "--set", f"ok={answer}", "--by", words["PERSON_TOKEN"])
    for name, arguments in LOOKS.items():
        said[name] = made.run(*arguments)
    return made, said


def test_everything_was_met(lived: tuple[Place, dict[str, Said]]) -> None:
    made, said = lived
    assert said["status"].json["status"] == "completed", said["work 3"].stderr + said["answer"].stderr
    assert [name for name in UNHURT if said[name].code != 0] == []
    readable = b"".join(data for _, data in [*files(made.root / ".hermes"), *objects(made.receipts)])
    assert [name for name in SECRETS if f"[redacted:{name}]".encode() not in readable] == []
    assert said["a secret as an id"].error["code"] == "invalid_input"


def test_nothing_that_is_kept_has_a_secret_in_it(lived: tuple[Place, dict[str, Said]]) -> None:
    assert everything_kept(lived[0]) == []


def test_nothing_that_a_command_or_a_runner_says_has_one(lived: tuple[Place, dict[str, Said]]) -> None:
    assert everything_told(lived[1]) == []


def test_nothing_that_leaves_the_workspace_has_one(lived: tuple[Place, dict[str, Said]]) -> None:
    made, bundled = lived[0], lived[0].root / "bundled.git"
    subprocess.run(["git", "clone", "-q", "--bare", made.root / "out" / "wf.bundle", bundled], check=True)
    left = [*files(made.root / "out"), *objects(made.root / "out" / "away.git"), *objects(bundled)]
    left += [(name, (made.root / name).read_bytes()) for name in ("notices", "told.md")]
    assert {name.partition("/")[0] for name, _ in left} >= {"site", "wf.bundle", "wf.tar", "body.md"}
    assert [leak for where, data in left for leak in leaks_in(where, data)] == []


def test_no_page_of_the_dashboard_has_one(lived: tuple[Place, dict[str, Said]]) -> None:
    pages = served(lived[0])
    assert len(pages) > 30
    assert {address.split("/")[1] for address in pages} >= {"runs", "calls", "reviews", "actions", "artifacts"}
    assert [leak for where, data in pages.items() for leak in leaks_in(where, data)] == []


def served(made: Place) -> dict[str, bytes]:
    """Every page that links lead to, from the navigation on, and the error of one that is not there."""
    registry = load(made.root / ".hermes" / "workflows.registry.json")
    around = Surroundings(SystemClock(), made.env())
    settings = WebSettings(registry, tuple(registry.dbs.values()), around, TOKEN, port=8765, by="ana", kind="human")
    opened, pages = Opened.open(settings), {}
    wanted = ["/", "/runs", "/workflows", "/runners", f"/runs/{SECRETS['FILE_TOKEN']}", "/runs?find=canary"]
    try:
        with browser(create_app(settings, opened.every)) as client:
            while wanted:
                address = wanted.pop()
                if address in pages or address.startswith("/events"):
                    continue
                answer = client.get(address)
                pages[address] = answer.content
                if answer.headers.get("content-type", "").startswith("text/html"):
                    found = [link.removeprefix(BASE) for link in links_in(BASE + address, answer.text)]
                    wanted += [link for link in found if link.startswith("/")]
    finally:
        opened.close()
    return pages


def test_a_burst_that_was_killed_leaves_none_ahead_of_git_nor_in_the_log_of_the_index(tmp_path: Path) -> None:
    made = workspace(tmp_path / "ws")
    assert made.run("run", "burst", "--id", "burst").code == 0
    folder = made.receipts / "hermes" / "ahead"
    runner = subprocess.Popen(
        [*PROGRAM, "runner", "run"], cwd=made.root, env=made.env(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        until = time.monotonic() + 60
        while not any(b"redacted:BURST_TOKEN" in data for _, data in files(folder)):
            assert time.monotonic() < until
            assert runner.poll() is None
    finally:
        runner.kill()
        _, errors = runner.communicate()
    assert any(name.endswith("-wal") and data for name, data in files(made.root / ".hermes"))
    assert everything_kept(made) == []
    assert list(leaks_in("stderr", errors)) == []
