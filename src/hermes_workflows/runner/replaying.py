"""`replay`: whether the present code still decides as it was recorded (SEMANTICS §6).

Bodies are stepped from their receipts as a runner steps them, and nothing else happens: no call goes out, and neither
git nor SQLite is written. Which runs are meant by `--all` and its like is said here, too.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core import layout
from ..core.divergence import PYTHON
from ..core.encoding import dumps, encode, parse
from ..core.history import History, fold
from ..core.live import Decision, LiveRun, rebuild
from ..core.receipts import Receipt
from ..core.spelling import suggestion
from ..errors import Divergence, HermesError, InvalidInput, NotFound
from ..finding import Found
from .ends import as_recorded, other_end
from .found_code import load_found
from .slices import Decider

if TYPE_CHECKING:
    from ..recorded import Recorded
    from ..store.ports import Head

_MAX_SHOWN = 5


@dataclass(frozen=True)
class Replay:
    """One run decided again, as `commit` has it; `error` says why it is not as recorded, or could not be decided.

    `open` are the keys that the run waits for where its receipts end, `remote` is where a fetched one is from.
    """

    run_id: str
    workflow: str
    commit: str
    receipts: int
    error: HermesError | None = None
    open: tuple[str, ...] = ()
    remote: str | None = None

    @property
    def name(self) -> str:
        """What a person calls it: an id that was fetched may be one of ours, too."""
        return f"{self.remote}/{self.run_id}" if self.remote else self.run_id


@dataclass(frozen=True)
class Wanted:
    """Runs by their names, or those of a workspace: all, of one workflow, the newest so many; also fetched ones."""

    names: Sequence[str] = ()
    workflow: str | None = None
    last: int | None = None
    fetched: bool = False


def replay_all(workspaces: Sequence[Recorded], wanted: Wanted, decider: Decider) -> Iterator[Replay]:
    """Replay what is wanted, the newest first. Raises NotFound and Conflict for what names no run or workflow."""
    if wanted.names:
        # All of them first: a typo in the last name is no reason to wait for the others.
        for workspace, found in [_find(workspaces, name) for name in wanted.names]:
            yield replay(workspace, found, decider)
        return
    for workspace, remote, head in _chosen(workspaces, wanted):
        try:
            known, receipts = workspace.ledger.at(head.tip)
        except HermesError as error:
            yield Replay(head.run_id, "", head.tip, 0, error, remote=remote)
            continue
        yield replay(workspace, Found(known.run_id, known, tuple(receipts), remote), decider)


def replay(workspace: Recorded, found: Found, decider: Decider) -> Replay:
    """Decide one run again, from the start to its newest receipt, or to the moment that was asked for."""
    run_id, workflow = found.run_id, ""
    waits: tuple[str, ...] = ()
    error: HermesError | None = None
    try:
        history = fold(found.receipts)
        workflow = history.started.request.workflow
        definition = load_found(workspace, found).definition
        live = LiveRun(
            run_id,
            definition,
            history.started,
            redactor=workspace.declared,
            limits=workspace.limits,
            root=str(workspace.root),
            secret=workspace.secret,
        )
        waits = decider.run(lambda: _decide(live, history), run_id)
    except HermesError as failed:
        error = failed
    return Replay(run_id, workflow, found.head.tip, len(found.receipts), error, waits, found.remote)


def _decide(live: LiveRun, history: History) -> tuple[str, ...]:
    """The keys that are open at the end. Raises Divergence."""
    try:
        _check_end(live, history, rebuild(live, history))
        return tuple(live.outstanding)
    except InvalidInput as error:
        said = f"divergence in {live.run_id}: the recorded input {error.message}"
        raise _divergence(live, history, said, hint=error.hint) from error
    finally:
        live.evict()


# -- the end -----------------------------------------------------------------------------------------------------


def _check_end(live: LiveRun, history: History, decision: Decision) -> None:
    """Every receipt fits; raises Divergence when what the body made of them does not."""
    calls = list(live.outstanding.values())
    shown = [f"{call.kind} {call.key!r}, {call.site.within(live.root)}" for call in calls[:_MAX_SHOWN]]
    ended = history.ended
    said = other_end(ended, decision.end, "; ".join(shown) or decision.stuck or "nothing")
    if said is None or ended is None:
        return
    error = _divergence(
        live,
        history,
        f"divergence in {live.run_id}: {said}",
        hint="every receipt fits, only the end differs: restore the code, or fork the run to have the new end",
    )
    again = as_recorded(decision.end) if decision.end else None
    error.details = (error.details or {}) | {
        "site": calls[0].site.within(live.root) if calls else None,
        "request_diff": "\n".join(
            difflib.unified_diff(_told(ended), _told(again), "recorded", "present code", lineterm="")
        ),
    }
    raise error


def _told(ended: Receipt | None) -> list[str]:
    if ended is None:
        return []
    said = {"status": ended.status, "output": ended.output, "error": ended.error and ended.error.model_dump()}
    return dumps(encode(said, {})).decode().splitlines()


def _divergence(live: LiveRun, history: History, said: str, *, hint: str | None) -> Divergence:
    error = Divergence(said, hint=hint)
    recorded = live.started.execution.python
    error.details = {
        "key": "",
        "site": None,
        "fits_until": history.deliveries[-1].key if history.deliveries and live.after else None,
        "request_diff": "",
        "python": {"recorded": recorded, "present": PYTHON} if recorded not in (None, PYTHON) else None,
    }
    return error


# -- which runs --------------------------------------------------------------------------------------------------


_Candidate = tuple["Recorded", "str | None", "Head"]


def _find(workspaces: Sequence[Recorded], name: str) -> tuple[Recorded, Found]:
    """The run in the first database that has it. Raises what the first one says."""
    missing: NotFound | None = None
    for workspace in workspaces:
        try:
            return workspace, workspace.find(name)
        except NotFound as error:
            missing = missing or error
    raise missing or NotFound(f"no run {name!r}")


def _chosen(workspaces: Sequence[Recorded], wanted: Wanted) -> list[_Candidate]:
    """The newest first, by when they started. Raises NotFound for a workflow that nobody knows."""
    known = [each for workspace in workspaces for each in _runs_of(workspace, wanted.fetched)]
    # The folder begins with the day; without one the commit could not be read, which is to be told first.
    newest = sorted(known, key=lambda each: _day(each[-1]), reverse=True)
    chosen = list(_of_workflow(newest, workspaces, wanted.workflow)) if wanted.workflow else newest
    return chosen if wanted.last is None else _latest(chosen, wanted.last)


def _runs_of(workspace: Recorded, fetched: bool) -> Iterator[_Candidate]:
    own = set()
    for head in workspace.ledger.heads():
        own.add(head.run_id)
        yield workspace, None, head
    for remote, head in workspace.ledger.fetched() if fetched else ():
        # What we have pushed ourselves comes back.
        if head.run_id not in own:
            yield workspace, remote, head


def _day(head: Head) -> tuple[bool, str]:
    return not head.folder, "/".join(head.folder.split("/")[:2])


def _of_workflow(known: Iterable[_Candidate], workspaces: Sequence[Recorded], name: str) -> Iterator[_Candidate]:
    aliases = {alias: entry.ref for each in workspaces for alias, entry in each.registry.workflows.items()}
    refs = {name, aliases.get(name, name)}
    seen: dict[str, None] = dict.fromkeys(aliases)
    found = name in aliases
    for workspace, remote, head in known:
        recorded = str(_started(workspace, head).get("request", {}).get("workflow", ""))
        place, _, function = recorded.rpartition(":")
        seen[recorded] = None
        if refs & {recorded, place} or name == function:
            found = True
            yield workspace, remote, head
    if not found:
        raise NotFound(f"no run of a workflow {name!r}", hint=suggestion(name, seen, "workflows"))


def _latest(chosen: Sequence[_Candidate], last: int) -> list[_Candidate]:
    """Opens only as many as the newest days have: opening ten thousand runs takes seconds."""
    if len(chosen) <= last:
        return list(chosen)
    oldest = _day(chosen[last - 1][-1])
    recent = [each for each in chosen if _day(each[-1]) >= oldest]
    return sorted(recent, key=_start_of, reverse=True)[:last]


def _start_of(candidate: _Candidate) -> tuple[bool, str]:
    workspace, _, head = candidate
    started = _started(workspace, head).get("execution", {}).get("started_at", "")
    return not head.folder, str(started)


def _started(workspace: Recorded, head: Head) -> Mapping[str, Any]:
    """`run.json` as it lies in git, without reading the rest of the run; empty when it cannot be read."""
    try:
        data = workspace.ledger.content(head.tip, layout.RUN) if head.folder else None
        told = parse(data) if data else {}
    except HermesError:
        return {}
    return told if isinstance(told, dict) else {}
