"""The public annotations, checked by mypy on files of examples."""

from __future__ import annotations

from pathlib import Path

import pytest

api = pytest.importorskip("mypy.api")

TOP = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["authored.py", "effects.py", "people.py", "tested.py"])
def test_what_authors_write_has_the_types_they_expect(name: str) -> None:
    example = Path(__file__).with_name(name)
    out, err, code = api.run(
        ["--strict", "--follow-imports=silent", "--config-file", str(TOP / "pyproject.toml"), str(example)]
    )
    assert (out, err, code) == ("Success: no issues found in 1 source file\n", "", 0)
