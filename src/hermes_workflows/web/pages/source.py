"""`/source/<run>`: the code that a run was decided by, as it is kept with its receipts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...core import layout
from ...core.receipts import RunStarted
from ...finding import split
from ..rendering import opened, page, segment


@dataclass(frozen=True)
class SourceView:
    """`commit` is the one that the project's files were checked out from, where that is known."""

    run_id: str
    run_href: str
    code: str
    commit: str
    files: tuple[tuple[str, str], ...]


def show(request: Request) -> Response:
    run = split(request.path_params["run"])[0]
    workspace = opened(request).of_run(run)
    found = workspace.find(run)
    started = next((each for each in found.receipts if isinstance(each, RunStarted)), None)
    code = (started.execution.code if started else None) or ""
    folder, tip, ledger = layout.source(code, ""), found.head.tip, workspace.ledger
    # Only paths that the run's own folder has: none comes from the address.
    paths = [path for path in ledger.paths(tip) if path.startswith(folder)]
    files = ((path.removeprefix(folder), ledger.content(tip, path) or b"") for path in sorted(paths))
    view = SourceView(
        run_id=found.run_id,
        run_href=f"/runs/{segment(run)}",
        code=code,
        commit=(started.execution.commit if started else None) or "",
        files=tuple((path, data.decode("utf-8", "replace")) for path, data in files),
    )
    return page(request, "source.html", view)


ROUTES: Final = (Route("/source/{run:path}", show, name="source"),)
