"""Living with freezegun, which is no dependency: it puts its own classes in the place of `datetime` and `date`.

An annotation that is looked up while time is frozen names such a class, of which pydantic knows nothing.
Imported before everything that has models, so it imports nothing of ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol


class Freezer(Protocol):
    """What `freeze_time` gives to a test."""

    def move_to(self, moment: datetime, /) -> None: ...


def active_freezer() -> Freezer | None:
    """What moves the time that is frozen now; None when none is."""
    factories = getattr(sys.modules.get("freezegun.api"), "freeze_factories", None)
    return factories[-1] if factories else None


def teach_pydantic() -> None:
    """Let freezegun's classes stand for the real ones in declared types."""
    api = sys.modules.get("freezegun.api")
    if api is None or hasattr(api.FakeDatetime, "__get_pydantic_core_schema__"):
        return
    for fake, real in ((api.FakeDate, api.real_date), (api.FakeDatetime, api.real_datetime)):
        fake.__get_pydantic_core_schema__ = _schema_of(real)


def _schema_of(real: type) -> Callable[[Any, Any], Any]:
    return lambda _source, handler: handler.generate_schema(real)
