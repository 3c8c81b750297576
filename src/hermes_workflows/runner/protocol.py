"""What goes in and out of an agent's command: `hermes.agent-request/1` and `hermes.agent-response/1`.

The request is strict, since we write it. The response is read with goodwill wherever goodwill cannot change the answer:
unknown fields and unreadable bookkeeping are passed over.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ..core.contents import MOST_USED
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
    `tools` are the only ones the agent may use, null for no limit; `files` are those its task is about, as seen from
    the folder it starts in; `budget_usd` is what it may still spend.
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
    tools: tuple[str, ...] | None = None
    files: tuple[str, ...] = ()
    budget_usd: float | None = None
    previous: Previous | None = None


class AgentUsage(BaseModel):
    """What an attempt consumed, as far as the agent says it."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    input_tokens: int | None = Field(default=None, ge=0, lt=MOST_USED)
    output_tokens: int | None = Field(default=None, ge=0, lt=MOST_USED)
    cost_usd: float | None = Field(default=None, ge=0, lt=MOST_USED)

    def recorded(self) -> Usage:
        """The same as it stands in receipts, where nothing said is nothing used."""
        return Usage(
            input_tokens=self.input_tokens or 0,
            output_tokens=self.output_tokens or 0,
            cost_usd=self.cost_usd or 0.0,
        )


class AgentResponse(BaseModel):
    """What an agent may print instead of the bare value. `error` set means that it failed, whatever else it says.

    `model` is the one that answered, `session` the name under which the agent's program keeps the conversation.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    schema_: Literal["hermes.agent-response/1"] = Field(default="hermes.agent-response/1", alias="schema")
    output: Any = None
    usage: AgentUsage | None = None
    error: str | None = None
    model: str | None = None
    session: str | None = None

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

    @field_validator("model", "session", mode="before")
    @classmethod
    def _name_if_readable(cls, value: object) -> str | None:
        return value if isinstance(value, str) else None


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
    """What Claude Code prints, and others like it: prose in `result`, typed data beside it, failures with status 0."""
    said = value.get("result")
    structured = value.get("structured_output")
    fields: dict[str, Any] = {
        "usage": _result_usage(value),
        "error": (said or _reasons(value)) if value["is_error"] else None,
        "session": value.get("session_id"),
        "model": "+".join(_models(value)) or None,
    }
    if structured is not None or said:
        fields["output"] = said if structured is None else structured
    return AgentResponse.model_validate(fields)


def _reasons(value: dict[str, Any]) -> str:
    errors = value.get("errors")
    said = "; ".join(str(error) for error in errors) if isinstance(errors, list) else ""
    return said or f"it says that it failed: {value['subtype']}"


def _models(value: dict[str, Any]) -> dict[str, Any]:
    models = value.get("modelUsage")
    return {name: used for name, used in models.items() if isinstance(used, dict)} if isinstance(models, dict) else {}


def _result_usage(value: dict[str, Any]) -> dict[str, Any]:
    """Tokens by model count everything; the sum beside them is empty when the session ended in an error."""
    cost, by_model = value.get("total_cost_usd"), list(_models(value).values())
    if by_model:
        read = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
        tokens = [_sum(by_model, *read), _sum(by_model, "outputTokens")]
    else:
        used = value.get("usage")
        known = [used] if isinstance(used, dict) else []
        read = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        tokens = [_sum(known, *read), _sum(known, "output_tokens")]
    return {"input_tokens": tokens[0], "output_tokens": tokens[1], "cost_usd": cost}


def _sum(parts: list[dict[str, Any]], *names: str) -> int:
    numbers = [part.get(name) for part in parts for name in names]
    return sum(number for number in numbers if isinstance(number, int) and not isinstance(number, bool))
