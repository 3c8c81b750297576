"""`artifact`: files that a run keeps beside its receipts."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from tests.runner.desks import Desk

from hermes_workflows.core import layout

KEEPING = """
from hermes_workflows.authoring import Artifact, artifact

@workflow
async def flow() -> Any:
    return await artifact({content}, name={name!r})
"""
TOKEN = "correct-horse-battery"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, environment={"API_TOKEN": TOKEN})


def keep(desk: Desk, content: str, name: str | None = None) -> Any:
    return desk.run(KEEPING.format(content=content, name=name))


def kept(desk: Desk, data: bytes) -> bytes | None:
    return desk.ledger.file("wf", layout.artifact(hashlib.sha256(data).hexdigest()))


def test_a_file_lies_beside_its_receipt_under_the_name_of_its_content(desk: Desk) -> None:
    (desk.root / "out").mkdir()
    (desk.root / "out" / "report.md").write_bytes(b"# It\n")
    done = keep(desk, "Path('out/report.md')")
    sha = hashlib.sha256(b"# It\n").hexdigest()
    assert done.result == {"name": "report.md", "sha256": sha, "size": 5, "media_type": "text/markdown"}
    assert kept(desk, b"# It\n") == b"# It\n"
    receipt = desk.receipt("steps/report-md.json")
    assert receipt.request == {"name": "report.md", "media_type": None, "path": "out/report.md", "sha256": None}
    assert desk.ledger.verify("wf") == []


def test_bytes_and_texts_are_kept_exactly_and_stand_in_the_request_by_their_hash(desk: Desk) -> None:
    done = keep(desk, r"b'\x89PNG\r\n\x00'", "plot.png")
    assert (done.result["media_type"], done.result["size"]) == ("image/png", 7)
    assert kept(desk, b"\x89PNG\r\n\x00") is not None
    assert desk.receipt("steps/plot-png.json").request["sha256"] == done.result["sha256"]


@pytest.mark.parametrize(("content", "told"), [("'plain'", "text/plain"), (r"b'\xff'", "application/octet-stream")])
def test_a_name_that_says_nothing_leaves_text_or_bytes(desk: Desk, content: str, told: str) -> None:
    assert keep(desk, content, "thing").result["media_type"] == told


def test_a_changed_file_is_no_other_request_and_the_kept_one_stays(desk: Desk) -> None:
    code = KEEPING.format(content="Path('data')", name=None) + "    await ask('go?', key='go', returns=str)\n"
    (desk.root / "data").write_text("one")
    desk.run(code.replace("return await artifact", "await artifact"))
    (desk.root / "data").write_text("two")
    desk.answer("go", "yes")
    desk.work("other", on=desk.process())
    assert desk.summary().status == "completed"
    assert kept(desk, b"one") == b"one"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("Path('gone.txt')", "gone.txt: No such file or directory"),
        ("Path('.')", ". is no file"),
        ("Path('big')", "more than an artifact of 20,971,520 holds"),
        ("Path('secret')", "a secret, which an artifact would keep as it is"),
        ("(HERE / 'secret').read_text()", "a secret, which an artifact would keep as it is"),
        ("'\\ud800'", "a lone surrogate"),
    ],
)
def test_what_cannot_be_kept_fails_the_call_once_and_says_why(desk: Desk, content: str, reason: str) -> None:
    with (desk.root / "big").open("wb") as file:
        file.truncate((20 << 20) + 1)
    (desk.root / "secret").write_text(f"export API_TOKEN={TOKEN}")
    done = keep(desk, content, "it")
    assert done.error["type"] == "ArtifactFailed"
    assert reason in done.error["message"]
    assert str(desk.root) not in str(done.error)
    assert TOKEN.encode() not in b"".join(run for run in desk.ledger._runs["wf"].files.values())


def test_bytes_without_a_name_are_a_mistake_of_the_author(desk: Desk) -> None:
    done = keep(desk, "'report.md'")
    assert "needs name=" in done.error["message"]


@pytest.mark.parametrize("name", ["con", "..", ".git", "報告書" * 100, "🎉.json", "a/b\\c", "x" * 5000, "request"])
def test_any_name_is_kept_as_it_is_and_gives_a_usable_path(desk: Desk, name: str) -> None:
    assert keep(desk, "'text'", name).result["name"] == name
    assert desk.ledger.verify("wf") == []
    assert desk.workspace.artifact("wf", name)[1] == b"text"


def test_one_content_under_two_names_lies_there_once(desk: Desk) -> None:
    done = desk.run("""
from hermes_workflows.authoring import artifact

@workflow
async def flow() -> list[str]:
    kept = await parallel([artifact("same", name=name) for name in ("a", "b", "b")])
    return [each.sha256 for each in kept]
""")
    assert len(set(done.result)) == 1
    assert [each.key for each in desk.workspace.artifacts("wf")] == ["a", "b", "b-2"]
