"""Builders for the tests of exchange: a bare repository between workspaces, and both ways to reach it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.contract.ledgers import git, open_git

from hermes_workflows.store import git_binary
from hermes_workflows.store.dulwich_transport import DulwichTransport
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.git_transport import GitTransport
from hermes_workflows.store.remotes import Transport, find_remote

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


def reach(ledger: GitLedger, kind: str, name: str = "origin") -> Transport:
    """The transport of this kind ("git" or "dulwich") to a remote."""
    remote = find_remote(ledger.path, name)
    if kind == "dulwich":
        return DulwichTransport(ledger.path, remote, ledger.disk)
    program = git_binary.find(ENVIRONMENT)
    assert program
    return GitTransport(ledger.path, remote, ENVIRONMENT, program)


def refs_of(path: GitLedger | Path, *prefixes: str) -> dict[str, str]:
    lines = git(path, "for-each-ref", "--format=%(refname) %(objectname)", *prefixes).splitlines()
    return {name: oid for name, _, oid in (line.partition(" ") for line in lines)}
