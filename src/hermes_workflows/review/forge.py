"""Answers that reviews of pull requests give, and replies to those that cannot be taken (SEMANTICS §8).

The forge is asked through a port; which review means what is decided in `pull_requests`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ..core.inert import inert
from ..core.markdown import code_span
from ..core.names import run_component
from ..core.receipts import ReviewReceipt
from ..errors import Conflict, IntegrityError, InvalidInput, NotFound
from ..store.answers import blobs_of
from .imported import Imported, answered, questions, reasons_of
from .pull_requests import ForgeReview, PullRequest, Said, answers_of, is_answer, objections, provenance_of

if TYPE_CHECKING:
    from ..workspace import Workspace

INTO = ".hermes/runs"
"""Where a run lies in a code repository that it was published into."""

BRANCH = "run/"

# Characters of one reason in a reply.
_REASON = 500


class Forge(Protocol):
    """What is asked of a forge; `verified` says whether it was the forge itself that told it."""

    @property
    def verified(self) -> bool: ...

    def pull_request(self, number: int) -> PullRequest:
        """Raises NotFound, RemoteFailure, InvalidInput."""

    def reviews(self, pull: PullRequest) -> Sequence[ForgeReview]:
        """In the order in which they were submitted."""

    def permission(self, pull: PullRequest, login: str) -> str:
        """`admin`, `maintain`, `write`, `triage`, `read` or `none`."""

    def blob(self, pull: PullRequest, commit: str, path: str) -> str | None:
        """git's id of a file, as a commit there has it."""

    def replied(self, pull: PullRequest) -> Sequence[str]:
        """What has been said below the pull request."""

    def reply(self, pull: PullRequest, text: str) -> None: ...


def import_pull_request(workspace: Workspace, forge: Forge, number: int, run_id: str | None = None) -> list[Imported]:
    """Take the answers that the reviews of a pull request give, and reply to those that cannot be taken.

    `run_id` is needed only where the branch does not say it. Raises NotFound, InvalidInput, RemoteFailure.
    """
    pull = forge.pull_request(number)
    return import_reviews(workspace, forge, pull, run_id or published_run(workspace, pull))


def import_reviews(workspace: Workspace, forge: Forge, pull: PullRequest, run_id: str) -> list[Imported]:
    """The same for a pull request that is known to be of this run."""
    done: list[Imported] = []
    for review in forge.reviews(pull):
        if is_answer(review):
            done += _import_review(workspace, forge, pull, review, run_id)
    return done


def published_run(workspace: Workspace, pull: PullRequest) -> str:
    """The run whose branch a pull request wants to merge. Raises NotFound."""
    component = pull.branch.removeprefix(BRANCH)
    for head in workspace.ledger.heads() if component != pull.branch else ():
        if run_component(head.run_id) == component:
            return head.run_id
    raise NotFound(
        f"{pull.repository}#{pull.number} is of the branch {pull.branch}, which is no run of this workspace",
        hint="pass --run RUN, if it is one all the same",
    )


def _import_review(
    workspace: Workspace, forge: Forge, pull: PullRequest, review: ForgeReview, run_id: str
) -> list[Imported]:
    by = provenance_of(review, pull, verified=forge.verified)
    if known := [key for key, each in questions(workspace, run_id).items() if each.has_heard(by)]:
        return [Imported(run_id, key, review.id, by.by, "known", by.kind) for key in known]
    reasons = objections(review, pull, forge.permission(pull, review.login) if review.login else "")
    said, misread = _read(workspace, forge, pull, review, run_id)
    reasons += misread
    if reasons:
        keys = [each.key or "" for each in said] or [""]
        done = [Imported(run_id, key, review.id, by.by, "refused", by.kind, tuple(reasons)) for key in keys]
    else:
        done = [answered(workspace, run_id, review.id, by, each.key or "", each.payload) for each in said]
    if told := list(dict.fromkeys(reason for one in done for reason in one.reasons)):
        _reply(forge, pull, review, run_id, told)
    return done


def _read(
    workspace: Workspace, forge: Forge, pull: PullRequest, review: ForgeReview, run_id: str
) -> tuple[list[Said], list[str]]:
    """What a review answers, among the questions that were on the reviewer's screen as they are at home."""
    asked = questions(workspace, run_id)
    seen = [key for key, each in asked.items() if _was_seen(workspace, forge, pull, review, run_id, each.request)]
    # An answered one is asked for its answer: then the reviewer is told who was first.
    meant = [key for key in seen if asked[key].answer is None] or seen
    if not meant:
        short = review.commit[:12] or "an unknown commit"
        return [], [
            f"no question of {run_id} and its evidence are at {short} as they were asked: publish and review it"
        ]
    try:
        return answers_of(review, {key: asked[key].returns for key in meant}), []
    except InvalidInput as error:
        return [], reasons_of(error)


def _was_seen(
    workspace: Workspace, forge: Forge, pull: PullRequest, review: ForgeReview, run_id: str, request: ReviewReceipt
) -> bool:
    """Whether question and evidence at the reviewed commit are, blob for blob, the ones at home."""
    ledger = workspace.ledger
    asked = ledger.file(run_id, request.path) or b""
    for path in (request.path, *blobs_of(asked)):
        at_home = ledger.file(run_id, path)
        if at_home is None or _blob_there(workspace, forge, pull, review.commit, run_id, path) != _git_id(at_home):
            return False
    return True


def _blob_there(
    workspace: Workspace, forge: Forge, pull: PullRequest, commit: str, run_id: str, path: str
) -> str | None:
    try:
        # Most reviews are of a commit of ours; nobody need be asked about those.
        content = workspace.ledger.content(commit, path)
        return None if content is None else _git_id(content)
    except (NotFound, IntegrityError, Conflict):
        pass
    head = workspace.ledger.head(run_id)
    assert head is not None  # its question was read
    places = (f"{head.folder}/{path}", f"{INTO}/{run_component(run_id)}/{path}")
    return next(filter(None, (forge.blob(pull, commit, place) for place in places)), None)


def _git_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%s" % (len(content), content), usedforsecurity=False).hexdigest()


def _reply(forge: Forge, pull: PullRequest, review: ForgeReview, run_id: str, reasons: Sequence[str]) -> None:
    """Say once why a review was not taken; the mark in the comment is how the next look knows."""
    mark = f"<!-- hermes-workflows: review {review.id} -->"
    if any(mark in said for said in forge.replied(pull)):
        return
    lines = [f"- {code_span(reason, _REASON)}" for reason in reasons]
    head = f"This review is not an answer to run {code_span(run_id)}; nothing was recorded:"
    forge.reply(pull, "\n".join([mark, inert("\n".join([head, "", *lines]))]))
