"""GitHub through its own program `gh`, which knows who is logged in: its API, asked and told in JSON.

Nothing but `gh api` is used, so that each call is one path and one document, and a stand-in is a small script.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from ..core.canonical import parse
from ..core.clock import Clock
from ..core.redaction import Redactor
from ..errors import InvalidInput, NotFound, RemoteFailure
from ..publishing import Address, Published, Text
from ..review.pull_requests import ForgeReview, PullRequest, pull_request_of, review_of
from .environment import clean_environment
from .processes import Command, StopSignal, run_command

_SECONDS = 120.0
_KEEP = 16 << 20
_PAGE = 100
_MOST_PAGES = 100
_QUIET = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "GH_SPINNER_DISABLED": "1", "GH_PAGER": "cat"}
_NO_SUCH = re.compile(r"\(HTTP (?:404|410)\)")


class Gh:
    """`review.forge.Forge` for one repository. Every method may raise RemoteFailure."""

    verified = True

    def __init__(
        self, address: Address, root: Path, environment: Mapping[str, str], redactor: Redactor, clock: Clock
    ) -> None:
        self._address = address
        self._root = root
        self._environment = environment
        self._redactor = redactor
        self._clock = clock
        self._permissions: dict[str, str] = {}
        self.stop = StopSignal()

    @staticmethod
    def is_there(environment: Mapping[str, str]) -> bool:
        return shutil.which("gh", path=environment.get("PATH")) is not None

    # -- what a review is read from --------------------------------------------------------------------------

    def pull_request(self, number: int) -> PullRequest:
        found = self._get(f"pulls/{number}")
        if found is None:
            raise NotFound(
                f"{self._address.repository} has no pull request {number}", hint="is it the right repository?"
            )
        return pull_request_of(found)

    def of_branch(self, branch: str) -> list[PullRequest]:
        """The pull requests of a branch of this repository, open ones and others, the newest first."""
        asked = {"state": "all", "head": f"{self._address.owner}:{branch}", "per_page": _PAGE}
        found = self._get(f"pulls?{urlencode(asked)}")
        return [pull_request_of(each) for each in found] if isinstance(found, list) else []

    def reviews(self, pull: PullRequest) -> Sequence[ForgeReview]:
        return [review_of(each) for each in self._all(f"pulls/{pull.number}/reviews")]

    def permission(self, pull: PullRequest, login: str) -> str:
        if login not in self._permissions:
            found = self._get(f"collaborators/{quote(login, safe='')}/permission")
            self._permissions[login] = str(found.get("permission") or "none") if isinstance(found, dict) else "none"
        return self._permissions[login]

    def blob(self, pull: PullRequest, commit: str, path: str) -> str | None:
        found = self._get(f"contents/{quote(path)}?ref={quote(commit, safe='')}")
        # A folder is a list, a link has another type: neither is the file that was asked for.
        return str(found["sha"]) if isinstance(found, dict) and found.get("type") == "file" else None

    def replied(self, pull: PullRequest) -> Sequence[str]:
        return [str(each.get("body") or "") for each in self._all(f"issues/{pull.number}/comments")]

    # -- what is told ----------------------------------------------------------------------------------------

    def reply(self, pull: PullRequest, text: str) -> None:
        self._send("POST", f"issues/{pull.number}/comments", {"body": text})

    def open(self, published: Published, text: Text) -> tuple[PullRequest, bool]:
        """Open a pull request, or give the open one its new text; whether it is new."""
        asked = {"state": "open", "head": f"{self._address.owner}:{published.branch}", "per_page": _PAGE}
        there = self._get(f"pulls?{urlencode(asked)}")
        told = {"title": text.title, "body": text.body}
        if isinstance(there, list) and there:
            pull = pull_request_of(there[0])
            return pull_request_of(self._send("PATCH", f"pulls/{pull.number}", told)), False
        wanted = told | {"head": published.branch, "base": published.base}
        return pull_request_of(self._send("POST", "pulls", wanted)), True

    # -- inside ----------------------------------------------------------------------------------------------

    @cached_property
    def _host(self) -> tuple[str, ...]:
        return () if self._address.host == "github.com" else ("--hostname", self._address.host)

    def _all(self, path: str) -> list[Any]:
        found: list[Any] = []
        for page in range(1, _MOST_PAGES + 1):
            some = self._get(f"{path}?per_page={_PAGE}&page={page}")
            if not isinstance(some, list):
                raise RemoteFailure(f"gh answered {path} with no list", hint="is `gh` up to date?")
            found += some
            if len(some) < _PAGE:
                break
        return found

    def _get(self, path: str) -> Any:
        """The document at a path of the repository; None where there is none."""
        return self._call(["--method", "GET", self._path(path)], None)

    def _send(self, method: str, path: str, document: Mapping[str, Any]) -> Any:
        answer = self._call(["--method", method, "--input", "-", self._path(path)], document)
        if answer is None:
            raise RemoteFailure(
                f"{self._address.repository} takes no {method} of {path}", hint="`gh auth status` says who you are"
            )
        return answer

    def _path(self, path: str) -> str:
        return f"repos/{self._address.repository}/{path}"

    def _call(self, arguments: Sequence[str], document: Mapping[str, Any] | None) -> Any:
        outcome = run_command(
            Command(
                argv=("gh", "api", *self._host, "-H", "Accept: application/vnd.github+json", *arguments),
                cwd=self._root,
                env=clean_environment(self._environment, _QUIET),
                stdin=None if document is None else json.dumps(document, ensure_ascii=False).encode(),
                timeout=_SECONDS,
                keep_bytes=_KEEP,
            ),
            stop=self.stop,
            redactor=self._redactor,
            now=self._clock.now,
        )
        if outcome.exit_code == 0 and outcome.ended == "exited":
            if outcome.stdout.dropped_bytes:
                said = f"gh answered with {outcome.stdout.total_bytes:,} bytes"
                raise RemoteFailure(said, hint="that is more than is read")
            return document_of(outcome.stdout.whole)
        said = outcome.stderr.whole.decode("utf-8", "replace").strip()
        if _NO_SUCH.search(said):
            return None
        first = next(iter(said.splitlines()), "") or outcome.reason or f"exit code {outcome.exit_code}"
        raise RemoteFailure(f"gh: {first.removeprefix('gh: ')}", hint="`gh auth status` says who you are, and where")


def document_of(data: bytes) -> Any:
    """What `gh` printed. Raises RemoteFailure for anything but one JSON text."""
    try:
        return parse(data) if data.strip() else {}
    except InvalidInput as error:
        raise RemoteFailure(
            f"gh answered with something else than JSON: {error.message}", hint="is `gh` up to date?"
        ) from None
