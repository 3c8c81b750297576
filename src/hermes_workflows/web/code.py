"""What the pages do with a project's code: say what it takes, start it, and begin a run again under it.

`Imported` has the code in this process. Whoever mounts the pages where that must not be gives another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ..core.encoding import Plain
from ..importing import said_where
from ..runner.forking import Forked, Wish, fork, retry
from ..workspace import Workspace

Again = Literal["fork", "retry"]


@dataclass(frozen=True)
class Described:
    """A workflow as it is on disk: `schema` is that of its input, None when it takes none; `files` are its sources."""

    ref: str
    name: str
    about: str
    schema: Mapping[str, Any] | None
    files: Mapping[str, str]


class Code(Protocol):
    """Every method may block, and raises what the functions of the same name raise."""

    def describe(self, workspace: Workspace, alias: str) -> Described: ...

    def start(self, workspace: Workspace, alias: str, given: Plain, run_id: str) -> str:
        """The id of the run that it has begun."""
        ...

    def again(self, workspace: Workspace, verb: Again, wish: Wish) -> str:
        """The id of the run that goes on: the new one, or the old one in place."""
        ...


class Imported:
    """The code, imported here."""

    def describe(self, workspace: Workspace, alias: str) -> Described:
        loaded = workspace.loader.load(alias)
        with said_where(loaded.ref):
            codec = loaded.definition.input_codec
        files = {path: data.decode("utf-8", "replace") for path, data in sorted(loaded.sources.items())}
        about = (loaded.definition.__doc__ or "").strip()
        schema = None if codec is None else codec.json_schema
        return Described(loaded.ref, loaded.definition.name, about, schema, files)

    def start(self, workspace: Workspace, alias: str, given: Plain, run_id: str) -> str:
        # By its alias, which has the deadline.
        return workspace.start(alias, given, run_id=run_id).run_id

    def again(self, workspace: Workspace, verb: Again, wish: Wish) -> str:
        done = (fork if verb == "fork" else retry)(workspace, wish)
        return done.run_id if isinstance(done, Forked) else wish.source.run_id
