"""`always_replay`: beside each living body another one is built from its receipts, at every await, and compared."""

from __future__ import annotations

from collections.abc import Callable

from ..core.history import fold
from ..core.receipts import Receipt
from ..runner.bodies import Bodies, Held
from ..runner.ends import ends_apart, text_of, was_forced
from ..runner.slices import Decider
from ..workspace import Workspace
from .failures import SAME_AGAIN, Halt, ReplayMismatch
from .traces import Replayed, Scene, asked_for, calls_apart


class WatchedBodies(Bodies):
    """The runner's bodies. Whenever one has decided, it is decided again from the ledger alone.

    Halts the test with a ReplayMismatch.
    """

    def __init__(self, workspace: Workspace, decider: Decider, on_refusal: Callable[[str], None], scene: Scene) -> None:
        super().__init__(workspace, decider, on_refusal)
        self._watched_workspace = workspace
        self._watched_decider = decider
        self._scene = scene
        self._seen: dict[str, int] = {}
        self._receipts: dict[str, list[Receipt]] = {}
        self._tips: dict[str, str] = {}

    def current(self, run_id: str) -> Held:
        held = super().current(run_id)
        if self._seen.get(run_id) != held.live.after:
            self._seen[run_id] = held.live.after
            self._decide_again(held)
        return held

    def _decide_again(self, held: Held) -> None:
        run_id, definition = held.run_id, held.live.definition
        history = fold(self._read(run_id))
        try:
            again = self._watched_decider.run(
                lambda: self._scene.replay(run_id, definition, history, traced=False), run_id
            )
        except ReplayMismatch as error:
            raise self._halt(held, str(error)) from error
        if (said := self._apart(held, again)) is not None:
            raise self._halt(held, said)

    def _read(self, run_id: str) -> list[Receipt]:
        """All receipts. Only new ones are read: otherwise most of a long run's time would go into it."""
        head, new = self._watched_workspace.ledger.read(run_id, since=self._tips.get(run_id))
        self._tips[run_id] = head.tip
        known = self._receipts.setdefault(run_id, [])
        known += new
        return known

    def _apart(self, held: Held, again: Replayed) -> str | None:
        if held.end is not None and was_forced(held.end.error):
            return None
        if (held.live.state(), text_of(held.end), held.stuck) == (again.state, text_of(again.end), again.stuck):
            return None
        alive = [asked_for(call, self._scene.root) for call in held.live.outstanding.values()]
        said = list(calls_apart(alive, again.open))
        if text_of(held.end) != text_of(again.end):
            said.append(ends_apart(text_of(held.end), text_of(again.end)))
        return "; ".join(said) or f"its state was {held.live.state()} before and is {again.state} now"

    def _halt(self, held: Held, said: str) -> Halt:
        where = f"rebuilt from the receipts 0 to {held.summary.seq} of {held.run_id}"
        name = held.loaded.definition.name
        return Halt(ReplayMismatch(f"{name} does not decide the same again, {where}: {said}\n{SAME_AGAIN}"))
