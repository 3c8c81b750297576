"""The executor of `@step`: a Python function in a thread of this process, or in a process, with its deadline."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from ..authoring.operation import executing
from ..authoring.step import Step
from ..core.encoding import Plain
from .jobs import Executed, Job, Report
from .step_process import run_step

# How often an async step looks whether it was told to stop, in seconds.
_STOP_POLL = 0.05
# How long an async step has to end after it was cancelled, in seconds, before it is left behind.
_CANCEL_GRACE = 2.0

log = logging.getLogger("hermes_workflows.runner")


def execute_step(job: Job, _report: Report) -> Executed:
    """Run a `@step` function with its recorded arguments; raises what it raises."""
    definition: Step[..., Any] = job.call.spec.options
    arguments = job.call.spec.request["arguments"]
    assert isinstance(arguments, dict)
    returned = run_step(job, definition, arguments) if definition.process else _in_thread(job, definition, arguments)
    if isinstance(returned, Executed):
        return returned
    counts: Counter[str] = Counter()
    output = job.surroundings.redactor.plain(returned, counts)
    if counts:
        # Redaction may have broken the type; then the call fails here and says so, not at every replay.
        definition.output_codec.from_plain(output)
    return Executed("completed", output, redactions=counts)


def _in_thread(job: Job, definition: Step[..., Any], arguments: Mapping[str, Plain]) -> Plain:
    work = definition.bind(arguments)
    with executing(job.operation_id):
        value = _run_async(job, work, definition) if definition.is_async else _run_sync(job, work, definition)
    return definition.output_codec.to_plain(value)


def _run_sync(job: Job, work: Callable[[], Any], definition: Step[..., Any]) -> Any:
    if definition.timeout is None:
        return work()
    return _within(definition.timeout, job, work, definition)


def _run_async(job: Job, work: Callable[[], Any], definition: Step[..., Any]) -> Any:
    async def watched() -> Any:
        task = asyncio.ensure_future(work())
        loop = asyncio.get_running_loop()
        deadline = None if definition.timeout is None else loop.time() + definition.timeout
        while not task.done():
            await asyncio.wait([task], timeout=_STOP_POLL)
            late = deadline is not None and loop.time() >= deadline
            if not task.done() and (job.stop.is_set() or late):
                task.cancel()
                await asyncio.wait([task], timeout=_CANCEL_GRACE)
                if late:
                    raise _late(definition, "was cancelled")
        if task.cancelled():
            raise RuntimeError("the step was cancelled")
        return task.result()

    if definition.timeout is None:
        return asyncio.run(watched())
    # A coroutine may swallow its cancellation, and then holds up the end of its loop: two graces, and it is left.
    return _within(definition.timeout + 2 * _CANCEL_GRACE, job, lambda: asyncio.run(watched()), definition)


def _within(seconds: float, job: Job, work: Callable[[], Any], definition: Step[..., Any]) -> Any:
    """Do `work` in a thread that is left behind when it takes longer: Python cannot stop a thread."""
    result: list[Any] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            result.append(work())
        except BaseException as error:
            failure.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(target,), name=f"step {definition.ref}", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        job.surroundings.left_behind.append(thread)
        log.warning("%s runs over its deadline and is left behind", definition.ref)
        raise _late(definition, "was left behind")
    if failure:
        raise failure[0]
    return result[0]


def _late(definition: Step[..., Any], what: str) -> TimeoutError:
    return TimeoutError(f"{definition.ref} ran over its {definition.timeout:g} s and {what}")
