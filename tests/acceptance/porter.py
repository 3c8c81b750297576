"""The program `hermes-workflows` for shells, which comes from the nursery: forked instead of started.

What a shell starts is a small program that hands its words, its folder, its environment and its three streams over a
socket, passes signals on, and ends as the command ended. The command is killed when that program is.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.acceptance.nursery import become, nursery, replaced

# What Python and the system look at before anything of ours is imported: where that differs, Python is started.
_BEFORE_MAIN = ("PYTHON", "LC_", "LANG", "TZ")
_PROGRAM = """#!{python} -ISE
import json, os, signal, socket, sys

PYTHON, ADDRESS, USUAL = {python!r}, {address!r}, {usual!r}
if {{name: value for name, value in os.environ.items() if name.startswith({before!r})}} != USUAL:
    os.execv(PYTHON, [PYTHON, "-m", "hermes_workflows", *sys.argv[1:]])
said = json.dumps({{"arguments": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ)}}).encode()
with socket.socket(socket.AF_UNIX) as keeper:
    keeper.connect(ADDRESS)
    socket.send_fds(keeper, [len(said).to_bytes(8, "big")], [0, 1, 2])
    keeper.sendall(said)
    pid = int.from_bytes(keeper.recv(8), "big")
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: os.kill(pid, number))
    code = int.from_bytes(keeper.recv(8), "big", signed=True)
if code < 0:
    if -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


def usual(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_BEFORE_MAIN)}


@cache
def programs(*before_main: tuple[str, str]) -> Path:
    """A folder for the PATH of shells, in whose environment that is all that Python looks at before `main`."""
    at = nursery()
    folder = at.folder / f"programs-{abs(hash(before_main)):x}"
    folder.mkdir()
    address = str(folder / "keeper")
    at.ask(op="listen", address=address)
    program = folder / "hermes-workflows"
    text = _PROGRAM.format(python=sys.executable, address=address, usual=dict(before_main), before=_BEFORE_MAIN)
    program.write_text(text)
    program.chmod(0o755)
    return folder


def program(environment: dict[str, str]) -> list[str]:
    """What to start for the command line, where the start of Python is not the subject."""
    if not hasattr(os, "pidfd_open"):  # only Linux has it
        return [sys.executable, "-m", "hermes_workflows"]
    return [str(programs(*sorted(usual(environment).items())) / "hermes-workflows")]


def listen(listening: socket.socket) -> None:
    """For ever: a process for each command that somebody asks for, which keeps it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        asking, _ = listening.accept()
        if not os.fork():
            try:
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _keep(asking)
            finally:
                os._exit(70)
        asking.close()


def _keep(asking: socket.socket) -> None:
    size, streams, _, _ = socket.recv_fds(asking, 8, 3)
    said, wanted = b"", int.from_bytes(size, "big")
    while len(said) < wanted:
        said += asking.recv(wanted - len(said))
    question = json.loads(said)
    question["env"] = replaced(question["env"])
    pid = os.fork()
    if not pid:
        asking.close()
        become(question, streams)
    for stream in streams:
        os.close(stream)
    asking.sendall(pid.to_bytes(8, "big"))
    ended, watched = select.poll(), os.pidfd_open(pid)
    ended.register(watched, select.POLLIN)
    ended.register(asking, select.POLLIN)
    if watched not in dict(ended.poll()):
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with suppress(OSError):
        asking.sendall(os.waitstatus_to_exitcode(status).to_bytes(8, "big", signed=True))
    os._exit(0)
