"""What happened in a run, told in lines and in calls: what `log`, `show` and a run's README are made of.

A `Line` is one receipt. A `Ran` is one call from all of its receipts: what was asked, tried and answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from . import layout
from .adoption import with_origin
from .layout import Role
from .names import clean_key
from .receipts import Execution, Receipt
from .said import Text, texts_of, transcript_of
from .timestamps import render_time
from .usages import Sum, added

OPEN = "open"
"""The status of a call that has no result yet."""

# Families of receipts that belong to no call: the run's own, and what operators did to it.
_NO_CALL = frozenset({"run", "end", "control", "cancel", "readme", "artifact", "source"})
# Calls whose texts are drafts; what a command printed is a transcript, and a question shows its own.
_DRAFTING = frozenset({"agent", "step", "child"})
# Characters of a stream that are kept of a call: the whole of it is in the receipt.
_TRANSCRIPT = 6_000


@dataclass(frozen=True)
class Line:
    """One receipt in a list: when it was made, who made it, what it says, how long that took and what it cost.

    `what` is the name of the agent, command, workflow or signal; `when` is a time as text, `seconds` a duration.
    """

    seq: int
    path: str
    key: str
    kind: str
    status: str
    what: str
    who: str
    when: str | None
    seconds: float | None
    usage: Sum | None
    error: str | None
    exit_code: int = 0
    mock: bool = False


@dataclass(frozen=True)
class Ran:
    """One call. `after` is the seq whose decision asked for it, `seq` that of its newest receipt.

    `exit_code` is that of a command; `mock` says that the answer stood in the code and no agent gave it.
    `texts` are what its output holds of more than one line: drafts. `child` is the id of the run it started.
    """

    key: str
    kind: str
    name: str = ""
    status: str = OPEN
    seq: int = 0
    after: int | None = None
    since: datetime | None = None
    seconds: float | None = None
    usage: Sum = field(default_factory=dict)
    attempts: int = 0
    child: str | None = None
    error: str | None = None
    exit_code: int = 0
    mock: bool = False
    texts: tuple[Text, ...] = ()
    transcript: tuple[Text, ...] = ()

    @property
    def is_open(self) -> bool:
        return self.status == OPEN


# What is known of a call that nothing is known of.
_NOTHING = vars(Ran("", ""))


@dataclass(frozen=True)
class Branch:
    """A scope: its own calls and the scopes below it, in the order in which they first appear."""

    name: str
    parts: Sequence[Ran | Branch]


def lines_of(receipts: Sequence[Receipt]) -> list[Line]:
    """A line for each of them; of adopted ones, whoever answered did so in the run that they are from."""
    return [_line(receipt) for receipt in with_origin(receipts)]


class Outline:
    """The calls of a run, grown receipt by receipt in seq order.

    With `most`, only so many are kept, the first ones and the newest; `left_out` counts the others.
    """

    def __init__(self, receipts: Iterable[Receipt] = (), most: int | None = None) -> None:
        self._most = most
        self._calls: dict[str, Ran] = {}
        self._seen: set[str] = set()
        self.add(receipts)

    @property
    def calls(self) -> list[Ran]:
        return list(self._calls.values())

    @property
    def left_out(self) -> int:
        return len(self._seen) - len(self._calls)

    def add(self, receipts: Iterable[Receipt]) -> None:
        for receipt in receipts:
            slot = self._slot(receipt)
            if slot is not None and (slot in self._calls or slot not in self._seen):
                self._seen.add(slot)
                self._calls[slot] = grown(self._calls.get(slot), receipt)
                self._forget()

    def with_(self, receipts: Iterable[Receipt]) -> Outline:
        """A copy with what is not recorded yet."""
        copy = Outline(most=self._most)
        copy._calls, copy._seen = dict(self._calls), set(self._seen)
        copy.add(receipts)
        return copy

    def _slot(self, receipt: Receipt) -> str | None:
        """What tells the call of a receipt from all others; None for a receipt that belongs to none."""
        place = layout.place(receipt.path)
        if place is None or place.family in _NO_CALL:
            return None
        if place.family != "signal":
            return receipt.key
        # It ends the oldest wait for its name, as in the body; one that nobody waits for yet stands for itself.
        waits = (slot for slot, ran in self._calls.items() if ran.is_open and ran.kind == "signal")
        return next((slot for slot in waits if clean_key(self._calls[slot].name) == receipt.key), receipt.path)

    def _forget(self) -> None:
        if self._most is not None and len(self._calls) > self._most:
            # Between the first ones and the newest.
            del self._calls[list(self._calls)[self._most * 3 // 4]]


def calls_of(receipts: Iterable[Receipt]) -> list[Ran]:
    """Every call of a run, in the order of its first receipt."""
    return Outline(receipts).calls


def grown(known: Ran | None, receipt: Receipt) -> Ran:
    """The call with what one more of its receipts says."""
    execution = receipt.execution
    ran = vars(known) if known else _asked_for(receipt)
    new: dict[str, Any] = {"seq": receipt.seq, "child": ran["child"] or execution.child}
    if execution.attempt:
        new["attempts"] = max(ran["attempts"], execution.attempt)
    if execution.usage:
        new["usage"] = added(ran["usage"], execution.usage.model_dump())
    if receipt.role is Role.RESULT:
        new.update(_ended(ran, receipt))
    elif receipt.kind == "review" and receipt.role is Role.NOTE:
        new["since"] = execution.started_at
    # A frozen object of this size takes longer to make by its class than all that is done for most receipts.
    made = object.__new__(Ran)
    vars(made).update(ran, **new)
    return made


def _asked_for(receipt: Receipt) -> dict[str, Any]:
    """What the first receipt of a call says of it."""
    after = receipt.execution.requested_after
    return {**_NOTHING, "key": receipt.key, "kind": receipt.kind, "name": name_of(receipt), "after": after}


def tree_of(calls: Iterable[Ran]) -> Branch:
    """The calls by their scopes, which are the folders of their keys."""
    root: dict[str, Any] = {}
    for ran in calls:
        *scopes, name = ran.key.split("/")
        inner = root
        for scope in scopes:
            inner = inner.setdefault(f"{scope}/", {})
        # Signals that came under one name stand beside each other.
        inner.setdefault(name, []).append(ran)
    return Branch("", _parts(root))


def outcome(said: Line | Ran) -> str:
    """The status, and what it does not say: a command that failed has completed, and so has an agent nobody asked."""
    exited = [f"exit code {said.exit_code}"] if said.exit_code else []
    return ", ".join([said.status, *exited, *(["mock"] if said.mock else [])])


def cost(usage: Sum | None) -> str:
    """What a call cost, in USD; empty when nothing is known of it."""
    return f"{usage['cost_usd']:.4f}" if usage and usage.get("cost_usd") else ""


def name_of(receipt: Receipt) -> str:
    """What the author calls what was asked for (an agent, a workflow, a signal), or the command."""
    request = receipt.request
    if isinstance(request, dict):
        command = request.get("command", "")
        named = request.get("name") or request.get("workflow") or request.get("step")
        return str(named or (command if isinstance(command, str) else " ".join(map(str, command))))
    return str(getattr(request, "workflow", "") or getattr(request, "name", "") or "")


def who(receipt: Receipt) -> str:
    """Who is behind a receipt: the person or channel that answered, else the runner that executed."""
    execution = receipt.execution
    if by := execution.provenance:
        return f"{by.by} ({by.kind}{f', in {by.adopted_from}' if by.adopted_from else ''})"
    if execution.adopted_from:
        return f"{execution.preset or 'recorded'} (in {execution.adopted_from})"
    return execution.preset or execution.runner or ("workflow" if receipt.role is Role.NOTE else "runner")


def _line(receipt: Receipt) -> Line:
    execution = receipt.execution
    moment = execution.finished_at or execution.started_at
    return Line(
        seq=receipt.seq,
        path=receipt.path,
        key=receipt.key,
        kind=receipt.kind,
        status=receipt.status,
        what=name_of(receipt),
        who=who(receipt),
        when=render_time(moment) if moment else None,
        seconds=execution.duration_seconds,
        usage=execution.usage.model_dump() if execution.usage else None,
        error=receipt.error.message if receipt.error else None,
        exit_code=_exit_code(receipt),
        mock=bool(execution.mock),
    )


def _ended(ran: Mapping[str, Any], receipt: Receipt) -> dict[str, Any]:
    """What its result says of a call."""
    execution = receipt.execution
    return {
        "name": ran["name"] or name_of(receipt),
        "status": receipt.status,
        "seconds": _seconds(ran["since"], execution),
        "error": receipt.error.message if receipt.error else None,
        "exit_code": _exit_code(receipt),
        "mock": bool(execution.mock),
        "texts": texts_of(receipt.output) if receipt.kind in _DRAFTING else (),
        "transcript": tuple(transcript_of(receipt, _TRANSCRIPT, streams=True)) if _says_how(receipt) else (),
    }


def _says_how(receipt: Receipt) -> bool:
    return receipt.execution.transcript is not None or receipt.kind == "bash"


def _exit_code(receipt: Receipt) -> int:
    output = receipt.output if receipt.kind == "bash" and isinstance(receipt.output, Mapping) else {}
    code = output.get("exit_code")
    return code if isinstance(code, int) else 0


def _seconds(since: datetime | None, execution: Execution) -> float | None:
    if execution.duration_seconds is None and since and execution.finished_at:
        return max(0.0, (execution.finished_at - since).total_seconds())
    return execution.duration_seconds


def _parts(folder: Mapping[str, Any]) -> list[Ran | Branch]:
    parts: list[Ran | Branch] = []
    for name, below in folder.items():
        if name.endswith("/"):
            parts.append(Branch(name[:-1], _parts(below)))
        else:
            parts.extend(below)
    return parts
