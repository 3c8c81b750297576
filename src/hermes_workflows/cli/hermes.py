"""`hermes install|uninstall|doctor`: the plugin for Hermes Agent, put where it looks for plugins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .doctor import report
from .scope import Scope
from .session import Session, output_options

if TYPE_CHECKING:
    from ..hermes_plugin.install import Done

_home = click.option(
    "--home", metavar="FOLDER", help="Hermes' folder; $HERMES_HOME or ~/.hermes when left out.", type=click.Path()
)


@click.group("hermes")
def hermes() -> None:
    """The plugin for Hermes Agent."""


@hermes.command("install")
@_home
@click.option("--config", metavar="FILE", help="The registry; found upwards from here when left out.")
@click.option("--any-workspace", is_flag=True, help="Serve the workspace that Hermes is started in, not this one.")
@output_options
@click.pass_obj
def install(session: Session, /, home: str | None, config: str | None, any_workspace: bool) -> None:
    """Write the plugin's folder and enable it, or bring it up to date."""
    from ..hermes_plugin.config_text import parser
    from ..hermes_plugin.install import install as put_in

    registry = None if any_workspace else Scope(session, config, None).registry.path
    _tell(session, put_in(_home_of(session, home), registry, parser()), "installed")


@hermes.command("uninstall")
@_home
@output_options
@click.pass_obj
def uninstall(session: Session, /, home: str | None) -> None:
    """Take the plugin's folder and its name in the configuration away."""
    from ..hermes_plugin.config_text import parser
    from ..hermes_plugin.install import uninstall as take_away

    _tell(session, take_away(_home_of(session, home), parser()), "removed")


@hermes.command("doctor")
@_home
@output_options
@click.pass_obj
def doctor(session: Session, /, home: str | None) -> int:
    """Look for what keeps Hermes from finding the plugin, or the plugin from working. Changes nothing."""
    from ..doctor import looked
    from ..hermes_plugin.examine import examine_hermes

    place = _home_of(session, home)
    findings = looked("hermes", lambda: examine_hermes(place, session.environment))
    return report(Scope(session, None, None), findings, [])


def _home_of(session: Session, home: str | None) -> Path:
    from ..hermes_plugin.host import hermes_home

    return Path.cwd() / home if home else hermes_home(session.environment)


def _tell(session: Session, done: Done, what: str) -> None:
    document: dict[str, Any] = {"folder": str(done.folder), "files": list(done.files), "enabled": done.enabled}
    session.output.data(document | {"hint": done.hint}, lambda: "\n".join([f"{what}: {done.folder}", *_state(done)]))


def _state(done: Done) -> list[str]:
    said = {True: "enabled; it takes effect in Hermes' next session", False: "not enabled", None: "not changed"}
    return [f"in Hermes' configuration: {said[done.enabled]}", *([f"  {done.hint}"] if done.hint else [])]
