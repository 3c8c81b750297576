"""`@step`: a Python function as durable work. Not at the front door; for adapters and for what needs no shell."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from functools import cached_property, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, overload

from ..core.calls import Call, CallSpec
from ..core.encoding import Plain
from ..core.retry import Retry
from ..core.values import TypeCodec, ValueMismatch, codec_for
from ..errors import AuthoringError, InvalidInput, StepFailed, StepTimedOut, UnstorableValue
from .requests import check_seconds, placed, request_of

P = ParamSpec("P")
T = TypeVar("T")


class Step(Generic[P, T]):
    """A function that runs in a runner, at least once, and whose result is recorded.

    Called in a body it makes a call; `execute` is what the runner does with it. Arguments travel as JSON, by their
    annotations, so the function sees the same values after a crash as before.
    """

    def __init__(
        self,
        fn: Callable[P, Any],
        *,
        retry: Retry | None = None,
        timeout: float | None = None,
        at_most_once: bool = False,
        process: bool = False,
    ) -> None:
        if process and "<locals>" in fn.__qualname__:
            raise AuthoringError(
                f"@step(process=True) {fn.__qualname__} is made inside a function",
                hint="put it at the top of its module: another process must find it there",
            )
        check_seconds(f"@step(timeout=…) {fn.__qualname__}", timeout)
        self.fn = fn
        self.retry = retry
        self.timeout = timeout
        self.at_most_once = at_most_once
        self.process = process
        self.is_async = inspect.iscoroutinefunction(fn)
        self.ref = f"{fn.__module__}:{fn.__qualname__}"
        self._signature = inspect.signature(fn)
        self._kinds = {name: parameter.kind for name, parameter in self._signature.parameters.items()}
        # Binding by the signature takes longer than all that a small step does, and most say nothing but names.
        self._only_names = all(kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for kind in self._kinds.values())
        update_wrapper(self, fn)

    @cached_property
    def _hints(self) -> Mapping[str, Any]:
        return typing.get_type_hints(self.fn, include_extras=True)

    @cached_property
    def _codecs(self) -> Mapping[str, TypeCodec[Any]]:
        return {name: codec_for(self._hints.get(name, Any)) for name in self._kinds}

    @cached_property
    def output_codec(self) -> TypeCodec[Any]:
        return codec_for(self._hints.get("return", Any))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Call[T]:
        given = self._given(*args, **kwargs)
        request, refused = request_of(
            lambda: {
                "function": self.ref,
                "arguments": {name: self._argument(name, value) for name, value in given.items()},
            }
        )
        codec = self.output_codec
        return Call(
            CallSpec(
                kind="step",
                name=self.fn.__name__,
                request=request,
                decode=lambda receipt: codec.from_plain(receipt.output),
                failure=StepFailed,
                timed_out=StepTimedOut,
                options=self,
                refused=refused,
            )
        )

    def _given(self, *args: P.args, **kwargs: P.kwargs) -> Mapping[str, Any]:
        """What a call gives, by the names of the parameters. Raises TypeError, as Python does."""
        if self._only_names and not kwargs and len(args) == len(self._kinds):
            return dict(zip(self._kinds, args, strict=True))
        return self._signature.bind(*args, **kwargs).arguments

    def _argument(self, name: str, value: Any) -> Plain:
        try:
            return self._encode(name, value)
        except UnstorableValue as error:
            raise placed(f"arguments/{name}", error) from None
        except ValueMismatch as error:
            raise InvalidInput(f"step {self.fn.__name__}: argument {name!r} {error.message}", hint=error.hint) from None

    def _encode(self, name: str, value: Any) -> Plain:
        codec, kind = self._codecs[name], self._kinds[name]
        if kind is inspect.Parameter.VAR_POSITIONAL:
            return [codec.to_plain(each) for each in value]
        if kind is inspect.Parameter.VAR_KEYWORD:
            return {each: codec.to_plain(part) for each, part in value.items()}
        return codec.to_plain(value)

    def _decode(self, name: str, value: Any) -> Any:
        codec, kind = self._codecs[name], self._kinds[name]
        if kind is inspect.Parameter.VAR_POSITIONAL:
            return tuple(codec.from_plain(each) for each in value)
        if kind is inspect.Parameter.VAR_KEYWORD:
            return {each: codec.from_plain(part) for each, part in value.items()}
        return codec.from_plain(value)

    def bind(self, arguments: Mapping[str, Plain]) -> Callable[[], Any]:
        """The function with recorded arguments, ready to be executed."""
        given = {name: self._decode(name, value) for name, value in arguments.items()}
        if self._only_names:
            return lambda: self.fn(**given)  # type: ignore[call-arg]  # these are its parameters' names
        bound = self._signature.bind_partial()
        bound.arguments.update(given)
        return lambda: self.fn(*bound.args, **bound.kwargs)


class _Decorator(typing.Protocol):
    @overload
    def __call__(self, fn: Callable[P, typing.Coroutine[Any, Any, T]]) -> Step[P, T]: ...
    @overload
    def __call__(self, fn: Callable[P, T]) -> Step[P, T]: ...


@overload
def step(fn: Callable[P, typing.Coroutine[Any, Any, T]]) -> Step[P, T]: ...
@overload
def step(fn: Callable[P, T]) -> Step[P, T]: ...
@overload
def step(
    *, retry: Retry | None = None, timeout: float | None = None, at_most_once: bool = False, process: bool = False
) -> _Decorator: ...
def step(fn: Any = None, **options: Any) -> Any:
    """Make a durable step of a function, sync (runs in a thread) or async.

    `timeout` in seconds: an async step is cancelled, a sync one abandoned, failed and counted. With `process=True`
    the function runs in a process of its own, which is killed when its time is over or nobody wants the result.
    `at_most_once=True` commits an intent before the function runs; found without a result after a crash, the run is
    stuck until a person decides. Otherwise a step runs at least once.
    """
    if fn is None:
        return lambda each: step(each, **options)
    if not callable(fn) or isinstance(fn, type):
        raise AuthoringError("@step needs a function")
    return Step(fn, **options)
