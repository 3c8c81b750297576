"""`show`: a run, or one of its calls, as the receipts tell of it; nothing is written, not even the index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ..core import layout
from .completion import complete_moments
from .plain_git import git_line, revision, tell
from .scope import Scope, scoped
from .told import call_facts, call_line, place_of, run_facts, value_lines
from .writing import one_line, pretty

if TYPE_CHECKING:
    from ..core.receipts import Receipt
    from ..finding import Found
    from ..registry import DatabasePaths

# The prompt of an agent and the output of a command, on a terminal.
_TEXT = 4_000


@click.command("show")
@click.argument("run", metavar="RUN[@KEY]", shell_complete=complete_moments)
@scoped
def show(scope: Scope, run: str) -> None:
    """Show a run, or one of its calls: request, answer, transcript, evidence."""
    paths = scope.holding(run)
    with scope.peek(paths) as workspace:
        found = workspace.find(run)
        forks = [] if found.remote else workspace.queue.started_from(found.run_id)
        page = workspace.ledger.content(found.head.tip, layout.README) is not None
    if found.key is None:
        _show_run(scope, _run_line(paths, found, page), found, forks)
    else:
        _show_call(scope, paths, found)


def _run_line(paths: DatabasePaths, found: Found, page: bool) -> str:
    """The run's README, which is written when it waits or ends; before that, its files."""
    return git_line(paths.receipts, "show", f"{revision(found)}:{found.head.folder}/{layout.README if page else ''}")


def _show_run(scope: Scope, line: str, found: Found, forks: Sequence[str]) -> None:
    from ..core.outline import calls_of
    from ..core.readme import render
    from ..core.summary import summarize

    summary = summarize(found.run_id, found.receipts)
    calls = calls_of(found.receipts)
    started = found.receipts[0].request if found.receipts else None
    document = {
        **run_facts(found.head, found.remote, summary),
        "input": getattr(started, "input", None),
        "result": summary.result,
        "error": summary.error,
        "source": summary.source,
        "forks": forks,
        "calls": [call_facts(ran) for ran in calls],
        "readme": render(summary, found.receipts).decode(),
        "git": line,
    }
    scope.output.data(document, lambda: _run_text(document, [call_line(ran) for ran in calls]))
    tell(scope, line)


def _run_text(run: dict[str, Any], calls: Sequence[str]) -> str:
    name = f"{run['remote']}/{run['workflow_id']}" if run["remote"] else run["workflow_id"]
    lines = [f"{name}: {run['status']}", "", f"  workflow  {run['workflow']}", f"  commit    {run['commit']}"]
    lines += [f"  started   {run['started_at']}"] + (
        [f"  ended     {run['finished_at']}"] if run["finished_at"] else []
    )
    if run["source"]:
        lines += [f"  from      {run['source'].get('run')} ({run['source'].get('how')})"]
    lines += [f"  forks     {', '.join(run['forks'])}"] if run["forks"] else []
    for title in ("input", "result", "error"):
        if run[title] is not None:
            shown = pretty(run[title]).replace("\n", "\n            ")
            lines.append(f"  {title.ljust(8)}  {shown}")
    return "\n".join([*lines, "", *(f"  {line}" for line in calls)])


def _show_call(scope: Scope, paths: DatabasePaths, found: Found) -> None:
    from ..core.adoption import with_origin
    from ..finding import of_key

    assert found.key is not None  # `show` asks for a call only with a key
    receipts = of_key(with_origin(found.receipts), found.key)
    line = git_line(paths.receipts, "show", f"{revision(found)}:{found.head.folder}/{receipts[-1].path}")
    document = {**place_of(found), "receipts": [receipt_document(each) for each in receipts], "git": line}
    scope.output.data(document, lambda: "\n\n".join(_receipt_text(found.run_id, each) for each in receipts))
    tell(scope, line)


def receipt_document(receipt: Receipt) -> dict[str, Any]:
    document = receipt.model_dump(by_alias=True, exclude_none=True)
    return {"path": receipt.path, **document, "evidence": [vars(each) for each in _evidence(receipt)]}


def _receipt_text(run_id: str, receipt: Receipt) -> str:
    from ..core.messages import receipt_subject
    from ..core.outline import cost, lines_of
    from ..core.said import transcript_of

    (line,) = lines_of([receipt])
    lines = [receipt_subject(run_id, receipt), "", f"  path      {receipt.path}", f"  seq       {receipt.seq}"]
    lines += [f"  when      {line.when}"] if line.when else []
    lines.append(f"  who       {one_line(line.who)}")
    lines += [f"  cost      {cost(line.usage)} USD"] if cost(line.usage) else []
    document = receipt_document(receipt)
    for title in ("request", "output", "error"):
        if document.get(title) is not None:
            lines += ["", f"{title}:", *value_lines(document[title])]
    for each in _evidence(receipt):
        lines += ["", f"evidence, {one_line(each.title)}:", *value_lines(each.missing or each.value)]
    for text in transcript_of(receipt, _TEXT):
        lines += ["", f"{one_line(text.title)}:", *value_lines(text.text)]
    return "\n".join(lines)


def _evidence(receipt: Receipt) -> list[Any]:
    from ..core.receipts import ReviewReceipt
    from ..review.evidence import evidence_of

    asked = isinstance(receipt, ReviewReceipt) and receipt.status == "requested"
    return list(evidence_of(receipt)) if asked and isinstance(receipt, ReviewReceipt) else []
