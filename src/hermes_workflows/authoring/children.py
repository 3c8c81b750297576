"""`child` and `map_workflow`: other workflows as runs of their own, each with its own receipts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Literal, TypeVar, overload

from ..core.calls import Call
from ..errors import AuthoringError, InvalidInput
from .compose import parallel
from .composed import Composed
from .workflow import Workflow

T = TypeVar("T")
Item = TypeVar("Item")


def child(
    wf: Workflow[T],
    inputs: Any = None,
    *,
    key: str | None = None,
    key_by: object = None,
    timeout: float | timedelta | None = None,
) -> Call[T]:
    """Run another workflow as a child of this one: `wf(inputs)` with its key spelled out.

    Its id is `<parent>.<key>`; the parent's receipt pins the commit at which it ended.
    Raises ChildFailed at the await when the child fails or is cancelled, ChildTimedOut when it does not end within
    `timeout` (seconds or a timedelta): then it is cancelled. A parent that is cancelled, fails or gives
    the call up cancels the child.
    """
    return _checked("child", wf)(inputs, key=key, key_by=key_by, timeout=timeout)


@overload
def map_workflow(
    wf: Workflow[T],
    items: Iterable[Item],
    key_fn: Callable[[Item], object],
    *,
    limit: int | None = None,
    return_exceptions: Literal[False] = False,
) -> Composed[list[T]]: ...
@overload
def map_workflow(
    wf: Workflow[T],
    items: Iterable[Item],
    key_fn: Callable[[Item], object],
    *,
    limit: int | None = None,
    return_exceptions: bool,
) -> Composed[list[T | Exception]]: ...
def map_workflow(
    wf: Workflow[Any],
    items: Iterable[Any],
    key_fn: Callable[[Any], object],
    *,
    limit: int | None = None,
    return_exceptions: bool = False,
) -> Composed[list[Any]]:
    """A child run for each item, at most `limit` at a time; their results in the order of the items.

    `key_fn` names an item by what it is, not by its place, so a child keeps its key when the list changes:
    the keys are `<workflow>/<key_fn(item)>`. Failures behave as in `parallel`.
    Raises InvalidInput for an item without a name, KeyClash for two with one name.
    """
    definition = _checked("map_workflow", wf)
    calls = [definition(item, key_by=_named(key_fn(item), place)) for place, item in enumerate(items)]
    return parallel(calls, limit=limit, return_exceptions=return_exceptions)


def _checked(what: str, wf: Any) -> Workflow[Any]:
    if not isinstance(wf, Workflow):
        raise AuthoringError(f"{what}() got {type(wf).__name__}, not a workflow", hint="decorate it with @workflow")
    return wf


def _named(name: object, place: int) -> object:
    if name is None or name == "":
        raise InvalidInput(
            f"map_workflow(key_fn=…) gives no name for item {place}", hint="return what tells it from the others"
        )
    return name
