"""The registry: which databases a workspace has, which workflows it knows by which alias.

One JSON file, `.hermes/workflows.registry.json`, found upwards from where one stands.
It is read here and nowhere else, without pydantic: the fast `status` reads it too.
A key that looks like a misspelt one is an error, because a `dbb` that is passed over would split the database;
any other unknown key is kept as a warning, so that a newer registry still opens.
Named tuples, no dataclasses: making those classes takes longer than the fast `status` may.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from .core.spelling import nearest, suggestion
from .errors import InvalidInput, NotFound
from .settings import (
    AgentSettings,
    EnvironmentRules,
    HermesRules,
    Notify,
    PullRequests,
    read_agents,
    read_environment,
    read_hermes,
    read_limits,
    read_notify,
    read_pull_requests,
)

FOLDER = ".hermes"
FILE = "workflows.registry.json"
DEFAULT_DB = "default"
DEFAULT_SQLITE = "workflows.sqlite"
DEFAULT_OPERATOR = "the operator"

_TOP = (
    *(
        "dbs",
        "workflows",
        "agents",
        "environment",
        "operator",
        "notify",
        "redact",
        "keep_runs",
        "bursts",
        "pull_requests",
        "limits",
        "hermes",
    ),
    "$schema",
)
_WORKFLOW = ("workflow_ref", "db", "description", "deadline")
_DB = ("path", "receipts")
_MISSPELT = 0.75
_LONGEST = 36_525 * 86_400.0
# Bytes of the file, and what any number in it may be.
_LARGEST, _MOST = 1 << 20, 10**15


class DatabasePaths(NamedTuple):
    """One workspace database: the receipts repository is the truth, the SQLite file its queue and index."""

    alias: str
    sqlite: Path
    receipts: Path


class WorkflowEntry(NamedTuple):
    """`deadline` in seconds after the start of each run."""

    alias: str
    ref: str
    db: str
    description: str = ""
    deadline: float | None = None


class Registry(NamedTuple):
    """A workspace as its registry file says it.

    `root` is what relative workflow refs and commands start from; `path` is None when a database was named by
    its path and has no registry. `redact` names environment variables whose values never enter a receipt, `notify` is
    the command that tells people of questions, `pull_requests` where runners look for answers. `limits` are how many
    calls of a kind, or of one agent, may execute at once, in all runners of a database together. `hermes` is what
    Hermes Agent may do here. With `bursts`, git may have steps that take no time a moment after they are durable.
    """

    root: Path
    path: Path | None
    dbs: Mapping[str, DatabasePaths]
    workflows: Mapping[str, WorkflowEntry] = MappingProxyType({})
    operator: str = DEFAULT_OPERATOR
    redact: tuple[str, ...] = ()
    notify: Notify | None = None
    keep_runs: int = 1000
    bursts: bool = True
    agents: Mapping[str, AgentSettings] = MappingProxyType({})
    environment: EnvironmentRules = EnvironmentRules()
    pull_requests: PullRequests | None = None
    limits: tuple[tuple[str, int], ...] = ()
    hermes: HermesRules = HermesRules()
    warnings: tuple[str, ...] = ()

    @property
    def default_db(self) -> str:
        """The database of everything that names none; raises InvalidInput when the choice is not clear."""
        if DEFAULT_DB in self.dbs:
            return DEFAULT_DB
        if len(self.dbs) == 1:
            return next(iter(self.dbs))
        raise InvalidInput(
            f"{self.path}: none of the databases {', '.join(sorted(self.dbs))} is called {DEFAULT_DB!r}",
            hint="pass --db ALIAS, or call one of them 'default'",
        )

    def database(self, name: str | None, start: Path) -> DatabasePaths:
        """The database that `--db` means: an alias, or a path seen from `start`. Raises NotFound."""
        if name is None:
            return self.dbs[self.default_db]
        if name in self.dbs:
            return self.dbs[name]
        path = (start / name).resolve()
        for paths in self.dbs.values():
            if path in (paths.sqlite, paths.receipts):
                return paths
        if _looks_like_path(name):
            return DatabasePaths(name, path, path.with_suffix(".git"))
        raise NotFound(f"no database {name!r} in {self.path}", hint=suggestion(name, self.dbs, "databases"))

    def databases(self, name: str | None, start: Path) -> list[DatabasePaths]:
        """The databases a listing is about: the one `--db` names, else all that have something in them."""
        if name is not None:
            return [self.database(name, start)]
        return [paths for paths in self.dbs.values() if paths.receipts.exists()] or [self.database(None, start)]


def choose(config: str | None, db: str | None, start: Path) -> Registry:
    """The registry that `--config` and `--db` mean, from the folder `start`.

    A database given by its path brings the registry beside it, so that every command below sees the same
    workspace whatever folder it is called from. Raises NotFound, InvalidInput.
    """
    if config is not None:
        return load(start / config)
    if db is not None and _looks_like_path(db):
        path = (start / db).resolve()
        beside = find(path.parent)
        return load(beside) if beside else _without_registry(path)
    found = find(start)
    if found is None:
        raise NotFound(
            f"no {FOLDER}/{FILE} in {start} or above",
            hint="run `hermes-workflows init` here, or pass --config FILE",
        )
    return load(found)


def find(start: Path) -> Path | None:
    """The registry file of the nearest folder at or above `start`."""
    for folder in (start, *start.parents):
        if (path := folder / FOLDER / FILE).is_file():
            return path
    return None


def load(path: Path) -> Registry:
    """Read a registry file. Raises NotFound, or InvalidInput that names the place in it."""
    path = path.resolve()
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST + 1)
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        raise NotFound(f"no registry at {path}", hint="run `hermes-workflows init` to make one") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: cannot be read: {error}") from None
    if len(data) > _LARGEST:
        raise InvalidInput(f"{path}: has more than the {_LARGEST:,} bytes that are read")
    return parse(text, path)


def parse(text: str, path: Path) -> Registry:
    """What a registry's `text` says; relative paths start from the folder of `path`."""
    reader = Reader(path)
    data = reader.object(reader.json(text), "", _TOP)
    dbs = dict(reader.databases(data.get("dbs", {DEFAULT_DB: DEFAULT_SQLITE})))
    _refuse_shared(path, dbs)
    agents = dict(read_agents(reader, data.get("agents", {})))
    registry = Registry(
        root=_root_of(path.parent),
        path=path,
        dbs=dbs,
        operator=reader.text(data.get("operator", DEFAULT_OPERATOR), "operator"),
        redact=tuple(reader.names(data.get("redact", []), "redact")),
        keep_runs=reader.count(data.get("keep_runs", 1000), "keep_runs"),
        bursts=reader.switch(data.get("bursts", True), "bursts"),
        agents=agents,
        environment=read_environment(reader, data.get("environment", {})),
        notify=read_notify(reader, data["notify"]) if "notify" in data else None,
        pull_requests=read_pull_requests(reader, data["pull_requests"]) if "pull_requests" in data else None,
        limits=tuple(read_limits(reader, data.get("limits", {}), agents)),
        hermes=read_hermes(reader, data.get("hermes", {})),
    )
    workflows = dict(reader.workflows(data.get("workflows", {}), registry))
    return registry._replace(workflows=workflows, warnings=tuple(reader.warnings))


def _root_of(folder: Path) -> Path:
    return folder.parent if folder.name == FOLDER else folder


def _without_registry(sqlite: Path) -> Registry:
    paths = DatabasePaths(DEFAULT_DB, sqlite, sqlite.with_suffix(".git"))
    return Registry(root=_root_of(sqlite.parent), path=None, dbs={DEFAULT_DB: paths})


def _looks_like_path(name: str) -> bool:
    return "/" in name or "\\" in name or name.endswith((".sqlite", ".sqlite3", ".db", ".git"))


def _refuse_shared(path: Path, dbs: Mapping[str, DatabasePaths]) -> None:
    # Two indexes over one repository would hand the same call to two runners, every time.
    owners: dict[Path, str] = {}
    for alias, paths in dbs.items():
        for place in (paths.sqlite, paths.receipts):
            if (other := owners.setdefault(place, alias)) != alias:
                raise InvalidInput(f"{path}: dbs.{other} and dbs.{alias} share {place}", hint="give each its own file")


def _texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value, keys included."""
    held = [value]
    while held:
        each = held.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            held += (*each.keys(), *each.values())
        elif isinstance(each, list):
            held += each


def _is_no_text(text: str) -> bool:
    return "\0" in text or (not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text))


class Reader:
    """Checks shapes and names the place of what does not fit, as `workflows.draft.db`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []

    def json(self, text: str) -> Any:
        try:
            value = json.loads(text, object_pairs_hook=self._no_duplicates)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{self.path}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}") from None
        except (RecursionError, ValueError):
            raise InvalidInput(f"{self.path}: has a number of thousands of digits, or is nested as deep") from None
        if any(map(_is_no_text, _texts(value))):
            raise InvalidInput(f"{self.path}: has a text with a NUL or half a character in it, which nothing can take")
        return value

    def _no_duplicates(self, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            seen: set[str] = set()
            twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise InvalidInput(f"{self.path}: the key {twice!r} stands twice in one object")
        return made

    def databases(self, value: Any) -> Iterator[tuple[str, DatabasePaths]]:
        for alias, entry in self.object(value, "dbs").items():
            where = f"dbs.{alias}"
            parts = self.object({"path": entry} if isinstance(entry, str) else entry, where, _DB)
            sqlite = self.file(parts.get("path"), f"{where}.path")
            receipts = self.file(parts["receipts"], f"{where}.receipts") if "receipts" in parts else None
            if sqlite.suffix == ".git":
                self.fail(where, "is the SQLite file, not the receipts repository", 'use {"path": …, "receipts": …}')
            yield alias, DatabasePaths(alias, sqlite, receipts or sqlite.with_suffix(".git"))

    def workflows(self, value: Any, registry: Registry) -> Iterator[tuple[str, WorkflowEntry]]:
        for alias, entry in self.object(value, "workflows").items():
            where = f"workflows.{alias}"
            parts = self.object(entry, where, _WORKFLOW)
            db = self.text(parts["db"], f"{where}.db") if "db" in parts else registry.default_db
            if db not in registry.dbs:
                self.fail(f"{where}.db", f"names no database: {db!r}", suggestion(db, registry.dbs, "databases"))
            ref = self.text(parts.get("workflow_ref"), f"{where}.workflow_ref")
            deadline = self.span(parts["deadline"], f"{where}.deadline") if "deadline" in parts else None
            yield alias, WorkflowEntry(alias, ref, db, str(parts.get("description", "")), deadline)

    def object(self, value: Any, where: str, keys: Sequence[str] | None = None) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.fail(where, "must be a JSON object")
        for key in value if keys is not None else ():
            self._check_key(key, where, keys or ())
        return value

    def _check_key(self, key: str, where: str, keys: Sequence[str]) -> None:
        if key in keys:
            return
        place = f"{where}.{key}" if where else key
        near = nearest(key, keys, _MISSPELT)
        if near is not None:
            self.fail(place, "is not a known key", f"did you mean {near!r}?")
        self.warnings.append(f"{self.path}: {place} is not a known key and is ignored; known: {', '.join(keys)}")

    def text(self, value: Any, where: str) -> str:
        if not isinstance(value, str) or not value.strip():
            self.fail(where, "must be a text" if value is not None else "is missing")
        return value

    def names(self, value: Any, where: str) -> Iterator[str]:
        if not isinstance(value, list):
            self.fail(where, "must be a list of names of environment variables")
        for number, name in enumerate(value):
            yield self.text(name, f"{where}.{number}")

    def count(self, value: Any, where: str, *, least: int = 0) -> int:
        if type(value) is not int or not least <= value <= _MOST:
            self.fail(where, f"must be a whole number, {least} or more")
        return value

    def switch(self, value: Any, where: str) -> bool:
        if not isinstance(value, bool):
            self.fail(where, "must be true or false")
        return value

    def number(self, value: Any, where: str, *, least: float | None = None) -> float:
        """A number above 0, or of at least `least`."""
        wanted = "above 0" if least is None else f"of at least {least:g}"
        if isinstance(value, bool) or not isinstance(value, int | float) or not -_MOST <= value <= _MOST:
            self.fail(where, f"must be a number {wanted}" if value is not None else "is missing")
        if value <= 0 if least is None else value < least:
            self.fail(where, f"must be a number {wanted}")
        return float(value)

    def span(self, value: Any, where: str) -> float:
        """A number of seconds."""
        seconds = self.number(value, where)
        if seconds > _LONGEST:
            self.fail(where, "is more than a hundred years")
        return seconds

    def file(self, value: Any, where: str) -> Path:
        return (self.path.parent / self.text(value, where)).resolve()

    def fail(self, where: str, problem: str, hint: str | None = None) -> NoReturn:
        raise InvalidInput(f"{self.path}: {where or 'the registry'} {problem}", hint=hint)
