"""One name in `plugins.enabled` of Hermes' `config.yaml`: put in, and taken out, without touching another character.

Hermes' own `plugins enable` and `plugins disable` write the whole file anew, lose its comments, and leave traces. Here
a line is put in where it belongs, and the result is read by YAML: unless it says exactly what it said before and the
name, nothing is written, and the caller tells how to do it by hand. Pure but for the parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import chain
from typing import Any, Final

Parse = Callable[[str], Any]

_TOP: Final = re.compile(r"^plugins:[ \t]*(?:#.*)?$", re.M)
_ENABLED: Final = re.compile(r"^(?P<pad>[ \t]+)enabled:[ \t]*(?P<flow>\[(?P<names>[^\]\n#]*)\])?[ \t]*(?:#.*)?$", re.M)
_ITEM: Final = re.compile(r"(?:\n[ \t]*(?:#[^\n]*)?)*\n(?P<pad>[ \t]*)- ")
_KEY: Final = re.compile(r"^(?P<pad>[ \t]*)[^\s#-]", re.M)


def parser() -> Parse | None:
    """YAML's, when it is there: where Hermes is installed, it is."""
    try:
        loaded: Any = import_module("yaml")
    except ImportError:
        return None
    read: Parse = loaded.safe_load
    return read


def is_enabled(text: str, name: str, parse: Parse) -> bool:
    return name in _list(parse(text), "enabled")


def is_refused(text: str, name: str, parse: Parse) -> bool:
    """Whether somebody has disabled it: that wins, and is theirs to take back."""
    return name in _list(parse(text), "disabled")


def with_name(text: str, name: str, parse: Parse) -> str | None:
    """`text` with `name` enabled; None when that cannot be done without touching anything else."""
    if _ends_in_crlf(text):
        return _crlf(with_name(_lf(text), name, parse))
    before = parse(text)
    if name in _list(before, "enabled"):
        return text
    if not _has_room(before):
        return None
    wanted = _changed(before, [*_list(before, "enabled"), name])
    return _first_that_says(wanted, _with(text, name), parse)


def added(before: str, after: str) -> str:
    """What `with_name` has put in."""
    start = next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), len(before))
    return after[start : start + len(after) - len(before)]


def without_name(text: str, name: str, parse: Parse, inserted: str = "") -> str | None:
    """`text` with `name` enabled no more: `inserted`, what was put in, taken out when it still stands there as it was.

    Otherwise the name, and a list that is empty without it. None as above.
    """
    if _ends_in_crlf(text):
        return _crlf(without_name(_lf(text), name, parse, _lf(inserted)))
    before = parse(text)
    names = _list(before, "enabled")
    if name not in names:
        return text
    kept = [each for each in names if each != name]
    # An empty list says the same as none.
    texts = [text.replace(inserted, "", 1)] if inserted else []
    return _first_that_says(_changed(before, kept), chain(texts, _without(text, name)), parse)


def _first_that_says(wanted: Any, texts: Iterable[str], parse: Parse) -> str | None:
    for text in texts:
        try:
            if _normal(parse(text)) == _normal(wanted):
                return text
        except Exception:  # YAML's errors are its own, and what cannot be read is not what was wanted
            continue
    return None


def _with(text: str, name: str) -> Iterator[str]:
    top, enabled = _TOP.search(text), _enabled(text)
    if enabled is not None and enabled["flow"] is not None:
        inside = enabled["names"].strip().rstrip(",")
        new = f"[{inside}, {name}]" if inside else f"[{name}]"
        yield text[: enabled.start("flow")] + new + text[enabled.end("flow") :]
    elif enabled is not None:
        item = _ITEM.match(text, enabled.end())
        pad = item["pad"] if item else enabled["pad"]
        yield f"{text[: enabled.end()]}\n{pad}- {name}{text[enabled.end() :]}"
    elif top is not None:
        child = _KEY.search(text, top.end() + 1)
        pad = child["pad"] if child and child["pad"] else "  "
        yield f"{text[: top.end()]}\n{pad}enabled:\n{pad}- {name}{text[top.end() :]}"
    elif not re.search("^plugins:", text, re.M):
        end = "" if not text or text.endswith("\n") else "\n"
        yield f"{text}{end}plugins:\n  enabled:\n  - {name}\n"


def _without(text: str, name: str) -> Iterator[str]:
    """From what `_with` may have written to what is left of it: the block of ours as a whole first."""
    yield re.sub(rf"^plugins:\n[ \t]+enabled:\n[ \t]+- {re.escape(name)}(?:\n|\Z)", "", text, count=1, flags=re.M)
    yield re.sub(rf"\n[ \t]+enabled:\n[ \t]*- {re.escape(name)}(?=\n|\Z)", "", text, count=1)
    yield re.sub(rf"\n[ \t]*- (['\"]?){re.escape(name)}\1[ \t]*(?:#[^\n]*)?(?=\n|\Z)", "", text, count=1)
    enabled = _enabled(text)
    if enabled is not None and enabled["flow"] is not None:
        names = [each.strip() for each in enabled["names"].split(",")]
        kept = [each for each in names if each.strip("'\"") != name]
        yield f"{text[: enabled.start('flow')]}[{', '.join(kept)}]{text[enabled.end('flow') :]}"


def _enabled(text: str) -> re.Match[str] | None:
    """The `enabled:` directly below `plugins:`; that of another section does not fit what is wanted afterwards."""
    top = _TOP.search(text)
    if top is None:
        return None
    found = _ENABLED.search(text, top.end())
    between = text[top.end() : found.start()] if found else ""
    return None if re.search(r"^[^\s#]", between, re.M) else found


def _ends_in_crlf(text: str) -> bool:
    """Whether all of its lines do."""
    return "\r\n" in text and "\n" not in text.replace("\r\n", "")


def _crlf(text: str | None) -> str | None:
    return None if text is None else text.replace("\n", "\r\n")


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def _has_room(config: Any) -> bool:
    """Whether it is a section of names, or nothing yet, that a name would be put into."""
    config = {} if config is None else config
    return isinstance(config, dict) and isinstance(config.get("plugins") or {}, dict)


def _list(config: Any, key: str) -> list[Any]:
    plugins = config.get("plugins") if isinstance(config, dict) else None
    names = plugins.get(key) if isinstance(plugins, dict) else None
    return names if isinstance(names, list) else []


def _changed(config: Any, names: list[Any]) -> dict[str, Any]:
    plugins = (config or {}).get("plugins") or {}
    return {**(config or {}), "plugins": {**plugins, "enabled": names}}


def _normal(config: Any) -> dict[str, Any]:
    """What a configuration says: the order of the names says nothing, and no list is as good as an empty one."""
    rest = {key: value for key, value in (config or {}).items() if key != "plugins" or value}
    if not isinstance(plugins := rest.pop("plugins", {}), dict):
        return {**rest, "plugins": plugins}
    names = plugins.get("enabled")
    kept = {key: value for key, value in plugins.items() if key != "enabled"}
    if names:
        kept["enabled"] = sorted(names, key=str) if isinstance(names, list) else names
    return rest | ({"plugins": kept} if kept else {})
