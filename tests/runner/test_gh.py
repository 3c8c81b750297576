"""GitHub through `gh`: what it says is read strictly, and what it cannot say is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acceptance.forge import Forge, forge
from tests.contract.queues import FrozenClock

from hermes_workflows.core.redaction import Redactor
from hermes_workflows.errors import NotFound, RemoteFailure
from hermes_workflows.publishing import Address
from hermes_workflows.review.pull_requests import PullRequest
from hermes_workflows.runner.gh import Gh

PULL = PullRequest("acme/runs", 7, "https://forge.test/acme/runs/pull/7", "robot", "run/wf")


@pytest.fixture
def there(tmp_path: Path) -> Forge:
    return forge(tmp_path)


def gh(there: Forge, host: str = "github.com", **environment: str) -> Gh:
    return Gh(Address(host, "acme/runs"), there.folder, there.environment | environment, Redactor(), FrozenClock())


def speaks(there: Forge, script: str) -> None:
    (there.folder / "gh").write_text(f"#!/bin/sh\n{script}\n")


def test_nobody_who_is_unknown_may_write(there: Forge) -> None:
    there.permit("ana", "write")
    assert [gh(there).permission(PULL, login) for login in ("ana", "eve")] == ["write", "none"]


def test_a_permission_is_asked_for_once(there: Forge) -> None:
    asking = gh(there)
    for _ in range(3):
        asking.permission(PULL, "ana")
    assert len(there.asked) == 1


def test_reviews_come_from_all_pages(there: Forge) -> None:
    for number in range(100):
        there.review("ana", "COMMENTED", "a" * 40, number=number)
    assert len(gh(there).reviews(PULL)) == 100
    assert [one["query"] for one in there.asked] == ["per_page=100&page=1", "per_page=100&page=2"]


def test_a_file_of_a_commit_is_known_by_its_id(there: Forge) -> None:
    there.answer("contents/.hermes/runs/wf/run.json", {"type": "file", "sha": "b" * 40})
    there.answer("contents/folder", [{"type": "file", "sha": "c" * 40}])
    there.answer("contents/link", {"type": "symlink", "sha": "d" * 40})
    ids = [gh(there).blob(PULL, "a" * 40, path) for path in (".hermes/runs/wf/run.json", "folder", "link", "nothing")]
    assert ids == ["b" * 40, None, None, None]
    assert there.asked[0]["query"] == f"ref={'a' * 40}"


def test_what_is_not_there_is_not_found(there: Forge) -> None:
    with pytest.raises(NotFound, match="acme/runs has no pull request 8"):
        gh(there).pull_request(8)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'gh: Bad credentials (HTTP 401)' >&2; exit 1", "Bad credentials"),
        ("echo 'To get started with GitHub CLI, please run:  gh auth login' >&2; exit 4", "gh auth login"),
        ("echo '<html>'", "something else than JSON"),
        ("exit 3", "exit code 3"),
        ('echo \'{"a": 1, "a": 2}\'', "something else than JSON"),
    ],
)
def test_what_gh_cannot_do_is_told_in_its_words(there: Forge, script: str, why: str) -> None:
    speaks(there, script)
    with pytest.raises(RemoteFailure, match=why) as failed:
        gh(there).reviews(PULL)
    assert "gh auth status" in str(failed.value.hint) or "up to date" in str(failed.value.hint)


def test_another_host_is_named(there: Forge) -> None:
    speaks(there, f'echo "$@" > {there.folder}/said; echo []')
    gh(there, "ghe.example.org").of_branch("run/wf")
    said = (there.folder / "said").read_text()
    assert "--hostname ghe.example.org" in said
    assert "head=acme%3Arun%2Fwf" in said


def test_gh_hears_nothing_of_the_repository_that_we_run_in(there: Forge) -> None:
    speaks(there, f"env > {there.folder}/env; echo []")
    gh(there, GIT_DIR="/elsewhere", GH_TOKEN="t0ken-for-the-forge").of_branch("run/wf")
    told = (there.folder / "env").read_text()
    assert "GIT_DIR" not in told
    assert "GH_TOKEN=t0ken-for-the-forge" in told
    assert "GH_PROMPT_DISABLED=1" in told
