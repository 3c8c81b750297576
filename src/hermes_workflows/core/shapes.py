"""What operators' receipts say, and a run of its parent: one model a status. Imported when one is met (`contents`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError


class _Told(BaseModel):
    # Later versions may say more.
    model_config = ConfigDict(extra="allow", strict=True)


class _Asked(_Told):
    """Why an operator wants a run to end, to wait or to go on."""

    reason: str | None = None
    now: bool | None = None
    superseded_by: str | None = None


class _Kept(_Told):
    key: str
    kind: str
    recorded: str
    present: str


class _Accepted(_Told):
    accepted: list[_Kept]
    why: str | None = None


class _Resolved(_Told):
    key: str
    decision: str
    why: str | None = None


class _Parent(_Told):
    run: str
    key: str


_SHAPES: Mapping[str, TypeAdapter[Any]] = {
    "accept": TypeAdapter(_Accepted),
    "resolve": TypeAdapter(_Resolved),
    **dict.fromkeys(("cancel", "pause", "resume"), TypeAdapter(_Asked | None)),
    "parent": TypeAdapter(_Parent),
}


def mistake(shape: str, value: Any) -> tuple[list[str], str] | None:
    """The first place at which a value is not of a shape, and why."""
    try:
        _SHAPES[shape].validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        return [str(part) for part in first["loc"] if not str(part).startswith("_")], first["msg"]
    return None
