"""`/runs/<run>`: one run, now or as a commit has it; `/calls/<run>/<key>`: what one of its calls asked and got."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...core.adoption import with_origin
from ...core.durations import duration
from ...core.outline import lines_of, outcome
from ...core.plain import command_line
from ...core.receipts import Receipt, ReviewReceipt
from ...core.said import transcript_of
from ...core.usages import told
from ...finding import of_key, split
from ..actions import Offer, offer
from ..evidence import SCHEMA, Piece, piece_of, without
from ..live import live
from ..rendering import opened, page, pretty, segment
from ..review_view import Notice
from ..run_view import run_view
from ..timeline import look_of

# Characters of a transcript that are shown; the command shows all of it.
_TRANSCRIPT: Final = 100_000
# What is said after an action, on the page of the run that it was about, or that it began.
_DONE: Final = {
    "start": "The run is recorded, and queued.",
    "cancel": "The wish to cancel is recorded; a runner carries it out.",
    "pause": "The run is to pause.",
    "resume": "The run goes on.",
    "fork": "This run has begun with what the other one has recorded.",
    "retry": "It is tried again.",
}
# Calls whose requests are written for readers: what an agent, or a person, was told.
_WRITTEN: Final = frozenset({"agent", "review"})
# Shown with the transcript, as they came.
_STREAMS: Final = ("stdout", "stderr")


@dataclass(frozen=True)
class Recorded:
    """One receipt of a call."""

    path: str
    outcome: str
    status: str
    about: str
    facts: tuple[str, ...]
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class CallView:
    """`question` is the address of the page that answers it, for a call that asks people."""

    run_id: str
    run_href: str
    key: str
    receipts: tuple[Recorded, ...]
    question: str
    command: str
    fork: Offer


def show(request: Request) -> Response:
    run = request.path_params["run"]
    workspace, done = opened(request).of_run(run), request.query_params.get("done", "")
    notice = Notice("good", _DONE[done]) if done in _DONE else None
    now = live(opened(request), run)
    view = run_view(workspace, run, notice)
    # What has ended, or is a moment that has passed, stays as it is.
    return page(request, "run.html", view, live=now if view.moves else None)


def call(request: Request) -> Response:
    run, key = split(request.path_params["run"])[0], request.path_params["key"]
    # Of a key that nobody knows, it says the nearest right one.
    found = opened(request).of_run(run).find(f"{run}@{key}")
    receipts = of_key(with_origin(found.receipts), key)
    asks = any(isinstance(each, ReviewReceipt) for each in receipts)
    view = CallView(
        run_id=found.run_id,
        run_href=f"/runs/{segment(run)}",
        key=key,
        receipts=tuple(map(_recorded, receipts)),
        question=f"/reviews/{segment(found.run_id)}/{segment(key)}" if asks else "",
        command=command_line("show", f"{run}@{key}"),
        fork=offer("fork", f"{run}@{key}"),
    )
    return page(request, "call.html", view)


def _recorded(receipt: Receipt) -> Recorded:
    (line,) = lines_of([receipt])
    facts = (line.when or "", line.who, duration(line.seconds), told(line.usage) if line.usage else "")
    about = f"{line.kind} {line.what}".strip()
    return Recorded(
        receipt.path, outcome(line), look_of(line), about, tuple(filter(None, facts)), tuple(_pieces(receipt))
    )


def _pieces(receipt: Receipt) -> Iterator[Piece]:
    if receipt.request is not None:
        asked = without(receipt.request, SCHEMA)
        yield piece_of("Request", asked) if receipt.kind in _WRITTEN else _as_it_is("Request", asked)
    if receipt.output is not None:
        yield piece_of("Output", without(receipt.output, _STREAMS if receipt.kind == "bash" else ()))
    if receipt.error is not None:
        yield piece_of("Error", f"{receipt.error.type}: {receipt.error.message}", "error.log")
    for title, text in transcript_of(receipt, _TRANSCRIPT, streams=True):
        # Never Markdown: what a program printed is shown as it came.
        yield Piece(title, "text", text)


def _as_it_is(title: str, value: Any) -> Piece:
    """A value whose texts are for programs: each sign of a command counts."""
    if isinstance(value, Mapping) and value:
        return Piece(title, "fields", parts=tuple(_as_it_is(str(name), each) for name, each in value.items()))
    return Piece(title, "text" if isinstance(value, str) else "value", pretty(value))


ROUTES: Final = (
    Route("/runs/{run:path}", show, name="run"),
    Route("/calls/{run}/{key:path}", call, name="call"),
)
