"""Builders for the tests of exchange: a bare repository between workspaces, and both ways to reach it."""

from __future__ import annotations

import os
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from tests.contract.ledgers import git, open_git

from hermes_workflows.store import git_binary
from hermes_workflows.store.dulwich_transport import DulwichTransport
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.git_transport import GitTransport
from hermes_workflows.store.remotes import Transport, find_remote
from hermes_workflows.store.repository import GENESIS

SOMEBODY = {f"GIT_{role}_{what}": "x@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


def bare(folder: Path, name: str = "hub.git") -> Path:
    path = folder / name
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", path], check=True, env=ENVIRONMENT)
    return path


def workspace(folder: Path, name: str, hub: Path | str | None = None) -> GitLedger:
    (folder / name).mkdir()
    ledger = open_git(folder / name)
    if hub is not None:
        add_remote(ledger, hub)
    return ledger


def add_remote(ledger: GitLedger, url: Path | str, name: str = "origin") -> None:
    git(ledger, "remote", "add", name, str(url))


def reach(ledger: GitLedger, kind: str, name: str = "origin", **more: str) -> Transport:
    """The transport of this kind ("git" or "dulwich") to a remote, with `more` in its environment."""
    environment = ENVIRONMENT | more
    remote = find_remote(ledger.path, name)
    if kind == "dulwich":
        return DulwichTransport(ledger.path, remote, ledger.disk, environment)
    program = git_binary.find(environment)
    assert program
    return GitTransport(ledger.path, remote, environment, program)


def refs_of(path: GitLedger | Path, *prefixes: str) -> dict[str, str]:
    lines = git(path, "for-each-ref", "--format=%(refname) %(objectname)", *prefixes).splitlines()
    return {name: oid for name, _, oid in (line.partition(" ") for line in lines)}


_SSH = """#!/bin/sh
# What ssh does with its last argument, without going anywhere: the rest is kept to be looked at.
echo "$@" >> "$(dirname "$0")/asked"
for command; do :; done
eval "$command"
"""


def ssh(folder: Path) -> Path:
    """A program in the place of ssh that runs the command here."""
    program = folder / "ssh"
    program.write_text(_SSH)
    program.chmod(0o755)
    return program


@contextmanager
def http(root: Path, password: str | None = None) -> Iterator[str]:
    """Serve the repositories below `root` by git's own CGI program; its address."""

    def answer(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        given = environ.get("HTTP_AUTHORIZATION", "")
        if password and given != "Basic " + b64encode(f"ada:{password}".encode()).decode():
            start_response("401 Unauthorized", [("WWW-Authenticate", 'Basic realm="git"')])
            return [b""]
        size = int(environ.get("CONTENT_LENGTH") or 0)
        done = subprocess.run(
            ["git", "http-backend"],
            input=environ["wsgi.input"].read(size),
            env={name: value for name, value in environ.items() if isinstance(value, str)}
            | {"GIT_PROJECT_ROOT": str(root), "GIT_HTTP_EXPORT_ALL": "1", "REMOTE_USER": "ada"},
            stdout=subprocess.PIPE,
            check=True,
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        fields = [line.decode().partition(": ")[::2] for line in head.split(b"\r\n")]
        status = next((value for name, value in fields if name == "Status"), "200 OK")
        start_response(status, [(name, value) for name, value in fields if name != "Status"])
        return [body]

    server = make_server("127.0.0.1", 0, answer, handler_class=_Quiet)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class calls it so
        pass


def liar(folder: Path, *names: str) -> Path:
    """A program in the place of ssh whose far end says that it has the genesis commit under these names."""
    capabilities = "\0ofs-delta agent=liar"
    lines = [f"{GENESIS} {name}{capabilities if at == 0 else ''}\n".encode() for at, name in enumerate(names)]
    (folder / "said").write_bytes(b"".join(b"%04x%s" % (len(line) + 4, line) for line in lines) + b"0000")
    program = folder / "liar"
    program.write_text(f"#!/bin/sh\ncat '{folder}/said'\ncat > /dev/null\n")
    program.chmod(0o755)
    return program
