"""`bash(...)`: a recorded shell command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from ..core.calls import Call, CallSpec
from ..core.encoding import Plain
from ..core.receipts import Receipt
from ..core.redaction import Redactor
from ..core.retry import Retry
from ..errors import BashFailed, BashTimedOut, InvalidInput
from .requests import check_seconds, relative


@dataclass(frozen=True)
class Secret:
    """A secret by name: resolved in the executor, from the runner's environment; it never enters the body."""

    name: str


def secret(name: str) -> Secret:
    """`bash(…, env={"TOKEN": secret("TOKEN")})`: the command gets the value, the receipts get the name.

    From the call on, the value is a secret in everything that runners of this workspace record.
    """
    return Secret(name)


@dataclass(frozen=True)
class BashResult:
    """What a command left behind. `stdout_bytes` is exact also where `stdout` had to replace what is not UTF-8.

    `truncated` says that only the first and last part of a stream were kept.
    """

    exit_code: int
    stdout: str
    stderr: str
    stdout_bytes: bytes
    stderr_bytes: bytes
    truncated: bool = False

    @property
    def ok(self) -> bool:
        return self.exit_code == 0


@dataclass(frozen=True)
class BashOptions:
    """What the executor needs in clear; the receipt holds the redacted request."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str | Secret]
    timeout: float
    redact: tuple[str, ...]
    retry: Retry | None
    check: bool = False


def bash(
    command: str | Sequence[str],
    *,
    name: str | None = None,
    key: str | None = None,
    key_by: object = None,
    cwd: str = ".",
    env: Mapping[str, str | Secret] | None = None,
    timeout: float = 300.0,
    check: bool = False,
    redact: Sequence[str] = (),
    retry: Retry | None = None,
    shell: str = "/bin/bash",
) -> Call[BashResult]:
    """Run a command as a durable step and return its result, whatever its exit code.

    A string goes to `shell`, a list is executed as it is. `cwd` is relative to the workspace. `timeout` in seconds.
    `redact` names values that must not be recorded. `retry` tries a command that failed again; with `check=True` a
    non-zero exit is a failure, too.
    Raises BashFailed at the await after a timeout, when the command cannot start, and under `check=True` when it
    exits non-zero; InvalidInput for arguments that make no command.
    """
    check_seconds("bash(timeout=…)", timeout)
    cwd = relative("bash()", cwd)
    argv = (shell, "-c", command) if isinstance(command, str) else _words(command)
    variables = _variables(env or {})
    hidden = Redactor({f"redact-{number}": value for number, value in enumerate(redact, 1)}) if redact else None
    request: dict[str, Plain] = {
        "command": command if isinstance(command, str) else list(argv),
        "cwd": cwd,
        "env": {each: _named(value) for each, value in variables.items()},
        "shell": shell if isinstance(command, str) else None,
    }
    return Call(
        CallSpec(
            kind="bash",
            name=name or "bash",
            request=hidden.plain(request) if hidden else request,  # type: ignore[arg-type]  # a dict stays one
            decode=lambda receipt: _result(receipt, check),
            failure=BashFailed,
            timed_out=BashTimedOut,
            options=BashOptions(argv, cwd, variables, timeout, tuple(redact), retry, check),
            key=key,
            key_by=key_by,
            secrets=tuple(value.name for value in variables.values() if isinstance(value, Secret)),
            hidden=tuple(redact),
        )
    )


def _words(command: Sequence[Any]) -> tuple[str, ...]:
    words = tuple(str(each) if isinstance(each, PurePath) else each for each in command)
    if not words or not all(isinstance(each, str) for each in words):
        raise InvalidInput(
            "bash() takes a command line or a list of words", hint="convert numbers yourself: bash(['head', '-n', '5'])"
        )
    return words


def _named(value: str | Secret) -> Plain:
    return {"secret": value.name} if isinstance(value, Secret) else value


def _variables(env: Mapping[Any, Any]) -> dict[str, str | Secret]:
    for name, value in env.items():
        if not isinstance(name, str) or not isinstance(value, str | Secret):
            raise InvalidInput(f"bash(env=…): {name!r} must be text or secret(…), not {type(value).__name__}")
    return dict(env)


def _result(receipt: Receipt, check: bool) -> BashResult:
    result = _read(receipt.output)
    if check and result.exit_code != 0:
        last = (result.stderr or result.stdout).strip().splitlines()[-1:]
        message = f"bash call {receipt.key} exited {result.exit_code}" + (f": {last[0]}" if last else "")
        raise BashFailed(message, key=receipt.key, result=result)
    return result


def _read(output: Mapping[str, Any]) -> BashResult:
    streams = {}
    for name in ("stdout", "stderr"):
        text = output[name]
        streams[name] = text
        streams[f"{name}_bytes"] = output.get(f"{name}_bytes") or text.encode()
    return BashResult(output["exit_code"], truncated=bool(output.get("truncated")), **streams)
