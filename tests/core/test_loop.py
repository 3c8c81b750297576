"""The loop of a body: what asyncio needs works and repeats, the rest says where it belongs (notes/core.md (a))."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import closing, suppress
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, model_validator
from tests.core.bodies import one, two
from tests.core.driving import Driver, ended, result_of

from hermes_workflows.authoring import parallel, step, workflow
from hermes_workflows.core import loop as loop_module
from hermes_workflows.errors import NotInAWorkflow


def failure_of(body: Any) -> Any:
    end = ended(Driver(body).to_the_end())
    assert end.status == "failed"
    return end.error


# -- what works --------------------------------------------------------------------------------------------------


def test_locks_semaphores_conditions_and_barriers_work() -> None:
    @workflow
    async def body() -> Any:
        lock, gate, condition, barrier = asyncio.Lock(), asyncio.Semaphore(1), asyncio.Condition(), asyncio.Barrier(2)
        done: list[int] = []

        async def worker(number: int) -> None:
            async with lock, gate:
                await one(number)
            await barrier.wait()
            async with condition:
                done.append(number)
                condition.notify_all()

        async def waiter() -> int:
            async with condition:
                await condition.wait_for(lambda: len(done) == 2)
            return await two(sum(done))

        return (await asyncio.gather(worker(1), worker(2), waiter()))[2]

    assert result_of(body) == 3


def test_queues_events_and_shield_work() -> None:
    @workflow
    async def body() -> Any:
        jobs: asyncio.Queue[int] = asyncio.Queue(1)
        empty = asyncio.Event()

        async def produce() -> None:
            for number in range(3):
                await jobs.put(await one(number))
            await jobs.join()
            empty.set()

        async def consume() -> int:
            total = 0
            while not empty.is_set():
                getting = asyncio.create_task(jobs.get())
                await asyncio.wait([getting, asyncio.create_task(empty.wait())], return_when=asyncio.FIRST_COMPLETED)
                if getting.done():
                    total += await asyncio.shield(two(getting.result()))
                    jobs.task_done()
            return total

        return (await asyncio.gather(produce(), consume()))[1]

    assert result_of(body) == 3


def test_a_task_group_cancels_its_children_in_one_order_in_every_process() -> None:
    @workflow
    async def body() -> Any:
        async def child(number: int) -> None:
            try:
                await one(number)
            finally:
                order.append(number)

        order: list[int] = []
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(9):
                    group.create_task(child(number), name=f"c{number}")
        except* Exception:
            pass
        return order

    orders = []
    for _ in range(3):
        driver = Driver(body, seed="x")
        ballast = [object() for _ in range(7)]
        driver.answer("c4/one", error="broken")
        orders.append(ended(driver.decision).output)
        del ballast
    assert orders[0] == orders[1] == orders[2]
    assert sorted(orders[0]) == list(range(9))


def test_the_done_set_of_wait_iterates_in_one_order_for_one_seed() -> None:
    @workflow
    async def body() -> Any:
        async def child(number: int) -> int:
            return number

        tasks = [asyncio.create_task(child(number)) for number in range(20)]
        done, _ = await asyncio.wait(tasks)
        return [task.result() for task in done]

    first, second = Driver(body, seed="a").decision, Driver(body, seed="a").decision
    assert ended(first).output == ended(second).output


def test_sets_of_calls_iterate_in_one_order_for_one_seed() -> None:
    @workflow
    async def body() -> Any:
        calls = {one(number) for number in range(20)} | {parallel([]) for _ in range(3)}
        order = [getattr(call, "key", "") for call in calls]
        await parallel(list(calls))
        return order

    results = [result_of(body) for _ in range(3)]
    assert results[0] == results[1] == results[2]


def test_hashes_of_two_runs_lie_apart() -> None:
    # asyncio's registry of tasks is one weak set: with small numbers every run would collide with every other.
    @workflow
    async def body() -> Any:
        return hash(asyncio.current_task())

    numbers = {ended(Driver(body, seed=str(seed)).decision).output for seed in range(50)}
    assert len(numbers) == 50
    assert min(abs(a - b) for a in numbers for b in numbers if a != b) >= 1 << 20


def test_calls_may_be_handed_to_every_way_of_waiting() -> None:
    @workflow
    async def body() -> Any:
        total = await asyncio.wait_for(one(1), 9)
        total += sum(await asyncio.gather(one(2), two(3)))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(one(4))  # type: ignore[arg-type]  # a call is as good as a coroutine
        total += task.result()
        total += await asyncio.create_task(one(5))  # type: ignore[arg-type]
        total += sum([await each for each in asyncio.as_completed([one(6), two(7)])])
        return total + await asyncio.ensure_future(one(8))

    driver = Driver(body)
    driver.to_the_end(lambda keys: next(key for key in keys if key != "timer"))
    assert ended(driver.decision).output == sum(range(9))


def test_as_completed_takes_tasks() -> None:
    @workflow
    async def body() -> Any:
        async def child(number: int) -> int:
            return await one(number)

        tasks = [asyncio.create_task(child(number)) for number in range(3)]
        return [await each for each in asyncio.as_completed(tasks)]

    driver = Driver(body)
    for key in ("child-3/one", "child/one", "child-2/one"):
        driver.answer(key)
    assert ended(driver.decision).output == [2, 0, 1]


def test_a_body_may_be_stepped_inside_another_loop() -> None:
    @workflow
    async def body() -> Any:
        return await one()

    async def outside() -> Any:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        driver = Driver(body)
        assert asyncio.get_running_loop() is loop
        await asyncio.sleep(0)
        driver.to_the_end()
        assert asyncio.current_task() is task
        return ended(driver.decision).output

    assert asyncio.run(outside()) == 1


def test_a_slice_leaves_hooks_collector_and_running_loop_as_they_were() -> None:
    @workflow
    async def body() -> Any:
        return [gc.isenabled(), sys.get_asyncgen_hooks().finalizer is None]

    hooks = sys.get_asyncgen_hooks()
    assert gc.isenabled()
    assert result_of(body) == [False, True]
    assert gc.isenabled()
    assert sys.get_asyncgen_hooks() == hooks
    assert asyncio._get_running_loop() is None


def test_a_rebuilt_body_keeps_its_generators_too_and_leaves_hooks_as_they_were() -> None:
    closed: list[str] = []

    async def numbers() -> AsyncGenerator[int, None]:
        try:
            for number in range(9):
                yield number
        finally:
            closed.append("closed")

    @workflow
    async def body() -> Any:
        async for number in numbers():
            await one(number)
            if number:
                break
        return await one(9)

    driver = Driver(body)
    driver.answer("one", 0)
    driver.answer("one-2", 1)
    sys.set_asyncgen_hooks(finalizer=repr)
    try:
        live, _ = driver.rebuilt()
        assert sys.get_asyncgen_hooks() == (None, repr)
    finally:
        sys.set_asyncgen_hooks(finalizer=None)
    gc.collect()
    assert [len(each.loop.generators) for each in (driver.live, live)] == [1, 1]
    assert closed == []


def test_a_slice_has_no_finalizer_whoever_set_one_and_leaves_that_as_it_was() -> None:
    @workflow
    async def body() -> Any:
        before = sys.get_asyncgen_hooks().finalizer
        sys.set_asyncgen_hooks(finalizer=print)
        return before is None

    assert result_of(body) is True
    assert sys.get_asyncgen_hooks().finalizer is None
    sys.set_asyncgen_hooks(finalizer=repr)
    try:
        assert result_of(body) is True
        assert sys.get_asyncgen_hooks().finalizer is repr
    finally:
        sys.set_asyncgen_hooks(finalizer=None)


def test_what_a_body_sets_in_one_slice_of_a_rebuild_is_gone_in_the_next() -> None:
    @workflow
    async def body() -> Any:
        found = []
        for number in range(3):
            found.append(sys.get_asyncgen_hooks().finalizer)
            sys.set_asyncgen_hooks(finalizer=print)
            await one(number)
        return [each is None for each in found]

    driver = Driver(body)
    driver.to_the_end()
    _, decision = driver.rebuilt()
    assert ended(decision).output == ended(driver.decision).output == [True, True, True]
    assert sys.get_asyncgen_hooks() == (None, None)


class Looking(BaseModel):
    """An author's type that begins an async generator when it is read, which no slice does."""

    begun: ClassVar[list[Any]] = []

    @model_validator(mode="after")
    def look(self) -> Looking:
        async def numbers() -> AsyncGenerator[int, None]:
            yield 1

        self.begun.append(numbers())
        with suppress(StopIteration):
            self.begun[-1].__anext__().send(None)
        return self


@step
def looked() -> Looking:
    return Looking()


def test_a_generator_that_begins_between_the_slices_of_a_rebuild_is_none_of_the_body_s() -> None:
    @workflow
    async def body() -> Any:
        await looked()
        return await one()

    driver = Driver(body)
    driver.answer("looked")
    Looking.begun.clear()
    live, decision = driver.rebuilt()
    assert [call.key for call in decision.requested] == ["one"]
    assert (len(Looking.begun), live.loop.generators) == (1, [])


def test_bodies_may_be_stepped_in_several_threads() -> None:
    results: list[Any] = []

    def play() -> None:
        results.extend(result_of(_fans_out, 5) for _ in range(10))

    threads = [threading.Thread(target=play) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [10] * 40
    assert gc.isenabled()


@workflow
async def _fans_out(width: int) -> Any:
    return sum(await parallel([one(number) for number in range(width)]))


def test_debug_mode_of_asyncio_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio.coroutines, "_is_debug_mode", lambda: True)

    @workflow
    async def body() -> Any:
        return [asyncio.get_running_loop().get_debug(), asyncio.get_running_loop().is_running(), await one()]

    assert result_of(body) == [False, True, 1]


def test_what_the_collector_reports_never_changes_a_decision() -> None:
    @workflow
    async def body() -> Any:
        async def fails() -> None:
            raise ValueError("nobody looks")

        task = asyncio.create_task(fails())
        await one()
        del task
        return await two()

    driver = Driver(body)
    driver.answer("one")
    gc.collect()
    assert driver.open == ["two"]
    assert any("never retrieved" in line for line in driver.live.loop.diagnostics)


def test_the_same_keys_on_every_python_for_code_without_races() -> None:
    @workflow
    async def body() -> Any:
        async def leaf() -> int:
            return await one()

        async def branch() -> int:
            return sum(await asyncio.gather(leaf(), leaf())) + await asyncio.wait_for(leaf(), 10)

        async with asyncio.TaskGroup() as group:
            group.create_task(branch())
            group.create_task(branch(), name="named")

    driver = Driver(body)
    driver.to_the_end(lambda keys: next(key for key in keys if "timer" not in key))
    assert sorted(driver.requested) == [
        "branch/leaf-2/one", "branch/leaf/one", "branch/one", "branch/timer",
        "named/leaf-2/one", "named/leaf/one", "named/one", "named/timer",
    ]  # fmt: skip


# -- what does not -----------------------------------------------------------------------------------------------


def _socket(loop: Any) -> Any:
    return asyncio.open_connection("127.0.0.1", 1)


def _subprocess(loop: Any) -> Any:
    return asyncio.create_subprocess_exec("true")


async def _signal(loop: Any) -> None:
    loop.add_signal_handler(2, print)


async def _factory(loop: Any) -> None:
    loop.set_task_factory(None)


async def _from_thread(loop: Any) -> None:
    loop.call_soon_threadsafe(print)


async def _until_complete(loop: Any) -> None:
    loop.run_until_complete(loop.create_future())


@pytest.mark.parametrize(
    "use",
    [
        lambda loop: asyncio.to_thread(print),
        lambda loop: loop.run_in_executor(None, print),
        lambda loop: loop.getaddrinfo("localhost", 80),
        _socket, _subprocess, _signal, _factory, _from_thread, _until_complete,
    ],
)  # fmt: skip
def test_work_with_the_world_is_refused_and_sent_to_a_step(use: Any) -> None:
    @workflow
    async def body() -> Any:
        try:
            return await use(asyncio.get_running_loop())
        except NotInAWorkflow as error:
            return [error.message, error.hint]

    message, hint = result_of(body)
    assert "cannot run inside a workflow body" in message
    assert "@step" in hint


def test_every_public_method_of_a_loop_is_either_written_or_refused() -> None:
    inherited = [
        name for name in dir(asyncio.AbstractEventLoop)
        if not name.startswith("_") and getattr(loop_module.BodyLoop, name) is getattr(asyncio.AbstractEventLoop, name)
    ]  # fmt: skip
    assert inherited == []


def test_a_loop_of_its_own_inside_a_body_is_refused_by_asyncio() -> None:
    @workflow
    async def body() -> Any:
        inner = asyncio.sleep(0)
        try:
            asyncio.run(inner)
        finally:
            inner.close()

    error = failure_of(body)
    assert (error.type, "running event loop" in error.message) == ("RuntimeError", True)


def test_bare_coroutines_in_as_completed_are_refused() -> None:
    # It puts them into a set before it starts them: their order would be that of addresses.
    @workflow
    async def body() -> Any:
        async def child() -> int:
            return await one()

        waiting = [child(), child()]
        try:
            for each in asyncio.as_completed(waiting):
                await each
        finally:
            for coro in waiting:
                coro.close()

    error = failure_of(body)
    assert error.type == "NotInAWorkflow"
    assert "as_completed" in error.message


def test_a_task_that_bypasses_the_loop_cannot_make_calls() -> None:
    @workflow
    async def body() -> Any:
        async def child() -> int:
            return await one()

        return await asyncio.Task(child())

    error = failure_of(body)
    assert error.type == "NotInAWorkflow"
    assert "asyncio.Task()" in error.message


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_eager_tasks_are_refused() -> None:
    @workflow
    async def body() -> Any:
        async def child() -> int:
            return await one()

        coro: Any = child()
        try:
            return await asyncio.Task(coro, loop=asyncio.get_running_loop(), eager_start=True)  # type: ignore[call-arg]
        except NotInAWorkflow as error:
            return error.message

    assert "asyncio.Task()" in result_of(body)


def test_the_loop_makes_no_eager_tasks_either() -> None:
    @workflow
    async def body() -> Any:
        with closing(child()) as coro:
            asyncio.get_running_loop().create_task(coro, eager_start=True)  # type: ignore[call-arg]

    assert "leave eager_start out" in failure_of(body).message


async def child() -> int:
    return await one()


def test_a_task_that_the_loop_is_asked_for_by_name_has_it_in_its_keys() -> None:
    @workflow
    async def body() -> Any:
        return await asyncio.get_running_loop().create_task(child(), name="named")

    assert Driver(body).open == ["named/one"]


def test_a_callback_that_was_cancelled_is_not_called() -> None:
    @workflow
    async def body() -> Any:
        loop, called = asyncio.get_running_loop(), asyncio.Event()
        said: list[str] = []
        loop.call_soon(said.append, "cancelled").cancel()
        loop.call_soon(called.set)
        await called.wait()
        return said

    assert result_of(body) == []


def test_libraries_that_ask_the_loop_how_it_is_hear_that_it_runs() -> None:
    @workflow
    async def body() -> Any:
        loop = asyncio.get_running_loop()
        return [loop.is_running(), loop.is_closed(), loop.get_debug()]

    assert result_of(body) == [True, False, False]


def test_a_call_reads_the_same_in_every_replay() -> None:
    @workflow
    async def body() -> Any:
        call = one()
        await call
        return repr(call)

    assert result_of(body) == "<step call one>"


def test_primitives_outside_a_body_say_where_they_belong() -> None:
    with pytest.raises(NotInAWorkflow, match=r"step\(\) was called outside a workflow body"):
        one()

    async def real_loop() -> None:
        with pytest.raises(NotInAWorkflow, match="outside a workflow body"):
            parallel([])

    asyncio.run(real_loop())
