"""Where in the author's code an exception came from, read out of the traceback that a run's end has recorded."""

from __future__ import annotations

import re

_FRAME = re.compile(r'^ *(?:\| *)*File "(?P<file>[^"\n]+)", line (?P<line>\d+)', re.MULTILINE)
# Frames that an exception merely went through: this program, the interpreter's own library, and what is installed.
_NOT_THE_AUTHORS = re.compile(r"/hermes_workflows/(?!examples/)|/lib/python3|/site-packages/|/asyncio/|^<")


def place_in(traceback: str | None) -> str | None:
    """`file:line` of the innermost frame of the author's code; None when there is none in it."""
    place = None
    for frame in _FRAME.finditer(traceback or ""):
        if not _NOT_THE_AUTHORS.search(frame["file"]):
            place = f"{frame['file']}:{frame['line']}"
    return place
