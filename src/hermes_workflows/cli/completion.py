"""Shell completion: click's own for commands and options, and run ids, aliases and review keys from the index,
keys of a run from its receipts.

Completing must never fail, write or take long: whatever goes wrong, nothing is offered.
Nor is a name that a shell would take apart or run: shells put what is offered into the line as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from ..registry import Registry, choose

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ..registry import DatabasePaths
    from ..store.fast_status import FastIndex
    from ..store.git_ledger import GitLedger
    from ..store.ports import Ledger

_LIMIT = 50
_PLAIN = re.compile(r"[\w@%+=:,./][\w@%+=:,./-]*", re.ASCII)


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of SHELL, to be evaluated in its start-up file.

    For bash: eval "$(hermes-workflows completion bash)"
    """
    kind = get_completion_class(shell)
    assert kind is not None  # the three choices are click's own
    from .commands import commands

    if shell == "bash":
        # bash would cut `RUN@KEY` in three words.
        click.echo("COMP_WORDBREAKS=${COMP_WORDBREAKS//@}")
    click.echo(kind(commands, {}, "hermes-workflows", "_HERMES_WORKFLOWS_COMPLETE").source())


def complete_runs(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _offered(context, lambda registry: _run_ids(context, registry, incomplete), incomplete)


def complete_moments(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """`RUN`, and after an `@` the keys of that run."""
    return _offered(context, lambda registry: _moments(context, registry, incomplete), incomplete)


def complete_keys(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    run = context.params.get("run") or ""
    return _offered(context, lambda registry: _keys(context, registry, run), incomplete)


def complete_workflows(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _offered(context, lambda registry: registry.workflows, incomplete)


def complete_remotes(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _offered(context, lambda registry: _remotes(context, registry), incomplete)


def complete_reviews(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    run = context.params.get("run")
    return _offered(context, lambda registry: _review_keys(context, registry, run), incomplete)


def complete_signals(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    run = context.params.get("run")
    return _offered(context, lambda registry: _signal_names(context, registry, run), incomplete)


def _offered(
    context: click.Context, names: Callable[[Registry], Iterable[str]], incomplete: str
) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    try:
        registry = choose(context.params.get("config"), context.params.get("db"), Path.cwd())
        fitting = (name for name in names(registry) if name.startswith(incomplete) and _PLAIN.fullmatch(name))
        return [CompletionItem(name) for name in islice(fitting, _LIMIT)]
    except Exception:
        return []


def _run_ids(context: click.Context, registry: Registry, incomplete: str) -> list[str]:
    paths = registry.database(context.params.get("db"), Path.cwd())
    with _index(paths) as index:
        return index.matching(incomplete, _LIMIT)


def _moments(context: click.Context, registry: Registry, incomplete: str) -> list[str]:
    run, at, key = incomplete.rpartition("@")
    if at:
        return [f"{run}@{each}" for each in _keys(context, registry, run) if each.startswith(key)]
    ids = _run_ids(context, registry, incomplete)
    if ids and "/" not in incomplete:
        return ids
    with _reading(registry.database(context.params.get("db"), Path.cwd())) as ledger:
        return [*ids, *_fetched(ledger, incomplete)]


def _keys(context: click.Context, registry: Registry, run: str) -> list[str]:
    from ..finding import find

    paths = registry.database(context.params.get("db"), Path.cwd())
    with _reading(paths) as ledger, _index(paths) as index:
        receipts = find(ledger, run, index.matching).receipts
    return [key for key in dict.fromkeys(receipt.key for receipt in receipts) if key]


def _fetched(ledger: Ledger, incomplete: str) -> Iterator[str]:
    names = (f"{remote}/{head.run_id}" for remote, head in ledger.fetched())
    return islice((name for name in names if name.startswith(incomplete)), _LIMIT)


def _reading(paths: DatabasePaths) -> closing[GitLedger]:
    from ..clock import SystemClock
    from ..store.git_ledger import GitLedger

    return closing(GitLedger.open(paths.receipts, create=False, clock=SystemClock(), committer="completion"))


def _index(paths: DatabasePaths) -> closing[FastIndex]:
    from ..store.fast_status import FastIndex

    return closing(FastIndex(paths.sqlite))


def _remotes(context: click.Context, registry: Registry) -> list[str]:
    from ..store.remotes import remote_names

    return remote_names(registry.database(context.params.get("db"), Path.cwd()).receipts)


def _review_keys(context: click.Context, registry: Registry, run: str | None) -> list[str]:
    paths = registry.database(context.params.get("db"), Path.cwd())
    with _index(paths) as index:
        return [row.key for row in index.reviews(run_id=run, status="open")]


def _signal_names(context: click.Context, registry: Registry, run: str | None) -> list[str]:
    paths = registry.database(context.params.get("db"), Path.cwd())
    with _index(paths) as index:
        row = index.indexed(run or "")
        return [wait.name for wait in row.summary.open_waits.values()] if row else []
