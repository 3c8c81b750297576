"""Write the table of states into docs/states.md, out of the rules in the code."""

from __future__ import annotations

from pathlib import Path

from hermes_workflows.core.state_table import as_table

_PAGE = Path(__file__).resolve().parents[1] / "docs" / "states.md"
_BEGIN, _END = "<!-- the table: python scripts/states_table.py -->\n", "<!-- end of the table -->"


def main() -> None:
    text = _PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    _PAGE.write_text(f"{before}{_BEGIN}\n{as_table()}\n\n{_END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
