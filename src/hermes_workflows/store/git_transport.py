"""Exchange with a remote by the git program, which knows every protocol, credential helper and proxy of this machine.

The user's own git config is obeyed for reaching the remote; what it says about storing, pruning, signing, hooks or
tags is overruled here, and so is what the remote's own section says about which refs go where.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..core.redaction import Redactor
from ..errors import HermesError, IntegrityError, RemoteFailure, StoreFailure
from . import git_binary, peek
from .remotes import HEADS, SCHEMES, Remote, is_exchanged
from .remotes import prune as forget

# git's own variables that say how to reach somebody; all others would speak of another repository.
_KEPT = re.compile(
    r"GIT_(?:SSH\w*|ASKPASS|PROXY_COMMAND|SSL_\w+|HTTP_\w+|CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM)|TERMINAL_PROMPT)"
)

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsync=all",
    "fetch.fsckObjects=true",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "push.followTags=false",
    "push.gpgSign=false",
    "push.recurseSubmodules=no",
    "push.useForceIfIncludes=false",
    "submodule.recurse=false",
    # A remote that sends nothing for a minute is gone.
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
)
_SECONDS = 3600.0

# A whole refspec a ref: this many fit on any command line.
_AT_ONCE = 500

_BAD_OBJECTS = re.compile(
    r"fsck error|invalid index-pack|index-pack (?:died|failed)|unpack-objects|bad object|necessary objects"
    r"|missing (?:blob|tree|commit)|collision|remote did not send"
)


class GitTransport:
    """`remotes.Transport` by the program `git` (2.29 or newer)."""

    def __init__(self, repository: Path, remote: Remote, environment: Mapping[str, str], git: str) -> None:
        self._repository = os.fspath(repository)
        self._remote = remote
        self._environment = environment
        self._git = git

    def refs(self, *, for_push: bool = False) -> dict[str, str]:
        elsewhere = for_push and self._remote.push_url != self._remote.url
        address = self._remote.push_url if elsewhere else self._remote.name
        done = self._run("ls-remote", "--refs", "--", address, f"{HEADS}*", f"{peek.RUNS}*")
        if done.returncode:
            raise self._failure(done.stderr)
        lines = (line.split("\t") for line in done.stdout.splitlines() if "\t" in line)
        # A pattern of ls-remote matches ends of names: refs/x/refs/heads/y would come along.
        return {ref: oid for oid, ref in lines if is_exchanged(ref)}

    def fetch(self, *, prune: bool) -> None:
        if prune:
            # Not by git's own --prune: it keeps what a refspec that excludes something might have meant.
            forget(Path(self._repository), self._remote, self.refs())
        done = self._run(
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--no-prune",
            # Empty: the remote's own section shall not send refs anywhere else (`remote add --mirror=fetch` would).
            "--refmap=",
            "--",
            self._remote.name,
            *fetch_refspecs(self._remote),
        )
        if done.returncode:
            raise self._failure(done.stderr)

    def push(self, values: Mapping[str, str]) -> dict[str, str]:
        refused: dict[str, str] = {}
        for batch in _batches(values):
            refspecs = [f"{commit}:{ref}" for ref, commit in batch]
            done = self._run("push", "--porcelain", "--no-verify", "--no-signed", "--", self._remote.name, *refspecs)
            answers = dict(_answers(done.stdout))
            if done.returncode and not answers:
                raise self._failure(done.stderr)
            refused |= {ref: why for ref, why in answers.items() if why}
        return refused

    def replace(self, ref: str, old: str, new: str) -> str | None:
        lease = f"--force-with-lease={ref}:{old}"
        options = ("--porcelain", "--no-verify", "--no-signed", lease)
        done = self._run("push", *options, "--", self._remote.name, f"{new}:{ref}")
        answers = dict(_answers(done.stdout))
        if done.returncode and not answers:
            raise self._failure(done.stderr)
        return answers.get(ref) or None

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        section = f"remote.{self._remote.name}"
        settings = (*_SETTINGS, f"{section}.mirror=false", f"safe.directory={self._repository}")
        options = itertools.chain.from_iterable(("-c", setting) for setting in settings)
        try:
            return subprocess.run(
                [self._git, *options, *arguments],
                cwd=self._repository,
                env=transport_environment(self._environment) | {"GIT_DIR": self._repository},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise RemoteFailure(
                f"{self._remote.name} has kept git waiting for {_SECONDS:g} s", hint="try again later"
            ) from None

    def _failure(self, stderr: str) -> HermesError:
        return failure(self._remote, stderr)


def transport_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What git may know of this process: how to reach others, and nothing of another repository."""
    kept = {name: value for name, value in environment.items() if not name.startswith("GIT_") or _KEPT.fullmatch(name)}
    return {"GIT_TERMINAL_PROMPT": "0"} | kept | {"LC_ALL": "C", "GIT_ALLOW_PROTOCOL": ":".join(SCHEMES)}


def fetch_refspecs(remote: Remote) -> tuple[str, ...]:
    """What `git fetch` is told: see `remotes.kept_as`, which says the same."""
    return (
        f"+{HEADS}*:{remote.prefix}*",
        f"+{peek.RUNS}*:{remote.prefix}runs/*",
        *(f"^{HEADS}{name}{below}" for name in ("runs", "HEAD") for below in ("", "/*")),
    )


def failure(remote: Remote, told: str) -> HermesError:
    """What a remote or git has said, as one error; foreign text in one line, without passwords."""
    lines = [line.strip() for line in Redactor().text(told).splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith(("fatal:", "error:", "ssh:"))), lines[-1] if lines else "")
    message = f"{remote.name} ({remote.shown}): {said.partition(': ')[2] or said or 'it said nothing'}"
    if any(git_binary.DISK_IS_FULL.search(line) for line in lines if not line.startswith("remote:")):
        return StoreFailure(message, hint="nothing of ours has changed; free some space and run the same command again")
    if _BAD_OBJECTS.search(told.lower()):
        return IntegrityError(message, hint="what it has is damaged or was made to harm; nothing of ours has changed")
    if "refs/remotes/" in told and "cannot lock ref" in told:
        return RemoteFailure(message, hint="a branch there has become a folder, or the reverse: `fetch --prune`")
    return RemoteFailure(message, hint="check the address, the network and who may read or write there")


def _answers(porcelain: str) -> Iterator[tuple[str, str]]:
    """Each ref of a push with the reason why it did not move, or ""."""
    for line in porcelain.splitlines():
        flag, tab, rest = line.partition("\t")
        names, _, summary = rest.partition("\t")
        if tab and len(flag) == 1 and ":" in names:
            reason = summary.rpartition("(")[2].removesuffix(")") if "(" in summary else summary.strip("[]")
            yield names.partition(":")[2], reason if flag == "!" else ""


def _batches(values: Mapping[str, str]) -> Iterator[list[tuple[str, str]]]:
    rest = iter(values.items())
    while batch := list(itertools.islice(rest, _AT_ONCE)):
        yield batch
