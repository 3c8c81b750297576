"""The prompt as text: for programs that read no JSON of ours.

Task, input, files and the form of the answer, in this order; in a repeated request the reasons against the last
answer stand in the place of the form, which they repeat.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from ..protocol import AgentRequest, Previous

_TEXT = {"type": "string"}


def render(request: AgentRequest, task: str) -> str:
    """Everything an agent must know, as one text. `task` is the author's prompt, without the reasons of a repair."""
    parts = [task.rstrip("\n")]
    if request.input is not None:
        parts.append(f"Input (JSON):\n{as_json(request.input, indent=2)}")
    if request.files:
        names = "\n".join(f"- {name}" for name in request.files)
        parts.append(f"Files, as seen from the current folder:\n{names}")
    parts.append(repair(request.returns, request.previous) if request.previous else _form(request.returns))
    return "\n\n".join(part for part in parts if part) + "\n"


def repair(returns: Any, previous: Previous) -> str:
    """Why the last answer was refused, and what to answer instead."""
    reasons = "\n".join(f"{number}. {reason}" for number, reason in enumerate(previous.errors, 1))
    return (
        f"Your previous answer was refused:\n{reasons}\n\n"
        f"It was:\n{previous.output}\n\n"
        "Answer again, with one JSON value and nothing else. It must match this JSON Schema:\n"
        f"{json.dumps(returns, ensure_ascii=False)}\n"
    )


def with_skills(prompt: str, skills: Sequence[tuple[str, str]]) -> str:
    """The prompt after the texts of the skills: (path, text) each."""
    if not skills:
        return prompt
    texts = "\n\n".join(f'<skill path="{path}">\n{text.strip()}\n</skill>' for path, text in skills)
    return f"Follow these instructions wherever they apply:\n\n{texts}\n\n{prompt}"


def as_json(value: Any, indent: int | None = None) -> str:
    """Plain values as JSON; bytes, which JSON has not, as base64."""
    return json.dumps(value, ensure_ascii=False, default=_bytes, indent=indent)


def _form(returns: Any) -> str:
    if returns is None or {key: value for key, value in returns.items() if key != "title"} == _TEXT:
        return ""
    return (
        "Answer with one JSON value and nothing else. It must match this JSON Schema:\n"
        f"{json.dumps(returns, ensure_ascii=False)}"
    )


def _bytes(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} is no JSON")
