"""The README of a run, for somebody who opens its folder in a forge and has nothing but a browser.

First the facts in lines, then what ran, the questions with their answers, drafts, transcripts, and how to go on.
All text of users and agents goes through `markdown`, so it stays in its place; `told_people` says who answered.
It is derived: written at waits and at the end, and believed by nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import layout
from .adoption import with_origin
from .artifacts import artifacts_of
from .diagram import MOST, diagram
from .durations import duration
from .markdown import cell, code_span, fence, quote
from .names import run_component
from .outline import Outline, Ran, cost, outcome
from .plain import command_line
from .receipts import Receipt, RunStarted
from .said import Text, shortened, texts_of
from .summary import RunSummary
from .told_people import as_value, decisions, is_late, reviews, signals, started_from, why_cancelled
from .usages import told

CALLS = 100
"""Calls that a README tells of one by one; `log` has the others."""

_ARTIFACTS = 50
_QUESTIONS = 20
# Characters of a question; of all that is shown beside questions, of all drafts, of all transcripts: a README is read
# by people, and travels with every wait.
_PROMPT = 4_000
_EVIDENCE = 60_000
_DRAFTS = 60_000
_TRANSCRIPTS = 40_000


def render(summary: RunSummary, receipts: Sequence[Receipt], outline: Outline | None = None) -> bytes:
    """The README of a run that adds up to `summary`.

    Of `receipts` only those are needed that it `tells`, when an `outline` of all of them is given.
    """
    calls = outline or outline_of(receipts)
    receipts = with_origin(receipts)
    questions, shown = _questions(receipts)
    lines = [
        *_facts(summary, receipts),
        *_section("Input", _long_input(receipts)),
        *_section("What ran", _ran(summary, calls)),
        *_section("Questions", questions),
        *_section("Drafts", _texts(calls, "texts", _DRAFTS, shown)),
        *_section("Transcripts", _texts(calls, "transcript", _TRANSCRIPTS, frozenset())),
        *_section("How to go on", _further(summary, receipts)),
    ]
    return ("\n".join(lines) + "\n").encode()


def outline_of(receipts: Iterable[Receipt]) -> Outline:
    """The calls that a README tells of, from all receipts of a run."""
    return Outline(receipts, most=CALLS)


def tells(receipt: Receipt) -> bool:
    """Whether the README says something of a receipt that neither its summary nor its outline does."""
    return receipt.kind in ("run", "review", "signal", "control", "artifact") or is_late(receipt)


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"## {title}", "", *lines] if lines else []


def _facts(summary: RunSummary, receipts: Sequence[Receipt]) -> list[str]:
    return [
        f"# Run {code_span(summary.run_id)}: {summary.status}",
        "",
        f"- Workflow {code_span(summary.workflow)}, started {summary.started_at or 'at an unknown time'}"
        + (f", ended {summary.finished_at}" if summary.finished_at else ""),
        f"- Input {as_value(_input(receipts))}",
        *started_from(receipts),
        *_end(summary),
        f"- {_work(summary)}",
        *reviews(receipts),
        *signals(receipts),
        *decisions(receipts),
        *_artifacts(receipts),
    ]


def _input(receipts: Sequence[Receipt]) -> Any:
    return next((receipt.request.input for receipt in receipts if receipt.path == layout.RUN), None)


def _long_input(receipts: Sequence[Receipt]) -> list[str]:
    """An input that holds texts: a line of it tells nothing."""
    given = _input(receipts)
    return _shown("Given", given)[1:] if texts_of(given) else []


def _end(summary: RunSummary) -> list[str]:
    lines = [f"- Cancelled: {why_cancelled(summary)}"] if summary.status == "cancelled" else []
    if summary.error:
        kind, message = code_span(str(summary.error.get("type"))), code_span(str(summary.error.get("message")))
        return [*lines, f"- Error {kind}: {message}"]
    if summary.status == "completed":
        return [f"- Result {as_value(summary.result)}"]
    waiting = summary.waiting_on
    return [f"- Waiting on an answer to {code_span(waiting.key)}: {code_span(waiting.prompt)}"] if waiting else lines


def _work(summary: RunSummary) -> str:
    calls = ", ".join(f"{count} {status}" for status, count in sorted(summary.calls.items())) or "none"
    used = told(summary.usage)
    return f"Calls: {calls}; {used}" if used else f"Calls: {calls}"


def _artifacts(receipts: Sequence[Receipt]) -> list[str]:
    kept = artifacts_of(receipts)
    lines = [
        f"- Artifact {code_span(each.name)}: {each.size:,} bytes, {code_span(each.media_type)}, "
        # Nothing but hex digits comes from outside here.
        f"[{each.sha256[:12]}]({layout.artifact(each.sha256)})"
        for each in kept[:_ARTIFACTS]
    ]
    return [*lines, f"- and {len(kept) - _ARTIFACTS} more artifacts"] if len(kept) > _ARTIFACTS else lines


def _ran(summary: RunSummary, outline: Outline) -> list[str]:
    calls = outline.calls
    if not calls:
        return []
    more = outline.left_out
    hidden = len(calls) + more - MOST
    lines = ["```mermaid", *diagram(summary.status, calls), "```", ""]
    lines += [f"The diagram shows {MOST} calls of {len(calls) + more:,}.", ""] if hidden > 0 else []
    lines += ["| call | kind | what | status | took | tokens in, out | USD |", "|---|---|---|---|--:|--:|--:|"]
    lines += [_row(ran) for ran in calls]
    failures = [f"- {code_span(ran.key)} {ran.status}: {code_span(ran.error)}" for ran in calls if ran.error]
    lines += ["", *failures] if failures else []
    said = f"`hermes-workflows log {summary.run_id}` lists them"
    return [*lines, "", f"{more:,} more calls ran between these; {said}."] if more else lines


def _row(ran: Ran) -> str:
    status = outcome(ran) if ran.attempts < 2 else f"{outcome(ran)}, attempt {ran.attempts}"
    tokens = f"{ran.usage.get('input_tokens', 0):,.0f}, {ran.usage.get('output_tokens', 0):,.0f}" if ran.usage else ""
    name = ran.child or ran.name
    return (
        f"| {cell(ran.key, 120)} | {ran.kind} | {cell(name)} | {status} "
        f"| {duration(ran.seconds)} | {tokens} | {cost(ran.usage)} |"
    )


def _questions(receipts: Sequence[Receipt]) -> tuple[list[str], frozenset[str]]:
    """The newest questions with what was shown beside them, and the texts among that."""
    asked = [each for each in receipts if each.kind == "review" and each.status == "requested"][-_QUESTIONS:]
    parts: list[list[str]] = []
    shown: set[str] = set()
    # The newest first, which is the one that somebody is to answer: older ones give way.
    for receipt in reversed(asked):
        lines, texts = _question(receipt)
        room = _EVIDENCE - sum(map(len, shown))
        if sum(map(len, texts)) > room:
            lines = [f"### {code_span(receipt.key)}", "", f"{code_span(receipt.request.prompt)}, shown by `show`."]
        else:
            shown.update(texts)
        parts.append(lines)
    return [line for lines in reversed(parts) for line in ("", *lines)][1:], frozenset(shown)


def _question(receipt: Receipt) -> tuple[list[str], list[str]]:
    lines = [f"### {code_span(receipt.key)}", "", *quote(shortened(receipt.request.prompt, _PROMPT))]
    texts: list[str] = []
    for title, value in _beside(receipt):
        lines += _shown(title, value)
        texts += [text.text for text in texts_of(value)]
    return lines, texts


def _beside(receipt: Receipt) -> Iterator[tuple[str, Any]]:
    if receipt.request.input is not None:
        yield "Input", receipt.request.input
    read = receipt.execution.evidence or {}
    for each in receipt.request.evidence:
        file = read.get(each.path, {}) if each.path else {}
        told_of = file.get("text", f"missing: {file.get('missing', 'not read')}") if each.path else each.value
        yield f"Evidence {code_span(each.title)}", told_of


def _shown(title: str, value: Any) -> list[str]:
    """Texts as Markdown, what is left of the value in one line."""
    texts = texts_of(value)
    rest = _without(value, {text.title for text in texts})
    lines = ["", f"{title}: {as_value(rest)}" if rest is not None else f"{title}:"]
    for text in texts:
        lines += ["", *([f"{code_span(text.title)}:", ""] if text.title else []), *quote(text.text)]
    return lines


def _without(value: Any, names: set[str]) -> Any:
    if isinstance(value, Mapping):
        return {name: part for name, part in value.items() if name not in names} or None
    return None if names else value


def _texts(outline: Outline, which: str, room: int, shown: frozenset[str]) -> list[str]:
    """What calls said: `texts` as Markdown, `transcript` in fences, until there is no room; the newest first."""
    lines: list[str] = []
    left_out = 0
    for ran in reversed(outline.calls):
        for text in getattr(ran, which):
            if text.text in shown:
                continue
            if len(text.text) > room:
                left_out += 1
                continue
            room -= len(text.text)
            lines += [*([""] if lines else []), _title(ran, text), "", *_body(which, text)]
    if left_out:
        lines += ["", f"{left_out} more are in the receipts."]
    return lines


def _title(ran: Ran, text: Text) -> str:
    return f"### {code_span(ran.key)}" + (f": {code_span(text.title)}" if text.title else "")


def _body(which: str, text: Text) -> list[str]:
    return quote(text.text) if which == "texts" else fence(text.text)


def _further(summary: RunSummary, receipts: Sequence[Receipt]) -> list[str]:
    run_id, ref = summary.run_id, f"runs/{run_component(summary.run_id)}"
    again = [
        f"hermes-workflows show {run_id}",
        f"hermes-workflows verify {run_id}",
        f"hermes-workflows replay {run_id}",
    ]
    if summary.waiting_on:
        again.append(command_line("review", "respond", run_id, summary.waiting_on.key))
    if summary.status in ("failed", "cancelled"):
        again.append(f"hermes-workflows retry {run_id}")
    if summary.ended:
        again.append(f"hermes-workflows reproduce {run_id} --id NEW")
    return [
        *_code(receipts),
        *fence("\n".join(again)),
        "",
        f"In the receipts repository: `git log {ref}` and `git diff main {ref}`.",
    ]


def _code(receipts: Sequence[Receipt]) -> list[str]:
    """What decided when the run began: enough to know what to check out."""
    started = next((receipt for receipt in receipts if isinstance(receipt, RunStarted)), None)
    if started is None or started.execution.code is None:
        return []
    execution = started.execution
    facts = [f"code {code_span(execution.code or '')} (in `source/`)"]
    facts += [f"Python {code_span(execution.python)}"] if execution.python else []
    facts += [f"the project at commit {code_span(execution.commit)}"] if execution.commit else []
    return [f"Begun by {', '.join(facts)}.", ""]
