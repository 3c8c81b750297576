"""Files that a run has kept: found by their hash, shown as what they are, or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.contract.workspaces import Desk
from tests.web.browser import app_of, browser, waiting_desk

from hermes_workflows.core import layout
from hermes_workflows.core.receipts import Author, CallReceipt, Execution, draft
from hermes_workflows.store.ports import Entry

PNG = b"\x89PNG\r\n\x1a\n rest"
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    return waiting_desk(tmp_path)


@pytest.fixture
def client(made: Desk) -> Iterator[TestClient]:
    with browser(app_of(made)) as client:
        yield client


def keep(made: Desk, name: str, data: bytes, media_type: str) -> str:
    sha256 = hashlib.sha256(data).hexdigest()
    kept = CallReceipt(
        path=layout.step(sha256[:8]),
        key=sha256[:8],
        kind="artifact",
        status="completed",
        fingerprint="fp1:sha256:" + "3" * 64,
        request={"name": name},
        output={"name": name, "sha256": sha256, "size": len(data), "media_type": media_type},
        execution=Execution(finished_at=made.now(), requested_after=0),
    )
    entry = Entry("wf", (draft(kept, Author("workflow")),), files={layout.artifact(sha256): data})
    made.ledger.append([entry])
    return f"/artifacts/wf/{sha256}"


def test_a_picture_is_shown_when_its_bytes_say_so_too(made: Desk, client: TestClient) -> None:
    answer = client.get(keep(made, "a.png", PNG, "image/png"))
    assert (answer.headers["content-type"], answer.headers["content-disposition"]) == ("image/png", "inline")
    answer = client.get(keep(made, "b.png", b"<html>", "image/png"))
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")


def test_all_else_is_a_download_in_a_sandbox(made: Desk, client: TestClient) -> None:
    for name, data, kind in (("x.svg", SVG, "image/svg+xml"), ("x.html", b"<script>", "text/html")):
        answer = client.get(keep(made, name, data, kind))
        assert answer.content == data
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].startswith("attachment")
        assert "sandbox" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_name_cannot_leave_its_header(made: Desk, client: TestClient) -> None:
    answer = client.get(keep(made, 'a"; filename=evil\r\nSet-Cookie: x=y.md', b"hm", "text/plain"))
    assert "set-cookie" not in answer.headers
    assert answer.headers["content-disposition"].count('"') == 2


def test_what_is_no_hash_is_not_looked_up(client: TestClient) -> None:
    for wrong in ("a.png", "0" * 63, "..%2f..%2fetc%2fpasswd", "0" * 64):
        assert client.get(f"/artifacts/wf/{wrong}").status_code == 404


def test_a_question_shows_the_files_of_its_run_with_their_beginning(made: Desk, client: TestClient) -> None:
    href = keep(made, "notes.md", b"# Notes\n\n<script>alert(1)</script>", "text/markdown")
    picture = keep(made, "a.png", PNG, "image/png")
    page = client.get("/reviews/wf/ok").text
    assert f'<a href="{href}">notes.md</a>' in page
    assert "<h4>Notes</h4>" in page
    assert "<script>alert" not in page
    assert f'<img src="{picture}" alt="a.png"' in page
