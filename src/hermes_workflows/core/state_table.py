"""The table of the seven states as the documentation shows it: made of the rules, never written by hand."""

from __future__ import annotations

from collections.abc import Iterator

from .state_facts import Asked, Below, Executing, Facts, Mark
from .state_rules import TABLE, Rule

# One of each fact, so that every rule has something to say.
EXAMPLE = Facts(
    run_id="RUN",
    status="running",
    question="KEY",
    asked=Asked(since="2026-11-29T12:00:00.000Z"),
    error="ValueError: no such room",
    failed_at="flows/visit.py:21",
    cancelled="a typo, by ana (human)",
    paused="by ana since 2026-11-29T12:00:00.000Z",
    marks=(Mark("the workflow module flows.visit cannot be imported: …", "mend it; a runner goes on by itself"),),
    queued=1,
    oldest=75.0,
    executing=("draft",),
    longest=Executing("draft", "ada", 200.0, "42 of 80 pages"),
    busy="the body has stood at flows/visit.py:21 for 3 s",
    lost=("draft",),
    lost_by="(ada, pid 71 on host) died",
    repeated="draft",
    deaf=("ada (pid 71 on host) gives signs of life and has done nothing for 45 s",),
    refused="No space left on device",
    free=0,
    due="2026-11-30T09:00:00.000Z",
    receipts=".hermes/workflows.git",
    ref="runs/RUN",
    signals=("shipped",),
    children=("RUN.part",),
    below=(Below("RUN.part", "Running", ("RUN.part", "KEY"), "RUN.part"),),
    elsewhere="ws-1",
)


def as_table() -> str:
    """Markdown: the first row that holds is what is shown."""
    return "\n".join(["| when | state | the reason, for instance | the next action |", "|---|---|---|---|", *_rows()])


def _rows() -> Iterator[str]:
    for rule in TABLE:
        reason, action = rule.says(_example(rule))
        cells = (rule.when, rule.state, reason, action or "")
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _example(rule: Rule) -> Facts:
    """What a rule says of runners that are up, or deaf, differs from what it says without one."""
    deaf = EXAMPLE.deaf if "deaf" in rule.when else ()
    return EXAMPLE._replace(healthy_runners=int("a runner is up" in rule.when), deaf=deaf)
