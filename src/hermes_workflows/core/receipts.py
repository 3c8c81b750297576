"""Receipts: what one JSON file in a run's folder says (FORMAT §4), one model a kind.

Everything that may differ between two equal executions stands in `execution`; nothing else does.
A receipt in memory is *decoded* (no `$lines`, no `$blob`); `draft()` makes the stored form and checks its size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer, TypeAdapter, ValidationError

from ..errors import IntegrityError, InvalidInput, NewerSchema, UnstorableValue
from . import layout
from .contents import fault_of
from .encoding import DEFAULT_LIMITS, Limits, decode, dumps, encode, parse
from .timestamps import render_time

SCHEMA: Final = "hermes.receipt/1"

# Times are strings in JSON, with milliseconds and Z, so that they sort as text and read the same everywhere.
# Whoever reads one may compare it and move it to UTC: each has its zone, and is in the calendar there as well.
Time = Annotated[
    AwareDatetime,
    Field(ge=datetime(1970, 1, 1, tzinfo=UTC), le=datetime.max.replace(tzinfo=UTC)),
    PlainSerializer(render_time, return_type=str),
]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Usage(_Model):
    """What a call consumed; sums over attempts, calls and runs."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            # Ten decimals: sums must not depend on the order of addition in the shown digits.
            cost_usd=round(self.cost_usd + other.cost_usd, 10),
        )


class Provenance(_Model):
    """Who answered, through what, and how that was verified (SEMANTICS §8)."""

    kind: Literal["human", "agent", "manual", "test", "policy"]
    by: str
    channel: str
    message_id: str | None = None
    verified: Literal["os-user", "session-token", "forge-login", "signature", "none"] = "none"
    adopted_from: str | None = None
    # Where exactly it was given, in the channel's own words: a review's repository, number and URL, a commit's id.
    # Left out when there is none, so that receipts read as they did before there was such a field.
    origin: dict[str, str] | None = Field(default=None, exclude_if=lambda origin: origin is None)

    def is_same_message(self, other: Provenance) -> bool:
        """Whether both come from one message, which its channel has sent twice."""
        return self.message_id is not None and (self.channel, self.message_id) == (other.channel, other.message_id)


class Execution(BaseModel):
    """The part of a receipt that two equal executions need not share.

    `seq` is the order of delivery; `requested_after` the seq whose decision requested the call.
    Fields of later versions are kept when read, hence `extra="allow"`: they can never change a decision.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    seq: int = 0
    requested_after: int | None = None
    attempt: int | None = None
    operation_id: str | None = None
    runner: str | None = None
    started_at: Time | None = None
    finished_at: Time | None = None
    duration_seconds: float | None = None
    code: str | None = None
    usage: Usage | None = None
    redactions: dict[str, int] | None = None
    mock: bool | None = None
    transcript: dict[str, Any] | None = None
    # Who was asked, and what with: an agent's preset, the model that answered, its program's name for the
    # conversation, and the sha256 of each file it was given.
    preset: str | None = None
    model: str | None = None
    session: str | None = None
    files: dict[str, str] | None = None
    provenance: Provenance | None = None
    due_at: Time | None = None
    expires_at: Time | None = None
    evidence: dict[str, dict[str, Any]] | None = None
    tip: str | None = None
    # The run whose result this is: nothing was executed for it here.
    adopted_from: str | None = None
    # An at-most-once intent: the process that may still be executing the step, whatever became of SQLite.
    process: str | None = None
    # The id of a child run: it begins with its parent's, so two equal runs never share it.
    child: str | None = None
    # run.json only
    workspace: str | None = None
    deadline_at: Time | None = None
    # The git commit that the project's files were checked out from.
    commit: str | None = None
    seed: str | None = None
    python: str | None = None
    versions: dict[str, str] | None = None
    source: dict[str, str] | None = None
    parent: dict[str, str] | None = None


class Failure(_Model):
    """Why something failed: the type's name for programs, the message for people."""

    type: str
    message: str
    details: dict[str, Any] | None = None


class Receipt(_Model):
    """What every kind has in common. `path` is where it lies; it is not part of the JSON."""

    schema_: Literal["hermes.receipt/1"] = Field(default=SCHEMA, alias="schema")
    kind: str
    key: str
    status: str
    fingerprint: str | None = None
    request: Any = None
    output: Any = None
    error: Failure | None = None
    execution: Execution = Execution()
    path: str = Field(exclude=True)

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=True, validate_by_alias=True)

    @property
    def seq(self) -> int:
        return self.execution.seq

    @property
    def role(self) -> layout.Role:
        place = layout.place(self.path)
        assert place is not None  # a receipt is only made for a path of the table
        return place.role

    def at(self, seq: int) -> Receipt:
        """The same receipt with its place in the order of delivery."""
        return self.model_copy(update={"execution": self.execution.model_copy(update={"seq": seq})})


class RunRequest(_Model):
    workflow: str
    input: Any = None


class RunStarted(Receipt):
    kind: Literal["run"] = "run"
    status: Literal["started"] = "started"
    request: RunRequest


class RunEnded(Receipt):
    kind: Literal["result"] = "result"
    status: Literal["completed", "failed", "cancelled"]


class CallReceipt(Receipt):
    """A result, an attempt, an intent or a late result of work that a runner executes."""

    kind: Literal["agent", "bash", "step", "child", "artifact"]
    # `unknown`: an at-most-once step that was given up after its intent; its effect may have happened.
    status: Literal["completed", "failed", "cancelled", "started", "unknown"]
    fingerprint: str
    request: dict[str, Any]


class TimerRequest(_Model):
    seconds: float | None = None
    until: str | None = None


class TimerReceipt(Receipt):
    kind: Literal["timer"] = "timer"
    status: Literal["started", "completed"]
    fingerprint: str
    request: TimerRequest


class Evidence(_Model):
    """What is shown beside a question: a value, or the text of a file, which `execution.evidence` holds as it was."""

    title: str
    value: Any = None
    path: str | None = None


class ReviewRequest(_Model):
    """The question: `returns` is the full JSON Schema, which forms are made of."""

    prompt: str
    input: Any = None
    evidence: list[Evidence] = []
    returns: dict[str, Any]
    assignee: str | None = None
    expires_seconds: float | None = None
    on_expiry: Any = "raise"
    remind_seconds: float | None = None


class ReviewReceipt(Receipt):
    kind: Literal["review"] = "review"
    status: Literal["requested", "completed", "expired", "withdrawn"]
    fingerprint: str
    request: ReviewRequest | None = None


class SignalRequest(_Model):
    """What a wait takes: `returns` is the schema of the payload, reduced to what validates."""

    name: str
    returns: dict[str, Any]


class SignalReceipt(Receipt):
    """A signal that was received, or a wait for one: that it began, ran over its time, or was given up."""

    kind: Literal["signal"] = "signal"
    status: Literal["received", "started", "failed", "cancelled"]
    request: SignalRequest | None = None


class ControlReceipt(Receipt):
    kind: Literal["control"] = "control"
    status: Literal["cancel", "pause", "resume", "accept", "resolve"]


AnyReceipt = RunStarted | RunEnded | CallReceipt | TimerReceipt | ReviewReceipt | SignalReceipt | ControlReceipt

_BY_KIND: Mapping[str, type[Receipt]] = {
    "run": RunStarted,
    "result": RunEnded,
    "agent": CallReceipt,
    "bash": CallReceipt,
    "step": CallReceipt,
    "child": CallReceipt,
    "artifact": CallReceipt,
    "timer": TimerReceipt,
    "review": ReviewReceipt,
    "signal": SignalReceipt,
    "control": ControlReceipt,
}


def json_schemas() -> dict[str, Any]:
    """The published JSON Schema of decoded receipts, all kinds."""
    adapter: TypeAdapter[Any] = TypeAdapter(AnyReceipt)
    return adapter.json_schema()


def load(path: str, data: bytes, fetch: Callable[[str], bytes]) -> Receipt:
    """Read a receipt as it lies in git.

    `fetch` returns the content of an artifact by its sha256.
    Raises NewerSchema for a format this program does not know, IntegrityError for anything that is no receipt.
    """
    try:
        stored = parse(data)
    except InvalidInput as error:
        # Not the caller's input: what lies there is no JSON of ours.
        raise IntegrityError(f"{path}: {error.message}") from error
    if not isinstance(stored, dict):
        raise IntegrityError(f"{path}: a receipt is a JSON object")
    _check_schema(path, stored.get("schema"))
    model = _BY_KIND.get(str(stored.get("kind")))
    if model is None:
        raise IntegrityError(f"{path}: unknown kind {stored.get('kind')!r}")
    try:
        told: Any = decode(stored, fetch) if _has_forms(data) else stored
        told["path"] = path
        # `model_validate` without its options, which take a tenth of the time to be left out.
        receipt: Receipt = model.__pydantic_validator__.validate_python(told)
    except ValidationError as error:
        first = error.errors()[0]
        where = "/".join(str(part) for part in first["loc"])
        raise IntegrityError(f"{path}: not a valid {stored['kind']} receipt: {where}: {first['msg']}") from None
    if fault := fault_of(receipt):
        raise IntegrityError(f"{path}: {fault}")
    return receipt


def _has_forms(data: bytes) -> bool:
    """Whether anything may stand in another form than its own: all such forms are keys with a `$`, however written.

    Single bytes are looked for at the speed of memory; a dollar in a price costs no more than the longer way.
    """
    return b"$" in data or b"\\" in data


def _check_schema(path: str, schema: object) -> None:
    if schema == SCHEMA:
        return
    if isinstance(schema, str) and schema.startswith("hermes.receipt/"):
        raise NewerSchema(
            f"{path} was written as {schema}; this program knows {SCHEMA}",
            hint="upgrade hermes-workflows to read this run",
        )
    raise IntegrityError(f"{path}: schema {schema!r} is not {SCHEMA}")


@dataclass(frozen=True)
class Author:
    """Who a commit's author line names; never an identity of this machine's git."""

    name: str
    email: str = ""


@dataclass(frozen=True)
class Draft:
    """A receipt on its way into the store: stored form, blobs, and what its commit says."""

    receipt: Receipt
    stored: Mapping[str, Any]
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    author: Author = Author("workflow")

    @property
    def path(self) -> str:
        return self.receipt.path

    def render(self, seq: int) -> bytes:
        """The bytes of the file; seq is known only inside the compare-and-swap that appends it."""
        return dumps({**self.stored, "execution": {**self.stored["execution"], "seq": seq}}, encoded=True)


def draft(receipt: Receipt, author: Author, limits: Limits = DEFAULT_LIMITS) -> Draft:
    """Encode a receipt for the store.

    Raises UnstorableValue, with the path inside the value, when it holds what no receipt may hold
    (FORMAT §4 "Refused") or is larger than `limits`.
    """
    blobs: dict[str, bytes] = {}
    value = receipt.model_dump(by_alias=True)
    value["execution"] = {name: part for name, part in value["execution"].items() if part is not None}
    stored = encode(value, blobs, limits=limits)
    assert isinstance(stored, dict)
    made = Draft(receipt, stored, blobs, author)
    if (size := len(made.render(10**9))) > limits.receipt_bytes:
        raise UnstorableValue(
            "",
            f"the receipt has {size:,} bytes, more than {limits.receipt_bytes:,}",
            hint="write large results to a file and return its path",
        )
    return made


def time_of(receipt: Receipt) -> datetime | None:
    """The instant a receipt carries into the run's own clock (SEMANTICS §7)."""
    execution = receipt.execution
    return execution.finished_at or execution.due_at or execution.started_at
