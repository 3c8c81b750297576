"""Runs, calls and moments as `log` and `show` tell of them: documents for programs, lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .writing import one_line, pretty

if TYPE_CHECKING:
    from ..core.outline import Ran
    from ..core.summary import RunSummary
    from ..finding import Found
    from ..store.ports import Head


def counted(count: int, noun: str) -> str:
    """`1 run`, `1,000 runs`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def place_of(found: Found) -> dict[str, Any]:
    """Which run, commit and moment a document is about."""
    return {
        "workflow_id": found.run_id,
        "key": found.key,
        "remote": found.remote,
        "commit": found.head.tip,
        "folder": found.head.folder,
        "sealed": found.head.sealed,
    }


def run_facts(head: Head, remote: str | None, summary: RunSummary) -> dict[str, Any]:
    return {
        "workflow_id": head.run_id,
        "remote": remote,
        "commit": head.tip,
        "folder": head.folder,
        "sealed": head.sealed,
        "status": summary.status,
        "workflow": summary.workflow,
        "started_at": summary.started_at,
        "updated_at": summary.updated_at,
        "finished_at": summary.finished_at,
        "receipts": summary.receipts,
        "usage": dict(summary.usage),
    }


def call_facts(ran: Ran) -> dict[str, Any]:
    names = ("key", "kind", "name", "status", "exit_code", "mock", "seconds", "attempts", "child", "seq", "error")
    return {name: getattr(ran, name) for name in names} | {"usage": dict(ran.usage)}


def call_line(ran: Ran) -> str:
    from ..core.durations import duration
    from ..core.outline import cost, outcome

    spent = [duration(ran.seconds), f"{cost(ran.usage)} USD" if cost(ran.usage) else ""]
    facts = ", ".join(filter(None, [f"{ran.kind} {one_line(ran.name, 40)}".strip(), *spent, ran.child or ""]))
    return f"{ran.key.rpartition('/')[2]}: {outcome(ran)} ({facts})" + (f": {one_line(ran.error)}" if ran.error else "")


def clock_time(moment: str | None) -> str:
    """A recorded time (UTC) as a column shows it, to the second."""
    return (moment or "")[:19].replace("T", " ")


def value_lines(value: Any, indent: str = "  ") -> list[str]:
    """A value as people read it: a field a line, a text of several lines as these lines."""
    if isinstance(value, str) and "\n" in value:
        return [f"{indent}{line}" for line in value.rstrip("\n").split("\n")]
    if not isinstance(value, Mapping) or not value:
        return [f"{indent}{line}" for line in pretty(value).split("\n")]
    lines: list[str] = []
    for name, part in value.items():
        if (isinstance(part, Mapping | list) and part) or (isinstance(part, str) and "\n" in part):
            lines += [f"{indent}{one_line(str(name))}:", *value_lines(part, indent + "  ")]
        else:
            lines.append(f"{indent}{one_line(str(name))}: {pretty(part)}")
    return lines
