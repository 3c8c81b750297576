"""What a cancelled body may still do (SEMANTICS §5)."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import NotInAWorkflow
from .calls import AnyCall
from .receipts import Failure

MAX_CALLS = 20
_NAMED = 5
_KINDS = frozenset({"bash", "step", "timer"})


class Cleanup:
    """Counts the calls of a body that was told to stop; `cut_off` says why it may make no more."""

    def __init__(self) -> None:
        self.active = False
        self.cut_off: str | None = None
        self._skipped = False
        self._calls = 0

    def admits(self, call: AnyCall, root: str | None) -> bool:
        """Whether a call may go out. False means that the run ends here.

        Raises NotInAWorkflow for a call that is no cleanup. It counts all the same: a body that tries it again and
        again ends, too.
        """
        if not self.active:
            return True
        self._calls += 1
        if self._calls > MAX_CALLS:
            self.cut_off = self.cut_off or f"cleanup was cut off after {MAX_CALLS} calls"
            return False
        if call.kind not in _KINDS:
            place = call.site.within(root)
            raise NotInAWorkflow(
                f"{call.kind} call {call.key}: a cancelled run may clean up with bash and @step only ({place})"
            )
        return True

    def skip(self) -> None:
        """Somebody wants the end at once: the body is not even told."""
        self._skipped = not self.active
        self.cut_off = "its cleanup was skipped" if self._skipped else "the rest of its cleanup was skipped"
        self.active = True

    def failure(self, open_calls: Iterable[str]) -> Failure | None:
        """Why the body had no time to end by itself, and which calls were open then."""
        if self.cut_off is None:
            return None
        kind = "CleanupSkipped" if self._skipped else "CleanupCutOff"
        cut_off = list(open_calls)
        named = f"; it cut off {', '.join(cut_off[:_NAMED])}" if cut_off else ""
        more = f" and {len(cut_off) - _NAMED} more" if len(cut_off) > _NAMED else ""
        return Failure(
            type=kind, message=self.cut_off + named + more, details={"cut_off": cut_off} if cut_off else None
        )
