"""`runner run|once|status|doctor` and its older name `worker`: the process that executes what is queued."""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from ..core.spelling import suggestion
from ..facts import is_open, runnable
from ..lives import life_of
from ..registry import DatabasePaths
from ..settings import LIMITED
from ..store.row_keys import FOREVER
from .agents import agent_options, chosen_agents, fallback_agent
from .doctor import runner_doctor
from .draining import drain_runners
from .hashseed import fix_hash_seed
from .logs import Logging, chosen_file, log_options, telling
from .numbers import Seconds, count
from .scope import Scope, scoped
from .seen import runner_document, runner_lines, work_document
from .session import Session, output_options
from .told import counted
from .writing import columns

if TYPE_CHECKING:
    from ..runner.worker import Runner, RunnerReport
    from ..workspace import Workspace

_INTERRUPTED = 130
_DRAIN_IDLE_SECONDS = 0.1
_DRAIN = "How long calls may go on after a signal."
_WORKER_ID = "Who this is in receipts; host and process otherwise."
_LONGEST_NAME = 100


@click.group("runner")
def runner() -> None:
    """Execute what is queued."""


def _runner_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The flags of everything that executes; `--db` narrows to some databases, all are served without it."""
    for option in reversed(
        (
            click.option("--config", metavar="FILE", help="The registry; found upwards from here when left out."),
            click.option("--db", "dbs", metavar="ALIAS|PATH", multiple=True, help="Only this database; repeatable."),
            click.option("--worker-id", metavar="NAME", callback=_one_name, help=_WORKER_ID),
            click.option("--lease-seconds", type=Seconds(0.5), default=30.0, show_default=True),
            click.option("--concurrency", type=count(1), default=4, show_default=True, help="Calls at once."),
        )
    ):
        command = option(command)
    return output_options(log_options(agent_options(command)))


def _one_name(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """A runner's name stands in commits, in lines of text, and as the name of its log in a folder."""
    if value and (not value.isprintable() or not value.strip() or "/" in value or len(value) > _LONGEST_NAME):
        raise click.BadParameter(f"a name is one line of at most {_LONGEST_NAME} characters, without a slash")
    return value


def _looping(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--drain-seconds", type=Seconds(), default=10.0, show_default=True, help=_DRAIN),
        click.option("--idle-exit-after", type=Seconds(), help="Stop when idle."),
        click.option("--max-commands", type=count(1), help="Stop after this many queued commands."),
        click.option("--only", metavar="KIND,…", callback=_kinds, help=f"Execute only these: {', '.join(LIMITED)}."),
    ):
        command = option(command)
    return _runner_options(command)


def _kinds(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    kinds = tuple(dict.fromkeys(kind.strip() for kind in value.split(","))) if value is not None else ()
    for kind in kinds:
        if kind not in LIMITED:
            raise click.BadParameter(f"no runner executes {kind!r}; {suggestion(kind, LIMITED, 'kinds')}")
    return kinds


@runner.command("run")
@_looping
@click.pass_obj
def run(session: Session, /, **options: Any) -> int:
    """Execute queued work until nothing is left to do or a signal comes."""
    return _work(session, **options)


@click.command("worker")
@_looping
@click.pass_obj
def worker(session: Session, /, **options: Any) -> int:
    """The older name of `runner run`."""
    return _work(session, **options)


@runner.command("once")
@_runner_options
@click.pass_obj
def once(session: Session, /, **options: Any) -> int:
    """Execute one queued command, for controlled recovery."""
    return _work(session, once=True, **options)


runner.add_command(drain_runners)


@runner.command("status")
@scoped
def status(scope: Scope) -> None:
    """Show runners, their heartbeats, and what is queued; changes nothing."""
    with scope.look() as workspace:
        runners = workspace.queue.runners()
        work = [row for row in workspace.queue.work() if row.work.visible_at < FOREVER]
        due = runnable(work, workspace.queue.stuck(), scope.clock)
    document = {
        "database": str(scope.paths().sqlite),
        "runners": [runner_document(row, life_of(row, scope.clock)) for row in runners],
        "work": [work_document(row) for row in work],
        "queued": sum(map(is_open, work)),
        "runnable": len(due),
    }
    lines = [f"{document['queued']} queued, {document['runnable']} of them runnable now", ""]
    lines += [line for row in runners for line in runner_lines(row, scope.clock)] or ["no runners"]
    rows = [
        (row.status, f"{row.work.run_id} {row.work.kind} {row.work.key} {row.runner or ''}".strip()) for row in work
    ]
    scope.output.data(document, lambda: "\n".join([*lines, "", columns(rows)]).rstrip())


runner.add_command(runner_doctor)


def drain(session: Session, workspace: Workspace) -> None:
    """Execute in this process until nothing is left to do."""
    from ..runner.worker import Runner, RunnerOptions

    fallback = fallback_agent(workspace.environment)
    options = RunnerOptions(_worker_id(), idle_exit_after=_DRAIN_IDLE_SECONDS, agent_fallback=fallback)
    made = Runner([workspace], options)
    with _working(session, [workspace], Logging(options.worker_id)), _stopped_by_signals(made) as stopped:
        made.run()
    if signal.SIGINT in stopped:
        raise KeyboardInterrupt


def _work(session: Session, *, config: str | None, dbs: Sequence[str], once: bool = False, **options: Any) -> int:
    fix_hash_seed(session)
    from ..loader import Loader
    from ..runner.supervisor import Supervisor
    from ..runner.worker import Runner, RunnerOptions

    if session.own_process:
        # A watchdog ends a process that hangs by SIGABRT: then it says where every thread of it was.
        faulthandler.enable(file=2)
    scope = Scope(session, config, dbs[0] if dbs else None)
    agents = chosen_agents(options, session.environment, scope.start)
    name = options.pop("worker_id") or _worker_id()
    log = Logging(name, options.pop("log_json"), chosen_file(options.pop("log_file"), scope.start))
    supervisor = Supervisor.from_environment(session.environment, os.getpid())
    options |= {"agents": agents.named, "agent_fallback": agents.fallback, "once": once}
    chosen = RunnerOptions(worker_id=name, supervisor=supervisor, **options)
    loader = Loader(scope.registry)
    with ExitStack() as opened:
        workspaces = [
            opened.enter_context(
                scope.open(paths, create=True, committer=name, lease_seconds=chosen.lease_seconds, loader=loader)
            )
            for paths in _databases(scope, dbs)
        ]
        made = Runner(workspaces, chosen)
        with _working(session, workspaces, log), _stopped_by_signals(made) as stopped:
            report = made.run()
    document = {"worker_id": report.worker_id, "commands": report.commands, "reason": report.reason}
    scope.output.data(document, lambda: _report_text(report))
    return _INTERRUPTED if signal.SIGINT in stopped else 0


def _databases(scope: Scope, dbs: Sequence[str]) -> list[DatabasePaths]:
    if dbs:
        return [scope.registry.database(name, scope.start) for name in dict.fromkeys(dbs)]
    return list(scope.registry.dbs.values())


def _report_text(report: RunnerReport) -> str:
    return f"{report.worker_id}: {counted(report.commands, 'command')}, ended because: {report.reason}"


def _worker_id() -> str:
    return f"{socket.gethostname()}-{os.getpid()}"


@contextmanager
def _stopped_by_signals(made: Runner) -> Iterator[list[int]]:
    """The first signal stops the claiming, the second what executes; a third one is Python's own again."""
    seen: list[int] = []

    def stop(number: int, _frame: object) -> None:
        seen.append(number)
        made.request_stop()
        if len(seen) > 1:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    watched = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {number: signal.signal(number, stop) for number in watched}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _working(session: Session, workspaces: Sequence[Workspace], log: Logging) -> Iterator[None]:
    """What a runner and its workflows tell while they work goes to stderr, without secrets."""
    with telling(lambda: [each.redactor for each in workspaces], log, own_process=session.own_process):
        yield
