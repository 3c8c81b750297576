"""How much of everything is measured: what is aimed at is meant for the whole size; the small one is for a look."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers import Peers


@dataclass(frozen=True)
class Sizes:
    """`peers` are the lengths that peers do as well. Seconds for `idle`, everything else counts."""

    rounds: int
    sequential: Sequence[int]
    peers: Sequence[int]
    fan_out: Sequence[int]
    runs: int
    steps_a_run: int
    answers: int
    idle: float
    replayed: int
    ledger_runs: int
    ledger_days: int
    indexed_runs: int
    starts: int
    kilobytes: int
    live_runs: int
    live_steps: int


WHOLE = Sizes(
    rounds=3,
    sequential=(1_000, 10_000),
    peers=(1_000, 10_000),
    fan_out=(1_000, 10_000),
    runs=400,
    steps_a_run=10,
    answers=200,
    idle=30,
    replayed=10_000,
    ledger_runs=10_000,
    ledger_days=400,
    indexed_runs=100_000,
    starts=15,
    kilobytes=5_000,
    live_runs=4,
    live_steps=10_000,
)
QUICK = Sizes(
    rounds=1,
    sequential=(300,),
    peers=(300,),
    fan_out=(500,),
    runs=40,
    steps_a_run=5,
    answers=20,
    idle=4,
    replayed=500,
    ledger_runs=100,
    ledger_days=20,
    indexed_runs=500,
    starts=5,
    kilobytes=300,
    live_runs=4,
    live_steps=100,
)
# For the benchmark's own tests: does it still work, and nothing else.
TINY = Sizes(
    rounds=1,
    sequential=(20,),
    peers=(),
    fan_out=(20,),
    runs=4,
    steps_a_run=2,
    answers=2,
    idle=0.2,
    replayed=10,
    ledger_runs=4,
    ledger_days=2,
    indexed_runs=4,
    starts=1,
    kilobytes=10,
    live_runs=2,
    live_steps=10,
)


@dataclass(frozen=True)
class Place:
    """Where a benchmark works and how much it does. Nothing in `folder` is removed before all is measured:
    freeing files slows down for seconds every file that is made on the same disk after them."""

    folder: Path
    sizes: Sizes
    peers: Peers = field(default_factory=Peers)

    def room(self) -> Path:
        """An empty folder on the disk that everything else is measured on."""
        return Path(tempfile.mkdtemp(dir=self.folder))
