"""`@workflow`: a plain async function becomes something that can be run, or awaited as a child run."""

from __future__ import annotations

import importlib
import inspect
import sys
import typing
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any, Generic, TypeVar, overload

from ..core.calls import Call, CallSpec
from ..core.encoding import Plain
from ..core.redaction import Counts, Redactor
from ..core.values import TypeCodec, ValueMismatch, codec_for
from ..errors import AuthoringError, ChildFailed, ChildTimedOut, InvalidInput
from .requests import part, request_of, seconds_of

T = TypeVar("T")


class Workflow(Generic[T]):
    """A workflow definition. Awaiting `wf(inputs)` in another workflow's body starts a child run.

    `fn` takes no argument or one; its annotation is the input type, `dict` when there is none.
    Raises AuthoringError for any other signature.
    """

    def __init__(self, fn: Callable[..., Coroutine[Any, Any, T]]) -> None:
        if not inspect.iscoroutinefunction(fn):
            raise AuthoringError(f"@workflow needs an `async def`; {fn.__qualname__} is not one")
        self.fn = fn
        self.module = fn.__module__
        self.qualname = fn.__qualname__
        self.name = fn.__name__
        self.__doc__ = fn.__doc__
        self._codecs: tuple[TypeCodec[Any] | None, TypeCodec[Any]] | None = None
        parameters = list(inspect.signature(fn).parameters.values())
        if len(parameters) > 1 or any(each.kind not in _PLAIN_PARAMETER for each in parameters):
            raise AuthoringError(
                f"workflow {self.qualname} must take one argument or none", hint="put the inputs into one dataclass"
            )
        self._parameter = parameters[0] if parameters else None

    @property
    def ref(self) -> str:
        return f"{self.module}:{self.qualname}"

    @property
    def input_codec(self) -> TypeCodec[Any] | None:
        """How the input is read; None when the workflow takes none."""
        return self._resolved()[0]

    @property
    def output_codec(self) -> TypeCodec[Any]:
        return self._resolved()[1]

    def _resolved(self) -> tuple[TypeCodec[Any] | None, TypeCodec[Any]]:
        # Late: annotations may name types that the module defines further down.
        if self._codecs is None:
            hints = typing.get_type_hints(self.fn, include_extras=True)
            takes = codec_for(hints.get(self._parameter.name, dict)) if self._parameter else None
            self._codecs = (takes, codec_for(hints.get("return", Any)))
        return self._codecs

    def arguments(self, value: Plain) -> tuple[Any, ...]:
        """The recorded input as the body's arguments; raises InvalidInput naming the field that does not fit."""
        takes = self.input_codec
        if takes is None:
            return ()
        if value is None and self._parameter is not None and self._parameter.default is not inspect.Parameter.empty:
            return ()
        try:
            return (takes.from_plain(value),)
        except ValueMismatch as error:
            error.hint = error.hint or self._named(value)
            raise

    def _named(self, value: Plain) -> str | None:
        """What to do about an input that names the argument, as somebody who thinks of keyword arguments writes it."""
        name = self._parameter.name if self._parameter else ""
        if not isinstance(value, dict) or list(value) != [name]:
            return None
        return f"the input is the value of {name!r} itself, without an object around it"

    def encode_input(self, value: Any) -> Plain:
        return None if self.input_codec is None else self.input_codec.to_plain(value)

    def encode_result(self, value: Any, redactor: Redactor, counts: Counts) -> Plain:
        plain = redactor.plain(self.output_codec.to_plain(value), counts)
        if counts:
            # Redaction may have broken the type; then the run fails here and says so, not its parent at every replay.
            self.output_codec.from_plain(plain)
        return plain

    def __call__(
        self,
        inputs: Any = None,
        *,
        key: str | None = None,
        key_by: object = None,
        timeout: float | timedelta | None = None,
    ) -> Call[T]:
        """The workflow as a child run of the running body; its id is `<parent>.<key>`.

        After `timeout` (seconds or a timedelta) the child is cancelled, and the await raises ChildTimedOut.
        """
        request, refused = request_of(lambda: {"workflow": self.ref, "input": part("input", self._input, inputs)})
        codec = self.output_codec
        return Call(
            CallSpec(
                kind="child",
                name=self.name,
                request=request,
                decode=lambda receipt: codec.from_plain(receipt.output),
                failure=ChildFailed,
                timed_out=ChildTimedOut,
                expires=seconds_of(f"{self.name}(timeout=…)", timeout),
                options=self,
                key=key,
                key_by=key_by,
                refused=refused,
            )
        )

    def _input(self, inputs: Any) -> Plain:
        try:
            return self.encode_input(inputs)
        except ValueMismatch as error:
            raise InvalidInput(f"workflow {self.name}: its input {error.message}", hint=error.hint) from None

    def run(self, argv: Sequence[str] | None = None) -> int:
        """`hermes-workflows run <this file>:<name>` with the same flags; returns the exit code.

        For `raise SystemExit(name.run())` at the end of a file.
        """
        file = inspect.getsourcefile(self.fn)
        arguments = list(sys.argv[1:] if argv is None else argv)
        # By name: the command line stands above this layer, and this is the one door that leads up to it.
        cli = importlib.import_module("hermes_workflows.cli.main")
        return int(cli.main(["run", f"{file}:{self.qualname}", *arguments]))

    def __repr__(self) -> str:
        return f"<workflow {self.ref}>"


_PLAIN_PARAMETER = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@overload
def workflow(fn: Callable[..., Coroutine[Any, Any, T]]) -> Workflow[T]: ...
@overload
def workflow(fn: None = None) -> Callable[[Callable[..., Coroutine[Any, Any, T]]], Workflow[T]]: ...
def workflow(fn: Any = None) -> Any:
    """Make a workflow of an async function.

    The body decides and never does work itself: files, clocks and networks belong in a `@step`.
    """
    return Workflow(fn) if fn is not None else Workflow
