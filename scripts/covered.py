"""How much of each part the tests executed, in all their processes together, held against what is wanted.

Usage: python scripts/covered.py [PART…]   after `coverage combine`; a part that has too little of it fails.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import coverage

PACKAGE = "src/hermes_workflows/"
# Every branch of what decides and of what keeps; nine tenths of the rest, of lines and branches together.
WANTED = {"core": 100.0, "store": 100.0}
ELSEWHERE = 90.0


@dataclass
class Part:
    """What was found of one package, or of the modules that lie beside the packages."""

    name: str
    there: int = 0
    met: int = 0
    missing: list[str] = field(default_factory=list)

    @property
    def wanted(self) -> float:
        return WANTED.get(self.name, ELSEWHERE)

    @property
    def percent(self) -> float:
        return 100.0 * self.met / self.there if self.there else 100.0

    def add(self, module: str, found: dict[str, Any]) -> None:
        totals = found["summary"]
        self.there += totals["num_statements"] + totals["num_branches"]
        self.met += totals["covered_lines"] + totals["covered_branches"]
        missed = [str(line) for line in found["missing_lines"]]
        # A branch to a line that was never met is told by that line.
        lines = set(found["missing_lines"])
        missed += [f"{a}→{b if b > 0 else 'end'}" for a, b in found["missing_branches"] if not {a, b} & lines]
        if missed:
            self.missing.append(f"{module}: {', '.join(missed)}")


def parts() -> Iterator[Part]:
    """The parts, in the order of their names."""
    data = coverage.Coverage()
    data.load()
    found: dict[str, Part] = {}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        data.json_report(outfile=str(report))
        files = json.loads(report.read_text(encoding="utf-8"))["files"]
    for path, told in sorted(files.items()):
        module = path.partition(PACKAGE)[2] or path
        name = module.partition("/")[0] if "/" in module else "modules"
        found.setdefault(name, Part(name)).add(module, told)
    yield from sorted(found.values(), key=lambda part: part.name)


def main(names: list[str]) -> int:
    failed = 0
    for part in parts():
        if names and part.name not in names:
            continue
        # Rounded down: 99.96 is not all.
        print(f"{part.name:14} {int(part.percent * 10) / 10:5.1f} %   wanted {part.wanted:.0f} %")
        if part.percent < part.wanted:
            failed += 1
            print("".join(f"    {line}\n" for line in part.missing), end="")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
