"""What a forge is told of a run, and where it is told."""

from __future__ import annotations

import re

import pytest
from tests.contract.published import desk_on_git
from tests.contract.workspaces import Desk

from hermes_workflows.core import layout
from hermes_workflows.core.identity import request_fingerprint
from hermes_workflows.core.receipts import CallReceipt, Execution
from hermes_workflows.errors import InvalidInput
from hermes_workflows.publishing import Address, Published, address_in, address_of, text_of
from hermes_workflows.store.ports import Entry

__all__ = ["desk_on_git"]


@pytest.mark.parametrize(
    ("url", "there"),
    [
        ("git@github.com:acme/runs.git", Address("github.com", "acme/runs")),
        ("https://github.com/acme/runs", Address("github.com", "acme/runs")),
        ("https://token@ghe.example.org/acme/runs.git/", Address("ghe.example.org", "acme/runs")),
        ("ssh://git@example.org:2222/acme/runs.git", Address("example.org", "acme/runs")),
        ("/srv/git/acme/runs.git", None),
        ("../hub.git", None),
        ("file:///srv/acme/runs.git", None),
        ("https://example.org/runs.git", None),
        ("https://example.org/group/sub/runs.git", None),
    ],
)
def test_a_remotes_address_says_which_repository_of_a_forge_it_is(url: str, there: Address | None) -> None:
    assert address_in(url) == there


def test_a_repository_is_named_by_owner_and_name() -> None:
    assert address_of("acme/runs") == Address("github.com", "acme/runs")
    assert address_of("ghe.example.org/acme/runs") == Address("ghe.example.org", "acme/runs")
    for wrong in ("acme", "acme/runs/x", "../runs", "-x/y", "a/b?c", "a b/c", "a/.."):
        with pytest.raises(InvalidInput):
            address_of(wrong)


def test_each_forge_has_its_own_page_for_a_new_pull_request() -> None:
    assert address_of("a/b").new_pull_request("main", "run/wf") == (
        "https://github.com/a/b/compare/main...run/wf?expand=1"
    )
    assert "merge_requests/new?merge_request%5Bsource_branch%5D=run%2Fwf" in address_of(
        "gitlab.example.org/a/b"
    ).new_pull_request("main", "run/wf")


def published(desk: Desk) -> Published:
    head = desk.ledger.head("wf")
    assert head
    there = Address("github.com", "acme/runs")
    return Published("wf", "run/wf", "main", head.tip, head.tip, head.folder, "origin", True, there)


def call(key: str, output: str) -> CallReceipt:
    request = {"name": "work", "input": {}}
    return CallReceipt(
        kind="agent",
        key=key,
        status="completed",
        fingerprint=request_fingerprint("agent", request),
        request=request,
        output=output,
        execution=Execution(transcript={"stdout": output}),
        path=layout.step(key),
    )


def test_a_run_of_five_megabytes_fits_and_does_nothing(desk_on_git: Desk) -> None:
    foreign = "@octocat fixes #12\n::set-output name=x::y\n```\n# heading\n~~~\n/merge\n" + "long " * 20_000
    for number in range(50):
        desk_on_git.append("wf", call(f"draft-{number}", foreign))
    text = text_of(desk_on_git.workspace, desk_on_git.workspace.find("wf"), published(desk_on_git))
    assert len(text.body) < 65_536
    assert text.body.startswith("# Run `wf`")
    assert not re.search(r"@octocat|#12|^\s*::set|^/merge\b|\bfixes\b", text.body, re.M)
    fences = re.findall(r"^(`{3,}|~{3,})", text.body, re.M)
    assert len(fences) % 2 == 0


def test_links_into_the_runs_folder_lead_to_the_forge(desk_on_git: Desk) -> None:
    shown = published(desk_on_git)
    readme = b"# Run\n\n[x](artifacts/aa/bb) and [y](https://example.org) and [z](run.json)\n"
    desk_on_git.ledger.append([Entry("wf", (), files={layout.README: readme})])
    body = text_of(desk_on_git.workspace, desk_on_git.workspace.find("wf"), shown).body
    assert f"[x](https://github.com/acme/runs/blob/run/wf/{shown.folder}/artifacts/aa/bb)" in body
    assert f"[z](https://github.com/acme/runs/blob/run/wf/{shown.folder}/run.json)" in body
    assert "[y](https://example.org)" in body
