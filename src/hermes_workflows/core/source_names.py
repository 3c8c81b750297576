"""What the names in a project's modules mean: read from their source, nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"

_MUTABLE_TYPES = frozenset(
    {"list", "dict", "set", "bytearray", "collections.defaultdict", "collections.deque", "collections.Counter"}
)
_MUTATING = frozenset(
    {
        "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "remove",
        "setdefault", "update",
    }
)  # fmt: skip


@dataclass(frozen=True)
class SourceModule:
    """A module of the project: its import name, its path as people know it, its syntax tree."""

    name: str
    path: str
    tree: ast.Module

    @cached_property
    def functions(self) -> Mapping[str, Function]:
        """Its functions, by name; methods belong to objects, of which a reader of source knows nothing."""
        return {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}

    @cached_property
    def imports(self) -> Mapping[str, str]:
        """What imported names stand for: `dt` for `datetime`, `now` for `hermes_workflows.authoring.now`."""
        return {local: origin for node in ast.walk(self.tree) for local, origin in self._imported(node)}

    def _imported(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(filter(None, [self._package(node.level), node.module]))
            for alias in node.names:
                yield alias.asname or alias.name, f"{base}.{alias.name}"

    def _package(self, level: int) -> str:
        if not level:
            return ""
        parts = self.name.split(".")
        return ".".join(parts[: len(parts) - level + self.path.endswith("__init__.py")])

    def origin(self, node: ast.expr, local: frozenset[str] = frozenset()) -> str | None:
        """The dotted name that an expression like `os.environ` means; None for anything else, and for `local` names.

        What the module defines is `module.name`, what nobody defines is a name of Python's own.
        """
        if isinstance(node, ast.Attribute):
            base = self.origin(node.value, local)
            return f"{base}.{node.attr}" if base else None
        if isinstance(node, ast.Name) and node.id not in local:
            return f"{self.name}.{node.id}" if node.id in self._defined else self.imports.get(node.id, node.id)
        return None

    @cached_property
    def _defined(self) -> frozenset[str]:
        bound = (name for node in self.tree.body for name, _ in _bindings(node))
        return frozenset([*self.functions, *bound])

    @cached_property
    def mutable_globals(self) -> frozenset[str]:
        """Names of lists, dicts and sets of the module that one of its functions changes."""
        found = {name for node in self.tree.body for name, value in _bindings(node) if self._is_mutable(value)}
        functions = [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        changed = {name for function in functions for name in _changed(function)}
        return frozenset(found & changed)

    def _is_mutable(self, value: ast.expr) -> bool:
        if isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp):
            return True
        return isinstance(value, ast.Call) and self.origin(value.func) in _MUTABLE_TYPES


def locals_of(function: Function | ast.Lambda) -> frozenset[str]:
    """The names that a function gives a meaning of its own: its arguments and what it assigns."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    names = {each.arg for each in named if each}
    kept: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Global):
            kept.update(node.names)
    return frozenset(names - kept)


def _bindings(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        yield node.target.id, node.value


def _changed(function: Function) -> Iterator[str]:
    """The globals that a function changes, as far as it says so: `NAMES.append(…)`, `NAMES[…] = …`, `global NAMES`."""
    local = locals_of(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Global):
            yield from node.names
        for name in _targets(node):
            if name not in local:
                yield name


def _targets(node: ast.AST) -> Sequence[str]:
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        changed: ast.expr | None = node.value
    elif isinstance(node, ast.Attribute) and node.attr in _MUTATING:
        changed = node.value
    else:
        changed = None
    return [changed.id] if isinstance(changed, ast.Name) else []
