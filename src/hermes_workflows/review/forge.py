"""Answers that reviews of pull requests give, and replies to those that cannot be taken (SEMANTICS §8).

The forge is asked through a port; which review means what is decided in `pull_requests`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..core import layout
from ..core.inert import inert
from ..core.markdown import code_span
from ..core.names import run_component
from ..core.receipts import Provenance, ReviewReceipt
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
    return _Import(workspace, forge, pull, run_id).all()


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


@dataclass(frozen=True)
class _Heard:
    """A review, and what it says: to which questions, or why that cannot be told."""

    review: ForgeReview
    by: Provenance
    known: tuple[str, ...] = ()
    said: tuple[Said, ...] = ()
    misread: tuple[str, ...] = ()

    @property
    def keys(self) -> list[str]:
        return [each.key or "" for each in self.said]


@dataclass(frozen=True)
class _Import:
    """One look at a pull request of a run."""

    workspace: Workspace
    forge: Forge
    pull: PullRequest
    run_id: str

    def all(self) -> list[Imported]:
        heard = [self._hear(review) for review in self.forge.reviews(self.pull) if is_answer(review)]
        # Whoever has changed their mind before anybody looked means the last thing they said.
        meant = [each for place, each in enumerate(heard) if not _taken_back(each, heard[place + 1 :])]
        return [done for each in meant for done in self._take(each)]

    def _take(self, heard: _Heard) -> list[Imported]:
        review, by = heard.review, heard.by
        if heard.known:
            return [Imported(self.run_id, key, review.id, by.by, "known", by.kind) for key in heard.known]
        reasons = objections(review, self.pull, self._permission(review.login)) + list(heard.misread)
        if reasons:
            keys = heard.keys or [""]
            done = [Imported(self.run_id, key, review.id, by.by, "refused", by.kind, tuple(reasons)) for key in keys]
        else:
            done = [
                answered(self.workspace, self.run_id, review.id, by, each.key or "", each.payload)
                for each in heard.said
            ]
        if told := list(dict.fromkeys(reason for one in done for reason in one.reasons)):
            _reply(self.forge, self.pull, review, self.run_id, told)
        return done

    def _permission(self, login: str) -> str:
        return self.forge.permission(self.pull, login) if login else ""

    def _hear(self, review: ForgeReview) -> _Heard:
        by = provenance_of(review, self.pull, verified=self.forge.verified)
        asked = questions(self.workspace, self.run_id)
        if known := tuple(key for key, each in asked.items() if each.has_heard(by)):
            return _Heard(review, by, known=known)
        seen = [key for key, each in asked.items() if self._was_seen(review.commit, each.request)]
        # What was open on the reviewer's screen, whatever has become of it since.
        meant = [key for key in seen if self._blob(review.commit, layout.response(key)) is None]
        if not meant:
            return _Heard(review, by, misread=(self._nothing(review.commit, seen),))
        try:
            return _Heard(review, by, said=tuple(answers_of(review, {key: asked[key].returns for key in meant})))
        except InvalidInput as error:
            return _Heard(review, by, misread=tuple(reasons_of(error)))

    def _nothing(self, commit: str, seen: Sequence[str]) -> str:
        short = commit[:12] or "an unknown commit"
        if seen:
            return f"{', '.join(seen)} of {self.run_id} had been answered at {short}: publish and review it again"
        return f"no question of {self.run_id} and its evidence are at {short} as they were asked: publish and review it"

    def _was_seen(self, commit: str, request: ReviewReceipt) -> bool:
        """Whether question and evidence at the reviewed commit are, blob for blob, the ones at home."""
        ledger = self.workspace.ledger
        asked = ledger.file(self.run_id, request.path) or b""
        for path in (request.path, *blobs_of(asked)):
            at_home = ledger.file(self.run_id, path)
            if at_home is None or self._blob(commit, path) != _git_id(at_home):
                return False
        return True

    def _blob(self, commit: str, path: str) -> str | None:
        """git's id of a file of the run's folder, as the reviewed commit has it."""
        try:
            # Most reviews are of a commit of ours; nobody need be asked about those.
            content = self.workspace.ledger.content(commit, path)
            return None if content is None else _git_id(content)
        except (NotFound, IntegrityError, Conflict):
            pass
        head = self.workspace.ledger.head(self.run_id)
        assert head is not None  # its question was read
        places = (f"{head.folder}/{path}", f"{INTO}/{run_component(self.run_id)}/{path}")
        return next(filter(None, (self.forge.blob(self.pull, commit, place) for place in places)), None)


def _taken_back(heard: _Heard, later: Sequence[_Heard]) -> bool:
    if heard.known or not heard.review.login:
        return False
    own = [each for each in later if each.review.login == heard.review.login]
    return any(set(heard.keys) & set(each.keys) for each in own)


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
