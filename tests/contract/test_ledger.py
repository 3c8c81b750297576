"""What every ledger does, in git or in memory (store/ports.py)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.ledgers import (
    DAY,
    append,
    end_draft,
    finished,
    open_git,
    record,
    request_draft,
    response_draft,
    run_draft,
    start,
    step_draft,
)

from hermes_workflows.core import layout
from hermes_workflows.errors import Conflict, IntegrityError, InvalidInput, NotFound
from hermes_workflows.store.memory_ledger import MemoryLedger
from hermes_workflows.store.ports import Appended, Ended, Entry, Ledger, PathTaken, Stale


@pytest.fixture(params=["git", "memory"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    made: Ledger = open_git(tmp_path) if request.param == "git" else MemoryLedger()
    yield made
    made.close()


def test_a_new_run_has_its_start_and_nothing_else(ledger: Ledger) -> None:
    outcome = start(ledger, "wf_a")
    head, receipts = ledger.read("wf_a")
    assert head == outcome.head == ledger.head("wf_a")
    assert (head.run_id, head.folder, head.sealed) == ("wf_a", f"runs/{DAY}/wf_a", False)
    assert receipts == list(outcome.receipts)
    assert [(receipt.path, receipt.seq) for receipt in receipts] == [("run.json", 0)]


def test_an_id_is_taken_only_once(ledger: Ledger) -> None:
    start(ledger, "wf_a")
    with pytest.raises(Conflict, match="wf_a exists already"):
        start(ledger, "wf_a")
    assert len(ledger.read("wf_a")[1]) == 1


def test_an_id_that_looks_like_the_name_of_another_one_is_no_obstacle(ledger: Ledger) -> None:
    """Ids with capitals are kept under names with a digest, which a plain id may look like."""
    start(ledger, "launch-abcdefghijkl")
    start(ledger, "Launch")
    assert {head.run_id for head in ledger.heads()} == {"launch-abcdefghijkl", "Launch"}


@pytest.mark.parametrize(("first", "second"), [("wf_a", "WF_a"), ("Wf_A", "wf_a"), ("Wf_a", "wF_A"), ("Con", "con")])
def test_an_id_that_differs_only_in_case_is_refused(ledger: Ledger, first: str, second: str) -> None:
    start(ledger, first)
    with pytest.raises(Conflict, match=f"{second} exists already as {first}"):
        start(ledger, second)
    assert ledger.head(second) is None


HOSTILE_IDS = ["con", "aux.txt", "a..b", "x.lock", "dot.", "A" * 100, "9", "WF_A-b.C", "run-1.json"]


@pytest.mark.parametrize("run_id", HOSTILE_IDS)
def test_a_hostile_id_works_and_is_given_back_as_it_was(ledger: Ledger, run_id: str) -> None:
    start(ledger, run_id)
    record(ledger, run_id, step_draft("work"))
    assert ledger.read(run_id)[0].run_id == run_id
    assert [head.run_id for head in ledger.heads()] == [run_id]
    assert ledger.verify(run_id) == []


@pytest.mark.parametrize("run_id", ["", "../up", ".git", "-x", "a b", "a/b", "ü", "x" * 101, "a\nb"])
def test_what_is_no_id_is_refused(ledger: Ledger, run_id: str) -> None:
    with pytest.raises(InvalidInput, match="not a run id"):
        start(ledger, run_id)
    with pytest.raises(InvalidInput, match="not a run id"):
        ledger.head(run_id)


@pytest.mark.parametrize("day", ["", "2026-1-1", "../..", "2026-11-29/x"])
def test_a_run_starts_on_a_day(ledger: Ledger, day: str) -> None:
    with pytest.raises(InvalidInput, match="no day"):
        start(ledger, "wf_a", day)


def test_a_run_starts_with_its_run_receipt(ledger: Ledger) -> None:
    with pytest.raises(InvalidInput, match=r"starts with run\.json"):
        ledger.create(Entry("wf_a", (step_draft("work"),)), DAY)


def test_seq_counts_on_from_the_newest_receipt(ledger: Ledger) -> None:
    start(ledger)
    record(ledger, "wf_a", step_draft("one"))
    both = record(ledger, "wf_a", step_draft("two"), step_draft("three"))
    assert [receipt.seq for receipt in both.receipts] == [2, 3]
    assert [receipt.key for receipt in ledger.read("wf_a")[1]] == ["", "one", "two", "three"]


def test_what_is_returned_is_what_will_be_read(ledger: Ledger) -> None:
    start(ledger)
    lines = "first\r\nsecond\n"
    outcome = record(ledger, "wf_a", step_draft("work", {"text": lines, "$key": [1, 2.5, None]}))
    (read,) = ledger.read("wf_a", since=outcome.base)[1]
    assert outcome.receipts == (read,)
    assert read.output == {"text": lines, "$key": [1, 2.5, None]}


def test_a_long_string_is_an_artifact_beside_the_receipt(ledger: Ledger) -> None:
    start(ledger)
    text = "x" * 70_000
    outcome = record(ledger, "wf_a", step_draft("work", text), step_draft("again", text))
    assert [receipt.output for receipt in outcome.receipts] == [text, text]
    assert ledger.read("wf_a")[1][1].output == text
    stored = ledger.file("wf_a", layout.step("work"))
    assert stored is not None
    assert b"$blob" in stored


def test_the_first_receipt_at_a_path_wins(ledger: Ledger) -> None:
    start(ledger)
    first = record(ledger, "wf_a", step_draft("work", "first"))
    second = append(ledger, Entry("wf_a", (step_draft("work", "second"), step_draft("other"))))
    assert second == PathTaken(first.head, first.receipts[0])
    assert [receipt.output for receipt in ledger.read("wf_a")[1]] == [None, "first"]


def test_of_two_entries_at_a_path_in_one_append_the_first_wins(ledger: Ledger) -> None:
    start(ledger)
    one, two = ledger.append([Entry("wf_a", (step_draft("work", n),)) for n in (1, 2)])
    assert isinstance(one, Appended)
    assert two == PathTaken(one.head, one.receipts[0])


def test_a_decision_on_a_run_that_moved_on_is_stale(ledger: Ledger) -> None:
    start(ledger)
    current = record(ledger, "wf_a", step_draft("work"))
    assert append(ledger, Entry("wf_a", (request_draft("ask"),), decided_at=0)) == Stale(current.head)
    assert isinstance(append(ledger, Entry("wf_a", (request_draft("ask"),), decided_at=1)), Appended)


def test_a_result_is_put_on_top_of_a_run_that_moved_on(ledger: Ledger) -> None:
    base = start(ledger)
    moved = record(ledger, "wf_a", step_draft("one"))
    outcome = record(ledger, "wf_a", step_draft("two"))
    assert (outcome.base, outcome.receipts[0].seq) == (moved.head.tip, 2)
    assert base.head.tip != outcome.base


def test_nothing_follows_the_result(ledger: Ledger) -> None:
    ended = finished(ledger, "wf_a")
    assert append(ledger, Entry("wf_a", (step_draft("late"),))) == Ended(ended.head)
    assert append(ledger, Entry("wf_a", (end_draft("failed"),), decided_at=1)) == Ended(ended.head)
    assert append(ledger, Entry("wf_a", (), files={layout.README: b"x"})) == Ended(ended.head)
    assert len(ledger.read("wf_a")[1]) == 2


def test_who_answers_after_the_end_is_still_told_who_answered(ledger: Ledger) -> None:
    start(ledger)
    asked = request_draft("ask")
    record(ledger, "wf_a", asked)
    answered = record(ledger, "wf_a", response_draft("ask", asked, by="ada"))
    record(ledger, "wf_a", end_draft())
    outcome = append(ledger, Entry("wf_a", (response_draft("ask", asked, by="bob"),)))
    assert isinstance(outcome, PathTaken)
    assert outcome.winner == answered.receipts[0]


def test_entries_of_several_runs_go_in_one_append(ledger: Ledger) -> None:
    for run_id in ("wf_a", "wf_b"):
        start(ledger, run_id)
    finished(ledger, "wf_c")
    entries = [Entry(run_id, (step_draft(f"s{n}"),)) for n, run_id in enumerate(["wf_a", "wf_b", "wf_a", "wf_c"])]
    kinds = [type(outcome) for outcome in ledger.append(entries)]
    assert kinds == [Appended, Appended, Appended, Ended]
    assert [receipt.key for receipt in ledger.read("wf_a")[1]] == ["", "s0", "s2"]


def test_an_unknown_run_is_not_found_and_nothing_is_recorded(ledger: Ledger) -> None:
    start(ledger)
    with pytest.raises(NotFound, match="wf_x"):
        ledger.append([Entry("wf_a", (step_draft("work"),)), Entry("wf_x", (step_draft("work"),))])
    with pytest.raises(NotFound, match="wf_x"):
        ledger.read("wf_x")
    assert ledger.head("wf_x") is None
    assert len(ledger.read("wf_a")[1]) == 1


def test_reading_since_a_commit_gives_what_came_after(ledger: Ledger) -> None:
    tips = [start(ledger).head.tip, *(record(ledger, "wf_a", step_draft(f"s{n}")).head.tip for n in range(3))]
    assert [receipt.key for receipt in ledger.read("wf_a", since=tips[1])[1]] == ["s1", "s2"]
    assert ledger.read("wf_a", since=tips[3])[1] == []


def test_reading_since_a_commit_of_another_run_is_refused(ledger: Ledger) -> None:
    start(ledger)
    other = start(ledger, "wf_b")
    with pytest.raises(IntegrityError, match="not one of run wf_a"):
        ledger.read("wf_a", since=other.head.tip)


def test_files_travel_with_an_entry(ledger: Ledger) -> None:
    start(ledger)
    source = layout.source("0123456789ab", "pkg/flow.py")
    record(ledger, "wf_a", step_draft("work"), files={source: b"code", layout.README: b"one"})
    record(ledger, "wf_a", files={layout.README: b"two", source: b"code"})
    assert ledger.file("wf_a", source) == b"code"
    assert ledger.file("wf_a", layout.README) == b"two"
    assert ledger.file("wf_a", "steps") is None
    assert [receipt.seq for receipt in ledger.read("wf_a")[1]] == [0, 1]
    assert record(ledger, "wf_a", step_draft("next")).receipts[0].seq == 2


def test_a_recorded_file_never_changes(ledger: Ledger) -> None:
    start(ledger)
    source = layout.source("0123456789ab", "flow.py")
    record(ledger, "wf_a", files={source: b"code"})
    with pytest.raises(InvalidInput, match="never change"):
        append(ledger, Entry("wf_a", (), files={source: b"other code"}))


@pytest.mark.parametrize(
    "path", ["steps/../../x.json", "steps/.git/x.json", "steps//x.json", "/steps/x.json", "x.json", "steps/a\nb.json"]
)
def test_a_receipt_lies_where_the_layout_says(ledger: Ledger, path: str) -> None:
    start(ledger)
    with pytest.raises(InvalidInput, match="no place"):
        append(ledger, Entry("wf_a", (step_draft("work", path=path),)))


@pytest.mark.parametrize("path", ["steps/x.json", "source/0123456789ab/../x", "source/0123456789ab/.GIT/hooks/x", "x"])
def test_a_file_lies_where_the_layout_says(ledger: Ledger, path: str) -> None:
    start(ledger)
    with pytest.raises(InvalidInput, match="no place"):
        append(ledger, Entry("wf_a", (), files={path: b"x"}))


def test_an_entry_holds_something_and_no_path_twice(ledger: Ledger) -> None:
    start(ledger)
    with pytest.raises(InvalidInput, match="needs a receipt"):
        append(ledger, Entry("wf_a", ()))
    with pytest.raises(InvalidInput, match="two receipts"):
        append(ledger, Entry("wf_a", (step_draft("a"), step_draft("a"))))


def test_runs_are_listed_newest_first_and_living_before_sealed(ledger: Ledger) -> None:
    for name in ("wf_1", "wf_2"):
        finished(ledger, name)
    start(ledger, "wf_3")
    ledger.seal(keep=0)
    start(ledger, "wf_4")
    record(ledger, "wf_3", step_draft("work"))
    assert [(head.run_id, head.sealed) for head in ledger.heads()] == [
        ("wf_3", False),
        ("wf_4", False),
        ("wf_2", True),
        ("wf_1", True),
    ]


def test_sealing_takes_what_has_finished_and_only_once(ledger: Ledger) -> None:
    start(ledger, "wf_open")
    for name in ("wf_1", "Wf_2"):
        finished(ledger, name)
    assert (ledger.seal(), ledger.seal()) == (2, 0)
    finished(ledger, "wf_3")
    assert ledger.seal() == 1


def test_a_sealed_run_is_read_as_before(ledger: Ledger) -> None:
    start(ledger, "Wf_1")
    record(ledger, "Wf_1", step_draft("work", "x" * 70_000), files={layout.README: b"hello"})
    ended = record(ledger, "Wf_1", end_draft())
    before = ledger.read("Wf_1")[1]
    ledger.seal(keep=0)
    head, after = ledger.read("Wf_1")
    assert (head.tip, head.folder, head.sealed) == (ended.head.tip, ended.head.folder, True)
    assert ledger.head("Wf_1") == head
    assert after == before
    assert ledger.file("Wf_1", layout.README) == b"hello"
    assert ledger.verify("Wf_1") == []


def test_a_sealed_run_has_ended_and_its_id_is_taken(ledger: Ledger) -> None:
    finished(ledger, "Wf_1")
    ledger.seal(keep=0)
    outcome = append(ledger, Entry("Wf_1", (step_draft("late"),)))
    assert isinstance(outcome, Ended)
    assert outcome.head.sealed
    for name in ("Wf_1", "wf_1", "WF_1"):
        with pytest.raises(Conflict, match="Wf_1"):
            start(ledger, name)


def test_the_newest_finished_runs_keep_their_refs(ledger: Ledger) -> None:
    for number in range(4):
        finished(ledger, f"wf_{number}")
    ledger.seal(keep=2)
    assert {head.run_id: head.sealed for head in ledger.heads()} == {
        "wf_0": True,
        "wf_1": True,
        "wf_2": False,
        "wf_3": False,
    }


def test_threads_that_write_one_run_lose_nothing(ledger: Ledger) -> None:
    start(ledger)

    def write(thread: int) -> None:
        for number in range(10):
            record(ledger, "wf_a", step_draft(f"t{thread}/s{number}"))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    receipts = ledger.read("wf_a")[1]
    assert [receipt.seq for receipt in receipts] == list(range(41))
    assert ledger.verify("wf_a") == []


def test_threads_that_start_one_run_start_it_once(ledger: Ledger) -> None:
    outcomes: list[object] = []

    def create() -> None:
        try:
            outcomes.append(start(ledger, "wf_a"))
        except Conflict as error:
            outcomes.append(error)

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Appended", "Conflict", "Conflict", "Conflict"]


def test_an_entry_with_the_start_of_a_run_cannot_be_appended_twice(ledger: Ledger) -> None:
    created = start(ledger)
    assert append(ledger, Entry("wf_a", (run_draft(),))) == PathTaken(created.head, created.receipts[0])
