"""The doctor: what may be wrong with a workspace, and what to do about it. Reads only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from .core.impurities import impurities
from .core.source_names import SourceModule
from .errors import HermesError
from .facts import runnable
from .lives import elsewhere, is_healthy
from .loader import LoadedWorkflow, Loader
from .looking import LookingQueue
from .registry import DatabasePaths, Registry
from .sources import parsed
from .store import peek
from .store.maintenance import LOOSE_LIMIT, loose_objects
from .versions import versions
from .workspace import Workspace

Level = Literal["ok", "warning", "problem"]
_RUNS_SHOWN = 20


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `hint` says what to do; None when there is nothing to do."""

    level: Level
    what: str
    hint: str | None = None


def examine(workspace: Workspace) -> list[Finding]:
    """Everything: refs, index, receipts of unfinished runs, runners."""
    sections = (_refs, _index, _receipts, examine_runners)
    return [*_versions(), *(finding for section in sections for finding in _looked(section, workspace))]


def _looked(section: Callable[[Workspace], Iterable[Finding]], workspace: Workspace) -> list[Finding]:
    """What is damaged in one place does not keep the others from being looked at."""
    try:
        return list(section(workspace))
    except HermesError as error:
        return [Finding("problem", error.message, error.hint)]


def examine_registry(registry: Registry) -> list[Finding]:
    """Every alias: whether its code can be imported, its types be understood, and its body be replayed."""
    findings = [Finding("warning", warning) for warning in registry.warnings]
    loader = Loader(registry)
    impure: dict[Finding, None] = {}
    for alias in registry.workflows:
        try:
            loaded = loader.load(alias)
            _ = (loaded.definition.input_codec, loaded.definition.output_codec)
        except HermesError as error:
            findings.append(Finding("problem", f"workflow {alias}: {error.message}", error.hint))
        except Exception as error:
            what = f"workflow {alias}: its types cannot be understood: {type(error).__name__}: {error}"
            findings.append(Finding("problem", what, "annotate input and result with types that JSON can hold"))
        else:
            findings.append(Finding("ok", f"workflow {alias} is {loaded.ref}, code {loaded.code}"))
            impure.update(dict.fromkeys(_impure(registry, loaded)))
    return [*findings, *impure] or [Finding("ok", "no workflows are registered", "hermes-workflows registry discover")]


def _impure(registry: Registry, loaded: LoadedWorkflow) -> Iterator[Finding]:
    """Two aliases of one file say the same, once."""
    root = registry.root.resolve()
    modules = []
    for module in loaded.found.modules:
        shown = module.path.relative_to(root) if module.path.is_relative_to(root) else module.path
        modules.append(
            SourceModule(module.name, shown.as_posix(), parsed(loaded.found.by_path[module.path], module.name))
        )
    for each in impurities(modules):
        yield Finding("warning", f"{each.path}:{each.line}: {each.what}", each.hint)


def examine_runners(workspace: Workspace) -> list[Finding]:
    """Who is up, twice, late or on another database, and whether somebody is needed."""
    findings = list(_duplicates(workspace))
    if (split := split_of(workspace)) is not None:
        findings.append(split)
    healthy = [row for row in workspace.queue.runners() if is_healthy(row, workspace.clock)]
    due = runnable(workspace.queue.work(), workspace.queue.stuck(), workspace.clock)
    names = ", ".join(row.runner_id for row in healthy)
    if healthy:
        findings.append(Finding("ok", f"{len(healthy)} healthy runners: {names}"))
    elif due:
        what = f"{len(due)} commands are queued and no healthy runner is to be seen"
        findings.append(Finding("warning", what, "hermes-workflows runner run"))
    else:
        findings.append(Finding("ok", "no runner is up, and nothing is due"))
    return findings + list(_stuck(workspace))


def split_of(workspace: Workspace) -> Finding | None:
    """Runners that live on another database than this one: approvals given here would look missing to them."""
    mine = workspace.paths
    here = [row for row in workspace.queue.runners() if is_healthy(row, workspace.clock)]
    for row in here:
        if row.database and row.database != str(mine.sqlite):
            return _split(mine, row.runner_id, row.database)
    found = elsewhere(here, workspace.registry.dbs.values(), mine.sqlite, workspace.clock)
    return next((_split(mine, row.runner_id, row.database) for row in found), None)


def _split(mine: DatabasePaths, runner: str, theirs: str) -> Finding:
    what = f"runner {runner} works on {theirs}, not on {mine.sqlite}"
    return Finding("problem", what, "start a runner for this database, or pass the other one with --db")


def _versions() -> Iterator[Finding]:
    yield Finding("ok", ", ".join(f"{name} {version}" for name, version in versions().items()))


def _refs(workspace: Workspace) -> Iterator[Finding]:
    receipts = workspace.paths.receipts
    refs = peek.list_refs(receipts, peek.RUNS)
    for name in (name for name, commit in refs.items() if not commit):
        yield Finding(
            "problem",
            f"{receipts / name} holds no commit id, as a power cut may leave it",
            f"remove the file; `git -C {receipts} fsck --unreachable` then names the run's last commit, "
            f"and `git -C {receipts} update-ref {name} COMMIT` puts it back",
        )
    if peek.list_refs(receipts, "refs/heads/").get(peek.LEDGER) == "":
        yield Finding(
            "problem",
            f"{receipts / peek.LEDGER} holds no commit id, as a power cut may leave it",
            f"remove the file; `git -C {receipts} fsck` then names the last seal as a dangling commit, "
            f"and `git -C {receipts} update-ref {peek.LEDGER} COMMIT` puts it back",
        )
    # What a file system had not written when the power went; every such file was never acknowledged.
    for path in receipts.glob("objects/[0-9a-f][0-9a-f]/*"):
        if path.stat().st_size == 0:
            hint = "remove it: its content is written again by the next attempt, or fetched from a clone"
            yield Finding("problem", f"{path} is empty", hint)
    if (loose := loose_objects(receipts)) > 4 * LOOSE_LIMIT:
        yield Finding("warning", f"{receipts} has about {loose:,} loose objects", "hermes-workflows maintenance run")
    for each in workspace.ledger.rejected():
        what = f"somebody had moved the ref of {each.run_id} to {each.commit[:12]}; it was put back"
        yield Finding("warning", what, f"see {each.ref}, then `git -C {receipts} update-ref -d {each.ref}`")
    yield Finding("ok", f"{receipts} has {sum(map(bool, refs.values()))} living runs")


def _index(workspace: Workspace) -> Iterator[Finding]:
    if isinstance(workspace.queue, LookingQueue):
        yield Finding("warning", f"{workspace.paths.sqlite} takes no writing", "runs can be shown here, not started")
    done = workspace.refresh()
    for run_id, reason in done.unreadable.items():
        yield Finding("problem", f"{run_id} has no row: {reason}", f"hermes-workflows verify {run_id}")
    if not done.unreadable:
        yield Finding("ok", f"the index {workspace.paths.sqlite} agrees with the receipts")


def _receipts(workspace: Workspace) -> Iterator[Finding]:
    unfinished = [
        row.summary.run_id
        for status in ("running", "waiting")
        for row in workspace.queue.list_indexed(status=status, limit=_RUNS_SHOWN)
    ]
    problems = [problem for run_id in unfinished for problem in _problems(workspace, run_id)]
    for problem in problems:
        yield Finding("problem", problem, "hermes-workflows verify")
    if not problems:
        yield Finding("ok", f"the receipts of {len(unfinished)} unfinished runs add up")


def _problems(workspace: Workspace, run_id: str) -> list[str]:
    try:
        return [f"{run_id} {problem.path}: {problem.message}" for problem in workspace.ledger.verify(run_id)]
    except HermesError as error:
        return [f"{run_id} cannot be read: {error.message}"]


def _duplicates(workspace: Workspace) -> Iterator[Finding]:
    live = [row for row in workspace.queue.runners() if is_healthy(row, workspace.clock)]
    for runner_id, count in Counter(row.runner_id for row in live).items():
        if count > 1:
            what = f"{count} live runners call themselves {runner_id}"
            yield Finding("problem", what, "stop all but one, or give each its own --worker-id")


def _stuck(workspace: Workspace) -> Iterator[Finding]:
    for mark in workspace.queue.stuck():
        yield Finding("warning", f"{mark.run_id} is stuck: {mark.reason}", mark.hint or None)
