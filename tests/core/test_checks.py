"""What `verify` holds a run to, rule by rule, on commits that anybody may have made."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from hermes_workflows.core import layout
from hermes_workflows.core.checks import CommitFacts, Finding, check_run
from hermes_workflows.core.encoding import dumps
from hermes_workflows.core.identity import request_fingerprint


def receipt(kind: str, seq: int, *, key: str = "", status: str = "completed", **fields: Any) -> bytes:
    execution = {"seq": seq, **fields.pop("execution", {})}
    return dumps(
        {
            "schema": "hermes.receipt/1",
            "kind": kind,
            "key": key,
            "status": status,
            "fingerprint": None,
            "request": None,
            "output": None,
            "error": None,
            "execution": execution,
            **fields,
        }
    )


def run(**execution: Any) -> bytes:
    request = {"workflow": "module:function", "input": None}
    return receipt("run", 0, status="started", request=request, execution=execution)


def step(seq: int, key: str = "work", **fields: Any) -> bytes:
    request = {"name": "work"}
    return receipt(
        "step", seq, key=key, **{"request": request, "fingerprint": request_fingerprint("step", request), **fields}
    )


def review(seq: int, status: str = "requested", **fields: Any) -> bytes:
    asked: dict[str, Any] = {
        "prompt": "?",
        "input": None,
        "returns": {},
        "assignee": None,
        "expires_seconds": None,
        "on_expiry": "raise",
    }
    request = asked if status == "requested" else None
    return receipt(
        "review",
        seq,
        status=status,
        **{"request": request, "fingerprint": request_fingerprint("review", asked), **fields},
    )


def trailers(kind: str, status: str, seq: int, run_id: str = "wf_a") -> Mapping[str, str]:
    return {"Run": run_id, "Kind": kind, "Status": status, "Seq": str(seq)}


START = CommitFacts("c0", 1, {layout.RUN: run()}, trailers=(trailers("run", "started", 0),))
WORK = CommitFacts("c1", 1, {"steps/work.json": step(1)}, trailers=(trailers("step", "completed", 1),))
END = CommitFacts("c2", 1, {layout.RESULT: receipt("result", 2)}, trailers=(trailers("result", "completed", 2),))
ASK = CommitFacts("c1", 1, {layout.request("q"): review(1)}, trailers=(trailers("review", "requested", 1),))


def findings(*commits: CommitFacts, artifacts: Mapping[str, bytes] | None = None) -> list[Finding]:
    return list(check_run("wf_a", commits, (artifacts or {}).get))


def work(data: bytes, **facts: Any) -> CommitFacts:
    return replace(WORK, added={"steps/work.json": data}, **facts)


def test_a_sound_run_has_no_findings() -> None:
    readme = CommitFacts("c3", 1, {}, changed=(layout.README,), trailers=({"Run": "wf_a"},))
    assert findings(START, WORK) == []
    assert findings(START, readme, WORK, END) == []


@pytest.mark.parametrize(
    ("facts", "path", "message"),
    [
        ({"changed": ("steps/work.json",)}, "steps/work.json", "was changed"),
        ({"changed": (layout.RUN,)}, layout.RUN, "was changed"),
        ({"removed": (layout.README,)}, layout.README, "was removed"),
        (
            {"outside": ("runs/2026-11-29/other/run.json",)},
            "runs/2026-11-29/other/run.json",
            "outside the run's folder",
        ),
        ({"odd": ("steps/work.json",)}, "steps/work.json", "not a plain file"),
        ({"parents": 2}, "", "2 parents"),
    ],
)
def test_what_a_commit_may_not_do(facts: dict[str, Any], path: str, message: str) -> None:
    (found,) = findings(START, replace(WORK, **facts))
    assert (found.commit, found.path) == ("c1", path)
    assert message in found.message


@pytest.mark.parametrize("path", ["steps/work.txt", "steps/../x.sh", "hooks/x", "control/1-explode.json", "x.json"])
def test_a_name_that_no_run_may_hold(path: str) -> None:
    commit = CommitFacts("c1", 1, {path: b"x"}, trailers=({"Run": "wf_a"},))
    assert findings(START, commit) == [Finding("c1", path, "is no name that a run's folder may hold")]


def test_nothing_follows_the_result() -> None:
    late = CommitFacts("c3", 1, {"steps/late.json": step(3)}, trailers=(trailers("step", "completed", 3),))
    assert findings(START, WORK, END, late) == [
        Finding("c3", "steps/late.json", "was added after the run had its result")
    ]


def test_a_run_starts_with_its_start() -> None:
    (found,) = findings(replace(WORK, added={"steps/work.json": step(0)}, trailers=(trailers("step", "completed", 0),)))
    assert (found.path, found.message) == (layout.RUN, "is missing; a run starts with it")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "JSON"),
        (b'{"kind": "step", "kind": "step"}', "kind"),
        (b'{"schema": "hermes.receipt/2"}', "hermes.receipt/2"),
        (step(1, status="excellent"), "status"),
        (step(1, request=7), "request"),
        (step(1, surprise=1), "surprise"),
        (b"\xff", "UTF-8"),
    ],
)
def test_a_receipt_that_cannot_be_read_is_named(data: bytes, message: str) -> None:
    found = findings(START, work(data))
    assert found[0].path == "steps/work.json"
    assert message.lower() in found[0].message.lower()


def test_a_fingerprint_is_its_requests() -> None:
    (found,) = findings(START, work(step(1, request={"name": "other work"})))
    assert found.message == "has a fingerprint that is not its request's"


@pytest.mark.parametrize(
    ("seq", "message"), [(0, "has seq 0 after 0"), (5, "has seq 5 after 0, and the run is no fork")]
)
def test_seq_counts_up_by_one(seq: int, message: str) -> None:
    assert findings(START, work(step(seq), trailers=(trailers("step", "completed", seq),))) == [
        Finding("c1", "steps/work.json", message)
    ]


def test_seq_has_gaps_in_a_fork() -> None:
    fork = replace(START, added={layout.RUN: run(source={"run": "wf_x", "tip": "0" * 40})})
    assert findings(fork, work(step(5), trailers=(trailers("step", "completed", 5),))) == []


def test_receipts_of_one_commit_count_up_as_well() -> None:
    both = {"steps/a.json": step(1, "a"), "steps/b.json": step(1, "b")}
    (found,) = findings(START, replace(WORK, added=both))
    assert found.message == "has seq 1 after 1"


def test_an_artifact_holds_what_its_name_says() -> None:
    good, bad = layout.artifact(hashlib.sha256(b"good").hexdigest()), layout.artifact("0" * 64)
    commit = CommitFacts("c1", 1, {good: b"good", bad: b"bad"}, trailers=({"Run": "wf_a"},))
    assert findings(START, commit) == [Finding("c1", bad, "holds something else than its name says")]


def test_a_blob_is_there() -> None:
    sha256 = hashlib.sha256(b"x" * 70_000).hexdigest()
    blob = {"$blob": sha256, "bytes": 70_000, "head": "x" * 100}
    (missing, *_) = findings(START, work(step(1, output=blob)))
    assert missing.message == f"its blob {layout.artifact(sha256)} is missing"
    assert findings(START, work(step(1, output=blob)), artifacts={layout.artifact(sha256): b"x" * 70_000}) == []


def test_an_answer_has_its_question() -> None:
    answer = replace(
        ASK,
        commit="c2",
        added={layout.response("q"): review(2, "completed")},
        trailers=(trailers("review", "completed", 2),),
    )
    assert findings(START, ASK, answer) == []
    early = replace(
        answer, added={layout.response("q"): review(1, "completed")}, trailers=(trailers("review", "completed", 1),)
    )
    assert [found.message for found in findings(START, early)] == ["answers reviews/q/request.json, which is not there"]
    other = replace(answer, added={layout.response("q"): review(2, "completed", fingerprint="fp1:sha256:x")})
    assert [found.message for found in findings(START, ASK, other)] == [
        "answers another request than reviews/q/request.json"
    ]


@pytest.mark.parametrize(
    "said",
    [
        (),
        (trailers("step", "failed", 1),),
        (trailers("step", "completed", 2),),
        (trailers("step", "completed", 1, "wf_b"),),
        (trailers("step", "completed", 1), trailers("step", "completed", 2)),
    ],
)
def test_trailers_say_what_the_commit_adds(said: tuple[Mapping[str, str], ...]) -> None:
    assert findings(START, replace(WORK, trailers=said)) == [
        Finding("c1", "", "the commit's trailers do not say what it adds")
    ]
