"""Where a runner's log goes, and how a line of it looks: for people, or as one JSON object a line.

Lines come from Python's `logging`, with the run and the key they are about (`runner.about`). What workflows and steps
print goes the same way, so that under `--log-json` every line of stderr is JSON.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, NamedTuple

import click

from ..core.plain import escaped_json, plain
from ..core.redaction import Redactor
from ..core.timestamps import render_time
from ..runner.about import About
from .guard import guarded

# A runner keeps at most this much of its past, in bytes: the present file and so many older ones.
FILE_BYTES = 10 << 20
OLDER_FILES = 5
_OURS = "hermes_workflows"
_PRINTED = "print"
_GOES_ON = "\n  | "


class Logging(NamedTuple):
    """`worker` is the runner's name; `file` is where it keeps its log beside stderr, a folder or a file."""

    worker: str
    json: bool = False
    file: Path | None = None


def log_options(command: Callable[..., Any]) -> Callable[..., Any]:
    as_json = click.option("--log-json", is_flag=True, help="One JSON object a line on stderr.")
    file = click.option("--log-file", metavar="FILE|FOLDER/", help="Keep the log there, too; rotated at 10 MB.")
    return as_json(file(command))


@contextmanager
def telling(redactors: Callable[[], list[Redactor]], given: Logging, *, own_process: bool) -> Iterator[None]:
    """While a runner works, what it and its workflows tell goes to stderr, and to its file, without secrets."""
    about = About(given.worker)
    form = _Json() if given.json else _Text()
    # JSON goes past what wraps printed lines; records are redacted when they are made.
    stream = sys.stderr if given.json else None
    shape = (lambda text: _as_records(text, form, about)) if given.json else None
    file = _file(given) if given.file is not None else None
    with guarded(redactors, own_process=own_process, shape=shape):
        handlers = [_handler(logging.StreamHandler(stream), form, about), *([file] if file else [])]
        if file is not None:
            _handler(file, form, about).setLevel(logging.DEBUG)
        with _installed(handlers, calls_too=file is not None or given.json):
            yield


@contextmanager
def _installed(handlers: Sequence[logging.Handler], *, calls_too: bool) -> Iterator[None]:
    """`calls_too`: our own log tells of every call, not only of what people should see pass by."""
    root, ours = logging.getLogger(), logging.getLogger(_OURS)
    before = root.handlers[:], root.level, ours.level
    root.handlers[:] = handlers
    root.setLevel(logging.INFO)
    ours.setLevel(logging.DEBUG if calls_too else logging.NOTSET)
    try:
        yield
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        ours.setLevel(before[2])
        for handler in handlers:
            handler.close()


def _handler(handler: logging.Handler, form: logging.Formatter, about: About) -> logging.Handler:
    handler.setFormatter(form)
    handler.addFilter(about)
    handler.setLevel(logging.DEBUG if isinstance(form, _Json) else logging.INFO)
    return handler


def _file(given: Logging) -> _File:
    assert given.file is not None
    path = given.file / f"{given.worker}.log" if given.file.is_dir() else given.file
    path.parent.mkdir(parents=True, exist_ok=True)
    return _File(path, maxBytes=FILE_BYTES, backupCount=OLDER_FILES, encoding="utf-8", errors="backslashreplace")


class _File(RotatingFileHandler):
    """A log that cannot be written must not stop the work, nor fill stderr: the disk's own trouble is told there."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's name
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)

    def close(self) -> None:
        # What the disk has not taken yet is tried again, and the work is done.
        with suppress(OSError):
            super().close()


class _Text(logging.Formatter):
    """2026-11-29 12:00:00,000 INFO docs-1 draft: started

    A log is read on terminals and line by line: nothing in it is obeyed, and what goes on in another line says so.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(where)s%(message)s")

    def format(self, record: logging.LogRecord) -> str:
        about = " ".join(filter(None, (getattr(record, "run", ""), getattr(record, "key", ""))))
        record.where = f"{about}: " if about else ""
        return plain(super().format(record)).replace("\n", _GOES_ON)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told = {
            "time": render_time(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "logger": record.name,
            **{name: getattr(record, name, "") for name in ("runner", "run", "key")},
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            told["traceback"] = record.exc_text or self.formatException(record.exc_info)
        return escaped_json(json.dumps(told, ensure_ascii=False))


def _as_records(text: str, form: logging.Formatter, about: About) -> str:
    """Printed lines as log lines, about whatever the thread that printed them works on."""
    lines = []
    for line in text.splitlines():
        record = logging.LogRecord(_PRINTED, logging.INFO, "", 0, line.replace("%", "%%"), None, None)
        about.filter(record)
        lines.append(form.format(record))
    return "".join(f"{line}\n" for line in lines)


def chosen_file(text: str | None, start: Path) -> Path | None:
    """What `--log-file` means, seen from the folder `start`; a folder when it ends with a slash."""
    if text is None:
        return None
    path = start / text
    if text.endswith("/"):
        path.mkdir(parents=True, exist_ok=True)
    return path
