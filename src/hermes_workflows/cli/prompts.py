"""Asking a person for an answer, field by field, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..errors import InvalidInput
from ..review.forms import Field, Form, read, shown
from .output import readable

if TYPE_CHECKING:
    from ..core.encoding import Plain


def ask_for(form: Form) -> Plain:
    """The answer a person types. Raises click.Abort when they press Ctrl-C or end the input."""
    values: dict[str, Plain] = {}
    for field in form.fields:
        given, value = _ask(field)
        if given:
            values[field.name] = value
    return form.assemble(values)


def _ask(field: Field) -> tuple[bool, Plain]:
    """Whether something was given for the field, and what; an optional one may be left out."""
    if field.about:
        click.echo(readable(field.about), err=True)
    for number, choice in enumerate(field.choices, 1):
        click.echo(readable(f"  {number}. {shown(choice)}"), err=True)
    label = (field.name or "answer") + ("" if field.required else " (may be left out)")
    while True:
        text = click.prompt(readable(label), default="", show_default=False, err=True)
        if not text and not field.required:
            return False, None
        if not text:
            # The first answer wins for ever: a key pressed too early must not be one.
            click.echo("  an answer is needed", err=True)
            continue
        try:
            return True, read(field, text)
        except InvalidInput as error:
            click.echo(readable(f"  {error.message}"), err=True)
