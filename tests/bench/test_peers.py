"""A peer that cannot be had, or cannot do the work, is told of and ends nothing."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from bench.peers import DBOS, Peer, Peers, Unavailable
from bench.rows import Missing, Row
from bench.sizes import TINY, Place
from bench.steps import sequential


def installed(folder: Path, peer: Peer, program: str) -> tuple[Peers, Peer]:
    """An environment as `Peers` leaves it, which is this one, and a peer whose program is this text."""
    home = folder / peer.name
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "python").symlink_to(sys.executable)
    (home / "installed").write_text(f"{sys.version}\n{' '.join(peer.packages)}\n")
    path = folder / "program.py"
    path.write_text(program)
    return Peers(folder), replace(peer, program=str(path))


def test_a_peer_is_asked_in_its_own_environment_and_its_last_line_is_what_it_says(tmp_path: Path) -> None:
    program = "import json, sys\nprint('hello')\nprint(json.dumps({'per_second': int(sys.argv[2])}))\n"
    peers, peer = installed(tmp_path, DBOS, program)
    assert peers.measured(peer, "sequential", 20, tmp_path) == {"per_second": 20}


def test_a_peer_that_fails_is_unavailable_with_its_own_last_word(tmp_path: Path) -> None:
    peers, peer = installed(tmp_path, DBOS, "raise SystemExit('no database')")
    with pytest.raises(Unavailable, match="no database"):
        peers.measured(peer, "sequential", 20, tmp_path)


def test_a_peer_that_cannot_be_installed_is_tried_once(tmp_path: Path) -> None:
    peer = replace(DBOS, packages=(str(tmp_path / "nowhere"),))
    peers = Peers(tmp_path / "environments")
    reasons = []
    for _ in range(2):
        with pytest.raises(Unavailable) as caught:
            peers.python(peer)
        reasons.append(caught.value)
    assert reasons[0] is reasons[1]
    assert not (tmp_path / "environments" / "dbos" / "installed").exists()


def test_a_peer_that_cannot_be_had_is_a_line_and_ours_is_measured_all_the_same(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    found = list(sequential(Place(tmp_path, replace(TINY, peers=TINY.sequential), Peers(in_the_way))))
    assert {each.name for each in found if isinstance(each, Missing)} == {
        "sequential-20-langgraph",
        "sequential-20-dbos",
    }
    assert "sequential-20" in {each.name for each in found if isinstance(each, Row)}
