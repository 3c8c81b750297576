"""What workflows and steps write while this process runs them: never into our document, never with a secret in it.

`print` goes to stderr, where everything passes the redactor, line by line. So does what is logged, by any handler.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from ..core.redaction import Redactor

Clean = Callable[[str], str]

# A line that never ends is written in pieces, so that memory stays bounded.
_LONGEST = 1 << 20


class Lines(io.TextIOBase):
    """A text stream that writes whole lines to `target`, without secrets. Threads do not mix within a line."""

    encoding = "utf-8"

    def __init__(self, target: TextIO, clean: Clean) -> None:
        self._target = target
        self._clean = clean
        self._lock = threading.RLock()
        self._begun: dict[int, str] = {}
        self.buffer = _Bytes(self)

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() takes text, not {type(text).__name__}")
        with self._lock:
            thread = threading.get_ident()
            whole = self._begun.pop(thread, "") + text
            # Lines that were written together stay together: a secret may have several.
            if whole.endswith("\n") or len(whole) > _LONGEST:
                self._put(whole)
            elif whole:
                self._begun[thread] = whole
        return len(text)

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._target.isatty()

    def fileno(self) -> int:
        return self._target.fileno()

    def finish(self) -> None:
        """Write what no line end came for."""
        with self._lock:
            while self._begun:
                self._put(self._begun.pop(next(iter(self._begun))))

    def _put(self, text: str) -> None:
        self._target.write(self._clean(text))
        self._target.flush()


class _Bytes(io.RawIOBase):
    """`sys.stdout.buffer` of code that writes bytes."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._lines.write(bytes(data).decode("utf-8", "replace"))
        return len(data)


@contextmanager
def guarded(
    redactors: Callable[[], list[Redactor]], *, own_process: bool, shape: Clean | None = None
) -> Iterator[None]:
    """While code of authors runs. `redactors` are asked for at each line: they learn while workflows run.

    `shape` makes something else of lines that are printed.

    In a process of our own, what writes to the file of stdout itself (a child process of a step) goes to stderr, too.
    """

    def clean(text: str) -> str:
        for redactor in redactors():
            text = redactor.text(text)
        return text

    lines = Lines(sys.stderr, clean if shape is None else lambda text: shape(clean(text)))
    streams, factory = (sys.stdout, sys.stderr), logging.getLogRecordFactory()
    sys.stdout.flush()
    sys.stdout = sys.stderr = lines
    logging.setLogRecordFactory(lambda *given, **more: _redacted(factory(*given, **more), clean))
    saved = _divert() if own_process else None
    try:
        yield
    finally:
        lines.finish()
        sys.stdout, sys.stderr = streams
        logging.setLogRecordFactory(factory)
        if saved is not None:
            os.dup2(saved, 1)
            os.close(saved)


def _divert() -> int | None:
    """Let file 1 be file 2; returns what it was, None when one of them is closed."""
    try:
        saved = os.dup(1)
        os.dup2(2, 1)
    except OSError:
        return None
    return saved


def _redacted(record: logging.LogRecord, clean: Clean) -> logging.LogRecord:
    try:
        said = record.getMessage()
    except Exception:
        return record  # the author's own mistake, which logging tells of in its way
    if (without := clean(said)) != said:
        record.msg, record.args = without, None
    if record.exc_info and record.exc_info[0] is not None:
        record.exc_text = clean(logging.Formatter().formatException(record.exc_info))
    return record
