"""`hermes install` and `hermes uninstall`: the plugin's folder below Hermes' own, and its name among the enabled ones.

A note in the folder says what was written there. What the note does not name, and what was changed since, is somebody
else's: it is neither written over nor removed, and then nothing is. Undone is everything, to the byte.
The note is written first and removed last, so that whatever dies in between can be done again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from ..errors import Conflict, NotFound
from ..versions import version_of
from .config_text import Parse, added, is_enabled, is_refused, with_name, without_name
from .host import NOTE, note_of, plugin_folder
from .offers import HOOKS, NAME, TOOLS

SOURCE: Final = Path(__file__).parent / "folder"
CONFIG: Final = "config.yaml"


@dataclass(frozen=True)
class Done:
    """What became of it. `enabled` is None when Hermes' configuration was left to its owner; `hint` says why."""

    folder: Path
    files: tuple[str, ...]
    enabled: bool | None
    hint: str | None = None


@dataclass(frozen=True)
class Told:
    """What the note says beside the files: what Hermes serves, what was changed in its configuration, and whether the
    folder of its plugins was made as well.
    """

    registry: Path | None
    config: Mapping[str, Any]
    made_parent: bool


def install(home: Path, registry: Path | None, parse: Parse | None) -> Done:
    """Write the plugin's folder below `home`, or bring it up to date, and enable it. `parse` reads YAML, if it can.

    Hermes will serve `registry`; without one, the workspace that it is started in.
    Raises NotFound without Hermes' folder, Conflict for what is not ours.
    """
    if not home.is_dir():
        raise NotFound(f"Hermes has no folder {home}", hint="start Hermes once, or pass --home FOLDER")
    folder = plugin_folder(home)
    note = _owned(folder)
    files = dict(contents())
    _refuse_foreign(folder, note, files)
    told = Told(registry, (note or {}).get("config", {}), (note or {}).get("made_parent", not folder.parent.exists()))
    _write_note(folder, files, told)
    for name, data in files.items():
        _write(folder / name, data)
    for name in (note or {}).get("files", {}):
        if name not in files:
            (folder / name).unlink(missing_ok=True)
    enabled, hint, change = _enable(home / CONFIG, parse)
    _write_note(folder, files, replace(told, config=change or told.config))
    return Done(folder, tuple(sorted(files)), enabled, hint)


def uninstall(home: Path, parse: Parse | None) -> Done:
    """Undo `install`. Raises NotFound when nothing of ours is there, Conflict for what is not ours."""
    folder = plugin_folder(home)
    note = _owned(folder)
    if note is None:
        raise NotFound(f"nothing of ours is in {folder}", hint="`hermes-workflows hermes doctor` shows what is there")
    ours = [folder / name for name in note.get("files", {})]
    _refuse_foreign(folder, note, {})
    if strange := [path for path in _files_in(folder) if path not in ours and not _is_made_of(path, ours)]:
        raise Conflict(f"not ours: {_named(strange)}", hint="move it elsewhere; nothing was removed")
    enabled, hint = _disable(home / CONFIG, parse, note.get("config", {}))
    for path in [path for path in _files_in(folder) if path.name != NOTE]:
        path.unlink()
    (folder / NOTE).unlink()
    for place in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        place.rmdir()
    folder.rmdir()
    if note.get("made_parent"):
        with suppress(OSError):  # others have put their plugins there since
            folder.parent.rmdir()
    return Done(folder, tuple(sorted(note.get("files", {}))), enabled, hint)


def contents() -> Iterator[tuple[str, bytes]]:
    """The files of the plugin's folder, by name."""
    yield "plugin.yaml", _manifest().encode()
    for path in sorted(SOURCE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(SOURCE).as_posix(), path.read_bytes()


def changed(folder: Path, note: Mapping[str, Any]) -> list[Path]:
    """Files of the note that are not as they were written."""
    found = []
    for name, digest in note.get("files", {}).items():
        path = folder / name
        if path.is_symlink() or (path.exists() and digest_of(path.read_bytes()) != digest):
            found.append(path)
    return found


def digest_of(data: bytes) -> str:
    return sha256(data).hexdigest()


def _manifest() -> str:
    lists = {"provides_tools": [tool.name for tool in TOOLS], "provides_hooks": sorted(HOOKS)}
    lines = [f"name: {NAME}", f'version: "{version_of(NAME)}"', "kind: standalone"]
    lines += ["description: Durable workflows with receipts in git", f"author: {NAME}"]
    for key, names in lists.items():
        lines += [f"{key}:", *(f"  - {name}" for name in names)] if names else [f"{key}: []"]
    return "\n".join([*lines, ""])


def _owned(folder: Path) -> dict[str, Any] | None:
    """The note of a folder of ours; None when there is no folder. Raises Conflict for one of somebody else."""
    if folder.is_symlink():
        raise Conflict(f"{folder} is a link", hint="remove it; what it leads to is not ours")
    if folder.exists() and not folder.is_dir():
        raise Conflict(f"{folder} is not ours", hint="move it elsewhere, and try again")
    note = note_of(folder)
    if note is None and folder.exists() and any(folder.iterdir()):
        raise Conflict(f"{folder} is not ours", hint="move it elsewhere, and try again")
    return note


def _refuse_foreign(folder: Path, note: Mapping[str, Any] | None, files: Mapping[str, bytes]) -> None:
    """Nothing is written or removed through a link, over a file that the note does not name, or that has changed."""
    known = (note or {}).get("files", {})
    links = [place for place in folder.rglob("*") if place.is_symlink()]
    strange = [folder / name for name in files if name not in known and (folder / name).exists()]
    if found := [*links, *strange, *changed(folder, note or {})]:
        raise Conflict(f"not as we wrote it: {_named(found)}", hint="move it elsewhere; nothing was changed")


def _files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if not path.is_dir() and path != folder / NOTE] + [folder / NOTE]


def _is_made_of(path: Path, ours: list[Path]) -> bool:
    """The note, and what Python has compiled of a file of ours."""
    compiled = [each for each in ours if each.parent == path.parent.parent and path.name.startswith(f"{each.stem}.")]
    return path.name == NOTE or (path.parent.name == "__pycache__" and path.suffix == ".pyc" and bool(compiled))


def _named(paths: list[Path]) -> str:
    shown = ", ".join(str(path) for path in paths[:3])
    return shown if len(paths) <= 3 else f"{shown} and {len(paths) - 3} more"


def _write_note(folder: Path, files: Mapping[str, bytes], told: Told) -> None:
    note = {
        "what": "written by `hermes-workflows hermes install`, and taken away by `hermes-workflows hermes uninstall`",
        "version": version_of(NAME),
        "registry": None if told.registry is None else str(told.registry),
        "files": {name: digest_of(data) for name, data in files.items()},
        "config": dict(told.config),
        "made_parent": told.made_parent,
    }
    _write(folder / NOTE, json.dumps(note, indent=2).encode() + b"\n")


def _write(path: Path, data: bytes) -> None:
    """All of it or nothing, with the rights of what was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.write_bytes(data)
        if target.exists():
            beside.chmod(target.stat().st_mode & 0o7777)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _enable(config: Path, parse: Parse | None) -> tuple[bool | None, str | None, dict[str, Any] | None]:
    """Whether it is enabled now, what to do when it is not, and what was changed."""
    by_hand = f"`hermes plugins enable {NAME}`"
    if parse is None:
        return None, f"Hermes lives in another environment: there, {by_hand}", None
    if (before := text_of(config, parse)) is None:
        return None, f"{config} cannot be read: mend it, then {by_hand}", None
    if is_refused(before, NAME, parse):
        return False, f"{config} disables it: {by_hand}", None
    if is_enabled(before, NAME, parse):
        return True, None, None
    after = with_name(before, NAME, parse)
    if after is None:
        return None, f"{config} is written in a way of its own: {by_hand}", None
    made = not config.exists()
    _write(config, after.encode())
    return True, None, {"added": added(before, after), "made": made}


def text_of(config: Path, parse: Parse) -> str | None:
    """None for one that Hermes could not read either."""
    try:
        # As bytes: no line end is to change.
        text = config.read_bytes().decode() if config.exists() else ""
        parse(text)
    except Exception:  # YAML's errors are its own
        return None
    return text


def _disable(config: Path, parse: Parse | None, change: Mapping[str, Any]) -> tuple[bool | None, str | None]:
    """Whether it is enabled still, and what to do then. What somebody else has enabled stays."""
    if not config.exists():
        return False, None
    by_hand = f"take {NAME} out of plugins.enabled in {config}"
    before = None if parse is None else text_of(config, parse)
    if not change:
        enabled = before is not None and parse is not None and is_enabled(before, NAME, parse)
        return enabled, f"it was enabled before: `hermes plugins disable {NAME}`" if enabled else None
    if parse is None or before is None:
        return None, by_hand
    after = without_name(before, NAME, parse, str(change.get("added", "")))
    if after is None:
        return None, by_hand
    if not after and change.get("made"):
        config.unlink()
    else:
        _write(config, after.encode())
    return False, None
