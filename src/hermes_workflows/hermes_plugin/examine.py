"""`hermes doctor`: whether Hermes is there, has what the plugin needs, finds it and loads it, and what it serves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any, Final

from ..doctor import Finding
from ..errors import HermesError
from ..registry import Registry, choose
from ..review.chat import key_file
from ..store.secret_key import secret_key
from .config_text import is_enabled, is_refused, parser
from .host import note_of, plugin_folder
from .install import CONFIG, changed, contents, digest_of
from .offers import HOOKS, METHODS, NAME

OLDEST: Final = (0, 19)
NEWEST: Final = (0, 21)
# What the pages need that the tab shows; Hermes brings most of it along.
_TAB: Final = ("jinja2", "markdown_it", "starlette")
_RANGE: Final = "0.19 to 0.21"


def examine_hermes(home: Path, variables: Mapping[str, str]) -> Iterator[Finding]:
    """Every thing that must be so for Hermes to serve a workspace. Reads, and starts nothing."""
    yield from _program(variables)
    if not home.is_dir():
        yield Finding("problem", f"Hermes has no folder {home}", "start Hermes once, or pass --home FOLDER")
        return
    folder = plugin_folder(home)
    try:
        note = note_of(folder)
    except HermesError as error:
        yield Finding("problem", error.message, "move the folder elsewhere, and `hermes-workflows hermes install`")
        return
    yield from _written(folder, note)
    yield from _let_in(home / CONFIG)
    yield from _served(note)


def _program(variables: Mapping[str, str]) -> Iterator[Finding]:
    try:
        found = version("hermes-agent")
    except PackageNotFoundError:
        program = which("hermes", path=variables.get("PATH"))
        where = f"Hermes Agent is not in this environment; {program} is" if program else "there is no Hermes Agent here"
        hint = f"install both into one: python -m pip install 'hermes-agent' '{NAME}'"
        yield Finding("problem", where, hint)
        return
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
    if OLDEST <= numbers <= NEWEST:
        yield Finding("ok", f"Hermes Agent {found}")
    else:
        yield Finding("warning", f"Hermes Agent {found}: tried with {_RANGE}", "it may work; tell us what does not")
    yield from _methods(found)
    if missing := [package for package in _TAB if find_spec(package) is None]:
        hint = f"python -m pip install '{NAME}[dashboard]'"
        yield Finding("warning", f"the tab of Hermes' dashboard needs {', '.join(missing)}", hint)


def _methods(found: str) -> Iterator[Finding]:
    """Looked up in its source: importing Hermes starts half of it."""
    spec = find_spec("hermes_cli")
    places = list(spec.submodule_search_locations or ()) if spec else []
    source = Path(places[0], "plugins.py") if places else None
    if source is None or not source.is_file():
        yield Finding("problem", f"Hermes Agent {found} has no plugins", f"install one of {_RANGE}")
        return
    text = source.read_text(encoding="utf-8", errors="replace")
    missing = [method for method in METHODS if f"def {method}(" not in text]
    missing += [hook for hook in HOOKS if f'"{hook}"' not in text]
    if missing:
        hint = "what needs it is left out; the rest works"
        yield Finding("warning", f"Hermes Agent {found} has no {', '.join(missing)}", hint)


def _written(folder: Path, note: Mapping[str, Any] | None) -> Iterator[Finding]:
    again = "`hermes-workflows hermes install` writes it"
    if note is None:
        hint = "move it elsewhere, and install" if folder.exists() else again
        yield Finding("problem", f"{folder} is not ours" if folder.exists() else f"there is no {folder}", hint)
        return
    if bad := changed(folder, note):
        yield Finding("problem", f"changed since: {', '.join(map(str, bad))}", "move it elsewhere, and install again")
        return
    now = {name: digest_of(data) for name, data in contents()}
    gone = [name for name in note.get("files", {}) if not (folder / name).exists()]
    if gone or now != note.get("files"):
        yield Finding("warning", f"{folder} is of another version, or not complete", again)
    else:
        yield Finding("ok", f"{folder} is as it was written")


def _let_in(config: Path) -> Iterator[Finding]:
    enable = f"hermes plugins enable {NAME}"
    if (parse := parser()) is None:
        yield Finding("warning", f"{config} cannot be read here: there is no YAML", "run this where Hermes is")
        return
    try:
        text = config.read_text(encoding="utf-8") if config.exists() else ""
        enabled, refused = is_enabled(text, NAME, parse), is_refused(text, NAME, parse)
    except Exception as error:  # YAML's errors are its own
        yield Finding("problem", f"{config} cannot be read: {type(error).__name__}", "mend it; Hermes reads it too")
        return
    if refused:
        yield Finding("problem", f"{config} disables {NAME}", enable)
    elif enabled:
        yield Finding("ok", f"{config} enables {NAME}")
    else:
        yield Finding("problem", f"{config} does not enable {NAME}", enable)


def _served(note: Mapping[str, Any] | None) -> Iterator[Finding]:
    named = (note or {}).get("registry")
    try:
        registry = choose(named, None, Path.cwd())
    except HermesError as error:
        yield Finding("problem" if named else "warning", error.message, error.hint)
        return
    where = f"serves {registry.path}" if named else f"serves the folder it works in; here, {registry.path}"
    yield Finding("ok", f"{where}: {len(registry.workflows)} workflow{'' if len(registry.workflows) == 1 else 's'}")
    if registry.hermes.answer_tool:
        yield Finding("ok", "its model may answer questions; such answers are recorded as an agent's")
    yield from _answers(registry)


def _answers(registry: Registry) -> Iterator[Finding]:
    """What answers in chats and in Hermes' dashboard need."""
    senders, told = registry.hermes.senders, registry.notify is not None and registry.notify.preset == "hermes"
    if senders and told:
        yield Finding("ok", f"{len(senders)} senders may answer from a chat with the lines of a notice")
    elif senders:
        hint = 'tell people with "notify": {"preset": "hermes", "to": …}'
        yield Finding("warning", "hermes.senders may answer from a chat, and no lines are sent to them", hint)
    for paths in registry.dbs.values():
        file = key_file(paths)
        try:
            if file.exists():
                secret_key(file)
        except HermesError as error:
            yield Finding("problem", error.message, error.hint)
