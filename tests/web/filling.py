"""What a browser sends for a form, field by field, as HTML says."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_workflows.web.forms import Field, FormView


def sent(form: FormView, press: str | None = None) -> dict[str, list[str]]:
    """The form as it stands; `press` is the value of the button that sends it."""
    pairs = [pair for field in form.fields for pair in _sent(field)]
    if form.actions is not None:
        chosen = (choice.value for choice in form.actions.choices if choice.chosen)
        value = press if press is not None else next(chosen, None)
        pairs += [(form.actions.name, value)] if value is not None else []
    return {name: [value] for name, value in pairs}


def _sent(field: Field) -> Iterator[tuple[str, str]]:
    if field.kind == "list":
        yield f"n{field.pointer}", str(len(field.parts))
    if field.kind in ("group", "list"):
        if field.kind == "group" and not field.required and field.given:
            yield f"has{field.pointer}", "1"
        for part in field.parts:
            yield from _sent(part)
    elif field.kind == "checkbox":
        yield from [(field.name, "true")] if field.given else []
    elif field.kind == "choice":
        yield from [(field.name, choice.value) for choice in field.choices if choice.chosen]
    elif field.kind == "select":
        yield field.name, next((choice.value for choice in field.choices if choice.chosen), "")
    elif field.kind != "fixed":
        yield field.name, field.text.replace("\n", "\r\n")
