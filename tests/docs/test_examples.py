"""Every example runs, as its reader would run it: in a copy of this checkout, without account and model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import ROOT
from tests.docs.session import Session

WRITER = "--agent-command 'python3 examples/agents/writer.py'"
SUMMARISER = "--agent-command 'python3 examples/agents/summariser.py'"


@pytest.fixture
def reader(tmp_path: Path) -> Session:
    return Session(tmp_path)


def _status(reader: Session, run: str) -> Any:
    assert reader.run(f"hermes-workflows status {run}", place=reader.checkout) == 0
    return json.loads(reader.printed)


def test_the_demo_ends_well_and_says_that_nobody_typed_the_answer(reader: Session) -> None:
    assert reader.run(f"bash {ROOT}/examples/demo.sh") == 0
    assert '"kind": "manual"' in reader.printed
    assert "never shown as human approval" in reader.printed


def test_the_release_note_runs_as_a_script_and_uses_the_feedback(reader: Session) -> None:
    script = f"""
        python examples/release_note.py --id note --input-json '{{"version": "1.0", "commits": 5}}'
        hermes-workflows runner run {WRITER} --idle-exit-after 0.1
        hermes-workflows review respond note review_note --action revise --feedback beta --kind test
        hermes-workflows runner run {WRITER} --idle-exit-after 0.1
        hermes-workflows review respond note review_note-2 --action approve --kind test
        hermes-workflows runner run --idle-exit-after 0.1
    """
    assert reader.run(script, place=reader.checkout) == 0
    result = _status(reader, "note")["result"]
    assert result["title"] == "What is new in 1.0 (beta)"
    assert len(result["changes"]) == 3


def test_repo_health_looks_at_this_checkout_and_plans_with_the_feedback(reader: Session) -> None:
    script = f"""
        hermes-workflows run examples/repo_health.py --id health --input-json '{{"base": "HEAD"}}'
        hermes-workflows runner run {SUMMARISER} --idle-exit-after 0.5
        hermes-workflows review respond health review_plan --action revise --feedback 'Name the owners.' --kind test
        hermes-workflows runner run {SUMMARISER} --idle-exit-after 0.5
        hermes-workflows review respond health review_plan-2 --action approve --kind test
        hermes-workflows runner run --idle-exit-after 0.1
    """
    assert reader.run(script, place=reader.checkout) == 0
    status = _status(reader, "health")
    assert status["status"] == "completed"
    assert status["usage"]["input_tokens"] > 0
    assert status["result"]["plan"].endswith("As asked: Name the owners.")
    assert {check["name"]: check["ok"] for check in status["result"]["checks"]}["compile"]
    assert len(status["result"]["files"]) == 5


def test_repo_health_never_reads_its_input_as_a_command(reader: Session) -> None:
    script = f"""
        hermes-workflows run repo-health --id health --input-json '{{"base": "HEAD; touch was-a-command"}}'
        hermes-workflows runner run {SUMMARISER} --idle-exit-after 0.5
    """
    assert reader.run(script, place=reader.checkout) == 0
    assert _status(reader, "health")["status"] == "waiting"
    assert not (reader.checkout / "was-a-command").exists()
