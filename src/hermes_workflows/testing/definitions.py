"""Where workflows come from in a test: they are given as objects, and need no file that a loader could find.

For a replay in another process a workflow needs a place there, too: its module, its file, its name.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from ..authoring.workflow import Workflow
from ..errors import NotFound
from ..importing import run_file, said_where
from ..loader import LoadedWorkflow, Loader
from ..registry import Registry
from ..sources import Module, Sources

# Sources are kept with real runs only: a test file may well hold what looks like a secret.
_NO_SOURCES = Sources((), {}, {}, {})


class GivenLoader(Loader):
    """Loads what it was given, and the children that those call."""

    def __init__(self, registry: Registry, first: Workflow[Any]) -> None:
        super().__init__(registry)
        self.definitions: dict[str, Workflow[Any]] = {first.ref: first}

    def load(self, ref: str, start: Path | None = None) -> LoadedWorkflow:
        if ref not in self.definitions:
            raise NotFound(f"no workflow {ref!r} takes part in this test")
        return LoadedWorkflow(self.definitions[ref], ref, _NO_SOURCES, {})

    def fresh(self, loaded: LoadedWorkflow) -> LoadedWorkflow:
        return loaded

    def code_of(self, ref: str) -> str:
        return _NO_SOURCES.code

    def ref_of(self, definition: Workflow[Any]) -> str:
        ref, number = definition.ref, 1
        # Two workflows that one function made (a factory, a parametrized test) have one name.
        while self.definitions.setdefault(ref, definition) is not definition:
            number += 1
            ref = f"{definition.ref}-{number}"
        return ref


@dataclass(frozen=True)
class Origin:
    """Where another process finds a workflow."""

    module: str
    file: str
    qualname: str

    @classmethod
    def of(cls, definition: Workflow[Any]) -> Origin | None:
        """None for one that only this process has: made inside a function, or in the program's main file."""
        file = inspect.getsourcefile(definition.fn)
        if file is None or "<locals>" in definition.qualname or definition.module == "__main__":
            return None
        return cls(definition.module, str(Path(file).resolve()), definition.qualname)

    def find(self) -> Workflow[Any]:
        """The workflow, its module imported when need be. Raises CannotLoad, NotFound."""
        with said_where(self.module):
            value: Any = self._module()
        for part in self.qualname.split("."):
            value = getattr(value, part, None)
        if not isinstance(value, Workflow):
            raise NotFound(f"{self.file} has no workflow {self.qualname!r}")
        return value

    def _module(self) -> ModuleType:
        # By its name where that leads to the same file: other modules then share it. pytest may import a test
        # module under a name that nobody else can import.
        try:
            module = import_module(self.module)
            if Path(module.__file__ or "").resolve() == Path(self.file):
                return module
        except ModuleNotFoundError as error:
            if not f"{self.module}.".startswith(f"{error.name}."):
                raise
        return run_file(Module(self.module, Path(self.file)))
