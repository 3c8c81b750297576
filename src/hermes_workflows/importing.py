"""Importing a project's code again and again in one process, without stale or foreign modules.

Python's module table and path belong to the whole process: everything that touches them is here, under one lock.
"""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from .errors import HermesError, InvalidInput
from .sources import Module, Sources

LOCK = threading.RLock()
_STATE = threading.local()
_STDLIB = sysconfig.get_path("stdlib")
# Every version of a file that was imported in this process, whoever asked.
_VERSIONS: dict[Path, set[bytes]] = {}


class CannotLoad(InvalidInput):
    """The code of a workflow cannot be imported here; a run of it is stuck, not failed."""

    code = "cannot_load"


class NoSource(CannotLoad):
    """A module that Python has built in: there is no file to read, and no workflow in it."""


def loading() -> bool:
    """Whether this thread is importing a project's code: a `name.run()` met there must not start a run."""
    return bool(getattr(_STATE, "depth", 0))


@contextmanager
def on_path(folders: Sequence[Path]) -> Iterator[None]:
    """These folders come before installed packages while code is imported, and last ever after, for steps
    that import when they run. The standard library stays first: a `queue.py` of the project must not break us.
    """
    wanted = [str(folder) for folder in folders]
    before = list(sys.path)
    others = [entry for entry in before if entry not in wanted]
    cut = 1 + max((place for place, entry in enumerate(others) if _is_stdlib(entry)), default=-1)
    sys.path[:] = [*others[:cut], *wanted, *others[cut:]]
    # A cached .pyc is trusted by whole seconds and size: an edit within that second would not be seen.
    writing, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    importlib.invalidate_caches()
    _STATE.depth = getattr(_STATE, "depth", 0) + 1
    try:
        yield
    finally:
        _STATE.depth -= 1
        sys.dont_write_bytecode = writing
        sys.path[:] = [*before, *(entry for entry in wanted if entry not in before)]


def put_aside(found: Sources) -> None:
    """Forget imported modules that are stale, or that only share a name with one of these.

    When one file has changed, all of the workflow's modules go: the others hold on to the old one.
    """
    changed = False
    for path, data in found.by_path.items():
        versions = _VERSIONS.setdefault(path, set())
        versions.add(data)
        changed = changed or len(versions) > 1
    for module in found.modules:
        _forget_namesakes(module.name)
        imported = sys.modules.get(module.name)
        origin = getattr(imported, "__file__", None)
        if imported is not None and (changed or origin is None or Path(origin).resolve() != module.path):
            _forget(module.name)
    linecache.checkcache()


def run_file(module: Module) -> ModuleType:
    """The module of a file that was named by its path."""
    if (imported := sys.modules.get(module.name)) is not None:
        return imported
    loader = _FreshLoader(module.name, str(module.path))
    spec = importlib.util.spec_from_file_location(module.name, module.path, loader=loader)
    assert spec is not None  # a loader was given
    made = importlib.util.module_from_spec(spec)
    sys.modules[module.name] = made
    try:
        loader.exec_module(made)
    except BaseException as error:
        # `raise SystemExit(name.run())` as the last line is how a file says that it is also a program.
        if not (isinstance(error, SystemExit) and error.code in (None, 0)):
            del sys.modules[module.name]
            raise
    return made


def import_module(name: str) -> ModuleType:
    """Raises CannotLoad, with the file and line at fault."""
    with said_where(name):
        return importlib.import_module(name)


def file_of(name: str) -> Path:
    """The source file of a module that can be imported. Raises CannotLoad, and NoSource for a part of Python."""
    with said_where(name):
        _forget_namesakes(name)
        try:
            spec = importlib.util.find_spec(name)
        except ModuleNotFoundError as error:
            # A missing parent package is a wrong name; a package that fails to import something else is broken.
            if not f"{name}.".startswith(f"{error.name}."):
                raise
            spec = None
        except ValueError:
            spec = None
    if spec is not None and spec.origin in ("built-in", "frozen"):
        raise NoSource(f"{name} is a part of Python", hint="name a module of yours: module:function")
    if spec is None or spec.origin is None or not spec.has_location:
        raise CannotLoad(
            f"no module {name!r} for this Python",
            hint=f"install it for {sys.executable}, or name the file: path/to/file.py:function",
        )
    return Path(spec.origin).resolve()


@contextmanager
def said_where(what: str) -> Iterator[None]:
    """Turn whatever an import raises into one line with the file and line it came from."""
    try:
        yield
    except HermesError as error:
        # A typo in the decorators of the module is the author's, and has a place in the file too.
        if isinstance(error, InvalidInput):
            raise
        raise CannotLoad(f"cannot load {what}: {_where(error)}{error.message}", hint=error.hint) from error
    except SyntaxError as error:
        raise CannotLoad(f"cannot load {what}: {error.filename}:{error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise CannotLoad(f"cannot load {what}: {_where(error)}{reason}") from error


class _FreshLoader(SourceFileLoader):
    """Compiles what stands in the file now, whatever a cached .pyc says."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _forget(name: str) -> None:
    # A package's submodules go with it: they would not be attributes of the one that is imported next.
    for other in [other for other in sys.modules if other == name or other.startswith(f"{name}.")]:
        del sys.modules[other]


def _forget_namesakes(name: str) -> None:
    """The module of that name and the packages above it, where they came from elsewhere, another workspace's `flows`
    say: `name` would be taken from there, or be looked for there. Namespace packages follow the path by themselves.
    """
    folders: Sequence[str] | None = None
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        part = ".".join(parts[:length])
        spec = PathFinder.find_spec(part, folders)
        if spec is None:
            return
        imported = sys.modules.get(part)
        if imported is not None and getattr(imported, "__file__", None) != spec.origin:
            _forget(part)
        folders = spec.submodule_search_locations


def _is_stdlib(path: str) -> bool:
    return path.startswith(_STDLIB) and "site-packages" not in path


def _where(error: BaseException) -> str:
    """The author's own line: what an import fails in is often a library that did what it was told."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    authors = [frame for frame in frames if not _is_stdlib(frame.filename) and "site-packages" not in frame.filename]
    shown = (authors or frames)[-1:]
    return "".join(f"{frame.filename}:{frame.lineno}: " for frame in shown)


def _is_ours(filename: str) -> bool:
    return filename == __file__ or filename.startswith("<frozen") or (_is_stdlib(filename) and "importlib" in filename)
