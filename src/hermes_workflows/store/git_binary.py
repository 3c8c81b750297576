"""The git program, for what it does better than we: whole transactions on packed refs.

It sees nothing of the machine: no user or system config, no hooks, no GIT_* variables, no terminal.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping

_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}


def delete_refs(repository: str, values: Mapping[str, str]) -> bool:
    """Delete refs that still have these values, all or none; False when git is missing or refuses."""
    git = shutil.which("git")
    if git is None:
        return False
    commands = "".join(f"delete {ref} {value}\n" for ref, value in values.items())
    # safe.directory: a workspace may belong to another user; whoever may write it may drop its refs.
    done = subprocess.run(
        [git, "-c", f"safe.directory={repository}", "update-ref", "--stdin"],
        input=commands.encode(),
        cwd=repository,
        env={**_ENVIRONMENT, "GIT_DIR": repository},
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode == 0
