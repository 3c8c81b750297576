"""The dashboard as one ASGI application: a gate, pages, static files. It prints nothing and starts no process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from ..workspace import Workspace
from .code import Code, Imported
from .errors import HANDLERS
from .opened import Opened
from .pages import action, artifact, compare, events, inbox, review, run, runners, runs, source, workflows
from .rendering import HERE
from .security import Gate
from .sessions import Sessions
from .settings import WebSettings


def create_app(
    settings: WebSettings,
    workspaces: Sequence[Workspace] | None = None,
    *,
    gate: type[Gate] = Gate,
    code: Code | None = None,
) -> Starlette:
    """The application. It opens the databases of `settings` when it starts, unless `workspaces` are given to it.

    It can be mounted in another application under any path, with `workspaces` then; links follow the `root_path`.
    `gate` is another one where that application has let in who comes, `code` where projects' code is not imported.
    Handlers are plain functions over `Workspace`, which blocks: each runs in a thread.
    """
    sessions = Sessions(settings.token, lasting=settings.lasting, port=settings.port)
    given = None if workspaces is None else Opened(settings.registry, workspaces)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        if given is None:
            app.state.opened = await run_in_threadpool(Opened.open, settings)
        try:
            yield
        finally:
            if given is None:
                await run_in_threadpool(app.state.opened.close)

    made = Starlette(
        routes=_routes(),
        middleware=[Middleware(gate, settings=settings, sessions=sessions)],
        exception_handlers=HANDLERS,
        lifespan=lifespan,
    )
    made.state.settings, made.state.sessions, made.state.code = settings, sessions, code or Imported()
    # Set by a server that stops.
    made.state.ending = asyncio.Event()
    # Not when it starts: what is mounted in another application is never told of that.
    made.state.opened = given
    return made


def _routes() -> list[BaseRoute]:
    return [
        *inbox.ROUTES,
        *review.ROUTES,
        *artifact.ROUTES,
        *runs.ROUTES,
        *run.ROUTES,
        *action.ROUTES,
        *runners.ROUTES,
        *workflows.ROUTES,
        *compare.ROUTES,
        *events.ROUTES,
        *source.ROUTES,
        Mount("/static", StaticFiles(directory=HERE / "static"), name="static"),
    ]
