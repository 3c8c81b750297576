"""A key that only this workspace's owner may read, made when it is first needed: it signs what comes back to us.

It lies in a folder beside the database that no commit of the project takes along. Whoever deletes it makes everything
void that it has signed; nothing else is lost.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from ..errors import InvalidInput, StoreFailure

_BYTES = 32
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def secret_key(file: Path) -> bytes:
    """The key in `file`, which is made when it is not there.

    Raises InvalidInput for one that others can read, or that is none, and StoreFailure when the disk says no.
    """
    try:
        return _read(file)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _failed(file, error) from None
    try:
        _make(file)
        return _read(file)
    except OSError as error:
        raise _failed(file, error) from None


def _read(file: Path) -> bytes:
    # A link could lead to a file that somebody else writes.
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as opened:
        found = os.fstat(opened.fileno())
        key = opened.read(_BYTES + 1)
    if found.st_mode & _OTHERS or found.st_uid != os.geteuid():
        hint = f"rm {file}; a new one is made, and what the old one has signed is void"
        raise InvalidInput(f"{file}: others may have read this key", hint=hint)
    if len(key) != _BYTES or not stat.S_ISREG(found.st_mode):
        raise InvalidInput(f"{file}: is no key of {_BYTES} bytes", hint=f"rm {file}; a new one is made")
    return key


def _make(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    ignored = file.parent / ".gitignore"
    if not ignored.exists():
        ignored.write_text("*\n", encoding="utf-8")
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(secrets.token_bytes(_BYTES))
            opened.flush()
            os.fsync(opened.fileno())
        # Whole or not at all, and never over the key of somebody who was faster.
        os.link(temporary, file)
    except FileExistsError:
        pass
    finally:
        os.unlink(temporary)


def _failed(file: Path, error: OSError) -> StoreFailure:
    return StoreFailure(f"{file}: {error.strerror or error}", hint="is the folder writable for this user?")
