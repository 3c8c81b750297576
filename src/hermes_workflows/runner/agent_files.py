"""The files and skills of an agent's call: read when the call starts, hashed for its receipt, refused with secrets.

A receipt names what the agent was given by hash, so that `diff` and `reproduce` can tell whether it was the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from ..core.redaction import Redactor
from ..errors import InvalidInput

_PIECE = 1 << 20
_SKILL = "SKILL.md"
_LONGEST_SKILL = 256 * 1024


def hashes_of(root: Path, names: Iterable[str], redactor: Redactor) -> dict[str, str]:
    """Each file's sha256 (hex) by its name, which is relative to `root`.

    Raises InvalidInput for what is no file of the workspace, and for a file that holds a secret.
    """
    return {name: _hash(_file(root, name, "files="), name, redactor) for name in names}


def skill_texts(root: Path, names: Iterable[str], redactor: Redactor) -> dict[str, str]:
    """The text of each skill by the name of its file: a Markdown file, or a folder with a `SKILL.md`.

    Raises InvalidInput as `hashes_of` does, and for a text that is too long to stand before a prompt.
    """
    texts = {}
    for name in names:
        if (root / name).is_dir():
            name = f"{name.rstrip('/')}/{_SKILL}"
        path = _file(root, name, "skills=")
        _hash(path, name, redactor)
        if path.stat().st_size > _LONGEST_SKILL:
            raise InvalidInput(f"agent(skills=…): {name} is longer than {_LONGEST_SKILL:,} bytes", hint="use files=")
        texts[name] = path.read_text(encoding="utf-8", errors="replace")
    return texts


def _file(root: Path, name: str, argument: str) -> Path:
    path = (root / name).resolve()
    if not path.is_relative_to(root.resolve()):
        raise InvalidInput(
            f"agent({argument}…): {name} lies outside of the workspace", hint="copy it into the workspace"
        )
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "is not there"
        raise InvalidInput(f"agent({argument}…): {name} {what}", hint="name files, relative to the workspace")
    return path


def _hash(path: Path, name: str, redactor: Redactor) -> str:
    digest, secrets = hashlib.sha256(), redactor.stream()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            secrets.feed(piece)
    secrets.close()
    if secrets.counts:
        found = ", ".join(sorted(secrets.counts))
        raise InvalidInput(
            f"{name} holds a secret ({found}); an agent would send it on", hint="take it out of the file"
        )
    return digest.hexdigest()
