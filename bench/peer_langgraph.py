"""The same work by langgraph with its SQLite checkpointer, each step saved before the next; in the peers' environment.

python bench/peer_langgraph.py sequential 1000 FOLDER

Two ways, of which the faster one counts: a graph that loops over one node, and tasks within one entrypoint.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    value: int


def _config(name: str, steps: int) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}, "recursion_limit": steps + 10}


def graph(saver: SqliteSaver, steps: int) -> int:
    made = StateGraph(State)
    made.add_node("increment", lambda state: {"value": state["value"] + 1})
    made.add_edge(START, "increment")
    made.add_conditional_edges("increment", lambda state: "increment" if state["value"] < steps else END)
    compiled = made.compile(checkpointer=saver)
    return compiled.invoke({"value": 0}, _config("graph", steps), durability="sync")["value"]


@task
def increment(value: int) -> int:
    return value + 1


def tasks(saver: SqliteSaver, steps: int) -> int:
    @entrypoint(checkpointer=saver)
    def sequential(given: int) -> int:
        value = 0
        for _ in range(given):
            value = increment(value).result()
        return value

    return sequential.invoke(steps, _config("tasks", steps), durability="sync")


def fan_out(saver: SqliteSaver, steps: int) -> int:
    @entrypoint(checkpointer=saver)
    def fanned(given: int) -> int:
        return sum(future.result() for future in [increment(number) for number in range(given)])

    return fanned.invoke(steps, _config("fan-out", steps), durability="sync")


def seconds(way: Callable[[SqliteSaver, int], int], steps: int, folder: Path, expected: int) -> float:
    with closing(sqlite3.connect(folder / f"{way.__name__}.sqlite", check_same_thread=False)) as connection:
        saver = SqliteSaver(connection)
        saver.setup()
        begin = time.perf_counter()
        result = way(saver, steps)
        spent = time.perf_counter() - begin
    assert result == expected, result
    return spent


def main() -> None:
    workload, steps, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    if workload == "sequential":
        ways = {way.__name__: steps / seconds(way, steps, folder, steps) for way in (graph, tasks)}
    else:
        ways = {"fan_out": steps / seconds(fan_out, steps, folder, steps * (steps + 1) // 2)}
    print(json.dumps({"per_second": max(ways.values()), "ways": ways}))


if __name__ == "__main__":
    main()
