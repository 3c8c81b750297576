"""`agent(...)`: typed work by a configured runner."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, TypeVar, overload

from ..core.calls import Call, CallSpec
from ..core.encoding import Plain
from ..core.retry import Retry
from ..core.values import TypeCodec, codec_for, plain
from ..errors import AgentFailed, AgentTimedOut, InvalidInput
from .requests import check_seconds, check_text, part, relative, request_of

T = TypeVar("T")


class _Unset:
    """No mock was given; None is an answer like any other."""


_UNSET = _Unset()


@dataclass(frozen=True)
class Given:
    """What an agent is handed over, and may do. Paths are relative to the workspace."""

    tools: tuple[str, ...] | None = None
    skills: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    workspace_dir: str = "."

    def request(self) -> dict[str, Plain]:
        """Only what was given: a call that says nothing about tools is the question it always was."""
        parts: dict[str, Plain] = {} if self.tools is None else {"tools": list(self.tools)}
        parts |= {"skills": list(self.skills)} if self.skills else {}
        parts |= {"files": list(self.files)} if self.files else {}
        return parts if self.workspace_dir == "." else {**parts, "workspace_dir": self.workspace_dir}


@dataclass(frozen=True)
class AgentOptions:
    """What an executor needs. `timeout` in seconds and `budget` in USD, None for the runner's own."""

    codec: TypeCodec[Any]
    timeout: float | None
    retry: Retry | None
    mock_output: Any
    given: Given
    budget: float | None = None

    @property
    def mocked(self) -> bool:
        return self.mock_output is not _UNSET

    def unmocked(self) -> AgentOptions:
        """The same without its mock, for whoever answers in its place."""
        return replace(self, mock_output=_UNSET)


@overload
def agent(
    name: str | None = None,
    prompt: str = "",
    *,
    input: Any = None,
    key: str | None = None,
    key_by: object = None,
    model: str | None = None,
    tools: Sequence[str] | None = None,
    skills: Sequence[str | PurePath] = (),
    files: Sequence[str | PurePath] = (),
    workspace_dir: str | PurePath = ".",
    timeout: float | None = None,
    budget: float | None = None,
    retry: Retry | None = None,
    mock_output: Any = _UNSET,
) -> Call[dict[str, Any]]: ...
@overload
def agent(
    name: str | None = None,
    prompt: str = "",
    *,
    input: Any = None,
    returns: type[T],
    key: str | None = None,
    key_by: object = None,
    model: str | None = None,
    tools: Sequence[str] | None = None,
    skills: Sequence[str | PurePath] = (),
    files: Sequence[str | PurePath] = (),
    workspace_dir: str | PurePath = ".",
    timeout: float | None = None,
    budget: float | None = None,
    retry: Retry | None = None,
    mock_output: Any = _UNSET,
) -> Call[T]: ...
@overload
def agent(
    name: str | None = None,
    prompt: str = "",
    *,
    input: Any = None,
    returns: Any,
    key: str | None = None,
    key_by: object = None,
    model: str | None = None,
    tools: Sequence[str] | None = None,
    skills: Sequence[str | PurePath] = (),
    files: Sequence[str | PurePath] = (),
    workspace_dir: str | PurePath = ".",
    timeout: float | None = None,
    budget: float | None = None,
    retry: Retry | None = None,
    mock_output: Any = _UNSET,
) -> Call[Any]: ...
def agent(
    name: str | None = None,
    prompt: str = "",
    *,
    input: Any = None,
    returns: Any = dict,
    key: str | None = None,
    key_by: object = None,
    model: str | None = None,
    tools: Sequence[str] | None = None,
    skills: Sequence[str | PurePath] = (),
    files: Sequence[str | PurePath] = (),
    workspace_dir: str | PurePath = ".",
    timeout: float | None = None,
    budget: float | None = None,
    retry: Retry | None = None,
    mock_output: Any = _UNSET,
) -> Call[Any]:
    """Ask an agent for a value of type `returns`.

    `model`, `tools` (names as the agent's program has them, none for `[]`), `skills` (texts put before the prompt),
    `files` (named to the agent) and `workspace_dir` (where it works; all three relative to the workspace) belong to
    the question: another value is another request. The contents of files and skills are hashed when the call starts
    and refused when they hold secrets.
    `timeout` (seconds) is a real deadline for one attempt. `budget` (USD) is a cap on what the agent reports as cost:
    no attempt starts beyond it. `retry` says how many attempts there are in all: an answer of the wrong type is asked
    for again at once, with the reasons; every other failure only with a `retry`, after its pause. Each attempt is
    recorded with its usage. `mock_output` answers in the agent's stead and is recorded as a mock.
    Raises AgentFailed, with all attempts, at the await when none succeeded.
    """
    codec = codec_for(returns)
    check_seconds("agent(timeout=…)", timeout)
    for what, value in (("name", name), ("prompt", prompt), ("model", model)):
        check_text(f"agent({what}=…)", value)
    given = _given(tools, skills, files, workspace_dir)
    request, refused = request_of(
        lambda: {
            "name": name or "agent",
            "prompt": prompt,
            "input": part("input", plain, input),
            "model": model,
            "returns": codec.reduced_schema,
            **given.request(),
        }
    )
    return Call(
        CallSpec(
            kind="agent",
            name=name or "agent",
            request=request,
            decode=lambda receipt: codec.from_plain(receipt.output),
            failure=AgentFailed,
            timed_out=AgentTimedOut,
            options=AgentOptions(codec, timeout, retry, mock_output, given, _usd(budget)),
            key=key,
            key_by=key_by,
            refused=refused,
        )
    )


def _given(
    tools: Sequence[str] | None,
    skills: Sequence[str | PurePath],
    files: Sequence[str | PurePath],
    folder: str | PurePath,
) -> Given:
    allowed = None if tools is None else tuple(_texts("tools", tools))
    return Given(allowed, _paths("skills", skills), _paths("files", files), relative("agent()", folder))


def _paths(argument: str, values: Sequence[str | PurePath]) -> tuple[str, ...]:
    """Paths as they stand in a request."""
    return tuple(relative("agent()", path) for path in _texts(argument, values))


def _texts(argument: str, values: Sequence[Any]) -> list[str]:
    # A text is a sequence of texts too, and never what is meant.
    if isinstance(values, str) or not all(isinstance(value, str | PurePath) and value for value in values):
        raise InvalidInput(f"agent({argument}=…) takes a list of texts", hint=f"agent({argument}=['…'])")
    return [str(value) for value in values]


def _usd(amount: Any) -> float | None:
    if amount is None:
        return None
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 < amount < math.inf:
        raise InvalidInput(f"agent(budget=…): {amount!r} is no amount of USD", hint="more than 0")
    return float(amount)
