"""`hermes-workflows dashboard` as a process: what it prints, whom it serves, what an answer through it becomes."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from tests.acceptance import porter
from tests.acceptance.command_line import DEADLINE, PROGRAM, Place, place
from tests.web.browser import fields_of


@dataclass
class Served:
    process: subprocess.Popen[str]
    said: dict[str, Any]

    @property
    def base(self) -> str:
        return str(self.said["url"]).partition("/enter")[0]

    def stop(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(DEADLINE)


@pytest.fixture
def asked(tmp_path: Path) -> Place:
    """A run that waits at `review_draft`."""
    made = place(tmp_path)
    assert made.start().code == 0
    assert made.work().code == 0
    return made


@contextmanager
def dashboard(
    made: Place, *arguments: str, stdin: int = subprocess.DEVNULL, program: Sequence[str] = ()
) -> Iterator[Served]:
    command = [*(program or porter.program(made.env())), "dashboard", "--port", "0", *arguments]
    pipes = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=made.root, env=made.env(), text=True, **pipes)  # type: ignore[call-overload]
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield Served(process, json.loads(line))
    finally:
        process.kill()
        process.communicate()


def browser(served: Served, url: str | None = None) -> httpx.Client:
    client = httpx.Client(base_url=served.base, timeout=DEADLINE)
    assert client.get(url or served.said["url"]).status_code == 200
    return client


def respond(client: httpx.Client, path: str, **answer: str) -> httpx.Response:
    return send(client, path, fields_of(client.get(path).text), **answer)


def send(client: httpx.Client, path: str, form: dict[str, str], **answer: str) -> httpx.Response:
    filled = form | {f"f/{name}": value for name, value in answer.items()}
    return client.post(path, data=filled, headers={"Origin": str(client.base_url).rstrip("/")})


def test_a_question_is_answered_in_a_browser_and_the_run_goes_on(asked: Place) -> None:
    with dashboard(asked, "--by", "ana") as served, closing(browser(served)) as client:
        inbox = client.get("/").text
        assert "<title>(1) Inbox" in inbox
        (path,) = re.findall(r'href="(/reviews/[^"]+)"', inbox)
        assert "Draft of docs" in client.get(path).text
        assert respond(client, path, action="approve", feedback="fine").status_code == 303
        assert served.stop(signal.SIGTERM) == 0
    assert asked.work().code == 0
    person = asked.run("review", "show", "wf", "review_draft").json["provenance"]
    wanted = {"by": "ana", "kind": "manual", "channel": "local-dashboard", "verified": "session-token"}
    assert {name: person[name] for name in wanted} == wanted
    assert asked.run("status", "wf").json["status"] == "completed"


def test_browsers_and_the_command_line_at_once_make_one_answer(asked: Place) -> None:
    with dashboard(asked, "--token", "a-token-of-my-own-0123456789") as served:
        door = f"{served.base}/enter?token=a-token-of-my-own-0123456789"
        clients, path = [browser(served, door) for _ in range(4)], "/reviews/wf/review_draft"
        # All have the form before one of them answers: a page of a question that was answered has none.
        forms = [fields_of(client.get(path).text) for client in clients]
        with ThreadPoolExecutor(5) as pool:
            told = [
                pool.submit(send, client, path, form, action="revise")
                for client, form in zip(clients, forms, strict=True)
            ]
            also = pool.submit(asked.run, "review", "respond", "wf", "review_draft", "--action", "approve")
            codes = sorted([each.result().status_code for each in told])
            by_command = also.result().code
        for client in clients:
            client.close()
    won = codes.count(303) + (by_command == 0)
    assert (won, codes.count(409) + codes.count(303)) == (1, 4)
    assert by_command in (0, 5)
    responses = asked.git("ls-tree", "-r", "--name-only", "runs/wf").count("response.json")
    assert responses == 1


def test_the_printed_address_works_once_and_ctrl_c_is_no_fault(asked: Place) -> None:
    with dashboard(asked, program=PROGRAM) as served:
        assert served.said["token"] == "once"
        browser(served).close()
        assert httpx.get(served.said["url"], timeout=DEADLINE).status_code == 401
        assert served.stop(signal.SIGINT) == 130
        assert served.process.stderr is not None
        assert "Traceback" not in served.process.stderr.read()


def test_ctrl_c_ends_what_open_tabs_listen_to_and_waits_for_no_slow_one(asked: Place) -> None:
    with dashboard(asked) as served, closing(browser(served)) as client:
        half = socket.create_connection(("127.0.0.1", served.said["port"]))
        lines = ["POST /enter HTTP/1.1", f"Host: 127.0.0.1:{served.said['port']}", f"Origin: {served.base}"]
        lines += ["Content-Type: application/x-www-form-urlencoded", "Content-Length: 99", "", "a="]
        with half, client.stream("GET", "/events?run=") as stream:
            half.sendall("\r\n".join(lines).encode())
            events = stream.iter_lines()
            assert next(events).startswith("retry")
            assert served.stop(signal.SIGINT) == 130
            # To its end: a stream that is cut off raises.
            assert [*events]
        assert served.process.stderr is not None
        assert served.process.stderr.read() == "Ctrl-C stops it\n"


def test_below_a_path_everything_is_as_it_is_elsewhere(asked: Place) -> None:
    with dashboard(asked, "--root-path", "/flows/") as served, closing(browser(served)) as client:
        assert served.base.endswith("/flows")
        (path,) = re.findall(r'href="(/flows/reviews/[^"]+)"', client.get("/").text)
        assert client.get(path.removeprefix("/flows")).status_code == 200
        assert httpx.get(served.base.removesuffix("/flows") + "/").status_code == 401


def test_a_token_of_ones_own_is_not_printed(asked: Place) -> None:
    (asked.root / "token").write_text("a-token-of-my-own-0123456789\n")
    with dashboard(asked, "--token", "@token") as served:
        assert served.said["token"] == "given"
        assert served.said["url"].endswith("/enter")
        browser(served, f"{served.base}/enter?token=a-token-of-my-own-0123456789").close()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--host", "0.0.0.0"], "invalid_input", "serves other machines"),
        (["--allow-host", "desk.example"], "invalid_input", "other machines"),
        (["--root-path", "/a/../b"], "invalid_input", "no path"),
        (["--token", "short"], "invalid_input", "at least 20"),
        (["--token", "@nowhere"], "invalid_input", "No such file"),
        (
            ["--host", "203.0.113.1", "--token", "a-token-of-my-own-0123456789"],
            "store_failure",
            "cannot be listened on",
        ),
    ],
)
def test_what_cannot_be_served_is_said_before_anything_listens(
    asked: Place, arguments: list[str], code: str, said: str
) -> None:
    answer = asked.run("dashboard", "--port", "0", *arguments)
    assert answer.code != 0
    assert answer.error["code"] == code
    assert said in answer.error["message"]
    assert answer.error["hint"]
    assert answer.stdout == ""


def test_without_the_extra_the_command_says_what_to_install(asked: Place) -> None:
    stub = asked.root / "stub" / "starlette.py"
    stub.parent.mkdir()
    stub.write_text("raise ModuleNotFoundError('gone', name='starlette')")
    asked.environment["PYTHONPATH"] = f"{stub.parent}:{os.environ.get('PYTHONPATH', '')}"
    answer = asked.run("dashboard", "--port", "0")
    assert (answer.code, answer.error["code"]) == (2, "invalid_input")
    assert "starlette" in answer.error["message"]
    assert "pip install '.[dashboard]'" in answer.error["hint"]


def test_only_a_dashboard_that_was_started_in_a_terminal_answers_as_a_human(asked: Place) -> None:
    ours, theirs = pty.openpty()
    try:
        with dashboard(asked, stdin=theirs) as typed:
            assert typed.said["kind"] == "human"
        with dashboard(asked, "--token", "a-token-of-my-own-0123456789") as started:
            assert started.said["kind"] == "manual"
    finally:
        os.close(ours)
        os.close(theirs)
