"""The public annotations, checked by mypy on files of examples."""

from __future__ import annotations

from pathlib import Path

import pytest

api = pytest.importorskip("mypy.api")

TOP = Path(__file__).parents[2]


def test_what_authors_write_has_the_types_they_expect() -> None:
    # All at once: each time, mypy reads the same libraries.
    examples = [str(Path(__file__).with_name(f"{name}.py")) for name in ("authored", "effects", "people", "tested")]
    out, err, code = api.run(
        ["--strict", "--follow-imports=silent", "--config-file", str(TOP / "pyproject.toml"), *examples]
    )
    assert (out, err, code) == ("Success: no issues found in 4 source files\n", "", 0)
