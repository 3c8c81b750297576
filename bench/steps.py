"""Steps of one run: one after the other against the peers, growth, and many at once.

Ours and a peer's take turns; each of theirs is compared with the mean of ours before and after it, since disks and
neighbours differ from one minute to the next.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from bench.peers import DBOS, LANGGRAPH, PEERS, Peer, Unavailable
from bench.rows import Aim, Missing, Row, against_neighbours, number
from bench.sizes import Place

AT_LEAST = {LANGGRAPH.name: 1.2, DBOS.name: 3.0}
FAN_OUT_CONCURRENCY = 64
FAN_OUT_A_SECOND = 3_000
GROWTH = 1.1


def measured(
    place: Place, workload: str, steps: int, concurrency: int = 4, runs: int = 1, *, bursts: bool = True
) -> dict[str, Any]:
    """What `bench.measuring` says, in a process of its own."""
    command = [sys.executable, "-m", "bench.measuring", workload, str(steps), "--folder", str(place.folder)]
    command += ["--concurrency", str(concurrency), "--runs", str(runs), *([] if bursts else ["--no-bursts"])]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def sequential(place: Place) -> Iterator[Row | Missing]:
    for steps in place.sizes.sequential:
        yield from _sequential(place, steps)
    yield _without_bursts(place, min(place.sizes.sequential))


def _sequential(place: Place, steps: int) -> Iterator[Row | Missing]:
    name, what = f"sequential-{steps}", f"{steps:,} trivial steps, one after the other, each durable before the next"
    ours = [measured(place, "sequential", steps)]
    theirs: dict[str, list[float]] = {peer.name: [] for peer in PEERS}
    ratios: dict[str, list[float]] = {peer.name: [] for peer in PEERS}
    for peer in PEERS if steps in place.sizes.peers else ():
        try:
            for _ in range(place.sizes.rounds):
                rate = float(place.peers.measured(peer, "sequential", steps, place.room())["per_second"])
                ours.append(measured(place, "sequential", steps))
                theirs[peer.name].append(rate)
                ratios[peer.name].append((ours[-2]["per_second"] + ours[-1]["per_second"]) / 2 / rate)
        except Unavailable as error:
            yield Missing(f"{name}-{peer.name}", str(error))
    yield Row(name, what, "fsync limit", _each(ours, "ratio"), "×", detail=_rates(ours))
    for peer in PEERS:
        if ratios[peer.name]:
            aim = Aim("at least", AT_LEAST[peer.name])
            detail = f"ours {_span(_each(ours, 'per_second'))}/s, theirs {_span(theirs[peer.name])}/s"
            yield Row(f"{name}-{peer.name}", what, peer.label, tuple(ratios[peer.name]), "×", aim, detail)
    yield from _growth(name, steps, ours)


def _without_bursts(place: Place, steps: int) -> Row:
    """What it costs to have each step in git and in the queue before the next, as a setting of the registry has it."""
    burst, single = [measured(place, "sequential", steps)], []
    for _ in range(place.sizes.rounds):
        single.append(measured(place, "sequential", steps, bursts=False))
        burst.append(measured(place, "sequential", steps))
    ratios = against_neighbours(_each(single, "per_second"), _each(burst, "per_second"))
    what = f'{steps:,} trivial steps with `"bursts": false`: each in git and in the queue before the next'
    detail = f"{_span(_each(single, 'per_second'))}/s against {_span(_each(burst, 'per_second'))}/s"
    return Row(f"no-bursts-{steps}", what, "the same in bursts", ratios, "×", detail=detail)


def _growth(name: str, steps: int, ours: list[dict[str, Any]]) -> Iterator[Row]:
    """Whether a long run costs more at its end: only the longest tells much."""
    aim, what = Aim("at most", GROWTH), f"growth over {steps:,} steps"
    times = tuple(each["last_tenth_ms"] / each["first_tenth_ms"] for each in ours if each["first_tenth_ms"])
    last = ours[-1]
    detail = f"{number(last['first_tenth_ms'])} ms a step first, {number(last['last_tenth_ms'])} ms last"
    if times:
        yield Row(f"{name}-growth-time", f"{what}: time", "its own first tenth", times, "×", aim, detail)
    memory = tuple(each["memory_late"] / each["memory_early"] for each in ours if each["memory_early"])
    if memory:
        detail = f"{number(last['memory_early'])} MB early, {number(last['memory_late'])} MB late"
        yield Row(f"{name}-growth-memory", f"{what}: memory", "its own beginning", memory, "×", aim, detail)


def fan_out(place: Place) -> Iterator[Row | Missing]:
    for steps in place.sizes.fan_out:
        name = f"fan-out-{steps}"
        what = f"one `parallel` of {steps:,} trivial steps, --concurrency {FAN_OUT_CONCURRENCY}"
        ours = [measured(place, "fan_out", steps, FAN_OUT_CONCURRENCY) for _ in range(place.sizes.rounds)]
        aim = Aim("at least", FAN_OUT_A_SECOND)
        yield Row(name, what, "a fixed number", _each(ours, "per_second"), "/s", aim, _rates(ours))
        # What the longest costs peers is minutes, and tells no more than the shortest.
        if steps == min(place.sizes.fan_out) and place.sizes.peers:
            for peer in PEERS:
                yield _fanned(place, peer, steps, ours[-1]["per_second"])


def _fanned(place: Place, peer: Peer, steps: int, ours: float) -> Row | Missing:
    name = f"fan-out-{steps}-{peer.name}"
    try:
        rate = float(place.peers.measured(peer, "fan_out", steps, place.room())["per_second"])
    except Unavailable as error:
        return Missing(name, str(error))
    detail = f"ours {number(ours)}/s, theirs {number(rate)}/s"
    return Row(name, f"{steps:,} trivial steps at once", peer.label, (ours / rate,), "×", detail=detail)


def _each(results: list[dict[str, Any]], name: str) -> tuple[float, ...]:
    return tuple(result[name] for result in results)


def _rates(results: list[dict[str, Any]]) -> str:
    limit = _span(_each(results, "anchor"))
    return f"ours {_span(_each(results, 'per_second'))}/s where 2 KB appends, each synced, reach {limit}/s"


def _span(values: list[float] | tuple[float, ...]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"
