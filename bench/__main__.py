"""`make bench`: what this disk and two peers allow, and what the runtime makes of it, in one run on one disk.

Ratios with their spread come first, since disks and neighbours differ; nothing here is a test.

python -m bench --quick                            two minutes, small forms
python -m bench --only sequential,fan-out          some of it
python -m bench --write docs/performance.md        all of it, into the table of a page
python -m bench --read FILE.json --write PAGE.md   what was measured elsewhere
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.machine import machine, versions
from bench.pages import put, split
from bench.peers import PEERS, Peers, Unavailable
from bench.reading import rebuild, replay
from bench.rows import Missing, Report, Row, as_json, as_markdown, as_text, from_json
from bench.runners import many, memory
from bench.sizes import QUICK, TINY, WHOLE, Place
from bench.space import space
from bench.starts import starts
from bench.steps import fan_out, sequential
from bench.waking import answers, idle

Part = Callable[[Place], Iterator[Row | Missing]]

PARTS: dict[str, Part] = {
    "sequential": sequential,
    "fan-out": fan_out,
    "runners": many,
    "answers": answers,
    "idle": idle,
    "replay": replay,
    "rebuild": rebuild,
    "starts": starts,
    "space": space,
    "memory": memory,
}
SIZES = {"whole": WHOLE, "quick": QUICK, "tiny": TINY}
JSON = Path("build") / "bench.json"


def measured(place: Place, parts: list[str], quick: bool, keep: Callable[[Report], None] = lambda _: None) -> Report:
    """Everything, told row by row while it is measured. A part that fails is a line, and the others go on.

    `keep` is given what there is after each part.
    """
    report = Report(datetime.now(UTC).strftime("%Y-%m-%d"), quick, machine(place.folder), versions())
    rows: list[Row] = []
    missing: list[Missing] = []
    for part in parts:
        try:
            for found in PARTS[part](place):
                if isinstance(found, Row):
                    rows.append(found)
                    print(f"\n{as_text(found)}", flush=True)
                else:
                    missing.append(_told(found))
        except (subprocess.CalledProcessError, OSError) as error:
            missing.append(_told(Missing(part, _said(error))))
        done = replace(report, rows=[*rows], missing=[*missing], versions=report.versions | _peers(place, rows))
        keep(done)
    return done


def _told(missing: Missing) -> Missing:
    print(f"\n{missing.name} was not measured: {missing.why}", flush=True)
    return missing


def _said(error: Exception) -> str:
    told = error.stderr if isinstance(error, subprocess.CalledProcessError) else None
    lines = (told.decode() if isinstance(told, bytes) else told or "").strip().splitlines()
    return f"{error}: {lines[-1]}" if lines else str(error)


def _peers(place: Place, rows: list[Row]) -> dict[str, str]:
    found: dict[str, str] = {}
    for peer in PEERS:
        if any(row.against == peer.label for row in rows):
            try:
                found |= place.peers.versions(peer)
            except Unavailable:
                continue
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, default="whole", help="how much of everything (default: whole)")
    parser.add_argument("--quick", action="store_const", dest="size", const="quick", help="the same as --size quick")
    parser.add_argument("--rounds", type=_rounds, help="how often what is compared takes turns")
    parser.add_argument("--only", metavar="PART,…", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--no-peers", action="store_true", help="install nothing, compare with no peer")
    parser.add_argument("--folder", type=_folder, help="a folder on the disk to measure")
    parser.add_argument("--json", type=Path, default=JSON, metavar="FILE", help=f"(default: {JSON})")
    parser.add_argument("--read", type=_report, metavar="FILE", help="measure nothing: take what this file says")
    parser.add_argument("--write", type=_page, metavar="PAGE", help="put the table between the comments of a page")
    given = parser.parse_args()
    given.parts = given.only.split(",") if given.only else list(PARTS)
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if not given.read:
        try:
            given.json.parent.mkdir(parents=True, exist_ok=True)
            given.json.open("a").close()
        except OSError as error:
            parser.error(f"argument --json: {given.json} cannot be written: {error.strerror}")
    return given


# What would fail at the end is refused before anything is measured.


def _rounds(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rounds")
    return int(text)


def _folder(text: str) -> Path:
    folder = Path(text).absolute()
    if not os.access(folder, os.W_OK | os.X_OK) or not folder.is_dir():
        raise argparse.ArgumentTypeError(f"nothing can be made in {text}")
    return folder


def _report(text: str) -> Report:
    try:
        return from_json(json.loads(Path(text).read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text} cannot be read: {error}") from error


def _page(text: str) -> Path:
    page = Path(text)
    try:
        split(page)
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return page


def _measured(given: argparse.Namespace) -> Report:
    sizes = SIZES[given.size]
    if given.rounds:
        sizes = replace(sizes, rounds=given.rounds)
    if given.no_peers:
        sizes = replace(sizes, peers=())

    def keep(report: Report) -> None:
        given.json.write_text(json.dumps(as_json(report), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    # A process that is just being ended may still make a file in there.
    with TemporaryDirectory(prefix="hermes-bench-", dir=given.folder, ignore_cleanup_errors=True) as folder:
        report = measured(Place(Path(folder), sizes, Peers()), given.parts, given.size != "whole", keep)
    print(f"\nAll of it is in {given.json}.", flush=True)
    return report


def main() -> None:
    given = _arguments()
    try:
        report = given.read or _measured(given)
    except KeyboardInterrupt:
        sys.exit(f"\nInterrupted; what was measured until then is in {given.json}.")
    if given.write:
        put(given.write, as_markdown(report))
    elif given.read:
        print(as_markdown(report))


if __name__ == "__main__":
    main()
