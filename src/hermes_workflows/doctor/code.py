"""What the registry says, and the code that its aliases mean."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.impurities import impurities
from ..core.source_names import SourceModule
from ..errors import HermesError
from ..loader import LoadedWorkflow, Loader
from ..registry import Registry
from ..sources import parsed
from .finding import Finding


def examine_registry(registry: Registry) -> list[Finding]:
    """Every alias: whether its code can be imported, its types be understood, and its body be replayed."""
    findings = [Finding("warning", warning) for warning in registry.warnings]
    loader = Loader(registry)
    impure: dict[Finding, None] = {}
    for alias in registry.workflows:
        try:
            loaded = loader.load(alias)
            _ = (loaded.definition.input_codec, loaded.definition.output_codec)
        except HermesError as error:
            findings.append(Finding("problem", f"workflow {alias}: {error.message}", error.hint))
        except Exception as error:
            what = f"workflow {alias}: its types cannot be understood: {type(error).__name__}: {error}"
            findings.append(Finding("problem", what, "annotate input and result with types that JSON can hold"))
        else:
            findings.append(Finding("ok", f"workflow {alias} is {loaded.ref}, code {loaded.code}"))
            impure.update(dict.fromkeys(_impure(registry, loaded)))
    return [*findings, *impure] or [Finding("ok", "no workflows are registered", "hermes-workflows registry discover")]


def _impure(registry: Registry, loaded: LoadedWorkflow) -> Iterator[Finding]:
    """Two aliases of one file say the same, once."""
    root = registry.root.resolve()
    modules = []
    for module in loaded.found.modules:
        shown = module.path.relative_to(root) if module.path.is_relative_to(root) else module.path
        modules.append(
            SourceModule(module.name, shown.as_posix(), parsed(loaded.found.by_path[module.path], module.name))
        )
    for each in impurities(modules):
        yield Finding("warning", f"{each.path}:{each.line}: {each.what}", each.hint)
