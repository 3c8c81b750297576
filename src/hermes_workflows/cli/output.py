"""What a command says: data on stdout, talk on stderr; JSON when piped or asked for, text on a terminal.

Text of users and agents reaches a terminal only through `readable`, so it cannot move the cursor or forge a line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..core.plain import plain
from ..errors import InvalidInput
from .writing import as_json, hanging

if TYPE_CHECKING:
    from rich.table import Table

# Characters. A cell that is longer and has spaces may be wrapped, to columns of no less.
_SENTENCE = 24


class Output:
    """How this call of the program talks. `json` and `debug` are set by options while the line is parsed."""

    def __init__(self, json: bool = False, debug: bool = False) -> None:
        self.json = json
        self.debug = debug
        # Takes the secrets out of what an error repeats of arguments and files: logs of CI keep what we say.
        self.clean: Callable[[str], str] = str

    def data(self, document: Any, text: Callable[[], str]) -> None:
        """The one document of a command; `text` makes what a person reads instead."""
        try:
            click.echo(readable(text()) if not self.json else as_json(document))
        except BrokenPipeError:
            # Whoever reads us has seen enough; click itself would call that a failure.
            silence()
            raise click.exceptions.Exit(0) from None

    def raw(self, data: bytes, name: str) -> None:
        """A file, byte for byte; on a terminal only if it is text, and without what a terminal would obey."""
        try:
            click.echo(readable(data.decode()) if sys.stdout.isatty() else data, nl=False)
        except UnicodeDecodeError:
            raise InvalidInput(f"{name} is no text", hint="pass --output FILE, or redirect it") from None
        except BrokenPipeError:
            silence()
            raise click.exceptions.Exit(0) from None

    def talk(self, message: str) -> None:
        """Something said beside the data: progress, a warning."""
        click.echo(readable(message), err=True)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], document: Any, empty: str) -> None:
        """Rows for a terminal, the document for a program."""
        if self.json or not rows:
            self.data(document, lambda: empty)
            return
        from rich.console import Console

        table, least = tabled(columns, rows)
        console = Console(file=sys.stdout)
        # Wider than the terminal rather than with a name cut off, which nobody could copy: it wraps by itself.
        console.width = max(console.width, least)
        console.print(table)

    def fail(self, code: str, message: str, hint: str | None, details: Mapping[str, Any] | None = None) -> None:
        """An error as a program or a person reads it; stdout stays data."""
        message, hint = self.clean(message), self.clean(hint) if hint else hint
        if self.json:
            error = {"code": code, "message": message, "hint": hint} | dict(details or {})
            click.echo(as_json({"error": error}), err=True)
            return
        click.echo(readable(f"error: {hanging(message)}"), err=True)
        if hint:
            click.echo(readable(f"  {hanging(hint)}"), err=True)


def tabled(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[Table, int]:
    """A table for a terminal, and the least width at which no name, time or number in it is broken.

    Only columns of sentences may be wrapped.
    """
    from rich.table import Table
    from rich.text import Text

    table, least = Table(box=None, header_style="bold", pad_edge=False), 0
    for place, name in enumerate(columns):
        cells = [name, *(row[place] for row in rows)]
        wraps = any(len(cell) > _SENTENCE and " " in cell for cell in cells)
        table.add_column(name, no_wrap=not wraps, overflow="fold", min_width=_SENTENCE if wraps else None)
        least += 2 + (_SENTENCE if wraps else max(map(len, cells)))
    for row in rows:
        table.add_row(*(Text(readable(cell)) for cell in row))
    return table, least


def silence() -> None:
    """Write nothing more: Python would complain about the closed pipe when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def readable(text: str) -> str:
    """`text` without what a terminal would obey."""
    return plain(text)
