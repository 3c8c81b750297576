"""Random bodies over everything that asyncio and this project offer, and somebody who plays them."""

from __future__ import annotations

import asyncio
import contextvars
import random
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from tests.core.driving import Driver

from hermes_workflows.authoring import ask, goal, now, parallel, pipeline, sleep, step, wait_for, workflow
from hermes_workflows.authoring import random as chance_of_the_run
from hermes_workflows.errors import CallFailed, SignalTimedOut


@step
def leaf(value: int = 1) -> int:
    return value


LEAVES = ["leaf", "named", "shared", "sleep", "until", "fails", "breaks", "nothing", "asks", "signal", "chance"]
NODES = [
    "sequence", "gather", "group", "parallel", "limited", "pipeline", "goal", "timeout", "wait_for", "first",
    "cancelled", "guarded", "finally", "queue", "lock", "event", "shield", "agen", "completed", "orphan",
    "semaphore", "condition", "barrier", "context", "calls", "nested", "retry",
]  # fmt: skip
# A program is a nested list; `run` interprets it. Shrinking works on the lists.
PROGRAMS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.tuples(st.sampled_from(NODES), st.lists(inner, min_size=1, max_size=3)),
    max_leaves=9,
)


class Interpreter:
    def __init__(self) -> None:
        self.finallies = 0

    async def run(self, node: Any) -> Any:
        if isinstance(node, str):
            return await getattr(self, f"leaf_{node}")()
        return await getattr(self, f"do_{node[0]}")(node[1])

    async def leaf_leaf(self) -> Any:
        return await leaf()

    async def leaf_named(self) -> Any:
        return await leaf(2) + await leaf(3)

    async def leaf_asks(self) -> Any:
        return await ask("well?", returns=int)

    async def leaf_chance(self) -> Any:
        return await leaf(int(chance_of_the_run() * 1000) + 2)

    async def leaf_shared(self) -> Any:
        call = leaf(4)
        return await call + await call

    async def leaf_sleep(self) -> Any:
        await asyncio.sleep(5)
        return 0

    async def leaf_until(self) -> Any:
        await sleep(until=now() + timedelta(seconds=5))
        return 0

    async def leaf_signal(self) -> Any:
        try:
            return await wait_for("news", returns=int, timeout=60)
        except SignalTimedOut:
            return -6

    async def leaf_fails(self) -> Any:
        try:
            return await leaf(-1)
        except CallFailed:
            return -100

    async def leaf_breaks(self) -> Any:
        # Uncaught here: task groups cancel their children in the order of a set.
        return await leaf(-1)

    async def leaf_nothing(self) -> Any:
        await asyncio.sleep(0)
        return 0

    async def do_sequence(self, inner: list[Any]) -> Any:
        return sum([await self.run(each) for each in inner])

    async def do_gather(self, inner: list[Any]) -> Any:
        return sum(await asyncio.gather(*(self.run(each) for each in inner)))

    async def do_group(self, inner: list[Any]) -> Any:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.run(each)) for each in inner]
        return sum(task.result() for task in tasks)

    async def do_parallel(self, inner: list[Any]) -> Any:
        return sum(await parallel([self.run(each) for each in inner]))

    async def do_limited(self, inner: list[Any]) -> Any:
        done = await parallel({f"b{n}": self.run(each) for n, each in enumerate(inner)}, limit=1)
        return sum(done.values())

    async def do_pipeline(self, inner: list[Any]) -> Any:
        return sum(await pipeline(inner, self.run, leaf))

    async def do_goal(self, inner: list[Any]) -> Any:
        async def do(last: Any) -> Any:
            return (last or 0) + 1 + 0 * await self.run(inner[0])

        return await goal(do, lambda value: value >= 2)

    async def do_timeout(self, inner: list[Any]) -> Any:
        try:
            async with asyncio.timeout(3):
                return await self.do_sequence(inner)
        except TimeoutError:
            return await leaf(50)

    async def do_wait_for(self, inner: list[Any]) -> Any:
        try:
            return await asyncio.wait_for(self.do_sequence(inner), 4)
        except TimeoutError:
            return -4

    async def do_first(self, inner: list[Any]) -> Any:
        tasks = [asyncio.create_task(self.run(each)) for each in inner]
        done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        return sum(task.result() for task in done)

    async def do_cancelled(self, inner: list[Any]) -> Any:
        task = asyncio.create_task(self.do_sequence(inner))
        await leaf(7)
        task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            return 7

    async def do_guarded(self, inner: list[Any]) -> Any:
        try:
            return await self.do_group([("finally", inner), ("finally", ["leaf"]), ("finally", ["named"]), "breaks"])
        except Exception:
            return await leaf(9)

    async def do_finally(self, inner: list[Any]) -> Any:
        try:
            return await self.do_sequence(inner)
        finally:
            # The request tells in which order tasks were cancelled: an order that comes from sets inside asyncio.
            self.finallies += 1
            await leaf(1000 + self.finallies)

    async def do_queue(self, inner: list[Any]) -> Any:
        jobs: asyncio.Queue[Any] = asyncio.Queue()
        results: list[Any] = []
        for each in inner:
            jobs.put_nowait(each)

        async def work() -> None:
            while not jobs.empty():
                results.append(await self.run(jobs.get_nowait()))

        await asyncio.gather(work(), work())
        return sum(results)

    async def do_lock(self, inner: list[Any]) -> Any:
        lock = asyncio.Lock()

        async def held(node: Any) -> Any:
            async with lock:
                return await self.run(node)

        return sum(await asyncio.gather(*map(held, inner)))

    async def do_event(self, inner: list[Any]) -> Any:
        event = asyncio.Event()

        async def waiter() -> int:
            await event.wait()
            return await leaf(1)

        async def setter() -> Any:
            value = await self.do_sequence(inner)
            event.set()
            return value

        return sum(await asyncio.gather(waiter(), setter()))

    async def do_shield(self, inner: list[Any]) -> Any:
        task = asyncio.create_task(self.do_sequence(inner))
        try:
            async with asyncio.timeout(2):
                return await asyncio.shield(task)
        except TimeoutError:
            return await task

    async def do_agen(self, inner: list[Any]) -> Any:
        async def produce() -> Any:
            try:
                for each in inner:
                    yield await self.run(each)
            finally:
                await leaf(13)

        async for value in produce():
            return value
        return 0

    async def do_completed(self, inner: list[Any]) -> Any:
        tasks = [asyncio.create_task(self.run(each)) for each in inner]
        return sum([await each for each in asyncio.as_completed(tasks)])

    async def do_orphan(self, inner: list[Any]) -> Any:
        self.kept = asyncio.create_task(self.do_sequence(inner))
        return await leaf(17)

    async def do_semaphore(self, inner: list[Any]) -> Any:
        gate = asyncio.Semaphore(1)

        async def gated(node: Any) -> Any:
            async with gate:
                return await self.run(node)

        return sum(await asyncio.gather(*map(gated, [*inner, "leaf"])))

    async def do_condition(self, inner: list[Any]) -> Any:
        condition, done = asyncio.Condition(), []

        async def works() -> None:
            value = await self.do_sequence(inner)
            async with condition:
                done.append(value)
                condition.notify_all()

        async def waits() -> Any:
            async with condition:
                await condition.wait_for(lambda: done)
            return await leaf(3)

        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(waits())
            group.create_task(works())
        return waiting.result()

    async def do_barrier(self, inner: list[Any]) -> Any:
        barrier = asyncio.Barrier(2)

        async def meets(node: Any) -> Any:
            value = await self.run(node)
            await barrier.wait()
            return value + await leaf(4)

        async with asyncio.timeout(30):
            return sum(await asyncio.gather(meets(inner[0]), meets("leaf")))

    async def do_context(self, inner: list[Any]) -> Any:
        token = _VARIABLE.set(_VARIABLE.get() + 1)
        try:
            return await self.do_gather(inner) + await leaf(_VARIABLE.get())
        finally:
            _VARIABLE.reset(token)

    async def do_calls(self, inner: list[Any]) -> Any:
        calls = {leaf(n) for n in range(5, 8)}
        total = sum([await each for each in asyncio.as_completed(calls)])
        return total + await self.do_sequence(inner)

    async def do_nested(self, inner: list[Any]) -> Any:
        done = await parallel({"a": [leaf(1), *map(self.run, inner)], "b": {"c": leaf(2)}}, limit=2)
        return sum(done["a"]) + done["b"]["c"]

    async def do_retry(self, inner: list[Any]) -> Any:
        for _ in range(3):
            try:
                return await self.do_limited(inner)
            except Exception:
                continue
        return -3


_VARIABLE: contextvars.ContextVar[int] = contextvars.ContextVar("depth", default=0)


@workflow
async def interpreted(inputs: dict) -> Any:
    return await Interpreter().run(_tuples(inputs["program"]))


def _tuples(node: Any) -> Any:
    return node if isinstance(node, str) else (node[0], [_tuples(each) for each in node[1]])


def as_lists(node: Any) -> Any:
    return node if isinstance(node, str) else [node[0], [as_lists(each) for each in node[1]]]


def _answer_one(driver: Driver, chance: random.Random) -> None:
    if driver.live.withdrawn and chance.random() < 0.3:
        driver.late(chance.choice(sorted(driver.live.withdrawn)), chance.choice(["completed", "cancelled", "failed"]))
        return
    if chance.random() < 0.05:
        # Whether or not anybody waits, and for whichever wait is the oldest.
        driver.signal("news", chance.randrange(10))
        return
    key = chance.choice(driver.open)
    call = driver.live.outstanding[key]
    if call.kind == "signal" and chance.random() < 0.7:
        driver.signal("news", chance.randrange(10))
        return
    fails = call.kind == "step" and call.request["arguments"] == {"value": -1}
    driver.answer(key, output=6 if call.kind == "review" else None, error="broken" if fails else None)


def play(program: Any, seed: int, crashes: float, cancels: float = 0) -> Driver:
    chance = random.Random(seed)
    driver = Driver(interpreted, {"program": as_lists(program)}, seed=str(seed))
    driver.made.remove(driver)  # this one is decided again below, by bodies of its own
    for _ in range(300):
        if driver.decision.end or driver.decision.stuck:
            return driver
        twin, _ = driver.rebuilt()
        assert twin.state() == driver.live.state()
        assert twin.evict() == []
        driver.alive.remove(twin)
        if chance.random() < crashes:
            driver.crash()
        if chance.random() < cancels:
            driver.cancel()
        else:
            _answer_one(driver, chance)
    raise AssertionError("the program did not end")


STRUCTURED = {"sequence", "gather", "group", "parallel", "limited", "pipeline", "goal", "semaphore", "context"}


def is_structured(node: Any) -> bool:
    if isinstance(node, str):
        return node not in ("sleep", "until", "breaks", "chance", "signal")
    return node[0] in STRUCTURED and all(map(is_structured, node[1]))
