"""What the page of a run shows, as values: where it stands, its calls as a tree, when they happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from ..core.durations import duration
from ..core.outline import Branch, Outline, Ran, outcome, tree_of
from ..core.receipts import RunEnded, RunStarted
from ..core.states import OperationalState
from ..core.summary import RunSummary, summarize
from ..core.timestamps import parse_time
from ..core.usages import told
from ..facts import Observed, children_of
from ..finding import Found, split
from ..store.wanted import Wanted
from ..workspace import Workspace
from .actions import Offer, offers
from .doing import InQueue, in_queue
from .evidence import Piece, piece_of
from .rendering import segment, since, took
from .review_view import Notice
from .timeline import Timeline, look_of, timeline_of

# Calls that a page shows: the first ones and the newest.
_CALLS: Final = 500


@dataclass(frozen=True)
class Node:
    """A call, or with `parts` a scope. `child` is the address of the run that the call has started."""

    name: str
    href: str = ""
    about: str = ""
    status: str = ""
    outcome: str = ""
    facts: tuple[str, ...] = ()
    error: str = ""
    child: str = ""
    parts: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Standing:
    """What a run is doing, and what can be done with it."""

    state: str
    label: str
    reason: str
    next_action: str


@dataclass(frozen=True)
class Related:
    """Another run, and how it belongs to this one."""

    how: str
    run_id: str
    href: str
    compare: str


@dataclass(frozen=True)
class RunView:
    """`past` says that this is the run as an older commit or a key has it; `commit` is its address for ever."""

    run_id: str
    name: str
    workflow: str
    commit: str
    past: bool
    standing: Standing
    started: str
    age: str
    took: str
    cost: str
    related: tuple[Related, ...]
    questions: tuple[tuple[str, str], ...]
    queue: InQueue
    pieces: tuple[Piece, ...]
    tree: tuple[Node, ...]
    left_out: int
    timeline: Timeline
    offers: tuple[Offer, ...]
    notice: Notice | None = None

    @property
    def moves(self) -> bool:
        """Whether the page says something else before long."""
        return not self.past and self.standing.state not in ("completed", "failed", "cancelled")

    @property
    def source(self) -> str:
        return f"/source/{segment(self.name)}"

    @property
    def compare(self) -> str:
        return compare_href(self.name)

    @property
    def href(self) -> str:
        return f"/runs/{segment(self.run_id)}"


def run_view(workspace: Workspace, name: str, notice: Notice | None = None) -> RunView:
    """The run that `name` means: an id, the beginning of one, a commit, or any of these `@KEY`."""
    found, now = workspace.find(name), workspace.clock.now()
    past = not _is_newest(workspace, found)
    summary = summarize(found.run_id, found.receipts) if past else workspace.summary(found.run_id)
    outline = Outline(found.receipts, _CALLS)
    shown = name if past else found.run_id
    seen = Observed(summary) if past else workspace.observed(summary)
    standing = _as_recorded(summary) if past else _standing(workspace.observe(summary))
    queue = InQueue() if summary.ended else in_queue(seen, now)
    return RunView(
        run_id=found.run_id,
        name=shown,
        workflow=summary.workflow,
        commit=found.head.tip,
        past=past,
        standing=standing,
        started=summary.started_at or "",
        age=since(summary.started_at, now),
        took=took(summary.started_at, summary.updated_at if past else summary.finished_at, now),
        cost=told(summary.usage),
        related=_related(workspace, summary),
        questions=() if past else _questions(summary),
        queue=queue,
        pieces=_pieces(found),
        tree=_nodes(tree_of(outline.calls), split(shown)[0], _children(workspace, seen)),
        left_out=outline.left_out,
        timeline=timeline_of(found.receipts, outline.calls, _end(summary, past, now), queue.calls),
        offers=offers(shown, summary, standing.state, past=past),
        notice=notice,
    )


def _is_newest(workspace: Workspace, found: Found) -> bool:
    if found.remote is not None or found.key is not None:
        return False
    if not found.commit:
        # By its id it is as it is now, also when it has moved since it was read.
        return True
    head = workspace.ledger.head(found.run_id)
    return head is not None and head.tip == found.head.tip


def _standing(state: OperationalState) -> Standing:
    return Standing(state.state, state.label, state.reason, state.next_action or "")


def _as_recorded(summary: RunSummary) -> Standing:
    return Standing(summary.status, summary.status.capitalize(), "", "")


def _questions(summary: RunSummary) -> tuple[tuple[str, str], ...]:
    run = segment(summary.run_id)
    return tuple((key, f"/reviews/{run}/{segment(key)}") for key in summary.open_reviews)


def _end(summary: RunSummary, past: bool, now: datetime) -> datetime:
    """Until when an open call has lasted, as this page knows: an ended run has none that goes on."""
    last = summary.finished_at or (summary.updated_at if past else None)
    return parse_time(last) if last else now


def _related(workspace: Workspace, summary: RunSummary) -> tuple[Related, ...]:
    found = []
    if summary.parent and (parent := summary.parent.get("run")):
        found.append(("started by", parent))
    if summary.source and (source := summary.source.get("run")):
        found.append((summary.source.get("how") or "made from", source))
    if summary.superseded_by:
        found.append(("superseded by", summary.superseded_by))
    found += [("taken up by", run) for run in workspace.queue.started_from(summary.run_id)]
    older = Wanted(workflow=summary.workflow, older=(summary.started_at or "", summary.run_id))
    found += [("previous run", row.summary.run_id) for row in workspace.queue.list_indexed(older, limit=1)]
    return tuple(_with(summary.run_id, how, run) for how, run in found)


def _with(run_id: str, how: str, other: str) -> Related:
    pair = (run_id, other) if how == "taken up by" else (other, run_id)
    return Related(how, other, f"/runs/{segment(other)}", compare_href(*pair))


def compare_href(a: str, b: str = "") -> str:
    return f"/compare?{urlencode({'a': a, 'b': b})}"


def _pieces(found: Found) -> tuple[Piece, ...]:
    """What went in and what came out."""
    pieces = []
    for receipt in found.receipts:
        if isinstance(receipt, RunStarted) and receipt.request.input is not None:
            pieces.append(piece_of("Input", receipt.request.input))
        if isinstance(receipt, RunEnded) and receipt.error is not None:
            pieces.append(piece_of("Error", f"{receipt.error.type}: {receipt.error.message}", "error.log"))
        elif isinstance(receipt, RunEnded) and receipt.output is not None:
            pieces.append(piece_of("Result", receipt.output))
    return tuple(pieces)


def _children(workspace: Workspace, seen: Observed) -> Mapping[str, str]:
    """How the child runs stand that have not ended, by the keys of the calls that have started them."""
    operator, clock, paths = workspace.registry.operator, workspace.clock, workspace.paths
    return {key: child.label or "" for key, child in children_of(seen, operator, clock, paths).items()}


def _nodes(branch: Branch, run: str, children: Mapping[str, str]) -> tuple[Node, ...]:
    return tuple(
        _node(part, run, children.get(part.key, ""))
        if isinstance(part, Ran)
        else Node(part.name, parts=_nodes(part, run, children))
        for part in branch.parts
    )


def _node(ran: Ran, run: str, child: str) -> Node:
    tried = f"{ran.attempts} attempts" if ran.attempts > 1 else ""
    return Node(
        name=ran.key.rpartition("/")[2],
        href=f"/calls/{segment(run)}/{segment(ran.key)}",
        about=f"{ran.kind} {ran.name}".strip(),
        status=look_of(ran),
        outcome=outcome(ran),
        facts=tuple(filter(None, (duration(ran.seconds), told(ran.usage), tried, child))),
        error=ran.error or "",
        child=f"/runs/{segment(ran.child)}" if ran.child else "",
    )
