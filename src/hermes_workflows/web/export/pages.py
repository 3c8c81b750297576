"""Following the dashboard's own links from page to page, and keeping each as a file.

A link leads to the file of the page that it would open; what cannot be read without a server leads nowhere:
actions, streams, moments that have passed, runs that are left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from ...core.timestamps import render_time
from ...errors import HermesError
from ..errors import HANDLERS
from ..pages.inbox import Filter
from ..rendering import HERE, Shell
from ..run_view import compare_href
from .chosen import Chosen, list_href
from .names import file_of, part_of, relative
from .then import Then

Handler = Callable[[Request], Response]

# No script: it would call home, and browsers run none of a file beside a page that is a file, too.
_BESIDE: Final = ("static/style.css", "static/icon.svg")
# What a file may be called, so that no browser runs it: its beginning was looked at by the page that served it.
_SUFFIXES: Final = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
_OF_RUNS: Final = frozenset({"runs", "calls", "reviews", "source", "artifacts"})


@dataclass(frozen=True)
class File:
    """`wrong` says that the page is one that tells of an error."""

    name: str
    data: bytes
    wrong: str = ""


@dataclass
class Pages:
    """The files of an export, one after another; memory holds one at a time, and the names of all."""

    app: Starlette
    chosen: Chosen
    clock: Then
    _names: dict[str, str] = field(default_factory=dict)
    _todo: deque[str] = field(default_factory=deque)

    def files(self) -> Iterator[File]:
        for name in _BESIDE:
            self._names[f"/{name}"] = name
            yield File(name, (HERE / name).read_bytes())
        for _, address in self.chosen.navigation:
            self._name(address)
        while self._todo:
            # The newest first: the calls of one run follow each other, whose receipts are in memory then.
            address = self._todo.pop()
            yield self._file(address)

    def _file(self, address: str) -> File:
        name = self._names[address]
        answer = self._answer(address, name)
        data = bytes(answer.body)
        return File(name, data, address if answer.status_code >= 400 else "")

    def _name(self, address: str) -> str:
        """The file of an address; it will be made. "" for what an export does not have."""
        address = "/" if address == Filter().href(1) else address
        if address not in self._names:
            self._names[address] = name = self._named(address)
            if name:
                self._todo.append(address)
        return self._names[address]

    def _named(self, address: str) -> str:
        path, _, query = address.partition("?")
        kind, *rest = path.strip("/").split("/")
        pairs = [compare_href(*pair) for pair in self.chosen.compare]
        if address in pairs:
            return f"compare/{pairs.index(address) + 1}.html"
        if query:
            # The other pages of a list, and no list that somebody has narrowed.
            number = int(dict(parse_qsl(query)).get("page", "0"))
            names = {Filter().href(number): f"inbox-{number}.html", list_href(number): f"runs-{number}.html"}
            return names.get(address, "")
        if kind in _OF_RUNS and rest:
            return self._of_run(address, kind, unquote(rest[0]), path)
        if not self.chosen.is_all:
            return "index.html" if path == "/runs" else ""
        return file_of(path) if kind in ("", "runs", "workflows") else ""

    def _of_run(self, address: str, kind: str, run: str, path: str) -> str:
        if run not in self.chosen.ids:
            return ""
        return self._of_kept(address, run) if kind == "artifacts" else file_of(path)

    def _of_kept(self, address: str, run: str) -> str:
        """A file that a run has kept, called so that it is shown or kept, and never run."""
        answer = self._answer(address, "")
        suffix = _SUFFIXES.get(answer.media_type or "", "txt" if _is_text(bytes(answer.body)) else "bin")
        return f"artifacts/{part_of(run)}/{PurePosixPath(address).name}.{suffix}" if answer.status_code == 200 else ""

    def _answer(self, address: str, name: str) -> Response:
        """What the dashboard answers, asked without a server."""
        path, _, query = address.partition("?")
        shell = Shell(
            waiting=0,
            csrf="",
            path=path,
            link=lambda other: self._link(other, name),
            navigation=self.chosen.navigation,
            as_of=render_time(self.clock.moment),
        )
        state = {"shell": shell, "link": shell.link, "csrf": "", "session": ""}
        scope: dict[str, Any] = {"type": "http", "method": "GET", "path": unquote(path), "root_path": "", "headers": []}
        scope |= {"query_string": query.encode(), "app": self.app, "state": state}
        handler, parameters = self._handler(scope)
        request = Request({**scope, "path_params": parameters})
        try:
            return handler(request)
        except (HermesError, HTTPException) as error:
            kind = HermesError if isinstance(error, HermesError) else HTTPException
            answer: Response = HANDLERS[kind](request, error)
            return answer

    def _link(self, address: str, page: str) -> str:
        found = self._name(address)
        return relative(found, page) if found else ""

    def _handler(self, scope: dict[str, Any]) -> tuple[Handler, dict[str, Any]]:
        if scope["path"] == "/runs":
            return self.chosen.show, {}
        for route in self.app.routes:
            match, found = route.matches(scope)
            if match is Match.FULL and isinstance(route, Route):
                return route.endpoint, found["path_params"]
        raise AssertionError(scope["path"])  # only addresses that a page of ours has made get here


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data
