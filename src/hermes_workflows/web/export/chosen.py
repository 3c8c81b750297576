"""What an export is of: all runs, the newest ones, or those that somebody names; and their list as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from ...core.summary import RunSummary
from ...errors import HermesError
from ...finding import split
from ...workspace import Workspace
from ..opened import Opened
from ..rendering import page
from ..run_rows import Row, row_of
from ..run_view import compare_href

# Runs on one page of the list, and summaries that are read at a time.
_PAGE: Final = 200


@dataclass(frozen=True)
class Asked:
    """`runs` are those that are wanted alone, `last` how many of the newest; neither means all of them."""

    runs: tuple[str, ...] = ()
    last: int | None = None
    compare: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class List:
    """A page of the list; `pages` are the others as number and address, "" for this one."""

    rows: tuple[Row, ...]
    total: int
    pages: tuple[tuple[int, str], ...]


@dataclass
class Chosen:
    """The runs, the newest first; `is_all` says that nothing was left out, `unreadable` what cannot be shown."""

    runs: Sequence[tuple[Workspace, RunSummary]]
    is_all: bool
    compare: tuple[tuple[str, str], ...] = ()
    unreadable: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, every: Opened, asked: Asked) -> Chosen:
        """Raises NotFound and Conflict for a run that is named and not there."""
        for text in (each for pair in asked.compare for each in pair):
            every.of_run(split(text)[0]).find(text)
        unreadable: list[str] = []
        found = list(_named(every, asked.runs) if asked.runs else _known(every, asked.last, unreadable))
        found.sort(key=lambda pair: (pair[1].started_at or "", pair[1].run_id), reverse=True)
        chosen = found[: asked.last]
        is_all = not asked.runs and len(chosen) == len(found)
        return cls(chosen, is_all, asked.compare, unreadable)

    @cached_property
    def ids(self) -> frozenset[str]:
        return frozenset(run.run_id for _, run in self.runs)

    @property
    def navigation(self) -> tuple[tuple[str, str], ...]:
        """The list of runs stands alone when runs were left out: the other pages tell of all of them."""
        pairs = ((f"{a} and {b}", compare_href(a, b)) for a, b in self.compare)
        pages = (
            (("Inbox", "/"), ("Runs", "/runs"), ("Workflows", "/workflows")) if self.is_all else (("Runs", "/runs"),)
        )
        return (*pages, *pairs)

    def show(self, request: Request) -> Response:
        """The list as a page."""
        number = int(request.query_params.get("page", "1"))
        end = number * _PAGE
        last = -(-len(self.runs) // _PAGE)
        pages = tuple((each, "" if each == number else list_href(each)) for each in range(1, last + 1))
        rows = tuple(_row(workspace, run) for workspace, run in self.runs[end - _PAGE : end])
        return page(request, "exported.html", List(rows, len(self.runs), pages if last > 1 else ()))


def list_href(number: int) -> str:
    return "/runs" if number == 1 else f"/runs?page={number}"


def _named(every: Opened, names: Sequence[str]) -> Iterator[tuple[Workspace, RunSummary]]:
    seen = set[str]()
    for name in names:
        workspace = every.of_run(name)
        if (run_id := workspace.resolve(name)) not in seen:
            seen.add(run_id)
            yield workspace, workspace.summary(run_id)


def _known(every: Opened, last: int | None, unreadable: list[str]) -> Iterator[tuple[Workspace, RunSummary]]:
    """All runs; of many no more than it takes to choose the `last` ones, and to know that there are others."""
    for workspace in every.every:
        try:
            unreadable += [f"run {run}: {why}" for run, why in workspace.refresh().unreadable.items()]
            most = None if last is None else last + 1
            yield from islice(((workspace, run) for run in _newest(workspace)), most)
        except HermesError as error:
            unreadable.append(f"database {workspace.paths.alias}: {error.message}")


def _newest(workspace: Workspace) -> Iterator[RunSummary]:
    offset = 0
    while found := workspace.runs(limit=_PAGE, offset=offset):
        yield from found
        offset += _PAGE


def _row(workspace: Workspace, run: RunSummary) -> Row:
    # An age is of the moment that a page is looked at.
    return replace(row_of(run, workspace.observe(run), workspace.clock.now()), age="")
