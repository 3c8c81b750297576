"""Hermes in a terminal, typed into as a person does: what is answered there is that person's."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.hermes.real.client import DEADLINE, PROGRAM, Client

_SIZE = struct.pack("HHHH", 40, 160, 0, 0)
# How a program asks a terminal where its cursor is, and an answer.
_WHERE, _THERE = b"\x1b[6n", b"\x1b[1;1R"


class Terminal:
    """A terminal with Hermes in it; `seen` is everything that was shown."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.seen = b""

    def wait_for(self, text: str) -> None:
        until = time.monotonic() + DEADLINE
        while text.encode() not in self.seen:
            assert time.monotonic() < until, f"{text!r} was not shown:\n{self.seen.decode(errors='replace')[-4000:]}"
            ready, _, _ = select.select([self._descriptor], [], [], 1.0)
            if ready:
                shown = os.read(self._descriptor, 65536)
                self.seen += shown
                if _WHERE in shown:
                    os.write(self._descriptor, _THERE)

    def type(self, line: str) -> None:
        """Enter only when the line is there: what comes in one piece is taken for pasted text."""
        os.write(self._descriptor, line.encode())
        self.wait_for(line.rpartition(" ")[2])
        os.write(self._descriptor, b"\r")


@contextmanager
def _terminal(client: Client) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, _SIZE)
    child = subprocess.Popen(
        [str(PROGRAM)],
        cwd=client.work.root,
        env=client.work.env() | {"TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(ours)
    finally:
        child.kill()
        child.wait()
        os.close(ours)


def test_an_answer_that_is_typed_in_hermes_terminal_is_a_persons(client: Client) -> None:
    client.work.start("one")
    client.work.work()
    keys = "  default: none\n  provider: custom\n  base_url: http://127.0.0.1:9/v1\n  api_key: none\n"
    config = client.home / "config.yaml"
    config.write_text(f"model:\n{keys}  context_length: 4000000\n{config.read_text()}")
    with _terminal(client) as terminal:
        terminal.wait_for("❯")
        terminal.type("/workflow answer one review_draft approve")
        terminal.wait_for("recorded as human")
    recorded = client.work.run("review", "show", "one", "review_draft").json
    by = recorded["provenance"]
    assert recorded["answer"] == {"action": "approve"}
    assert (by["kind"], by["channel"], by["verified"]) == ("human", "hermes-cli", "os-user")
