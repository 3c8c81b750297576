"""`agent(...)`: typed work by a configured runner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, overload

from ..core.calls import Call, CallSpec
from ..core.retry import Retry
from ..core.values import TypeCodec, codec_for, plain
from ..errors import AgentFailed
from .requests import check_seconds, part, request_of

T = TypeVar("T")


class _Unset:
    """No mock was given; None is an answer like any other."""


_UNSET = _Unset()


@dataclass(frozen=True)
class AgentOptions:
    """What an executor needs and no fingerprint holds. `timeout` in seconds, None for the runner's own."""

    codec: TypeCodec[Any]
    timeout: float | None
    retry: Retry | None
    mock_output: Any

    @property
    def mocked(self) -> bool:
        return self.mock_output is not _UNSET


@overload
def agent(
    name: str | None = None,
    prompt: str = "",
    *,
    input: Any = None,
    key: str | None = None,
    key_by: object = None,
    model: str | None = None,
    timeout: float | None = None,
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
    timeout: float | None = None,
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
    timeout: float | None = None,
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
    timeout: float | None = None,
    retry: Retry | None = None,
    mock_output: Any = _UNSET,
) -> Call[Any]:
    """Ask an agent for a value of type `returns`.

    `timeout` (seconds) is a real deadline for one attempt. `retry` says how often an answer of the wrong type,
    or none, is asked for again; each attempt is recorded with its usage. `mock_output` answers in the agent's
    stead and is recorded as a mock.
    Raises AgentFailed at the await when no attempt succeeded.
    """
    codec = codec_for(returns)
    check_seconds("agent(timeout=…)", timeout)
    request, refused = request_of(
        lambda: {
            "name": name or "agent",
            "prompt": prompt,
            "input": part("input", plain, input),
            "model": model,
            "returns": codec.reduced_schema,
        }
    )
    return Call(
        CallSpec(
            kind="agent",
            name=name or "agent",
            request=request,
            decode=lambda receipt: codec.from_plain(receipt.output),
            failure=AgentFailed,
            options=AgentOptions(codec, timeout, retry, mock_output),
            key=key,
            key_by=key_by,
            refused=refused,
        )
    )
