"""Whether a command printed what a page shows. `…` stands for whatever differs from one time to the next.

In text it is any part of a line, and alone on a line any lines. In JSON it is any part of a string, as a whole value
anything, and as a key any other keys.
"""

from __future__ import annotations

import json
import re
from typing import Any

ANY = "…"
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def alike(shown: str, printed: str, language: str) -> bool:
    if language == "json":
        return _alike_json(json.loads(shown), json.loads(printed))
    return re.fullmatch(_pattern(_tidy(shown)), _tidy(printed)) is not None


def _pattern(text: str) -> str:
    lines = [r"(?:.*\n)*?" if line == ANY else _part(line) + r"\n" for line in text.splitlines()]
    return "".join(lines)


def _part(line: str) -> str:
    return ".*?".join(map(re.escape, line.split(ANY)))


def _tidy(text: str) -> str:
    """Without colours and trailing spaces, which nobody sees on a page."""
    return "".join(f"{line.rstrip()}\n" for line in _COLOURS.sub("", text).rstrip().splitlines())


def _alike_json(shown: Any, printed: Any) -> bool:
    if shown == ANY:
        return True
    if isinstance(shown, str) and isinstance(printed, str):
        return re.fullmatch(_part(shown), printed) is not None
    if isinstance(shown, list) and isinstance(printed, list):
        return len(shown) == len(printed) and all(map(_alike_json, shown, printed))
    if isinstance(shown, dict) and isinstance(printed, dict):
        named = {key: value for key, value in shown.items() if key != ANY}
        if named.keys() - printed.keys() or (ANY not in shown and printed.keys() - named.keys()):
            return False
        return all(_alike_json(value, printed[key]) for key, value in named.items())
    return bool(shown == printed and type(shown) is type(printed))
