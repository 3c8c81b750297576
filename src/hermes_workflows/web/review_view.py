"""What the page of a question shows, as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from ..core.artifacts import Kept, artifacts_of
from ..core.plain import command_line
from ..core.receipts import Receipt, ReviewReceipt
from ..core.timestamps import render_time
from ..errors import HermesError
from ..workspace import Workspace
from .evidence import Piece, Said, piece_of
from .forms import FormView
from .rendering import segment, since, until


@dataclass(frozen=True)
class Notice:
    """What became of what was just sent. `typed` is what its writer may want back, `pieces` what has changed."""

    mood: Literal["good", "bad"]
    text: str
    hint: str = ""
    typed: str = ""
    pieces: tuple[Piece, ...] = ()


@dataclass(frozen=True)
class Asked:
    """The question. `left` is how long it can be answered still; `state` what the run is doing."""

    workflow: str
    prompt: str
    assignee: str
    asked: str
    age: str
    expires: str
    left: str
    state: str


@dataclass(frozen=True)
class Answered:
    """The answer that is recorded, or how the question ended without one."""

    status: str
    by: str
    kind: str
    channel: str
    verified: str
    at: str
    output: Piece

    @classmethod
    def of(cls, response: ReviewReceipt) -> Answered:
        person, when = response.execution.provenance, response.execution.finished_at
        who = (person.by, person.kind, person.channel, person.verified) if person else ("", "", "", "")
        by, kind, channel, verified = who
        at = render_time(when) if when else ""
        return cls(response.status, by, kind, channel, verified, at, piece_of("Answer", response.output))


@dataclass(frozen=True)
class Before:
    """An earlier time of asking, and what is shown otherwise now."""

    run_id: str
    key: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class File:
    """An artifact of the run. `picture` says that it can be shown as it is, `preview` is how a text begins."""

    name: str
    href: str
    size: int
    media_type: str
    picture: bool
    preview: Piece | None = None


@dataclass(frozen=True)
class ReviewView:
    run_id: str
    key: str
    href: str
    commit: str
    form_id: str
    mark: str
    asked: Asked
    pieces: tuple[Piece, ...]
    before: tuple[Before, ...]
    said: tuple[Said, ...]
    kept: tuple[File, ...]
    answered: Answered | None
    notice: Notice | None
    form: FormView | None = None
    text: str | None = None

    @property
    def command(self) -> str:
        """The same answer from a terminal."""
        return command_line("review", "respond", self.run_id, self.key)

    @property
    def check_href(self) -> str:
        return f"/check{self.href.removeprefix('/reviews')}"


PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
# How many files are looked into, up to which size in bytes, and how many characters of each are shown.
_PREVIEWS: Final = 10
_LARGE: Final = 1 << 20
_BEGINNING: Final = 4000


def asked_of(workspace: Workspace, run_id: str, question: ReviewReceipt) -> Asked:
    request, execution, now = question.request, question.execution, workspace.clock.now()
    assert request is not None  # a request receipt always holds its question
    asked, expires = _text(execution.started_at), _text(execution.expires_at)
    summary = workspace.summary(run_id)
    return Asked(
        workflow=summary.workflow,
        prompt=request.prompt,
        assignee=request.assignee or "",
        asked=asked,
        age=since(asked, now),
        expires=expires,
        left=until(expires, now),
        state=workspace.observe(summary).state,
    )


def kept_of(workspace: Workspace, run_id: str, receipts: Iterable[Receipt]) -> tuple[File, ...]:
    """The newest files of a run first."""
    newest = artifacts_of(receipts)[::-1]
    return tuple(_file(workspace, run_id, each, number < _PREVIEWS) for number, each in enumerate(newest))


def _file(workspace: Workspace, run_id: str, kept: Kept, is_near: bool) -> File:
    href = f"/artifacts/{segment(run_id)}/{kept.sha256}"
    preview = _preview(workspace, run_id, kept) if is_near else None
    return File(kept.name, href, kept.size, kept.media_type, kept.media_type in PICTURES, preview)


def _preview(workspace: Workspace, run_id: str, kept: Kept) -> Piece | None:
    if kept.size > _LARGE or not kept.media_type.startswith(("text/", "application/json")):
        return None
    try:
        text = workspace.artifact(run_id, kept.sha256)[1].decode()
    except (HermesError, UnicodeDecodeError):
        return None  # what is wrong with it is said to whoever opens it
    shown = text if len(text) <= _BEGINNING else f"{text[:_BEGINNING]}\n[… {len(text) - _BEGINNING:,} more characters]"
    return piece_of(kept.name, shown, kept.name)


def _text(moment: Any) -> str:
    return render_time(moment) if moment else ""
