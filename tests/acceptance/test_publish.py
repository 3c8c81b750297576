"""`publish` and `review import`, as processes, against a bare repository and a `gh` that speaks recorded JSON."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.acceptance.command_line import REGISTRY, Place, place
from tests.acceptance.forge import Forge, forge

TOLD = {**REGISTRY, "pull_requests": {"repository": "acme/runs", "every": 0.2}}


@pytest.fixture
def there(tmp_path: Path) -> Forge:
    return forge(tmp_path)


@pytest.fixture
def here(tmp_path: Path, there: Forge) -> Place:
    """A workspace whose run `wf` asks `review_draft`, and whose remote is the hub."""
    made = place(tmp_path / "work", TOLD, **there.environment)
    for said in (made.start(), made.work()):
        assert said.code == 0, said.stderr
    made.git("remote", "add", "origin", str(there.hub))
    return made


def tip(here: Place) -> str:
    return here.git("rev-parse", "refs/runs/wf").strip()


def test_a_published_branch_differs_from_main_by_exactly_the_run(here: Place, there: Forge) -> None:
    said = here.run("publish", "wf")
    assert said.code == 0, said.stderr
    assert (said.json["branch"], said.json["commit"], said.json["new"]) == ("run/wf", tip(here), True)
    assert there.git("rev-parse", "run/wf") == tip(here)
    names = there.git("diff", "--name-only", "main...run/wf").splitlines()
    assert names
    assert all("/wf/" in name for name in names)
    assert said.json["git"].startswith("git -C .hermes/workflows.git push origin ")


@pytest.mark.parametrize("merge", ["merge --no-ff", "merge --squash"])
def test_after_an_earlier_run_was_merged_or_squashed_it_still_does(
    here: Place, there: Forge, tmp_path: Path, merge: str
) -> None:
    here.run("publish", "wf")
    clone = tmp_path / "clone"
    commands = f"""
        git clone -q {there.hub} {clone} && cd {clone}
        git config user.name Ana && git config user.email ana@example.org
        git {merge} -q origin/run/wf && git commit -q --allow-empty -m merged && git push -q origin main
    """
    subprocess.run(["sh", "-ec", commands], check=True, capture_output=True)
    here.start("wf_2")
    here.work()
    assert here.run("publish", "wf_2").code == 0
    names = there.git("diff", "--name-only", "main...run/wf_2").splitlines()
    assert names
    assert all("/wf_2/" in name for name in names)


def test_a_pull_request_is_opened_once_and_brought_up_to_date(here: Place, there: Forge) -> None:
    said = here.run("publish", "wf", "--pr")
    assert said.code == 0, said.stderr
    assert said.json["pull_request"] == {"repository": "acme/runs", "number": 7, "new": True}
    assert said.json["url"] == "https://forge.test/acme/runs/pull/7"
    pull = there.answered("pulls/7")
    assert (pull["head"]["ref"], pull["base"]["ref"]) == ("run/wf", "main")
    assert pull["title"] == "Run wf: waiting on review_draft"
    assert pull["body"].startswith("# Run `wf`")
    assert Path(said.json["body_file"]).read_text() == pull["body"]
    again = here.run("publish", "wf", "--pr")
    assert again.json["pull_request"]["new"] is False
    assert [one["method"] for one in there.asked if one["method"] != "GET"] == ["POST", "PATCH"]


def test_without_gh_the_page_and_the_body_are_told(here: Place, tmp_path: Path) -> None:
    git = tmp_path / "only-git"
    git.mkdir()
    (git / "git").symlink_to("/usr/bin/git")
    here.environment["PATH"] = str(git)
    said = here.run("publish", "wf", "--pr")
    assert said.code == 0, said.stderr
    assert said.json["pull_request"] is None
    assert said.json["url"] == "https://github.com/acme/runs/compare/main...run/wf?expand=1"
    assert Path(said.json["body_file"]).read_text().startswith("# Run `wf`")
    refused = here.run("review", "import", "--pr", "7")
    assert (refused.code, "the program gh, and it is not there" in refused.error["message"]) == (4, True)


def test_a_branch_that_got_no_pull_request_is_told_with_the_file_of_its_text(here: Place, there: Forge) -> None:
    gh = there.folder / "gh"
    gh.write_text(
        gh.read_text().replace(
            'if method == "POST" and', 'if method == "POST":\n    raise SystemExit(1)\nif method == "POST" and'
        )
    )
    said = here.run("publish", "wf", "--pr")
    assert said.error["message"].startswith("the branch is there, and no pull request was opened: ")
    assert there.git("rev-parse", "run/wf") == tip(here)
    assert Path(said.error["hint"].rpartition("its text is in ")[2]).read_text().startswith("# Run `wf`")


def test_an_approval_on_the_forge_lets_the_run_go_on(here: Place, there: Forge) -> None:
    here.run("publish", "wf", "--pr")
    there.permit("ana", "write")
    there.review("ana", "APPROVED", tip(here), "Ship it.")
    said = here.run("review", "import", "--pr", "7")
    assert said.code == 0, said.stderr
    (answer,) = said.json["answers"]
    assert (answer["outcome"], answer["kind"], answer["by"]) == ("recorded", "human", "ana")
    here.work()
    assert here.run("status", "wf").json["status"] == "completed"
    shown = here.run("review", "show", "wf", "review_draft").json
    assert shown["answer"] == {"action": "approve", "feedback": "Ship it."}
    assert shown["provenance"]["origin"] == {
        "repository": "acme/runs",
        "number": "7",
        "review": "31",
        "login": "ana",
        "commit": there.git("rev-parse", "run/wf"),
        "url": "https://forge.test/acme/runs/pull/7#pullrequestreview-31",
    }
    assert here.run("verify").code == 0


def test_a_refusal_is_replied_with_its_reasons_once(here: Place, there: Forge) -> None:
    here.run("publish", "wf", "--pr")
    there.review("robot", "APPROVED", tip(here))
    for _ in range(2):
        said = here.run("review", "import", "--pr", "7")
        assert (said.code, said.json["refused"]) == (0, 1)
    (reply,) = there.answered("issues/7/comments")
    assert "nobody approves their own" in reply["body"]
    assert "no write access" in reply["body"]


def test_a_runner_polls_when_the_registry_says_so(here: Place, there: Forge) -> None:
    here.run("publish", "wf", "--pr")
    there.permit("ana", "admin")
    there.review("ana", "CHANGES_REQUESTED", tip(here), "Shorter.")
    here.run("runner", "run", "--idle-exit-after", "3")
    status = here.run("status", "wf").json
    assert (status["status"], status["result"]) == ("completed", "Draft of docs: revise")


def test_reviews_from_a_file_are_manual(here: Place, tmp_path: Path) -> None:
    repository = {"full_name": "acme/runs"}
    document = {
        "pull_request": {
            "number": 3,
            "user": {"login": "robot"},
            "head": {"ref": "run/wf", "repo": repository},
            "base": {"ref": "main", "repo": repository},
        },
        "reviews": [{"id": 1, "user": {"login": "ana"}, "state": "APPROVED", "body": "", "commit_id": tip(here)}],
        "permissions": {"ana": "write"},
    }
    (here.root / "reviews.json").write_text(json.dumps(document))
    said = here.run("review", "import", "--file", "reviews.json")
    assert said.code == 0, said.stderr
    assert (said.json["recorded"], said.json["answers"][0]["kind"]) == (1, "manual")
    (here.root / "reviews.json").write_text(json.dumps(document["reviews"]))
    assert here.run("review", "import", "--file", "reviews.json").error["code"] == "invalid_input"


def commit_answer(there: Forge, tmp_path: Path, answer: str) -> str:
    """As on a forge's web page: a file is added to the run's branch."""
    commands = f"""
        git clone -q -b run/wf {there.hub} {tmp_path}/web && cd {tmp_path}/web
        git config user.name Ana && git config user.email ana@example.org
        cd runs/*/wf/reviews/review_draft && echo '{answer}' > response.json
        git add . && git commit -q -m 'Answer' && git push -q origin run/wf && git rev-parse HEAD
    """
    done = subprocess.run(["sh", "-ec", commands], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_an_answer_committed_to_the_runs_branch_is_taken_on_fetch(here: Place, there: Forge, tmp_path: Path) -> None:
    here.run("publish", "wf")
    commit = commit_answer(there, tmp_path, '{"action": "approve", "feedback": ""}')
    assert here.run("publish", "wf").error["code"] == "conflict"
    (answer,) = here.run("fetch").json["answers"]
    assert (answer["outcome"], answer["by"], answer["source"]) == ("recorded", "Ana", commit[:12])
    here.work()
    shown = here.run("review", "show", "wf", "review_draft").json
    assert (shown["provenance"]["kind"], shown["provenance"]["message_id"]) == ("manual", commit)
    # The answer is recorded, so the run's own tip may take the branch again.
    said = here.run("publish", "wf")
    assert said.code == 0, said.stderr
    assert there.git("rev-parse", "run/wf") == tip(here)


def test_a_commit_that_was_not_taken_keeps_its_branch(here: Place, there: Forge, tmp_path: Path) -> None:
    here.run("publish", "wf")
    commit = commit_answer(there, tmp_path, '{"action": "maybe"}')
    (refused,) = here.run("fetch").json["answers"]
    assert refused["outcome"] == "refused"
    assert any("/action" in reason for reason in refused["reasons"])
    here.run("review", "respond", "wf", "review_draft", "--action", "approve")
    here.work()
    said = here.run("publish", "wf")
    assert said.code == 5
    assert there.git("rev-parse", "run/wf") == commit
    # The way out is named, and is theirs to take.
    here.git(*said.error["hint"].rpartition("`git -C ")[2].rstrip("`").split()[1:])
    assert there.git("rev-parse", "run/wf") == tip(here)


def test_a_repository_of_code_is_no_place_for_receipts(here: Place, there: Forge, tmp_path: Path) -> None:
    commands = f"""
        git init -q -b main {tmp_path}/code && cd {tmp_path}/code && echo 1 > app.py && git add .
        git -c user.name=A -c user.email=a@b commit -q -m code && git push -q {there.hub} main
    """
    subprocess.run(["sh", "-ec", commands], check=True, capture_output=True)
    error = here.run("publish", "wf").error
    assert error["code"] == "conflict"
    assert "--into" in error["hint"]
    said = here.run("publish", "wf", "--into", str(tmp_path / "code"))
    assert said.code == 0, said.stderr
    assert said.json["folder"] == ".hermes/runs/wf"
    # A commit was made and nothing pushed: the command is still to be run.
    assert (said.json["git"], said.json["next_action"]) == (None, f"git -C {tmp_path}/code push origin run/wf")
    done = subprocess.run(
        ["git", "-C", tmp_path / "code", "log", "-1", "--format=%(trailers:key=Hermes-Tip,valueonly)", "run/wf"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == tip(here)


def test_what_cannot_be_published_is_told(here: Place) -> None:
    assert here.run("publish", "other").code == 4
    assert here.run("publish", "wf@writer").code == 2
    assert here.run("publish", "wf", "--base", "main").code == 2
    assert here.run("publish", "wf", "--remote", "nowhere").code == 4
    assert here.run("review", "import", "--pr", "99").code == 4


def test_reviews_that_are_nowhere_to_be_had_are_told(here: Place) -> None:
    missing = here.run("review", "import", "--file", "none.json")
    assert (missing.code, "none.json" in missing.error["message"]) == (4, True)
    (here.root / ".hermes" / "workflows.registry.json").write_text(json.dumps(REGISTRY))
    nowhere = here.run("review", "import", "--pr", "7")
    assert (nowhere.code, nowhere.error["message"]) == (2, "nothing says which repository the pull request is in")
    assert "--repository OWNER/NAME" in nowhere.error["hint"]


def test_a_runner_takes_an_answer_that_is_pushed_here(here: Place, tmp_path: Path) -> None:
    commands = f"""
        git clone -q {here.receipts} {tmp_path}/clone && cd {tmp_path}/clone
        git config user.name Ana && git config user.email ana@example.org
        git fetch -q origin refs/runs/wf && git switch -q --detach FETCH_HEAD
        cd runs/*/wf/reviews/review_draft && echo '{{"action": "approve"}}' > response.json
        git add . && git commit -q -m Answer && git push -q origin HEAD:refs/heads/answer/wf
    """
    subprocess.run(["sh", "-ec", commands], check=True, capture_output=True)
    here.work()
    assert here.run("status", "wf").json["status"] == "completed"
    assert here.git("for-each-ref", "refs/heads/answer") == ""


def test_outputs_and_code_are_reviewed_in_one_pull_request(here: Place, there: Forge, tmp_path: Path) -> None:
    commands = f"""
        git init -q --bare {tmp_path}/code-hub.git && git init -q -b main {tmp_path}/code && cd {tmp_path}/code
        git -c user.name=A -c user.email=a@b commit -q --allow-empty -m code
        git remote add origin {tmp_path}/code-hub.git && git push -q origin main
    """
    subprocess.run(["sh", "-ec", commands], check=True, capture_output=True)
    code = str(tmp_path / "code")
    said = here.run("publish", "wf", "--into", code, "--pr", "--repository", "acme/runs")
    assert said.code == 0, said.stderr
    commit = said.json["commit"]
    hub = ["git", "-C", f"{tmp_path}/code-hub.git"]
    assert subprocess.check_output([*hub, "rev-parse", "run/wf"], text=True).strip() == commit
    path = ".hermes/runs/wf/reviews/review_draft/request.json"
    blob = subprocess.check_output([*hub, "rev-parse", f"run/wf:{path}"], text=True).strip()
    there.permit("ana", "write")
    there.review("ana", "APPROVED", commit)
    # Until the forge has that very question at that commit, the approval is of something else.
    assert here.run("review", "import", "--pr", "7").json["refused"] == 1
    there.answer(f"contents/{path}", {"type": "file", "sha": blob})
    said = here.run("review", "import", "--pr", "7", "--repository", "acme/runs")
    assert (said.code, said.json["recorded"]) == (0, 1), said.stderr
    again = here.run("publish", "wf", "--into", code, "--pr", "--repository", "acme/runs")
    assert again.json["pull_request"] == {"repository": "acme/runs", "number": 7, "new": False}
    assert again.json["new"] is True
