"""What goes in and out of an agent's command: `hermes.agent-request/1` and `hermes.agent-response/1`.

The request is strict, since we write it. The response is read with goodwill wherever goodwill cannot change the answer:
unknown fields and unreadable bookkeeping are passed over.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ..core.receipts import Usage

RESPONSE_SCHEMA = "hermes.agent-response/1"


class Previous(BaseModel):
    """The refused answer to the same request, and why it was refused."""

    model_config = ConfigDict(frozen=True)

    output: str
    errors: tuple[str, ...]


class AgentRequest(BaseModel):
    """What the agent reads. `returns` is the JSON Schema of the answer; `attempt` counts from 1.

    `operation_id` is the same for every execution of one call, so that a service can recognise a repeat.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: Literal["hermes.agent-request/1"] = Field(default="hermes.agent-request/1", alias="schema")
    run: str
    key: str
    operation_id: str
    attempt: int = 1
    name: str
    prompt: str
    input: Any = None
    model: str | None = None
    returns: Any = None
    previous: Previous | None = None


class AgentUsage(BaseModel):
    """What an attempt consumed, as far as the agent says it."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    cost_usd: float | None = Field(default=None, ge=0)

    def recorded(self) -> Usage:
        """The same as it stands in receipts, where nothing said is nothing used."""
        return Usage(
            input_tokens=self.input_tokens or 0,
            output_tokens=self.output_tokens or 0,
            cost_usd=self.cost_usd or 0.0,
        )


class AgentResponse(BaseModel):
    """What an agent may print instead of the bare value. `error` set means that it failed, whatever else it says."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    schema_: Literal["hermes.agent-response/1"] = Field(default="hermes.agent-response/1", alias="schema")
    output: Any = None
    usage: AgentUsage | None = None
    error: str | None = None

    @property
    def has_output(self) -> bool:
        """Whether there is an output at all; `null` is one."""
        return "output" in self.model_fields_set

    @field_validator("usage", mode="before")
    @classmethod
    def _usage_if_readable(cls, value: object) -> AgentUsage | None:
        try:
            return None if value is None else AgentUsage.model_validate(value)
        except ValidationError:
            return None

    @field_validator("error", mode="before")
    @classmethod
    def _error_as_text(cls, value: object) -> str | None:
        if not value:
            return None
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def response_in(value: object) -> AgentResponse | None:
    """The response that a JSON value is; None if it is something else."""
    if not isinstance(value, dict):
        return None
    if value.get("schema") == RESPONSE_SCHEMA:
        return AgentResponse.model_validate(value)
    if value.get("type") == "result" and {"subtype", "is_error"} <= value.keys():
        return _result_message(value)
    return None


def _result_message(value: dict[str, Any]) -> AgentResponse:
    """What some agents print by themselves: prose in `result`, typed data beside it, failures with exit status 0."""
    said = value.get("result")
    structured = value.get("structured_output")
    usage = value.get("usage")
    fields: dict[str, Any] = {
        "usage": {**(usage if isinstance(usage, dict) else {}), "cost_usd": value.get("total_cost_usd")},
        "error": (said or "it says that it failed") if value["is_error"] else None,
    }
    if structured is not None or said is not None:
        fields["output"] = said if structured is None else structured
    return AgentResponse.model_validate(fields)
