"""From a name to a workflow: an alias, `module:function`, `file.py` or `file.py:function`.

The name that is recorded is the same for everybody who works in the workspace: files are relative to its root.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from .authoring.workflow import Workflow
from .core.spelling import suggestion
from .errors import InvalidInput, NotFound
from .importing import LOCK, CannotLoad, NoSource, file_of, import_module, on_path, put_aside, run_file, said_where
from .registry import Registry
from .sources import Module, Sources, collect, workflows_in

__all__ = ["CannotLoad", "LoadedWorkflow", "Loader"]


@dataclass(frozen=True)
class LoadedWorkflow:
    """A workflow and the code it stands on.

    `ref` is what `run.json` records; `modules` are the project's, as they were imported for this workflow.
    """

    definition: Workflow[Any]
    ref: str
    found: Sources
    modules: Mapping[str, ModuleType]

    @property
    def code(self) -> str:
        """The identity of the code, twelve hex digits."""
        return self.found.code

    @property
    def sources(self) -> Mapping[str, bytes]:
        """The files of the code, by path relative to the workspace."""
        return self.found.files

    def find(self, module: str, qualname: str) -> Any:
        """The object of that name in the code this workflow was loaded with. Raises CannotLoad."""
        value: Any = self.modules.get(module) or import_module(module)
        for part in qualname.split("."):
            value = getattr(value, part, None)
        if value is None:
            raise CannotLoad(f"{module} has no {qualname!r}", hint="restore the code this run was started with")
        return value


@dataclass(frozen=True)
class _Target:
    """Where a ref points: a module, its recorded place, and the wanted attribute."""

    module: Module
    place: str
    attribute: str | None

    @property
    def by_file(self) -> bool:
        return self.place.endswith(".py")


class Loader:
    """Loads the workflows of one workspace; a loaded one is kept until its sources change. Thread-safe."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._root = registry.root.resolve()
        self._loaded: dict[str, LoadedWorkflow] = {}
        self._places: dict[str, str] = {}

    def load(self, ref: str, start: Path | None = None) -> LoadedWorkflow:
        """The workflow that `ref` means; file refs are seen from `start`, then from the workspace root.

        An unchanged workflow is the same object every time, at the cost of one `stat` a source.
        Raises NotFound for an unknown alias or file, CannotLoad for code that cannot be imported.
        """
        with LOCK:
            known = self._loaded.get(ref)
            if known is not None and known.found.unchanged():
                return known
            return self._load(self._target(ref, start or self._root))

    def load_foreign(self, ref: str) -> LoadedWorkflow:
        """The workflow that a run from elsewhere names. What is imported here is not for others to say: it must be in
        the registry, or in a file of the workspace whose author made that function a workflow.

        Raises what `load` raises, and InvalidInput for any other code, which is not imported.
        """
        place, attribute = _split(ref)
        known = [entry.ref for entry in self._registry.workflows.values()]
        if ref in known or place in known or self._is_workflow(place, attribute):
            return self.load(ref)
        file = "put that file into this workspace, or " if place.endswith(".py") else ""
        raise InvalidInput(
            f"the run comes from elsewhere, and its workflow {ref} is none of this workspace's",
            hint=f"its code is not imported; if you want it, {file}give it an alias in the registry",
        )

    def fresh(self, loaded: LoadedWorkflow) -> LoadedWorkflow:
        """The same workflow; imported again when one of its sources has changed on disk."""
        return self.load(loaded.ref)

    def code_of(self, ref: str) -> str:
        """The identity of the code as it lies on disk, read and not imported: importing may be what goes wrong.

        Raises NotFound and CannotLoad for code that is not there or cannot be read.
        """
        with LOCK:
            known = self._loaded.get(ref)
            if known is not None and known.found.unchanged():
                return known.code
            target = self._target(ref, self._root)
            folder = _import_folder(target.module)
            with said_where(target.place), on_path([folder, self._root]):
                return collect(target.module, self._root, self._search(folder)).code

    def ref_of(self, definition: Workflow[Any]) -> str:
        """How `run.json` names a workflow that another one calls."""
        return f"{self._places.get(definition.module, definition.module)}:{definition.qualname}"

    def _is_workflow(self, place: str, attribute: str | None) -> bool:
        """By reading: importing a file is executing it."""
        path = (self._root / place).resolve()
        if path.suffix != ".py" or not path.is_relative_to(self._root):
            return False
        try:
            return attribute in workflows_in(path.read_bytes(), place)
        except (OSError, SyntaxError, ValueError):
            return False

    def _target(self, ref: str, start: Path) -> _Target:
        entry = self._registry.workflows.get(ref)
        name, start = (entry.ref, self._root) if entry else (ref, start)
        place, attribute = _split(name)
        if place.endswith(".py"):
            return self._file_target(place, attribute, start)
        if attribute is None:
            known = list(self._registry.workflows)
            raise NotFound(f"no workflow {ref!r} in {self._registry.path}", hint=suggestion(ref, known, "workflows"))
        try:
            with on_path([self._root]):
                return _Target(Module(place, file_of(place)), place, attribute)
        except NoSource as error:
            raise CannotLoad(f"{name} is not a workflow: {error.message}", hint=error.hint) from None

    def _file_target(self, file: str, attribute: str | None, start: Path) -> _Target:
        path = next((path for base in (start, self._root) if (path := (base / file).resolve()).is_file()), None)
        if path is None:
            raise NotFound(f"no file {file} in {start}", hint=f"file refs start from the workspace, {self._root}")
        if not path.is_relative_to(self._root):
            raise InvalidInput(
                f"{path} lies outside the workspace {self._root}",
                hint="every runner of the workspace must find it: move it there, or install it as a package",
            )
        place = path.relative_to(self._root).as_posix()
        return _Target(Module(_module_name(path, self._root), path), place, attribute)

    def _load(self, target: _Target) -> LoadedWorkflow:
        folder = _import_folder(target.module)
        with said_where(target.place), on_path([folder, self._root]):
            found = collect(target.module, self._root, self._search(folder))
            put_aside(found)
            module = run_file(target.module) if target.by_file else import_module(target.module.name)
            modules = {one.name: sys.modules[one.name] for one in found.modules if one.name in sys.modules}
        attribute, definition = _pick(module, target)
        self._places[module.__name__] = target.place
        loaded = LoadedWorkflow(definition, f"{target.place}:{attribute}", found, modules)
        self._loaded[loaded.ref] = loaded
        return loaded

    def _search(self, folder: Path) -> list[Path]:
        """Where the project's own modules are imported from."""
        others = (Path(entry).resolve() for entry in sys.path if entry)
        return [folder, *(other for other in others if other.is_relative_to(self._root))]


def _split(ref: str) -> tuple[str, str | None]:
    """`left:attribute`, or a file alone; a Windows drive is no separator."""
    left, colon, right = ref.rpartition(":")
    if not colon or right.endswith(".py") or "/" in right:
        return ref, None
    return left, right or None


def _module_name(path: Path, root: Path) -> str:
    """A packaged file keeps its import name; any other is named by its place, so that no two share a name."""
    folder = _package_root(path, root)
    base = folder if folder != path.parent else root
    parts = [part.replace(".", "_") for part in path.relative_to(base).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _import_folder(module: Module) -> Path:
    return _package_root(module.path, Path(module.path.anchor))


def _package_root(path: Path, top: Path) -> Path:
    folder = path.parent
    while folder != top and (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _pick(module: ModuleType, target: _Target) -> tuple[str, Workflow[Any]]:
    workflows = {name: value for name, value in vars(module).items() if isinstance(value, Workflow)}
    attribute, where = target.attribute, target.place
    if attribute is None:
        # Imported ones are other files' workflows.
        own = {name: value for name, value in workflows.items() if value.module == module.__name__}
        if len(own) != 1:
            names = ", ".join(sorted(own)) or "none"
            raise InvalidInput(f"{where} defines {len(own)} workflows: {names}", hint=f"name one: {where}:NAME")
        return next(iter(own.items()))
    if attribute in workflows:
        return attribute, workflows[attribute]
    if callable(getattr(module, attribute, None)):
        raise CannotLoad(f"{where}:{attribute} is not a workflow", hint="decorate it with @workflow")
    raise CannotLoad(f"{where} has no workflow {attribute!r}", hint=suggestion(attribute, workflows, "workflows"))
