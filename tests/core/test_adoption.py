"""What is said of receipts that a run took over from another one."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_workflows.core import layout
from hermes_workflows.core.adoption import source_of, with_origin
from hermes_workflows.core.readme import render
from hermes_workflows.core.receipts import Execution, Provenance, Receipt, ReviewReceipt, RunRequest, RunStarted
from hermes_workflows.core.summary import summarize

ADA = Provenance(kind="human", by="ada", channel="cli")
FORK = {"run": "wf_a", "commit": "a" * 40, "how": "fork", "seq": "4"}


def started(source: Any) -> RunStarted:
    request = RunRequest(workflow="flow.py:flow", input=None)
    return RunStarted(path=layout.RUN, key="", request=request, execution=Execution(source=source))


def answered(key: str, seq: int, by: Provenance = ADA) -> Receipt:
    execution = Execution(seq=seq, provenance=by)
    path = layout.response(key)
    return ReviewReceipt(path=path, key=key, status="completed", fingerprint="fp1:x", output="yes", execution=execution)


def origins(*receipts: Receipt) -> list[str | None]:
    told = with_origin(receipts)
    return [each.execution.provenance.adopted_from for each in told if each.execution.provenance]


def test_answers_up_to_the_seq_were_given_in_the_other_run() -> None:
    assert origins(started(FORK), answered("then", 4), answered("now", 5)) == ["wf_a", None]


def test_what_was_given_by_hand_was_given_here() -> None:
    assert origins(started(FORK | {"set": "by_hand other"}), answered("by_hand", 3), answered("then", 4)) == [
        None,
        "wf_a",
    ]


def test_an_answer_that_was_adopted_twice_was_given_in_the_first_run() -> None:
    adopted = ADA.model_copy(update={"adopted_from": "wf_0"})
    assert origins(started(FORK), answered("then", 2, adopted)) == ["wf_0"]


def test_a_run_of_its_own_has_no_source() -> None:
    assert origins(started(None), answered("now", 1)) == [None]
    assert source_of([answered("now", 1)]) is None


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (FORK, "- Forked from `wf_a` at commit `aaaaaaaaaaaa`, with receipts up to seq `4` adopted"),
        (FORK | {"set": "ship"}, "adopted, and results given by hand: `ship`"),
        ({"run": "wf_a", "commit": "a" * 40, "how": "fork"}, "with nothing adopted"),
        (
            FORK | {"how": "reproduce", "reuse": "agent,ask"},
            "- Reproduces `wf_a` at commit `aaaaaaaaaaaa`, reusing its",
        ),
    ],
)
def test_the_readme_says_what_a_run_began_with(source: dict[str, str], line: str) -> None:
    receipts = [started(source), answered("then", 4)]
    text = render(summarize("wf_b", receipts), receipts).decode()
    assert line in text


def test_the_readme_says_where_an_adopted_answer_was_given() -> None:
    receipts = [started(FORK), answered("then", 4), answered("now", 5)]
    lines = render(summarize("wf_b", receipts), receipts).decode().splitlines()
    then, now = (next(line for line in lines if line.startswith(f"- Review `{key}`")) for key in ("then", "now"))
    assert then.endswith("answered by the person `ada` through `cli`, adopted from `wf_a`")
    assert now.endswith("answered by the person `ada` through `cli`")


def test_an_id_in_the_source_cannot_leave_its_line() -> None:
    hostile = FORK | {"run": "x`\n# Approved by everybody"}
    text = render(summarize("wf_b", [started(hostile)]), [started(hostile)]).decode()
    assert "\n# Approved" not in text
