"""The same work by dbos with SQLite as its database; in the peers' environment.

python bench/peer_dbos.py sequential 1000 FOLDER
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from dbos import DBOS


@DBOS.step()
def increment(value: int) -> int:
    return value + 1


@DBOS.step()
async def increment_soon(value: int) -> int:
    return value + 1


@DBOS.workflow()
def sequential(steps: int) -> int:
    value = 0
    for _ in range(steps):
        value = increment(value)
    return value


@DBOS.workflow()
async def fan_out(steps: int) -> int:
    return sum(await asyncio.gather(*(increment_soon(number) for number in range(steps))))


def main() -> None:
    workload, steps, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    DBOS(config={"name": "bench", "system_database_url": f"sqlite:///{folder / 'dbos.sqlite'}", "log_level": "ERROR"})
    DBOS.launch()
    begin = time.perf_counter()
    if workload == "sequential":
        result, expected = sequential(steps), steps
    else:
        result, expected = asyncio.run(fan_out(steps)), steps * (steps + 1) // 2
    spent = time.perf_counter() - begin
    assert result == expected, result
    print(json.dumps({"per_second": steps / spent}))
    DBOS.destroy()


if __name__ == "__main__":
    main()
