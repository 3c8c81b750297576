"""The programs that a registry names: whether they are on the PATH of this environment, and of which version.

Only the known agents' own programs are started, with `--version`: what a command of one's own does, nobody knows.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping

from ..doctor import Finding
from ..registry import Registry
from ..settings import ANY, AgentSettings
from .environment import clean_environment
from .presets import PRESETS

_SECONDS = 15.0
_VERSION = re.compile(r"\d+\.\d+[\w.+-]*")


def examine_agents(
    registry: Registry, fallback: AgentSettings | None, environment: Mapping[str, str]
) -> Iterator[Finding]:
    """Every agent, the command of notices, and `gh` when pull requests are read; `fallback` is the environment's."""
    agents = dict(registry.agents) | ({ANY: fallback} if fallback and ANY not in registry.agents else {})
    for name, settings in agents.items():
        yield from _agent(registry, name, settings, environment)
    if registry.notify and _found(registry, registry.notify.command[0], environment) is None:
        hint = "install it, or name it by its path; until then nobody is told of questions"
        yield Finding("problem", f"notify: there is no program {registry.notify.command[0]!r}", hint)
    if registry.pull_requests is not None:
        yield _known("pull_requests", "gh", environment, "install the GitHub CLI, or leave pull_requests out")


def _agent(registry: Registry, name: str, settings: AgentSettings, environment: Mapping[str, str]) -> Iterator[Finding]:
    where = f"agent {name} ({settings.preset})"
    if settings.preset == "replay":
        return
    if settings.preset != "command" and not settings.command:
        yield _known(where, settings.preset, environment, PRESETS[settings.preset].install)
    elif (path := _found(registry, settings.command[0], environment)) is None:
        hint = "install it, or name it by its path: relative ones start at the workspace"
        yield Finding("problem", f"{where}: there is no program {settings.command[0]!r}", hint)
    else:
        yield Finding("ok", f"{where} is {path}")


def _known(where: str, program: str, environment: Mapping[str, str], install: str) -> Finding:
    path = shutil.which(program, path=environment.get("PATH"))
    if path is None:
        return Finding("problem", f"{where}: there is no program {program!r} on PATH", install)
    version = _version(path, environment)
    if version is None:
        return Finding("warning", f"{where}: {path} --version says nothing", f"try `{program} --version` by hand")
    return Finding("ok", f"{where} is {path}, version {version}")


def _version(path: str, environment: Mapping[str, str]) -> str | None:
    try:
        said = subprocess.run(
            [path, "--version"],
            env=clean_environment(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            check=False,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(said.stdout) or _VERSION.search(said.stderr)
    return found[0] if found and said.returncode == 0 else None


def _found(registry: Registry, program: str, environment: Mapping[str, str]) -> str | None:
    """As it is found when it is started: in the workspace, or on the PATH."""
    if os.sep in program:
        path = registry.root / program
        return str(path) if path.is_file() and os.access(path, os.X_OK) else None
    return shutil.which(program, path=environment.get("PATH"))
