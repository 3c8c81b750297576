"""Durable workflows for agents, with receipts in git. The front door is exactly seven names.

They are loaded when first asked for: the command line imports this package on every start, and `status` must not
pay for pydantic and asyncio.
"""

from __future__ import annotations

# As type checkers know it; `typing` takes as long to import as all that the first process of a `replay` does.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from .authoring import agent, ask, bash, goal, parallel, pipeline, workflow

__all__ = ["agent", "ask", "bash", "goal", "parallel", "pipeline", "workflow"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import authoring  # noqa: PLC0415  # the point of this function

    # Submodules of `authoring` have the same names as functions, so the package's attribute is asked, not imported.
    value = globals()[name] = getattr(authoring, name)
    return value


def __dir__() -> list[str]:
    return sorted([*(name for name in globals() if name.startswith("__")), *__all__])
