"""Which versions of what are at work: recorded in `run.json`, shown by `--version` and by the doctor."""

from __future__ import annotations

import platform
from functools import cache
from importlib import metadata

_RECORDED = ("hermes-workflows", "dulwich", "pydantic")


@cache
def version_of(distribution: str) -> str:
    """What this process began with: reading the files of a distribution takes a millisecond, at each start of a run."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        # A checkout on PYTHONPATH: it runs, and nobody installed it.
        return "unknown"


def versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: version_of(name) for name in _RECORDED}
