"""Names and texts of anybody as plain git takes them: paths, refs, subjects, trailers and people of commits."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.ledgers import NOON, end_draft, git, open_git, record, run_draft, step_draft
from tests.hostile import PIECES, SIGNS, STORABLE

from hermes_workflows.core import layout
from hermes_workflows.core.messages import receipt_trailers
from hermes_workflows.core.names import check_run_id, clean_key, is_one_line, source_paths
from hermes_workflows.core.receipts import Author, Draft, Execution, Provenance, SignalReceipt, draft
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.ports import Entry

IDS = ("con", "CON.x", "aux.1", "a..b", "x.lock", "a.", "A" * 100, "git-1", "wf_a", "WF_A.x", "HEAD", "x.git")
NAMES = [name for name in dict.fromkeys((*PIECES, *SIGNS)) if name.replace("/", "")]
# What a checkout on macOS and on Windows refuses, refused here as well.
STRICT = ("-c", "core.protectHFS=true", "-c", "core.protectNTFS=true")


def hostile_drafts() -> Iterator[Draft]:
    for name in NAMES:
        # A slash is a folder, and one name may lie in the other's.
        key = clean_key(f"k/{clean_key(name)}/x")
        text = name.replace("\ud800", "").replace("\udfff", "")
        yield step_draft(key, text, author=text)
        if is_one_line(name):
            by = Provenance(kind="human", by=text, channel="cli")
            receipt = SignalReceipt(
                path=layout.signal(clean_key(f"s-{name}"), 1),
                key=f"s-{name}",
                status="received",
                output=text,
                execution=Execution(finished_at=NOON, provenance=by),
            )
            yield draft(receipt, Author(text, f"{text}@example.org"))
    yield step_draft("everything", STORABLE, author=STORABLE)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitLedger]:
    """Runs under all those ids; `wf_a` has a receipt and a source under every name."""
    made = open_git(tmp_path_factory.mktemp("names"))
    for run_id in IDS:
        made.create(Entry(check_run_id(run_id), (run_draft(),)), "2026-11-29")
    files = [name for name in NAMES if name not in (".", "..") and not set(name) & set("/\0\ud800\udfff")]
    names = source_paths([f"prompts/{name}" for name in files])
    sources = {layout.source("0" * 12, name): b"x\n" for name in names.values()}
    drafts = list(hostile_drafts())
    record(made, "wf_a", drafts[0], files=sources)
    for first in range(1, len(drafts)):
        record(made, "wf_a", drafts[first])
    record(made, "wf_a", end_draft(output=STORABLE))
    yield made
    made.close()


def test_every_ref_is_one_and_no_object_breaks_a_rule_of_git(ledger: GitLedger) -> None:
    refs = git(ledger, "for-each-ref", "--format=%(refname)").split("\n")[:-1]
    assert len({ref.casefold() for ref in refs if ref.startswith("refs/runs/")}) == len(IDS)
    for ref in refs:
        subprocess.run(["git", "check-ref-format", ref], check=True)
    assert git(ledger, "fsck", "--strict", "--full", "--no-dangling") == ""


def test_a_clone_checks_every_name_out_with_the_guards_of_every_system(ledger: GitLedger, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, *STRICT, "clone", "--quiet", "--no-checkout", str(ledger.path), str(clone))
    git(clone, "fetch", "--quiet", "origin", "refs/runs/wf_a:refs/heads/it")
    git(clone, *STRICT, "checkout", "--quiet", "it")
    listed = git(clone, "ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0")[:-1]
    assert sorted(listed) == sorted(
        str(path.relative_to(clone)) for path in clone.rglob("*") if path.is_file() and ".git" not in path.parts[:20]
    )
    assert git(clone, "status", "--porcelain") == ""
    assert len({path.casefold() for path in listed}) == len(listed)
    receipts = [path for path in listed if "/source/" not in path and not path.startswith(".git")]
    assert all(re.fullmatch(r"[A-Za-z0-9._/-]+", path) and len(path) < 1100 for path in receipts)


def test_git_finds_the_trailers_that_were_written_and_no_others(ledger: GitLedger) -> None:
    log = git(ledger, "log", "--reverse", "--format=%x00%(trailers:only,unfold)", "runs/wf_a").split("\0")[1:]
    found = [dict(line.split(": ", 1) for line in each.splitlines() if line) for each in log]
    receipts = ledger.read("wf_a")[1]
    wanted = [{f"Hermes-{name}": value for name, value in receipt_trailers("wf_a", each).items()} for each in receipts]
    assert found[0] == {}, "the commit that every repository begins with"
    assert found[1:] == wanted


def test_a_subject_is_one_short_line_and_a_person_one_name_and_address(ledger: GitLedger) -> None:
    log = git(ledger, "log", "--format=%s%x00%an%x00%ae%x00%(trailers:key=Signed-off-by)%x00%x01", "runs/wf_a")
    for each in log.split("\x01")[:-1]:
        subject, name, address, signed, _ = each.lstrip("\n").split("\0")
        assert subject.isprintable()
        assert 0 < len(subject) <= 72
        assert name.isprintable()
        assert name
        assert re.fullmatch(r"[^\s<>]+", address)
        assert signed == ""


def test_programs_that_read_mail_find_the_same_trailers(ledger: GitLedger) -> None:
    message = git(ledger, "log", "-1", "--format=%B", "runs/wf_a")
    command = ["git", "interpret-trailers", "--parse"]
    read = subprocess.run(command, input=message, capture_output=True, text=True, check=True).stdout
    assert read.splitlines() == [line for line in message.splitlines() if line.startswith("Hermes-")]
