"""What a failure says when it is written down: text that any receipt can hold, whatever an exception carried.

A failure that could not be stored would be found out only when the runner writes it, and again by every runner after.
"""

from __future__ import annotations

from ..core.receipts import Failure
from ..core.redaction import Redactor
from ..errors import HermesError

# Characters. A message is read by people; a traceback shows where, from its end.
MESSAGE = 2000
TRACEBACK = 32_000


def failure_of(error: BaseException, redactor: Redactor) -> Failure:
    """An exception as a failure, without secrets and whole: it is cut only when it is stored."""
    try:
        message = error.message if isinstance(error, HermesError) else str(error)
    except Exception:  # the author's own __str__
        message = ""
    return Failure(type=type(error).__name__, message=redactor.text(message or type(error).__name__))


def storable(failure: Failure | None) -> Failure | None:
    """The same failure with texts that fit into a receipt. Idempotent."""
    if failure is None:
        return None
    return failure.model_copy(
        update={"type": storable_text(failure.type, MESSAGE), "message": storable_text(failure.message, MESSAGE)}
    )


def storable_text(text: str, limit: int) -> str:
    """`text` as UTF-8 can say it, cut in the middle to about `limit` characters."""
    # Names of files that are not UTF-8 come as lone surrogates (`os.fsdecode`), which no receipt holds.
    clean = text.encode("utf-8", "backslashreplace").decode()
    if len(clean) <= limit:
        return clean
    half = limit // 2
    return f"{clean[:half]} […] {clean[-half:]}"
