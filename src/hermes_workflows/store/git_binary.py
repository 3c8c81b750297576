"""The git program, for what it does better than we: whole transactions on packed refs.

It sees nothing of the machine: no user or system config, no hooks, no GIT_* variables, no terminal.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping

ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}

# What git says of this machine's disk. It calls objects damaged that it could not write.
DISK_IS_FULL = re.compile(r"no space left|out of disk ?space|quota exceeded", re.IGNORECASE)

# fetch writes no FETCH_HEAD and leaves out refs from this version on.
_OLDEST = (2, 29)


def find(environment: Mapping[str, str]) -> str | None:
    """The git program on that environment's PATH, if it is there and new enough to exchange with others."""
    git = shutil.which("git", path=environment.get("PATH"))
    if git is None:
        return None
    told = subprocess.run([git, "--version"], env=ENVIRONMENT, capture_output=True, text=True, check=False).stdout
    version = re.search(r"(\d+)\.(\d+)", told)
    return git if version and (int(version[1]), int(version[2])) >= _OLDEST else None


def signature(repository: str, commit: str) -> tuple[str, str]:
    """What git says of a commit's signature, good, bad or unknown, and whose a good one is.

    Who may sign stands in the repository's own config (`gpg.ssh.allowedSignersFile`), which nobody can push.
    """
    git = shutil.which("git")
    if git is None:
        return "unknown", ""
    done = subprocess.run(
        [git, "-c", f"safe.directory={repository}", "log", "-1", "--no-walk", "--format=%G?%n%GS", commit],
        cwd=repository,
        env={**ENVIRONMENT, "GIT_DIR": repository},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=60,
        check=False,
    )
    verdict, _, signer = done.stdout.partition("\n")
    found = {"G": "good", "B": "bad"}.get(verdict, "unknown")
    return found, signer.strip() if found == "good" else ""


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
        env={**ENVIRONMENT, "GIT_DIR": repository},
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode == 0
