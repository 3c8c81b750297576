"""How a run ends: the body's result or exception as something that can be recorded, the same on every machine."""

from __future__ import annotations

import asyncio
import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import HermesError
from .encoding import Plain
from .receipts import Failure
from .redaction import Redactor
from .sites import raising_site

_MAX_LEAVES = 5
_MAX_TRACEBACK = 20_000
# Redacting 30 MB takes seconds, and the body's slice has ten. Of a longer text one end is looked at, and what lies
# nearest to the cut, where half a secret would not be known, is left out.
_MOST_CLEANED = 1 << 18
_NEAR_THE_CUT = 1 << 16
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True)
class End:
    """How a run ends. `traceback` is for people and stands in `execution`."""

    status: str
    output: Plain = None
    error: Failure | None = None
    traceback: str | None = None
    redactions: Mapping[str, int] | None = None


class Endings:
    """Makes ends. `root` is the workspace: places below it are recorded relative to it."""

    def __init__(self, redactor: Redactor, root: str | None) -> None:
        self._redactor = redactor
        self._root = root

    def failed(self, error: BaseException) -> End:
        return End("failed", error=self._failure(error), traceback=self._traceback(error))

    def cancelled(self, cut_off: Failure | None, error: BaseException | None) -> End:
        """The body was told to stop; `error` is what its cleanup ended in."""
        if cut_off is not None or error is None or isinstance(error, asyncio.CancelledError):
            return End("cancelled", error=cut_off)
        return End("cancelled", error=self._failure(error), traceback=self._traceback(error))

    def _failure(self, error: BaseException) -> Failure:
        message = "; ".join([_message(error), *_leaves(error)])
        if isinstance(error, SystemExit | KeyboardInterrupt):
            place = raising_site(error)
            message = f"the body raised {type(error).__name__}({', '.join(map(repr, error.args))})"
            message += f" at {place.within(self._root)}" if place else ""
        return Failure(type=type(error).__name__, message=self._message(message), details=self._details(error))

    def _details(self, error: BaseException) -> dict[str, Any] | None:
        """Which call failed, and what an error of ours says to do about it."""
        said = {"key": getattr(error, "key", None), "hint": error.hint if isinstance(error, HermesError) else None}
        return {name: self._message(text) for name, text in said.items() if isinstance(text, str) and text} or None

    def _traceback(self, error: BaseException) -> str:
        text = "".join(traceback.format_exception(error))
        if len(text) > _MOST_CLEANED:
            return self._clean(text[-_MOST_CLEANED:])[_NEAR_THE_CUT:][-_MAX_TRACEBACK:]
        return self._clean(text)[-_MAX_TRACEBACK:]

    def _message(self, text: str) -> str:
        return self._clean(text[:_MOST_CLEANED])[:-_NEAR_THE_CUT] if len(text) > _MOST_CLEANED else self._clean(text)

    def _clean(self, text: str) -> str:
        # A lone surrogate would make the failure itself impossible to store.
        return self._redactor.text(text.encode("utf-8", "backslashreplace").decode())


def _message(error: BaseException) -> str:
    try:
        said = str(error)
    except Exception:  # the author's own __str__
        said = ""
    # Where an object lies in memory differs from run to run, and receipts of equal runs are equal.
    return _ADDRESS.sub("", said) or type(error).__name__


def _leaves(error: BaseException) -> Iterator[str]:
    """What a group of exceptions holds; its own message only counts them."""
    if not isinstance(error, BaseExceptionGroup):
        return
    leaves = list(_flat(error))
    yield from (f"{type(leaf).__name__}: {_message(leaf)}" for leaf in leaves[:_MAX_LEAVES])
    if len(leaves) > _MAX_LEAVES:
        yield f"and {len(leaves) - _MAX_LEAVES} more"


def _flat(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _flat(each)
    else:
        yield error


def depends_on_machine(error: BaseException) -> str | None:
    """The name of an exception that another machine might not meet; such an end is not recorded."""
    for leaf in _flat(error):
        if isinstance(leaf, RecursionError | MemoryError):
            return type(leaf).__name__
    return None
