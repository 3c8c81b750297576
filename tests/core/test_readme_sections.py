"""What a run's README shows below its facts: what ran, questions, drafts, transcripts."""

from __future__ import annotations

from typing import Any

from tests.core.test_outline import FINGERPRINT, NOON, called

from hermes_workflows.core import layout
from hermes_workflows.core.outline import Outline
from hermes_workflows.core.readme import CALLS, render
from hermes_workflows.core.receipts import (
    CallReceipt,
    Evidence,
    Execution,
    Failure,
    Receipt,
    ReviewReceipt,
    ReviewRequest,
    RunEnded,
    RunRequest,
    RunStarted,
    Usage,
)
from hermes_workflows.core.summary import summarize

STARTED = RunStarted(
    path=layout.RUN,
    key="",
    request=RunRequest(workflow="flows/weekly.py:weekly", input=48),
    execution=Execution(started_at=NOON, code="3f2a91c0aaaa", python="3.11", commit="ab12"),
)


def command(seq: int, key: str, stdout: str) -> CallReceipt:
    output = {"exit_code": 0, "stdout": stdout, "stderr": ""}
    return called(seq, key, kind="bash", request={"command": "ls | wc"}, output=output)


def question(seq: int = 5, **asked: Any) -> ReviewReceipt:
    request = ReviewRequest(**{"prompt": "Ship it?", "returns": {}, **asked})
    evidence = {"notes.md": {"text": "# Notes\n\nfine\n"}, "gone.md": {"missing": "there is no such file"}}
    return ReviewReceipt(
        path=layout.request("ok"),
        key="ok",
        status="requested",
        fingerprint=FINGERPRINT,
        request=request,
        execution=Execution(seq=seq, started_at=NOON, evidence=evidence),
    )


def readme(*receipts: Receipt) -> str:
    told = [STARTED, *receipts]
    return render(summarize("wf", told), told).decode()


def test_every_call_has_a_row_with_duration_and_cost() -> None:
    used = {"usage": Usage(input_tokens=1200, output_tokens=30, cost_usd=0.0123)}
    shown = readme(command(1, "count", "4\n"), called(2, "docs/write", execution=used))
    assert "| `count` | bash | `ls \\| wc` | completed | 1.5 s |  |  |" in shown
    assert "| `docs/write` | agent | `writer` | completed | 1.5 s | 1,200, 30 | 0.0123 |" in shown
    assert "```mermaid\nflowchart TD" in shown


def test_why_a_call_failed_stands_below_the_table() -> None:
    shown = readme(called(1, "write", status="failed", error=Failure(type="AgentFailed", message="no `answer`")))
    assert "\n\n- `write` failed: `` no `answer` ``\n\n" in shown
    assert "class c0 failed" in shown


def test_a_command_that_failed_and_an_agent_nobody_asked_do_not_read_as_success() -> None:
    failed = called(1, "check", kind="bash", request={"command": "ls"}, output={"exit_code": 2})
    shown = readme(failed, called(2, "write", execution={"mock": True}))
    assert "| `check` | bash | `ls` | completed, exit code 2 |" in shown
    assert "| `write` | agent | `writer` | completed, mock |" in shown


def test_how_to_go_on_is_what_the_run_needs() -> None:
    assert "hermes-workflows review respond wf ok\n" in readme(question())
    failed = RunEnded(path=layout.RESULT, key="", status="failed", execution=Execution(seq=9))
    assert "hermes-workflows retry wf\n" in readme(failed)
    assert "hermes-workflows retry" not in readme(question())


def test_an_input_of_several_lines_has_a_section_of_its_own() -> None:
    given = STARTED.model_copy(update={"request": RunRequest(workflow="w", input={"notes": "# A\n\nb", "n": 1})})
    shown = render(summarize("wf", [given]), [given]).decode()
    assert '## Input\n\nGiven: `{"n": 1}`\n\n`notes`:\n\n> # A\n>\n> b\n\n## How to go on' in shown


def test_a_draft_is_shown_as_the_markdown_it_is() -> None:
    shown = readme(called(1, "write", output={"title": "Weekly", "body": "# Week 48\n\n```\nopen fence"}))
    assert "## Drafts\n\n### `write`: `body`\n\n> # Week 48\n>\n> ```\n> open fence\n\n## How to go on" in shown


def test_a_question_shows_what_lies_beside_it_and_a_draft_is_not_shown_twice() -> None:
    body = "# Week 48\n\nfine"
    evidence = [Evidence(title="Notes", path="notes.md"), Evidence(title="Lost", path="gone.md")]
    shown = readme(called(1, "write", output={"body": body}), question(input={"body": body, "n": 1}, evidence=evidence))
    assert '## Questions\n\n### `ok`\n\n> Ship it?\n\nInput: `{"n": 1}`\n\n`body`:\n\n> # Week 48\n>\n> fine\n' in shown
    assert "Evidence `Notes`:\n\n> # Notes\n" in shown
    assert 'Evidence `Lost`: `"missing: there is no such file"`' in shown
    assert "## Drafts" not in shown


def test_a_transcript_stands_in_a_fence_that_it_cannot_close() -> None:
    shown = readme(command(1, "count", "4\n```\n# not a heading\n"))
    assert "### `count`: `stdout`\n\n````text\n4\n```\n# not a heading\n````\n" in shown


def test_a_run_of_many_calls_has_a_readme_of_a_bounded_size() -> None:
    receipts = [command(seq, f"step-{seq}", "line\n" * 5_000) for seq in range(1, 400)]
    shown = readme(*receipts)
    assert len(shown) < 150_000
    assert shown.count("| `step-") == CALLS
    assert "299 more calls ran between these; `hermes-workflows log wf` lists them." in shown
    assert "The diagram shows 60 calls of 399." in shown


def test_it_is_the_same_whether_a_runner_grew_it_or_all_receipts_were_read() -> None:
    receipts: list[Receipt] = [STARTED, *(command(seq, f"step-{seq}", f"{seq}\n1\n") for seq in range(1, 300))]
    grown = Outline(most=CALLS)
    for receipt in receipts:
        grown.add([receipt])
    summary = summarize("wf", receipts)
    assert render(summary, [STARTED], grown) == render(summary, receipts)


def test_it_says_what_code_began_the_run_and_how_to_go_on() -> None:
    shown = readme()
    assert "Begun by code `3f2a91c0aaaa` (in `source/`), Python `3.11`, the project at commit `ab12`." in shown
    assert "hermes-workflows replay wf" in shown
    assert "reproduce" not in shown


def test_of_evidence_beyond_measure_the_newest_is_shown_and_of_the_older_ones_that_it_is_there() -> None:
    long = [Evidence(title=f"draft {number}", value="a line\n" * 2000) for number in range(4)]
    older = question(5, prompt="The old one?", evidence=long)
    newer = question(6, prompt="The new one?", evidence=long)
    newer = newer.model_copy(update={"path": layout.request("later"), "key": "later"})
    shown = readme(older, newer)
    assert shown.count("> a line") > 1000
    assert "### `ok`\n\n`The old one?`, shown by `show`." in shown
    assert "### `later`\n\n> The new one?" in shown


def test_bytes_in_a_value_are_told_by_their_number() -> None:
    assert "1,024 bytes" in readme(question(input={"photo": b"x" * 1024}))
