"""What a body decides, receipt by receipt, in a form that can be compared and sent to another process.

A decision is compared as a set of calls, each with its fingerprint; lines and requests travel along for the message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.differences import first_difference
from ..core.divergence import AnyCall, explain
from ..core.history import History
from ..core.live import Decision, Definition, End, LiveRun, rebuild
from ..core.receipts import Receipt
from ..core.redaction import Redactor
from ..errors import Divergence, InvalidInput
from ..runner.ends import ends_apart, one_line, text_of
from ..runner.slices import Decider, SliceLimits
from .failures import HIDDEN, ReplayMismatch

__tracebackhide__ = HIDDEN

_MAX_SHOWN = 5


@dataclass(frozen=True)
class Asked:
    """A call as a decision requested it."""

    kind: str
    key: str
    fingerprint: str
    line: str = field(default="", compare=False)
    request: Any = field(default=None, compare=False)

    @property
    def shown(self) -> str:
        return f"{self.kind} {self.key!r} ({self.line})"


@dataclass(frozen=True)
class Moment:
    """One decision: what it requested and gave up after the receipt `after`, and whether the run ended there."""

    after: int
    requested: tuple[Asked, ...] = ()
    cancelled: tuple[str, ...] = ()
    end: str | None = None
    stuck: str | None = None


@dataclass(frozen=True)
class Replayed:
    """A body at the end of its history. `open` is what it waits for there, `moments` are its decisions."""

    open: tuple[Asked, ...]
    state: Any
    end: End | None
    stuck: str | None
    moments: tuple[Moment, ...] = ()


class _Traced(LiveRun):
    """Notes each of its decisions."""

    moments: list[Moment]

    def start(self) -> Decision:
        self.moments = []
        return self._noted(super().start())

    def deliver(self, receipt: Receipt) -> Decision:
        return self._noted(super().deliver(receipt))

    def _noted(self, decision: Decision) -> Decision:
        asked = sorted((asked_for(call, self.root) for call in decision.requested), key=lambda each: each.key)
        dropped = sorted(call.key for call in decision.cancelled)
        self.moments.append(Moment(decision.after, tuple(asked), tuple(dropped), text_of(decision.end), decision.stuck))
        return decision


@dataclass(frozen=True)
class Scene:
    """What a replay needs beside definition and history."""

    redactor: Redactor
    root: str | None
    secret: Callable[[str], str | None] | None = None

    def replay(self, run_id: str, definition: Definition, history: History, *, traced: bool = True) -> Replayed:
        """Decide again, from the start to the newest receipt; executes nothing.

        Raises ReplayMismatch where the present code decides otherwise than recorded.
        """
        kind = _Traced if traced else LiveRun
        live = kind(run_id, definition, history.started, redactor=self.redactor, root=self.root, secret=self.secret)
        try:
            decision = rebuild(live, history)
            asked = tuple(asked_for(call, self.root) for call in live.outstanding.values())
            moments = tuple(live.moments) if isinstance(live, _Traced) else ()
            return Replayed(asked, live.state(), decision.end, decision.stuck, moments)
        except Divergence as error:
            raise ReplayMismatch("\n".join(_told(error, run_id))) from error
        except InvalidInput as error:
            raise ReplayMismatch(f"the recorded input of {run_id} {error.message}") from error
        finally:
            live.evict()


def quiet_decider() -> Decider:
    """Steps bodies as a runner does, but for the alarm that ends the process: this one is the test's."""
    return Decider(SliceLimits(dead_man=None))


def asked_for(call: AnyCall, root: str | None) -> Asked:
    return Asked(call.kind, call.key, call.fingerprint, call.site.within(root), json.loads(_json(call.request)))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=repr)


# -- differences -------------------------------------------------------------------------------------------------


def difference(before: Moment, again: Moment) -> str | None:
    """What two decisions after the same receipt do not share, in words; None when they are equal."""
    if before == again:
        return None
    said = list(calls_apart(before.requested, again.requested))
    if before.cancelled != again.cancelled:
        said.append(f"it gave up {_list(before.cancelled)} before and {_list(again.cancelled)} now")
    if before.end != again.end:
        said.append(ends_apart(before.end, again.end))
    if before.stuck != again.stuck:
        said.append(f"it was {before.stuck or 'not stuck'} before and is {again.stuck or 'not stuck'} now")
    return "; ".join(said)


def calls_apart(before: Sequence[Asked], again: Sequence[Asked]) -> Iterator[str]:
    """The calls in which two sets differ, with their lines."""
    old, new = {each.key: each for each in before}, {each.key: each for each in again}
    gone = [each.shown for key, each in old.items() if key not in new]
    come = [each.shown for key, each in new.items() if key not in old]
    if gone or come:
        yield f"it asked for {_list(gone)} before and for {_list(come)} now"
    for key in old.keys() & new.keys():
        if old[key] != new[key]:
            yield _other_request(old[key], new[key])


def _told(error: Divergence, run_id: str) -> Iterator[str]:
    """A divergence without what is of use to a run in a workspace only: its ways out."""
    error.hint = None
    said, *more = explain(error)
    yield said.removeprefix(f"divergence in {run_id}: ")
    yield from more


def _other_request(old: Asked, new: Asked) -> str:
    if old.kind != new.kind:
        return f"{old.shown} is now {new.shown}"
    place = first_difference(old.request, new.request) or ""
    before, now = (one_line(_json(_at(each.request, place))) for each in (old, new))
    values = f"{before} before and {now} now"
    return f"{old.shown} has another request: at {place or '/'} {values}"


def _at(value: Any, place: str) -> Any:
    for part in filter(None, place.split("/")):
        name = part.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(name)] if isinstance(value, list | tuple) else value[name]
        except (KeyError, IndexError):
            return None
    return value


def _list(names: Sequence[str]) -> str:
    if not names:
        return "nothing"
    more = f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else ""
    return ", ".join(names[:_MAX_SHOWN]) + more
