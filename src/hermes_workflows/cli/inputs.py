"""JSON given on the command line: the text itself, `@file`, or `-` for stdin; read by the one strict parser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ..core.encoding import parse
from ..errors import InvalidInput

if TYPE_CHECKING:
    from ..core.encoding import Plain


def read_json(text: str, option: str) -> Plain:
    """The value that `text` means. Raises InvalidInput that names the option and the place."""
    data, where = _bytes(text, option)
    try:
        # What people write is plain JSON: a key that starts with "$" means itself here.
        return cast("Plain", parse(data))
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error.message}", hint=error.hint or f"{option} takes JSON, @FILE or -") from None


def read_text(text: str, option: str) -> str:
    """The text itself, or what the file or stdin holds. Raises InvalidInput that names the option."""
    data, where = _bytes(text, option)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"{where}: not UTF-8") from None


def _bytes(text: str, option: str) -> tuple[bytes, str]:
    if text == "-":
        return sys.stdin.buffer.read(), f"{option} -"
    if text.startswith("@"):
        try:
            return Path(text[1:]).read_bytes(), text[1:]
        except OSError as error:
            raise InvalidInput(f"{option} {text}: {error.strerror}", hint="a file that can be read") from None
    return text.encode("utf-8", "surrogateescape"), option
