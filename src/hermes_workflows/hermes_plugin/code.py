"""What the tab does with a project's code, done by a process of its own (see `apart`): Hermes' own imports none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .apart import ask

if TYPE_CHECKING:
    from ..core.encoding import Plain
    from ..finding import Found
    from ..runner.forking import Wish
    from ..web.code import Again, Described
    from ..workspace import Workspace


class Apart:
    """The dashboard's `Code`. Who asks for a run here is not recorded there either: only answers have a name."""

    def describe(self, workspace: Workspace, alias: str) -> Described:
        from ..web.code import Described

        said = ask(workspace.registry, "registry", "show", about=alias)
        return Described(said["workflow_ref"], said["name"], said["description"], said["input"], said["sources"])

    def start(self, workspace: Workspace, alias: str, given: Plain, run_id: str) -> str:
        more, typed = ([], None) if given is None else (["--input-json", "-"], _json(given))
        begun: str = ask(workspace.registry, "run", f"--id={run_id}", *more, about=alias, typed=typed)["workflow_id"]
        return begun

    def again(self, workspace: Workspace, verb: Again, wish: Wish) -> str:
        more, typed = (["--input-json", "-"], _json(wish.given[0])) if wish.given else ([], None)
        words = (verb, f"--id={wish.run_id}", f"--by={wish.by.by}", *more)
        begun: str = ask(workspace.registry, *words, about=_moment(wish.source), typed=typed)["workflow_id"]
        return begun


def _moment(found: Found) -> str:
    run = f"{found.remote}/{found.run_id}" if found.remote else found.run_id
    return f"{run}@{found.key}" if found.key else run


def _json(value: Plain) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
