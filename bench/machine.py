"""What a benchmark ran on: nothing that names its owner."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

OURS = ("hermes-workflows", "dulwich", "pydantic", "orjson")


def machine(folder: Path) -> dict[str, str]:
    """The processor, how many of it, the memory, the system, and the file system of `folder`."""
    # What comes after the version names who built it.
    release = platform.release().partition("-")[0]
    found = {
        "system": f"{platform.system()} {release}",
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": _memory(),
        "file system": _file_system(folder),
        "load before": _load(),
    }
    return {name: value for name, value in found.items() if value}


def versions(names: Iterable[str] = OURS) -> dict[str, str]:
    found = {"Python": platform.python_version(), "SQLite": sqlite3.sqlite_version, "git": _git()}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {name: value for name, value in found.items() if value}


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemTotal:"):
            return f"{int(line.split()[1]) / (1 << 20):.0f} GiB"
    return ""


def _file_system(folder: Path) -> str:
    """The type of the deepest mount that holds the folder."""
    best, found = "", ""
    for line in _lines("/proc/self/mounts"):
        _, where, kind, *_ = line.split()
        if len(where) >= len(best) and folder.resolve().is_relative_to(where):
            best, found = where, kind
    return found


def _load() -> str:
    try:
        return f"{os.getloadavg()[0]:.1f}"
    except OSError:
        return ""


def _git() -> str:
    try:
        said = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
    return said.removeprefix("git version ").strip()


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
