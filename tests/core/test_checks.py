"""What `verify` holds a run to, rule by rule, on commits that anybody may have made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from hermes_workflows.core import layout
from hermes_workflows.core.checks import CommitFacts, Finding, check_run
from hermes_workflows.core.encoding import dumps
from hermes_workflows.core.identity import code_identity, request_fingerprint
from hermes_workflows.errors import IntegrityError


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


ADA = {"kind": "human", "by": "ada", "channel": "cli"}


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
    if status == "completed":
        fields = {"execution": {"provenance": ADA}, **fields}
    return receipt(
        "review",
        seq,
        key="q",
        status=status,
        **{"request": request, "fingerprint": request_fingerprint("review", asked), **fields},
    )


def said(kind: str, status: str, seq: int, key: str = "", name: str = "", run_id: str = "wf_a") -> str:
    """The message of a commit that adds this receipt."""
    about = f"{kind} {name}" if name else kind
    lines = [f"{key or run_id}: {status} ({about})", "", f"Hermes-Run: {run_id}", f"Hermes-Key: {key}"]
    lines += [f"Hermes-Kind: {kind}", f"Hermes-Status: {status}", f"Hermes-Seq: {seq}", ""]
    return "\n".join(line for line in lines if line != "Hermes-Key: ")


def files(number: int) -> str:
    return f"{number} files\n\nHermes-Run: wf_a\n"


def worked(seq: int, key: str = "work") -> str:
    return said("step", "completed", seq, key, "work")


STARTED = said("run", "started", 0, name="module:function")
START = CommitFacts("c0", 1, {layout.RUN: run()}, message=STARTED)
WORK = CommitFacts("c1", 1, {"steps/work.json": step(1)}, message=worked(1))
END = CommitFacts("c2", 1, {layout.RESULT: receipt("result", 2)}, message=said("result", "completed", 2))
ASK = CommitFacts("c1", 1, {layout.request("q"): review(1)}, message=said("review", "requested", 1, "q"))


def findings(*commits: CommitFacts, artifacts: Mapping[str, bytes] | None = None) -> list[Finding]:
    return list(check_run("wf_a", commits, (artifacts or {}).get))


def work(data: bytes, **facts: Any) -> CommitFacts:
    return replace(WORK, added={"steps/work.json": data}, **facts)


def test_a_sound_run_has_no_findings() -> None:
    readme = CommitFacts("c3", 1, {}, changed=(layout.README,), message=files(1))
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
    commit = CommitFacts("c1", 1, {path: b"x"}, message=files(1))
    assert findings(START, commit) == [Finding("c1", path, "is no name that a run's folder may hold")]


def test_nothing_follows_the_result() -> None:
    late = CommitFacts("c3", 1, {"steps/late.json": step(3, "late")}, message=worked(3, "late"))
    assert findings(START, WORK, END, late) == [
        Finding("c3", "steps/late.json", "was added after the run had its result")
    ]


def test_a_run_starts_with_its_start() -> None:
    (found,) = findings(replace(WORK, added={"steps/work.json": step(0)}, message=worked(0)))
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
    message = said("step", "completed", 1, "work", "other work")
    (found,) = findings(START, work(step(1, request={"name": "other work"}), message=message))
    assert found.message == "has a fingerprint that is not its request's"


@pytest.mark.parametrize(
    ("seq", "message"), [(0, "has seq 0 after 0"), (5, "has seq 5 after 0: what was between them is gone")]
)
def test_seq_counts_up_by_one(seq: int, message: str) -> None:
    assert findings(START, work(step(seq), message=worked(seq))) == [Finding("c1", "steps/work.json", message)]


def adopting(**steps: bytes) -> CommitFacts:
    """The one commit in which a fork starts, with the receipts of another run that it takes over."""
    added = {layout.RUN: run(source={"run": "wf_b", "commit": "0" * 40})}
    added |= {f"steps/{name}.json": data for name, data in steps.items()}
    count = f"{len(steps)} receipt{'s' * (len(steps) != 1)}"
    trailers = STARTED.partition("\n\n")[2].strip()
    told = f"{trailers}\nHermes-Source: wf_b\nHermes-Commit: {'0' * 40}\n"
    return CommitFacts("c0", 1, added, message=f"wf_a: forked from wf_b ({count} adopted)\n\n{told}")


def test_seq_has_gaps_where_a_fork_adopts_and_nowhere_else() -> None:
    fork = adopting(work=step(5))

    def late(seq: int) -> CommitFacts:
        return CommitFacts("c1", 1, {"steps/late.json": step(seq, "late")}, message=worked(seq, "late"))

    assert findings(fork, late(6)) == []
    (gone,) = findings(fork, late(8))
    assert gone.message == "has seq 8 after 5: what was between them is gone"


def test_receipts_of_one_commit_count_up_as_well() -> None:
    both = {"steps/a.json": step(1, "a"), "steps/b.json": step(1, "b")}
    assert findings(START, replace(WORK, added=both))[0] == Finding("c1", "steps/b.json", "has seq 1 after 1")


def test_an_artifact_holds_what_its_name_says() -> None:
    good, bad = layout.artifact(hashlib.sha256(b"good").hexdigest()), layout.artifact("0" * 64)
    commit = CommitFacts("c1", 1, {good: b"good", bad: b"bad"}, message=files(2))
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
        message=said("review", "completed", 2, "q"),
    )
    assert findings(START, ASK, answer) == []
    message = said("review", "completed", 1, "q")
    early = replace(answer, added={layout.response("q"): review(1, "completed")}, message=message)
    assert [found.message for found in findings(START, early)] == ["answers reviews/q/request.json, which is not there"]
    other = replace(answer, added={layout.response("q"): review(2, "completed", fingerprint="fp1:sha256:x")})
    assert [found.message for found in findings(START, ASK, other)] == [
        "answers another request than reviews/q/request.json"
    ]


@pytest.mark.parametrize(
    "message",
    [
        "",
        worked(1).partition("\n")[0],
        worked(1).replace("Status: completed", "Status: failed"),
        worked(1).replace("Seq: 1", "Seq: 2"),
        worked(1).replace("Key: work", "Key: pay"),
        worked(1).replace("Kind: step", "Kind: agent"),
        worked(1).replace("Run: wf_a", "Run: wf_b"),
        worked(1) + "Hermes-Approved: yes\n",
        worked(1) + "\nHermes-Run: wf_a\nHermes-Seq: 2\n",
        worked(1) + "\nApproved by ada\n",
    ],
)
def test_trailers_say_what_the_commit_adds_and_nothing_else(message: str) -> None:
    found = findings(START, replace(WORK, message=message))
    assert Finding("c1", "", "the commit's trailers do not say what it adds") in found


def test_a_subject_is_the_one_a_ledger_writes() -> None:
    forged = worked(1).replace("work: completed (step work)", "work: approved by ada")
    assert findings(START, replace(WORK, message=forged)) == [
        Finding("c1", "", "the commit's subject does not say what it adds, which is 'work: completed (step work)'")
    ]
    assert [found.message[:20] for found in findings(START, replace(WORK, message=""))] == [
        "the commit's subject",
        "the commit's trailer",
    ]


@pytest.mark.parametrize(
    ("path", "made"),
    [
        ("steps/work.json", step(1, "other")),
        ("steps/other.json", step(1)),
        ("steps/work.attempt-1.json", step(1, "other")),
        ("steps/work.start.json", step(1, "other", status="started")),
        ("steps/work.late-1.json", step(1, "other")),
        ("steps/t-250.json", step(1, "t-250")),
        (layout.request("other"), review(1)),
        (layout.signal("go", 1), receipt("signal", 1, key="stop", status="received")),
        (layout.signal("go", 1), receipt("signal", 1, key="", status="received")),
        (layout.control(1, "cancel"), receipt("control", 1, key="work", status="cancel")),
        (
            layout.control(1, "resolve"),
            receipt("control", 1, key="a", status="resolve", request={"key": "b", "decision": "run-again"}),
        ),
        (layout.RESULT, receipt("result", 1, key="work")),
    ],
)
def test_a_key_belongs_to_its_path(path: str, made: bytes) -> None:
    found = findings(START, CommitFacts("c1", 1, {path: made}, message=files(1)))
    assert any(each.path == path and "which belongs elsewhere" in each.message for each in found)


@pytest.mark.parametrize(
    ("path", "made"),
    [
        (layout.request("work"), step(1)),
        (layout.step("q"), review(1)),
        (layout.control(1, "cancel"), receipt("control", 1, key="accept", status="accept")),
        (layout.RESULT, step(1, "")),
    ],
)
def test_a_kind_belongs_to_its_path(path: str, made: bytes) -> None:
    found = findings(START, CommitFacts("c1", 1, {path: made}, message=files(1)))
    assert any(each.path == path and "may not hold a receipt of kind" in each.message for each in found)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: json.dumps(json.loads(data)).encode(),
        lambda data: data.rstrip(b"\n"),
        lambda data: data + b"\n",
        lambda data: data.replace(b'"completed"', b'"\\u0063ompleted"'),
    ],
)
def test_a_receipt_is_written_in_one_way_only(change: Callable[[bytes], bytes]) -> None:
    assert findings(START, work(change(step(1)))) == [
        Finding("c1", "steps/work.json", "is not written as a receipt is: sorted keys, two spaces, LF")
    ]


def test_an_operation_id_is_run_and_key() -> None:
    assert findings(START, work(step(1, execution={"operation_id": "wf_a/work"}))) == []
    for forged in ("wf_b/work", "wf_a/other", "work", ""):
        (found,) = findings(START, work(step(1, execution={"operation_id": forged})))
        assert "which is not its run and key" in found.message
    assert findings(adopting(work=step(1, execution={"operation_id": "wf_b/work"}))) == []
    assert findings(adopting(work=step(1, execution={"operation_id": "wf_b/other"}))) != []


def test_an_answer_says_who_gave_it_and_so_does_its_commit() -> None:
    answer = {layout.response("q"): review(2, "completed")}
    told = said("review", "completed", 2, "q")
    assert findings(START, ASK, CommitFacts("c2", 1, answer, message=told, author="ada")) == []
    (forged,) = findings(START, ASK, CommitFacts("c2", 1, answer, message=told, author="eve"))
    assert forged.message == "is by 'ada', and its commit by 'eve'"
    nobody = {layout.response("q"): review(2, "completed", execution={})}
    (unsaid,) = findings(START, ASK, CommitFacts("c2", 1, nobody, message=told, author="ada"))
    assert unsaid.message == "does not say who did it: it has no provenance"


def test_an_artifact_that_a_receipt_tells_of_is_there() -> None:
    output = {"name": "report", "sha256": "a" * 64, "size": 1, "media_type": "text/plain"}
    request = {"name": "report"}
    fingerprint = request_fingerprint("artifact", request)
    kept = receipt("artifact", 1, key="work", output=output, request=request, fingerprint=fingerprint)
    (missing,) = findings(START, work(kept, message=said("artifact", "completed", 1, "work", "report")))
    assert missing.path == layout.artifact("a" * 64)
    assert missing.message == "is missing; artifact work is kept there"


def test_a_receipt_nobody_can_read_hides_no_other() -> None:
    gone = CommitFacts("c1", 1, {}, message=WORK.message, unreadable={"steps/work.json": "object x is missing"})
    late = CommitFacts("c2", 1, {"steps/late.json": step(2, "late")}, message=worked(2, "late"))
    assert findings(START, gone, late) == [Finding("c1", "steps/work.json", "object x is missing")]
    forged = replace(late, added={"steps/late.json": step(2, "late", fingerprint="fp1:sha256:" + "0" * 64)})
    assert [finding.path for finding in findings(START, gone, forged)] == ["steps/work.json", "steps/late.json"]


PRINTED = {"exit_code": 0, "stdout": "hi", "stderr": ""}


def command(output: object, status: str = "completed") -> CommitFacts:
    request = {"command": "true"}
    made = receipt(
        "bash",
        1,
        key="work",
        status=status,
        request=request,
        fingerprint=request_fingerprint("bash", request),
        output=output,
    )
    return work(made, message=said("bash", status, 1, "work"))


@pytest.mark.parametrize(
    "output",
    [
        None,
        "hi",
        {},
        {"exit_code": 0, "stdout": "hi"},
        PRINTED | {"exit_code": True},
        PRINTED | {"exit_code": None},
        PRINTED | {"stdout": 1},
        PRINTED | {"stdout_bytes": "hi"},
        PRINTED | {"truncated": "no"},
        PRINTED | {"stdout_sha256": "x"},
        PRINTED | {"approved": True},
    ],
)
def test_a_command_leaves_an_output_of_one_shape(output: object) -> None:
    (found,) = findings(START, command(output))
    assert found.message.startswith("has an output that no command leaves")


def test_the_outputs_commands_leave_are_sound() -> None:
    cut = {"truncated": True, "stdout_total_bytes": 9, "stdout_sha256": "0" * 64, "stdout_bytes": {"$base64": ["/w=="]}}
    for commit in (
        command(PRINTED),
        command(PRINTED | cut),
        command(None, "failed"),
        command(PRINTED | {"exit_code": None}, "failed"),
    ):
        assert findings(START, commit) == []


def test_code_lies_under_its_own_identity() -> None:
    code = code_identity({"flows/a.py": b"a", "b.py": b"b"})
    whole = {layout.source(code, "flows/a.py"): b"a", layout.source(code, "b.py"): b"b"}
    added = CommitFacts("c1", 1, whole, message=files(2))
    assert findings(START, added) == []
    changed = replace(added, added=whole | {layout.source(code, "b.py"): b"evil"})
    part = replace(added, added={layout.source(code, "b.py"): b"b"}, message=files(1))
    more = CommitFacts("c2", 1, {layout.source(code, "c.py"): b"c"}, message=files(1))
    for commits in ((changed,), (part,), (added, more)):
        (found,) = findings(START, *commits)
        assert found.path.startswith(f"source/{code}/")
        assert f"not {code}" in found.message


def test_a_commit_adds_something() -> None:
    empty = CommitFacts("c1", 1, {}, message=files(0))
    assert findings(START, empty) == [Finding("c1", "", "the commit adds nothing")]


@pytest.mark.parametrize("facts", [{}, {"changed": (layout.README,)}, {"removed": (layout.README,)}])
def test_not_even_an_empty_commit_follows_the_result(facts: dict[str, Any]) -> None:
    late = CommitFacts("c3", 1, {}, message=files(len(facts.get("changed", ()))), **facts)
    assert any("after the run had its result" in found.message for found in findings(START, WORK, END, late))


def test_nothing_follows_the_result_in_its_own_commit() -> None:
    both = replace(END, added={**END.added, "steps/late.json": step(3, "late")})
    found = findings(START, WORK, both)
    assert Finding("c2", "steps/late.json", "was added after the run had its result") in found


@pytest.mark.parametrize(
    "returns",
    [{"enum": 5}, {"$$defs": 5}, {"properties": 5}, {"anyOf": 5}, {"items": {"required": {}}}, {"$$ref": {}}],
)
def test_a_question_whose_schema_is_none_is_found(returns: dict[str, Any]) -> None:
    asked = {"prompt": "?", "input": None, "returns": returns, "assignee": None}
    made = review(1, request=asked)
    found = findings(START, CommitFacts("c1", 1, {layout.request("q"): made}, message=files(1)))
    assert any(each.path == layout.request("q") and "not its request's" in each.message for each in found)


def test_an_artifact_that_cannot_be_read_is_told_by_what_is_wrong_with_it() -> None:
    def damaged(path: str) -> bytes:
        raise IntegrityError(f"object of {path} is damaged")

    output = {"name": "report", "sha256": "a" * 64, "size": 1, "media_type": "text/plain"}
    request = {"name": "report"}
    kept = receipt(
        "artifact", 1, key="work", output=output, request=request, fingerprint=request_fingerprint("artifact", request)
    )
    commit = work(kept, message=said("artifact", "completed", 1, "work", "report"))
    (found,) = check_run("wf_a", [START, commit], damaged)
    assert found.message == f"object of {layout.artifact('a' * 64)} is damaged"


def test_what_was_wrong_before_a_break_in_the_history_is_told_once() -> None:
    wrong = work(step(1).rstrip(b"\n"))
    again = replace(wrong, commit="c9", added={**START.added, **wrong.added}, whole=True)
    assert [each.commit for each in findings(START, wrong, again) if each.path == "steps/work.json"] == ["c1"]


def test_an_answer_to_a_question_that_cannot_be_read_is_no_second_finding() -> None:
    ask = replace(ASK, added={layout.request("q"): b"{}"}, message="")
    answer = replace(ASK, commit="c2", added={layout.response("q"): review(2, "completed")}, message="")
    told = [found.message for found in findings(START, ask, answer)]
    assert told
    assert not any("answers" in each for each in told)
