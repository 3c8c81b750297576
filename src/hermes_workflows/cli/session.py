"""One call of the program, and the options that every command has. What `--help` needs, and no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from ..clock import SystemClock

if TYPE_CHECKING:
    from ..core.redaction import Redactor
    from .output import Output


class Session:
    """What one call of the program has: its arguments, its environment, its way of talking.

    Only a process of our own may be replaced by another one (hashseed.py); a caller's may not.
    """

    def __init__(
        self, arguments: list[str], environment: Mapping[str, str], output: Output, own_process: bool = False
    ) -> None:
        self.arguments = arguments
        self.environment = environment
        self.output = output
        self.own_process = own_process
        self.clock = SystemClock()
        # Each knows more than the one before: what the registry names, and what workflows have named.
        self.redactors: list[Callable[[], Redactor]] = []

    def clean(self, text: str) -> str:
        """`text` without the secrets that are known by now."""
        from ..core.redaction import Redactor

        known = self.redactors[-1]() if self.redactors else Redactor({}, self.environment)
        return known.text(text)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--json` and `--debug`; a command that uses `--json` for something else takes `debug_option` alone."""
    return click.option(
        "--json", is_flag=True, expose_value=False, is_eager=True, callback=_json, help="One JSON document, also here."
    )(debug_option(command))


def debug_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--debug", is_flag=True, expose_value=False, is_eager=True, callback=_debug, help="Show tracebacks."
    )(command)


def _json(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    session: Session = context.obj
    session.output.json = session.output.json or value


def _debug(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    session: Session = context.obj
    session.output.debug = session.output.debug or value
