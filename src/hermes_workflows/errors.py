"""Every error of the project, in one tree.

    HermesError                       something a person has to know; has a code, a hint and an exit code
    ├── InvalidInput        (2)       the caller: bad arguments, JSON, ids, keys, a value that does not fit its type
    │   └── UnstorableValue (2)       a value that no receipt can hold (NaN, a lone surrogate, too large …)
    ├── NotFound            (4)       the caller: no such run, review, alias, database
    ├── Conflict            (5)       two people or programs wanted different things; the first one won
    │   └── AlreadyAnswered (5)
    ├── IntegrityError      (6)       the store or the code is not what the receipts say
    │   ├── Divergence      (6)       the present code decides otherwise than the code that was recorded
    │   └── NewerSchema     (6)       written by a newer version of this program
    ├── TemporarilyLocked   (75)      somebody else is writing; the same call may succeed in a moment
    ├── StoreFailure        (74)      the disk: full, read-only, unreadable
    ├── RemoteFailure       (69)      another repository: not reached, no access, refused
    └── AuthoringError      (2)       the author of a workflow, met while the body runs; it fails the run
        ├── NotInAWorkflow            a primitive outside a body, or something a body must not do
        ├── KeyClash                  two different calls claim one key
        └── CallNeverAwaited          the body returned although a call it wrote never went out

    CallFailed                        raised *in the body* at an await; authors catch it
    ├── AgentFailed, BashFailed, StepFailed, ChildFailed, SignalFailed, ReviewFailed, ArtifactFailed
    └── TimedOut                      and a TimeoutError: what a call that ran over its time raises
        └── AgentTimedOut, BashTimedOut, StepTimedOut, ChildTimedOut, SignalTimedOut, ReviewExpired
    GoalExhausted                     raised in the body by `goal`

Messages are one line: what is wrong, where. The hint says what to do next.
"""

from __future__ import annotations

from typing import Any


class HermesError(Exception):
    """Base of what the command line reports as `{"error": {"code", "message", "hint"}}`."""

    code = "error"
    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        message = _writable(message)
        super().__init__(message)
        self.message = message
        self.hint = None if hint is None else _writable(hint)
        # What a program may want to know beside the sentence; JSON-able.
        self.details: dict[str, Any] | None = None


def _writable(text: str) -> str:
    """The text as any file can hold it: names in foreign repositories are bytes, and messages quote them."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


class InvalidInput(HermesError):
    code = "invalid_input"
    exit_code = 2


class UnstorableValue(InvalidInput):
    """A value that cannot be written into a receipt.

    `path` names the place inside the value as a JSON pointer (`""` is the value itself).
    """

    code = "unstorable_value"

    def __init__(self, path: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{reason} at {path or '/'}", hint=hint)
        self.path = path
        self.reason = reason


class NotFound(HermesError):
    code = "not_found"
    exit_code = 4


class Conflict(HermesError):
    code = "conflict"
    exit_code = 5


class AlreadyAnswered(Conflict):
    code = "already_answered"


class IntegrityError(HermesError):
    code = "integrity"
    exit_code = 6


class Divergence(IntegrityError):
    code = "divergence"


class NewerSchema(IntegrityError):
    code = "newer_schema"


class TemporarilyLocked(HermesError):
    code = "locked"
    exit_code = 75


class StoreFailure(HermesError):
    code = "store_failure"
    exit_code = 74


class RemoteFailure(HermesError):
    code = "remote_failure"
    exit_code = 69


class AuthoringError(HermesError):
    code = "authoring"
    exit_code = 2


class NotInAWorkflow(AuthoringError):
    code = "not_in_a_workflow"


class KeyClash(AuthoringError):
    code = "key_clash"


class CallNeverAwaited(AuthoringError):
    code = "call_never_awaited"


class CallFailed(Exception):
    """A durable call failed after its retries; raised where the body awaits it.

    `key` names the call in the run; `details` is the error as it stands in the receipt.
    """

    def __init__(self, message: str, *, key: str = "", details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.key = key
        self.details = details or {}


class AgentFailed(CallFailed):
    """No attempt of an agent gave an answer of the wanted type."""

    @property
    def attempts(self) -> list[dict[str, Any]]:
        """Every attempt: its number, the type, message and details of its failure, and its usage."""
        return list((self.details.get("details") or {}).get("attempts", ()))


class BashFailed(CallFailed):
    """A command timed out, could not start, or exited non-zero under `check=True`."""

    def __init__(
        self, message: str, *, key: str = "", details: dict[str, Any] | None = None, result: Any = None
    ) -> None:
        super().__init__(message, key=key, details=details)
        self.result = result


class StepFailed(CallFailed):
    """A `@step` function raised, timed out, or returned what no receipt can hold."""


class SignalFailed(CallFailed):
    """A signal came before anybody waited for it, and does not fit what is waited for."""


class ReviewFailed(CallFailed):
    """A question could not be asked: what stands in it or beside it is more than a receipt can hold."""


class ChildFailed(CallFailed):
    """A child run failed or was cancelled."""


class ArtifactFailed(CallFailed):
    """A file that cannot be read, is too large, or holds a secret."""


class TimedOut(CallFailed, TimeoutError):
    """A call was not done in its time; `except TimeoutError` catches it like those of asyncio."""


class AgentTimedOut(AgentFailed, TimedOut):
    """An agent ran over its `timeout`."""


class BashTimedOut(BashFailed, TimedOut):
    """A command ran over its `timeout` and was killed."""


class StepTimedOut(StepFailed, TimedOut):
    """A step ran over its `timeout`, or raised a TimeoutError itself."""


class ChildTimedOut(ChildFailed, TimedOut):
    """A child run did not end within its `timeout`, and is cancelled."""


class SignalTimedOut(SignalFailed, TimedOut):
    """No signal came within `timeout`."""


class ReviewExpired(ReviewFailed, TimedOut):
    """Nobody answered before the request expired."""


class GoalExhausted(Exception):
    """`goal` used up its iterations without an accepted result."""

    def __init__(self, message: str, *, last_result: Any, last_check: Any) -> None:
        super().__init__(message)
        self.last_result = last_result
        self.last_check = last_check
