"""Putting a table into a page, between the two comments that keep its place."""

from __future__ import annotations

from pathlib import Path

BEGIN = "<!-- bench: begin -->"
END = "<!-- bench: end -->"


def put(page: Path, table: str) -> None:
    """Replace what stands between the comments. Raises ValueError, and writes nothing, when they are not both there."""
    before, after = split(page)
    page.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def split(page: Path) -> tuple[str, str]:
    """What stands before the comments, and after them. Raises ValueError when they are not both there, OSError."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no place for a table: put {BEGIN} and {END} on lines of their own")
    return before, after
