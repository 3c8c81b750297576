"""Which of the project's own modules a workflow stands on: found by reading, not by looking at what is imported.

Reading makes the answer depend on the files alone. What a process happens to have imported for other workflows,
or imports only when a step runs, must not change the identity of this one's code.
Prompt files that a module names by a literal belong to it.
A project module is a file below the workspace root that no package manager put there.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .authoring.prompts import find
from .core.identity import code_identity
from .core.names import source_paths
from .errors import InvalidInput

_PACKAGE = Path(__file__).resolve().parent
# In this project's own checkout the engine lies below the workspace root; it is not the author's code.
_EXAMPLES = _PACKAGE / "examples"
_PARSE_ATTEMPTS = 5


@dataclass(frozen=True)
class Module:
    """A module by its import name and its file."""

    name: str
    path: Path


@dataclass(frozen=True)
class Sources:
    """The modules of one workflow, the first one first, and their bytes by recorded path."""

    modules: tuple[Module, ...]
    files: Mapping[str, bytes]
    by_path: Mapping[Path, bytes]
    stamps: Mapping[Path, tuple[int, int, int]]

    @cached_property
    def code(self) -> str:
        """The identity of this code: twelve hex digits over all paths and contents."""
        return code_identity(self.files)

    def unchanged(self) -> bool:
        """Whether every file still looks as it did when it was read; one `stat` each."""
        return all(_stamp(path) == stamp for path, stamp in self.stamps.items())


def collect(first: Module, root: Path, search: Sequence[Path]) -> Sources:
    """Read `first` and every project module it imports, directly or not, and the prompt files they name.

    `search` are the folders imports are looked up in. Raises OSError, SyntaxError, and InvalidInput for a prompt file
    that is not there.
    """
    found: dict[Path, Module] = {}
    by_path: dict[Path, bytes] = {}
    stamps: dict[Path, tuple[int, int, int]] = {}
    prompts: dict[Path, str] = {}
    todo = [first]
    while todo:
        module = todo.pop()
        if module.path in found:
            continue
        found[module.path] = module
        # The stamp comes before the bytes: a file that changes in between looks changed, never unchanged.
        stamps[module.path] = _stamp(module.path)
        by_path[module.path] = data = module.path.read_bytes()
        tree = parsed(data, str(module.path))
        prompts.update(_prompts(module, tree, root))
        if is_project(module.path, root):
            todo += [other for other in _imported(module, tree, search) if is_project(other.path, root)]
    for path in prompts:
        stamps[path] = _stamp(path)
        by_path[path] = path.read_bytes()
    files = {_recorded(module, root): by_path[path] for path, module in found.items()}
    files.update((name, by_path[path]) for path, name in prompts.items())
    names = source_paths(files)
    kept = {names[path]: data for path, data in files.items()}
    return Sources(tuple(found.values()), kept, by_path, stamps)


def parsed(source: bytes, name: str) -> ast.Module:
    """The syntax tree of `source`. Raises SyntaxError.

    CPython counts the depth of a conversion for the whole interpreter: when the collector runs something that formats
    a traceback, which parses too, the outer conversion ends in a SystemError. The next try has nothing to collect.
    """
    for _ in range(_PARSE_ATTEMPTS - 1):
        try:
            return ast.parse(source, name)
        except SystemError:
            continue
    return ast.parse(source, name)


def workflows_in(source: bytes, name: str) -> list[str]:
    """The functions of a file that its author made workflows, found by reading. Raises SyntaxError, ValueError."""
    functions = (node for node in parsed(source, name).body if isinstance(node, ast.AsyncFunctionDef))
    return [node.name for node in functions if any(map(_is_workflow, node.decorator_list))]


def is_project(path: Path, root: Path) -> bool:
    if not path.is_relative_to(root):
        return False
    if path.is_relative_to(_PACKAGE) and not path.is_relative_to(_EXAMPLES):
        return False
    return not {"site-packages", "dist-packages"}.intersection(path.relative_to(root).parts)


def _is_workflow(decorator: ast.expr) -> bool:
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")) == "workflow"


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return (0, 0, 0)
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)


def _recorded(module: Module, root: Path) -> str:
    if is_project(module.path, root):
        return module.path.relative_to(root).as_posix()
    parts = module.name.split(".")
    return "/".join(
        [*parts, module.path.name] if module.path.name == "__init__.py" else [*parts[:-1], module.path.name]
    )


def _prompts(module: Module, tree: ast.Module, root: Path) -> Iterator[tuple[Path, str]]:
    """The prompt files that a module names by literals, and the names they are recorded under."""
    folder = module.path.parent
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and _called(node) == "prompt_file" and node.args):
            continue
        name = node.args[0]
        if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
            continue
        try:
            path = find(name.value, folder, root).resolve()
        except InvalidInput as error:
            raise InvalidInput(f"{_recorded(module, root)}:{node.lineno}: {error.message}", hint=error.hint) from None
        if path.is_relative_to(root):
            yield path, path.relative_to(root).as_posix()
        elif path.is_relative_to(folder):
            yield path, "/".join([*module.name.split(".")[:-1], path.relative_to(folder).as_posix()])
        else:
            raise InvalidInput(f"{_recorded(module, root)}:{node.lineno}: {path} lies outside the workspace {root}")


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _imported(module: Module, tree: ast.Module, search: Sequence[Path]) -> Iterator[Module]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _resolve(alias.name, search)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module)
            names = [base] if base else []
            # `from package import name` may name a module as well as a value.
            names += [f"{base}.{alias.name}" if base else alias.name for alias in node.names if alias.name != "*"]
            for name in names:
                yield from _resolve(name, search)


def _absolute(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    is_package = module.path.name == "__init__.py"
    parts = module.name.split(".")
    parent = parts[: len(parts) - node.level + is_package]
    return ".".join([*parent, *([node.module] if node.module else [])])


def _resolve(name: str, search: Sequence[Path]) -> Iterator[Module]:
    """The file of a dotted name and of the packages above it, in the first folder that has its beginning."""
    parts = name.split(".")
    if parts[0] in sys.stdlib_module_names:
        return
    for folder in search:
        if not (folder / parts[0]).is_dir() and not (folder / f"{parts[0]}.py").is_file():
            continue
        for length in range(1, len(parts) + 1):
            base = folder.joinpath(*parts[:length])
            for path in (base / "__init__.py", base.with_name(f"{base.name}.py")):
                if path.is_file():
                    yield Module(".".join(parts[:length]), path)
                    break
        return
