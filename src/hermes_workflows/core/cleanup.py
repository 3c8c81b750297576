"""What a cancelled body may still do (SEMANTICS §5)."""

from __future__ import annotations

from ..errors import NotInAWorkflow
from .calls import AnyCall
from .receipts import Failure

MAX_CALLS = 20
_KINDS = frozenset({"bash", "step", "timer"})


class Cleanup:
    """Counts the calls of a body that was told to stop; `cut_off` says why it may make no more."""

    def __init__(self) -> None:
        self.active = False
        self.cut_off: str | None = None
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

    @property
    def failure(self) -> Failure | None:
        return Failure(type="CleanupCutOff", message=self.cut_off) if self.cut_off else None
