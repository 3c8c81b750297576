"""What it costs to look at a workspace of 100,000 runs: the dashboard's lists, and `list` as a process of its own.

python -m bench.many --runs 100000

Only the index is filled, by SQL: nothing of this reads a receipt. Every line should stay below 100 ms; none is a test.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from starlette.testclient import TestClient

from hermes_workflows.clock import SystemClock
from hermes_workflows.core.summary import Event, OpenReview, RunSummary
from hermes_workflows.core.timestamps import render_time
from hermes_workflows.opening import open_workspace
from hermes_workflows.registry import Registry, parse
from hermes_workflows.store import index_table, peek
from hermes_workflows.store.queue_port import Indexed, ReviewRow
from hermes_workflows.store.sqlite_queue import SqliteQueue
from hermes_workflows.store.wanted import Wanted
from hermes_workflows.web.app import create_app
from hermes_workflows.web.settings import WebSettings
from hermes_workflows.workspace import Surroundings

ROUNDS = 5
WORKFLOWS = 20
_TOKEN = "the-token-of-this-benchmark-0123456789"
_STATUSES = ("completed", "failed", "cancelled", "running", "waiting")
_SHARES = (90, 5, 2, 2, 1)


def rows(runs: int, home: str, now: datetime) -> Iterator[Indexed]:
    """Runs as they are after some steps: of twenty workflows, most of them ended, each fiftieth one a fork."""
    chance = random.Random(1)
    words = [f"word{number:x}" for number in range(5_000)]
    for number in range(runs):
        status = chance.choices(_STATUSES, _SHARES)[0]
        began = now - timedelta(seconds=30 * (runs - number))
        started, ended = render_time(began), render_time(began + timedelta(seconds=chance.uniform(1, 600)))
        name = f"flow-{number % WORKFLOWS}"
        events = tuple(Event(seq, started, "bash", f"work/step-{seq}", "completed") for seq in range(10))
        summary = RunSummary(
            run_id=f"{name}-{number:08}",
            workflow=f"{name}.py:flow",
            home=home,
            status=status,  # type: ignore[arg-type]
            result={"text": " ".join(chance.choices(words, k=20))} if status == "completed" else None,
            error={"type": "ValueError", "message": "no such room"} if status == "failed" else None,
            started_at=started,
            updated_at=ended,
            finished_at=ended if status in _STATUSES[:3] else None,
            seq=10,
            receipts=11,
            calls={"completed": 10},
            usage={"cost_usd": 0.01, "input_tokens": 1200, "output_tokens": 300},
            recent=events,
            open_reviews={"ok": OpenReview("ok", "Ship it?", None, started, None, {})} if status == "waiting" else {},
            source={"run": f"{name}-{number - WORKFLOWS:08}", "how": "fork"} if number % 50 == 49 else None,
            given=" ".join(chance.choices(words, k=25)),
        )
        asked = tuple(
            ReviewRow(summary.run_id, key, "open", "Ship it?", requested_at=started) for key in summary.open_reviews
        )
        yield Indexed(summary, f"{number:040x}", f"runs/{started[:10]}/{summary.run_id}", reviews=asked)


def fill(queue: SqliteQueue, runs: int, home: str, receipts: Path) -> None:
    def put(connection: Any) -> None:
        index_table.put(connection, rows(runs, home, datetime.now(UTC)))

    queue._write(put)
    living = [row.summary.run_id for row in queue.list_indexed(Wanted(("running",)), limit=runs)]
    connection = queue._database.connection  # type: ignore[union-attr]
    connection.executemany(
        "INSERT INTO work (run_id, key, kind, name, fingerprint, state, turn, visible_at, offered_at)"
        " VALUES (?, '', 'workflow', '', '', 'ready', 0, 0, ?)",
        [(run_id, render_time(datetime.now(UTC))) for run_id in living],
    )
    queue.put_stamp(str(peek.stamp(receipts)), queue.epoch())


def milliseconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        times.append((time.perf_counter() - begin) * 1000)
    return median(times)


def pages(registry: Registry, root: Path) -> None:

    paths = registry.database(None, root)
    around = Surroundings(SystemClock(), dict(os.environ))
    app = create_app(WebSettings(registry, (paths,), around, _TOKEN, port=8765, by="bench", kind="manual"))
    base = "http://127.0.0.1:8765"
    with TestClient(app, base_url=base, client=("127.0.0.1", 50_000), follow_redirects=False) as client:
        client.get(f"/enter?token={_TOKEN}")
        old = render_time(datetime.now(UTC) - timedelta(days=30))
        for what, address in (
            ("the inbox", "/"),
            ("the inbox of one workflow", "/?workflow=flow-3.py:flow"),
            ("all runs", "/runs"),
            ("an old page", f"/runs?after={old},flow"),
            ("one workflow", "/runs?workflow=flow-3.py:flow"),
            ("failed ones of one workflow", "/runs?workflow=flow-3.py:flow&state=failed"),
            ("waiting ones", "/runs?state=waiting"),
            ("queued ones", "/runs?state=queued"),
            ("stuck ones", "/runs?state=stuck"),
            ("forks of one run", "/runs?source=flow-9-00000029"),
            ("words that many runs have", "/runs?find=no+such+room"),
            ("words that few have", "/runs?find=word1f+word2a"),
            ("words that none has", "/runs?find=nothing+has+this"),
            ("words that none has, of completed ones", "/runs?find=nothing&state=completed"),
            ("the beginning of an id", "/runs?find=flow-7-000001"),
            ("the catalog of workflows", "/workflows"),
        ):
            assert client.get(address).status_code == 200, client.get(address).text
            print(f"{'page: ' + what:<55} {milliseconds(lambda at=address: client.get(at)):>8.1f} ms", flush=True)


def commands(root: Path) -> None:
    program = str(Path(sys.executable).with_name("hermes-workflows"))
    for what, command in (
        ("python -c 'import click, sqlite3'", [sys.executable, "-c", "import click, sqlite3"]),
        ("list", [program, "list"]),
        ("list --offset 99000", [program, "list", "--offset", "99000"]),
        ("list --find 'nothing has this'", [program, "list", "--find", "nothing has this"]),
        ("list --state failed --workflow …", [program, "list", "--state", "failed", "--workflow", "flow-3.py:flow"]),
    ):
        took = milliseconds(lambda line=command: subprocess.run(line, cwd=root, check=True, capture_output=True))
        print(f"{what:<55} {took:>8.1f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    runs = parser.parse_args().runs
    root = Path(tempfile.mkdtemp(prefix="hermes-bench-"))
    try:
        (root / ".hermes").mkdir()
        (root / ".hermes" / "workflows.registry.json").write_text("{}")
        registry = parse("{}", root / ".hermes" / "workflows.registry.json")
        surroundings = Surroundings(SystemClock(), dict(os.environ))
        with closing(open_workspace(registry, registry.database(None, root), surroundings, create=True)) as made:
            assert isinstance(made.queue, SqliteQueue)
            fill(made.queue, runs, made.ledger.home, made.paths.receipts)
        pages(registry, root)
        commands(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
