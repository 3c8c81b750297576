"""What commits say of receipts: one short line, and trailers that nobody else can write."""

from __future__ import annotations

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hostile import TEXTS

from hermes_workflows.core import layout
from hermes_workflows.core.messages import (
    one_line,
    person_name,
    receipt_trailers,
    receipts_message,
    run_named,
    trailers,
)
from hermes_workflows.core.receipts import Author, CallReceipt, Execution, Receipt, SignalReceipt
from hermes_workflows.errors import IntegrityError
from hermes_workflows.store.commits import Commit, parse


def receipt(key: str, name: str) -> Receipt:
    # Of others, keys may be anything.
    if name:
        return CallReceipt(
            path=layout.step("x"),
            key=key,
            kind="step",
            status="completed",
            request={"name": name},
            fingerprint="f",
            execution=Execution(),
        )
    return SignalReceipt(path=layout.signal("x", 1), key=key, status="received", execution=Execution())


PIECES = [
    "Hermes-Run: ",
    "Hermes-Run: a",
    "Hermes-Run: b c",
    "Hermes-Key: k",
    "subject",
    "\n",
    "\n\n",
    "\r",
    "\u2028",
    " ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
def test_the_run_that_a_message_names_is_that_of_its_first_block_with_one(message: str) -> None:
    assert run_named(message) == next((block["Run"] for block in trailers(message) if "Run" in block), None)


COMMIT = f"tree {40 * 'a'}\nparent {40 * 'b'}\nauthor a <b> 1 +0000\ncommitter c <d> 2 +0000\n\ntext\n"


@given(
    st.integers(0, len(COMMIT) - 1),
    st.sampled_from(["", "\n", " ", "parent ", "encoding x\n", "\r", "é", "٣", "0", "-"]),
)
def test_a_commit_that_is_not_as_usual_is_whole_or_damaged(place: int, odd: str) -> None:
    data = COMMIT[:place] + odd + COMMIT[place + 1 :]
    try:
        found = parse(data.encode(), b"")
    except IntegrityError:
        return
    head, _, message = data.partition("\n\n")
    fields = dict(line.partition(" ")[::2] for line in reversed(head.split("\n")))
    assert (found.tree.hex(), found.message) == (fields["tree"], message)
    assert [parent.hex() for parent in found.parents] == [
        line[7:] for line in head.split("\n") if line.startswith("parent ")
    ]
    assert found.author.name == fields["author"].partition(" <")[0]
    assert found.time == int(fields["committer"].split()[-2])


@settings(deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3))
def test_a_message_has_the_trailers_of_its_receipts_and_no_others(told: list[tuple[str, str]]) -> None:
    receipts = [receipt(key, name) for key, name in told]
    message = receipts_message("wf", receipts, 0)
    assert trailers(message) == [receipt_trailers("wf", each) for each in receipts]
    subject, empty, *lines = message.split("\n")
    assert empty == ""
    assert 0 < len(subject) <= 72
    assert not any(unicodedata.category(char)[0] == "C" for char in message if char != "\n")
    assert all(line == "" or line.startswith("Hermes-") for line in lines)


@settings(deadline=None)
@given(TEXTS, TEXTS, TEXTS)
def test_a_person_is_one_name_and_one_address_in_a_commit_that_is_read_as_it_was_written(
    name: str, email: str, text: str
) -> None:
    who = Author(name, email)
    commit = Commit(bytes(20), (), f"{one_line(text)}\n", who, who, 0)
    written = commit.serialise()
    read = parse(written, bytes(20))
    assert read.author.name == person_name(name) != ""
    assert read.message == commit.message
    assert (read.tree, read.parents, read.time) == (commit.tree, (), 0)
    assert read.serialise() == written


@settings(deadline=None)
@given(TEXTS)
def test_a_line_stays_the_line_it_is(text: str) -> None:
    line = one_line(text)
    assert one_line(line) == line
    assert len(line.splitlines()) <= 1
    line.encode()
