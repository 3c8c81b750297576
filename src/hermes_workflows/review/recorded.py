"""Reviews from a file: what `gh api` has printed, put together by whoever has no `gh` here, or no network.

    {"pull_request": {…}, "reviews": [{…}], "permissions": {"ana": "write"}}

A file is nobody's word but its writer's: answers from it are recorded as manual, and nobody is replied to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.canonical import parse
from ..errors import InvalidInput, NotFound
from .pull_requests import ForgeReview, PullRequest, pull_request_of, review_of

_SHAPE = 'it is {"pull_request": …, "reviews": […], "permissions": {"LOGIN": "write"}}, from `gh api`'


class RecordedForge:
    """`review.forge.Forge` of one file. Raises InvalidInput for one that says something else."""

    verified = False

    def __init__(self, data: bytes) -> None:
        document = parse(data)
        if not isinstance(document, Mapping):
            raise InvalidInput("the file holds reviews, and does not say of which pull request", hint=_SHAPE)
        self.pull = pull_request_of(document.get("pull_request"))
        self._reviews = [review_of(each) for each in _list(document.get("reviews"))]
        self._permissions = document.get("permissions")

    def pull_request(self, number: int) -> PullRequest:
        if number != self.pull.number:
            raise NotFound(f"the file is about pull request {self.pull.number}, not {number}")
        return self.pull

    def reviews(self, pull: PullRequest) -> Sequence[ForgeReview]:
        return self._reviews

    def permission(self, pull: PullRequest, login: str) -> str:
        said = self._permissions.get(login, "") if isinstance(self._permissions, Mapping) else ""
        # As the API answers it, or the word alone.
        return str(said.get("permission") or "") if isinstance(said, Mapping) else str(said)

    def blob(self, pull: PullRequest, commit: str, path: str) -> str | None:
        """Unknown: only commits that are here can be compared."""
        return None

    def replied(self, pull: PullRequest) -> Sequence[str]:
        return ()

    def reply(self, pull: PullRequest, text: str) -> None:
        """To whom: nobody is there."""


def _list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise InvalidInput("the file has no list of reviews", hint=_SHAPE)
    return value
