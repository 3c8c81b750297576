"""What receipts tell of kept files, and finding one of them."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_workflows.core import layout
from hermes_workflows.core.artifacts import artifacts_of, find_artifact
from hermes_workflows.core.receipts import CallReceipt, Execution
from hermes_workflows.errors import Conflict, NotFound


def receipt(key: str, name: str, sha256: str, made_up: dict[str, Any] | None = None) -> CallReceipt:
    output = {"name": name, "sha256": sha256, "size": 3, "media_type": "text/plain", **(made_up or {})}
    return CallReceipt(
        path=layout.step(key), kind="artifact", key=key, status="completed", fingerprint="f", request={}, output=output,
        execution=Execution(seq=1),
    )  # fmt: skip


ONE, TWO, THREE = "a1b2c3" + "0" * 58, "a1b2c3" + "1" * 58, "ffffff" + "0" * 58
KEPT = artifacts_of(
    [receipt("report", "report.md", ONE), receipt("report-2", "report.md", TWO), receipt("plot", "plot.png", THREE)]
)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("report.md", TWO), ("report", ONE), ("report-2", TWO), ("plot.png", THREE), ("ffffff", THREE), (ONE, ONE)],
)
def test_one_is_found_by_name_by_key_and_by_the_beginning_of_its_content(wanted: str, found: str) -> None:
    assert find_artifact("wf", wanted, KEPT).sha256 == found


def test_a_beginning_of_several_is_a_conflict_and_a_typo_gets_the_nearest_name() -> None:
    with pytest.raises(Conflict, match="2 artifacts of wf begin with a1b2c3"):
        find_artifact("wf", "a1b2c3", KEPT)
    with pytest.raises(NotFound) as caught:
        find_artifact("wf", "reprot.md", KEPT)
    assert caught.value.hint == "did you mean 'report.md'?"
    with pytest.raises(NotFound):
        find_artifact("wf", "fffff", KEPT)


@pytest.mark.parametrize("made_up", [{"sha256": "../../../etc"}, {"size": "3"}, {"name": None}])
def test_what_a_foreign_receipt_makes_up_is_no_artifact(made_up: dict[str, Any]) -> None:
    assert artifacts_of([receipt("x", "x", ONE, made_up)]) == []
