"""The tab in Hermes' dashboard: our pages behind Hermes' log-in, as one ASGI endpoint for its router.

Hermes checks who asks before it calls anything below `/api/plugins/`; here stands only in whose name an answer is
recorded. Everybody gets an application of their own, so that a form of one person is none of another's.
No code of a project is imported here: what needs it, as starting and forking do, is done by a process (see `code`).
"""

from __future__ import annotations

import logging
import secrets
import threading
from typing import TYPE_CHECKING, Any, Final

from .host import environment, registry_here

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from ..registry import Registry
    from ..web.opened import Opened
    from ..workspace import Workspace

CHANNEL: Final = "hermes-dashboard"
PAGES: Final = "/pages"
ROUTE: Final = PAGES + "{path:path}"
METHODS: Final = ("GET", "HEAD", "POST")
# People with an application of their own; one more makes all of them anew.
_MOST: Final = 100

log = logging.getLogger(__name__)


class Tab:
    """An endpoint of Hermes' router. The workspace is opened when somebody looks for the first time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: Opened | None = None
        self._seen: tuple[Registry, list[bool]] | None = None
        # What is not served any more may still be asked: it is closed with the rest.
        self._former: list[Opened] = []
        self._of: dict[tuple[str, str], ASGIApp] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse

        from ..errors import HermesError

        try:
            app = await run_in_threadpool(self._app, *_person(scope))
        except (HermesError, OSError, ImportError) as error:
            hint = getattr(error, "hint", None) or "`hermes-workflows hermes doctor` says more"
            await JSONResponse({"error": str(error), "hint": hint}, 503)(scope, receive, send)
            return
        await app(_below(scope), receive, send)

    def close(self) -> None:
        with self._lock:
            self._of.clear()
            for each in (*self._former, *([self._opened] if self._opened else [])):
                each.close()
            self._former, self._opened, self._seen = [], None, None

    def _app(self, by: str, kind: str) -> ASGIApp:
        from ..web.app import create_app
        from ..web.security import HostedGate
        from ..web.settings import WebSettings
        from .code import Apart

        with self._lock:
            every = self._every()
            if (known := self._of.get((by, kind))) is not None:
                return known
            if len(self._of) >= _MOST:
                self._of.clear()
            around, token = _surroundings(), secrets.token_urlsafe(32)
            named: Any = kind
            settings = WebSettings(every.registry, (), around, token, by=by, kind=named, channel=CHANNEL)
            made = self._of[by, kind] = create_app(settings, every.every, gate=HostedGate, code=Apart())
            return made

    def _every(self) -> Opened:
        """All databases of the registry as it is now; one that is not there yet is made, so that runs can begin."""
        from ..opening import open_workspace
        from ..web.opened import Opened
        from .nocode import NoCode

        registry, around = registry_here(), _surroundings()
        seen = (registry, [paths.receipts.exists() for paths in registry.dbs.values()])
        if self._opened is not None and seen == self._seen:
            return self._opened
        every: list[Workspace] = []
        try:
            for paths in registry.dbs.values():
                every.append(open_workspace(registry, paths, around, create=True, loader=NoCode(registry)))
        except BaseException:
            Opened(registry, every).close()
            raise
        if self._opened is not None:
            self._former.append(self._opened)
            self._of.clear()
        self._opened = Opened(registry, every)
        self._seen = (registry, [True] * len(every))
        return self._opened


def _surroundings() -> Any:
    from ..clock import SystemClock
    from ..workspace import Surroundings

    return Surroundings(SystemClock(), environment())


def _person(scope: Scope) -> tuple[str, str]:
    """Who is logged in, and what an answer of theirs is.

    Behind Hermes' log-in that is a person. On its loopback every program of this machine can read the page's token, the
    model's shell too: what comes from there was given by whoever runs Hermes, and no person is proven.
    """
    from ..cli.people import operating_system_user

    session = scope.get("state", {}).get("session")
    if (user := getattr(session, "user_id", None)) is None:
        return operating_system_user(), "manual"
    provider = getattr(session, "provider", "") or "hermes"
    return f"{provider}:{user}", "human"


def _below(scope: Scope) -> Scope:
    """What our application is given: its own state, and where it stands in the one around it."""
    inner = str(scope.get("path_params", {}).get("path", ""))
    mounted = str(scope["path"]).removesuffix(inner)
    return {**{name: value for name, value in scope.items() if name != "state"}, "root_path": mounted, "state": {}}
