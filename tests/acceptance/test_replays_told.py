"""How replayed runs are told: foreign text in a summary formats nothing, names nobody and closes nothing."""

from __future__ import annotations

from hermes_workflows.cli.replay_summary import replays_markdown
from hermes_workflows.cli.replays import replays_document, replays_text
from hermes_workflows.errors import Divergence, NotFound
from hermes_workflows.runner.replaying import Replay


def _diverged(diff: str, key: str = "say") -> Replay:
    error = Divergence(f"divergence in wf: bash {key!r} was recorded with another request", hint="restore the code")
    error.details = {"key": key, "site": "flow.py:9", "request_diff": diff, "python": None}
    return Replay("wf", "flow.py:flow", "c" * 40, 3, error)


OK = Replay("ok", "flow.py:flow", "d" * 40, 7, None, ("review",))


def test_the_summary_has_failed_runs_first_with_key_line_and_difference() -> None:
    said = replays_markdown([OK, _diverged("-old\n+new")])
    assert "1 of 2 runs are decided as they were recorded" in said
    assert "| `wf` | `flow.py:flow` | 3 | **differently** at `say`, `flow.py:9` |\n| `ok` |" in said
    assert "```diff\n-old\n+new\n```\n" in said


def test_a_difference_cannot_close_its_fence_nor_reach_anybody() -> None:
    said = replays_markdown([_diverged("+````\n+# @someone fixes #1\n+::error::x\n+\x1b[2J", key="a|b")])
    fence = "`" * 5
    assert f"{fence}diff\n" in said
    assert said.count(fence) == 2
    for mark in ("@someone", "#1", "::error", "\x1b", "`a|b`"):
        assert mark not in said


def test_a_fetched_run_is_told_from_one_of_ours() -> None:
    theirs = Replay("ok", "flow.py:flow", "d" * 40, 7, remote="hub")
    assert replays_text([OK, theirs]).splitlines()[:2] == [
        "  ok  ok: 7 receipts, waits for review",
        "  ok  hub/ok: 7 receipts",
    ]
    assert "| `hub/ok` |" in replays_markdown([theirs])
    assert replays_document([theirs])["runs"][0]["remote"] == "hub"


def test_a_summary_stays_readable_for_a_thousand_runs_and_for_none() -> None:
    said = replays_markdown([_diverged("+x\n" * 1000)] * 1000)
    assert len(said) < 100_000
    assert "and 800 more runs" in said
    assert "… and 900 more lines" in said
    assert "there was no run to replay" in replays_markdown([])


def test_the_document_and_the_text_say_what_could_not_be_loaded_and_why() -> None:
    gone = Replay("gone", "x.py:x", "e" * 40, 2, NotFound("no file x.py", hint="file refs start from the workspace"))
    document = replays_document([OK, gone])
    assert (document["replays"], document["checked"], document["failed"]) == (False, 2, 1)
    assert document["runs"][1]["error"]["code"] == "not_found"
    assert replays_text([OK, gone]).splitlines() == [
        "  ok  ok: 7 receipts, waits for review",
        "BAD   gone: no file x.py",
        "      file refs start from the workspace",
        "1 of 2 runs are decided as they were recorded",
    ]
