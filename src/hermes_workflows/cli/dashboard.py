"""`dashboard`: the web pages of a workspace, served until it is stopped."""

from __future__ import annotations

import ipaddress
import logging
import re
import secrets
import signal
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..errors import InvalidInput, StoreFailure
from .dashboard_export import export
from .scope import Scope, scoped

if TYPE_CHECKING:
    from ..web.opened import Opened
    from ..web.settings import WebSettings

# Characters. A token of one's own guards the answers of people: no word that somebody would try.
_SHORTEST = 20
_DRAIN_SECONDS = 2
_INTERRUPTED = 130


@click.group("dashboard", invoke_without_command=True)
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", default=8765, help="8765; 0 takes any free one.")
@click.option("--token", metavar="TOKEN|@FILE|-", help="Lets browsers in each time; one of each start when left out.")
@click.option("--allow-host", "hosts", metavar="NAME", multiple=True, help="Also served by this name; repeatable.")
@click.option(
    "--root-path", metavar="PATH", default="", help="Serve below PATH, as /workflows, for a proxy that passes it on."
)
@click.option("--by", metavar="NAME", help="Who answers; your login name when left out.")
@scoped
def dashboard(
    scope: Scope, host: str, port: int, token: str | None, hosts: Sequence[str], root_path: str, by: str | None
) -> int:
    """Show runs and questions in a browser, and take answers.

    Open the printed address: it lets one browser in, once. Without --token only this machine is served.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return _with_subcommand(click.get_current_context())
    from .guard import guarded
    from .hashseed import fix_hash_seed

    check_extra()
    fix_hash_seed(scope.session)
    from ..web.opened import Opened

    own = _token(token)
    if own is None and not _is_loopback(host):
        raise InvalidInput(f"--host {host} serves other machines", hint="pass --token @FILE, or --host 127.0.0.1")
    if own is None and hosts:
        raise InvalidInput("--allow-host is for other machines' browsers", hint="pass --token @FILE as well")
    root = _root(root_path)
    listening = _listen(host, port)
    settings = _settings(scope, own, by, listening.getsockname()[1])
    settings = _serving(settings, host, hosts, root, remote=not _is_loopback(host))
    opened = Opened.open(settings)
    try:
        _tell(scope, settings, host)
        with guarded(lambda: [each.redactor for each in opened.every], own_process=scope.session.own_process):
            stopped = _serve(settings, opened, listening)
    finally:
        opened.close()
        listening.close()
    return _INTERRUPTED if signal.SIGINT in stopped else 0


def _with_subcommand(context: click.Context) -> int:
    """Nothing is served then, and no option that somebody has written is passed over in silence."""
    written = [name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if written:
        raise click.UsageError(f"the options of `{context.invoked_subcommand}` stand behind its name", context)
    return 0


def check_extra() -> None:
    try:
        import jinja2  # noqa: F401 - whether it is there is the question
        import markdown_it  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        hint = "in the clone that this was installed from: python -m pip install '.[dashboard]'"
        raise InvalidInput(f"the dashboard needs {error.name}, which is not installed", hint=hint) from None


def _token(given: str | None) -> str | None:
    from .inputs import read_text

    if given is None:
        return None
    token = read_text(given, "--token").strip()
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable():
        hint = "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        raise InvalidInput(f"--token is not of at least {_SHORTEST} printable ASCII characters", hint=hint)
    return token


def _settings(scope: Scope, token: str | None, by: str | None, port: int) -> WebSettings:
    from ..web.settings import WebSettings
    from ..workspace import Surroundings
    from .people import interactive, operating_system_user

    return WebSettings(
        registry=scope.registry,
        databases=tuple(scope.every()),
        surroundings=Surroundings(scope.clock, scope.session.environment),
        token=token or secrets.token_urlsafe(32),
        port=port,
        lasting=token is not None,
        by=by or operating_system_user(),
        # As for answers of the command line: what a program started, a program can answer.
        kind="human" if interactive() else "manual",
    )


def _root(given: str) -> str:
    root = given.rstrip("/")
    if root and not re.fullmatch(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+", root):
        raise InvalidInput(f"--root-path {given!r} is no path that a browser would ask for", hint="as in /workflows")
    return root


def _serving(settings: WebSettings, host: str, hosts: Sequence[str], root: str, *, remote: bool) -> WebSettings:
    from dataclasses import replace

    # An address that stands for all of a machine's is no name that a browser would call.
    named = () if _is_any(host) else (host,)
    return replace(settings, remote=remote, hosts=(*named, *hosts), root_path=root)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return not host


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        said = getattr(error, "strerror", None) or error
        raise StoreFailure(
            f"{host}:{port} cannot be listened on: {said}", hint="--port 0 takes any free port"
        ) from None


def _tell(scope: Scope, settings: WebSettings, host: str) -> None:
    shown = f"[{host}]" if ":" in host else host
    base = f"http://{shown}:{settings.port}{settings.root_path}"
    # A token of the operator's own is no secret of this start, and does not belong into a log.
    url = f"{base}/enter" if settings.lasting else f"{base}/enter?token={settings.token}"
    document: dict[str, Any] = {"url": url, "host": host, "port": settings.port, "by": settings.by}
    document |= {"kind": settings.kind, "databases": [str(paths.sqlite) for paths in settings.databases]}
    scope.output.data(document | {"token": "given" if settings.lasting else "once"}, lambda: f"open {url}")
    scope.output.talk("Ctrl-C stops it")


def _serve(settings: WebSettings, opened: Opened, listening: socket.socket) -> list[int]:
    """Serve until a signal comes; returns which ones did."""
    import uvicorn

    from ..web.app import create_app

    app = create_app(settings, opened.every)

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.state.ending.set()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        # Whoever is still sending by then is not waited for.
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )
    stopped: list[int] = []
    # The server raises once more what has stopped it, for whoever was there before.
    before = {
        number: signal.signal(number, lambda seen, _frame: stopped.append(seen))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        server = Server(config)
        # Whom it cuts off when it stops is no fault of anybody's, and told as one, with a traceback each.
        logging.getLogger("uvicorn.error").addFilter(lambda _: not server.should_exit)
        server.run(sockets=[listening])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return stopped


dashboard.add_command(export)
