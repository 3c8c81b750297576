"""For authors of workflows: run them in memory, script what is outside, and hold them to deciding the same again.

    run = run_workflow(launch, Topic("docs"), agents={"writer": Draft("…")}, answers={"review": Review("approve")})
    assert run.result == "published"

Everything but agents, people and the passing of time is the real thing: the same body, the same runner, the same
receipts. Loaded when first asked for: pytest imports this package in every session, also where no workflow is tested.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .frozen_time import teach_pydantic

if TYPE_CHECKING:
    from ..runner.protocol import AgentRequest, AgentResponse
    from .clocks import TestClock
    from .failures import ReplayMismatch, ReplayWarning, TookTooLong, Unscripted
    from .recorded import assert_replays
    from .results import RunResult
    from .running import run_workflow
    from .scripts import CommandRequest, Question, Wait, later

__all__ = [
    "AgentRequest",
    "AgentResponse",
    "CommandRequest",
    "Question",
    "ReplayMismatch",
    "ReplayWarning",
    "RunResult",
    "TestClock",
    "TookTooLong",
    "Unscripted",
    "Wait",
    "assert_replays",
    "later",
    "run_workflow",
]

_MODULES = {
    "AgentRequest": "..runner.protocol",
    "AgentResponse": "..runner.protocol",
    "CommandRequest": ".scripts",
    "Question": ".scripts",
    "ReplayMismatch": ".failures",
    "ReplayWarning": ".failures",
    "RunResult": ".results",
    "TestClock": ".clocks",
    "TookTooLong": ".failures",
    "Unscripted": ".failures",
    "Wait": ".scripts",
    "assert_replays": ".recorded",
    "later": ".scripts",
    "run_workflow": ".running",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    teach_pydantic()
    value = globals()[name] = getattr(import_module(_MODULES[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
