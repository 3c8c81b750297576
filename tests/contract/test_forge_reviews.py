"""Reviews of a pull request as answers: by whom, to which question, of what the reviewer had seen."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from tests.contract.published import SHIP, RecordedForge, desk_on_git
from tests.contract.workspaces import Desk, person

from hermes_workflows.core import layout
from hermes_workflows.core.inert import GAP
from hermes_workflows.errors import NotFound
from hermes_workflows.review.forge import import_pull_request
from hermes_workflows.review.imported import Imported
from hermes_workflows.review.pull_requests import ForgeReview, PullRequest

__all__ = ["desk_on_git"]

PULL = PullRequest("acme/runs", 7, "https://github.com/acme/runs/pull/7", "robot", "run/wf")


def tip(desk: Desk) -> str:
    head = desk.ledger.head("wf")
    assert head
    return head.tip


def review(desk: Desk, **more: object) -> ForgeReview:
    made = ForgeReview("31", "ana", False, "APPROVED", "Ship it.", tip(desk), f"{PULL.url}#pullrequestreview-31")
    return replace(made, **more)  # type: ignore[arg-type]  # each test names fields of the class


def forge(desk: Desk, *reviews: ForgeReview, **more: object) -> RecordedForge:
    return RecordedForge(PULL, reviews or [review(desk)], **more)  # type: ignore[arg-type]  # as above


def imported(desk: Desk, there: RecordedForge) -> Imported:
    (one,) = import_pull_request(desk.workspace, there, 7)
    return one


def test_an_approval_answers_the_question_that_was_on_the_screen(desk_on_git: Desk) -> None:
    seen = review(desk_on_git)
    assert imported(desk_on_git, forge(desk_on_git, seen)) == Imported("wf", "ok", "31", "ana", "recorded", "human")
    response = desk_on_git.workspace.review("wf", "ok").response
    assert response is not None
    assert response.output == SHIP
    by = response.execution.provenance
    assert by is not None
    assert by.origin is not None
    assert (by.kind, by.verified, by.by) == ("human", "forge-login", "ana")
    assert by.origin["commit"] == seen.commit
    assert by.origin["url"] == seen.url


def test_the_same_review_is_recorded_once(desk_on_git: Desk) -> None:
    there = forge(desk_on_git)
    imported(desk_on_git, there)
    before = tip(desk_on_git)
    assert imported(desk_on_git, there).outcome == "known"
    assert tip(desk_on_git) == before
    assert there.comments == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"login": "robot"}, "nobody approves their own"),
        ({"login": "eve"}, "eve has no write access to acme/runs (read)"),
        ({"login": "stranger"}, "(none)"),
        ({"login": ""}, "the account is gone"),
        ({"commit": "f" * 40}, "are at ffffffffffff as they were asked"),
        ({"text": "```json\n{}\n```"}, "/action"),
    ],
)
def test_a_review_that_may_not_count_is_refused_and_told_why_once(
    desk_on_git: Desk, change: dict[str, str], why: str
) -> None:
    before = tip(desk_on_git)
    there = forge(desk_on_git, review(desk_on_git, **change))
    one = imported(desk_on_git, there)
    assert one.outcome == "refused"
    assert any(why in reason for reason in one.reasons), one.reasons
    imported(desk_on_git, there)
    assert len(there.comments) == 1
    assert tip(desk_on_git) == before


def test_all_reasons_are_told_at_once_and_call_nobody(desk_on_git: Desk) -> None:
    text = '```json\n{"action": "@octocat fixes #1"}\n```'
    there = forge(desk_on_git, review(desk_on_git, text=text))
    one = imported(desk_on_git, there)
    assert len(one.reasons) == 2
    (reply,) = there.comments
    assert reply.startswith("<!-- hermes-workflows: review 31 -->\n")
    assert "@octocat" not in reply
    assert f"@{GAP}octocat" in reply
    assert "/feedback" in reply or "feedback" in reply


def test_a_bots_approval_is_an_agents(desk_on_git: Desk) -> None:
    there = forge(desk_on_git, review(desk_on_git, is_bot=True))
    assert imported(desk_on_git, there).kind == "agent"


def test_what_a_file_tells_is_no_verified_persons(desk_on_git: Desk) -> None:
    assert imported(desk_on_git, forge(desk_on_git, verified=False)).kind == "manual"


def test_an_approval_of_an_earlier_commit_does_not_answer_a_later_question(desk_on_git: Desk) -> None:
    old = review(desk_on_git)
    desk_on_git.workspace.answer("wf", "ok", SHIP, person("bob"))
    desk_on_git.ask("ok-2")
    one = imported(desk_on_git, forge(desk_on_git, old))
    assert one.outcome == "refused"
    assert "was answered by bob" in one.reasons[0]
    assert desk_on_git.workspace.review("wf", "ok-2").open


def test_the_second_reviewer_is_told_who_was_first(desk_on_git: Desk) -> None:
    there = forge(desk_on_git, review(desk_on_git), review(desk_on_git, id="32", login="bob"))
    first, second = import_pull_request(desk_on_git.workspace, there, 7)
    assert (first.outcome, second.outcome) == ("recorded", "refused")
    assert "was answered by ana (human, pull-request)" in second.reasons[0]
    assert "review 32" in there.comments[0]


def test_talk_is_passed_over(desk_on_git: Desk) -> None:
    there = forge(desk_on_git, review(desk_on_git, state="COMMENTED"), review(desk_on_git, state="DISMISSED"))
    assert import_pull_request(desk_on_git.workspace, there, 7) == []
    assert there.comments == []


def published(desk: Desk, **changes: bytes) -> dict[tuple[str, str], str]:
    """What the forge says of a code repository that the run was published into, at commit c…."""
    path = layout.request("ok")
    data = changes.get("request") or desk.ledger.file("wf", path) or b""
    oid = hashlib.sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).hexdigest()
    return {("c" * 40, f".hermes/runs/wf/{path}"): oid}


def test_a_commit_of_a_code_repository_is_compared_at_the_forge(desk_on_git: Desk) -> None:
    seen = review(desk_on_git, commit="c" * 40)
    other = forge(desk_on_git, seen, blobs=published(desk_on_git, request=b"{}"))
    assert imported(desk_on_git, other).outcome == "refused"
    same = forge(desk_on_git, seen, blobs=published(desk_on_git))
    assert imported(desk_on_git, same).outcome == "recorded"


def test_a_branch_of_another_repository_is_no_publication(desk_on_git: Desk) -> None:
    there = RecordedForge(replace(PULL, foreign=True), [review(desk_on_git)])
    assert any("another repository" in reason for reason in imported(desk_on_git, there).reasons)


def test_a_pull_request_of_something_else_is_not_found(desk_on_git: Desk) -> None:
    for branch in ("run/other", "main", "wf"):
        with pytest.raises(NotFound, match="no run of this workspace"):
            import_pull_request(desk_on_git.workspace, RecordedForge(replace(PULL, branch=branch)), 7)


def test_whoever_changes_their_mind_before_anybody_looks_means_the_last(desk_on_git: Desk) -> None:
    there = forge(
        desk_on_git,
        review(desk_on_git),
        review(desk_on_git, id="32", state="CHANGES_REQUESTED", text="No."),
        review(desk_on_git, id="33", state="COMMENTED", text="As I said."),
    )
    assert imported(desk_on_git, there).source == "32"
    response = desk_on_git.workspace.review("wf", "ok").response
    assert response is not None
    assert response.output == {"action": "revise", "feedback": "No."}


def test_a_bare_approval_of_two_open_questions_answers_neither_whoever_was_first(desk_on_git: Desk) -> None:
    desk_on_git.ask("second")
    block = '```json ok\n{"action": "approve", "feedback": ""}\n```'
    there = forge(desk_on_git, review(desk_on_git, text=block), review(desk_on_git, id="32", login="bob"))
    first, second = import_pull_request(desk_on_git.workspace, there, 7)
    assert (first.key, first.outcome, second.outcome) == ("ok", "recorded", "refused")
    assert "several questions wait (ok, second)" in second.reasons[0]
    assert desk_on_git.workspace.review("wf", "second").open


def test_a_review_of_a_commit_with_the_answer_in_it_is_too_late(desk_on_git: Desk) -> None:
    desk_on_git.workspace.answer("wf", "ok", SHIP, person("bob"))
    assert "had been answered at" in imported(desk_on_git, forge(desk_on_git)).reasons[0]
