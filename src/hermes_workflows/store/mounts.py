"""Which file system a path lies on, as Linux says it."""

from __future__ import annotations

import os
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")


def mount_of(path: Path, mounts: Path = MOUNTS) -> tuple[str, frozenset[str]] | None:
    """The kind of file system below `path` and its options; None where that cannot be known. Raises OSError."""
    device = os.stat(path).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        left, _, right = line.partition(" - ")
        fields, system = left.split(), right.split()
        if len(fields) > 2 and fields[2] == wanted and system:
            return system[0], frozenset(system[2].split(",") if len(system) > 2 else ())
    return None
