"""The house's limits that no linter knows: no module over 400 lines, no function over 60.

Usage: python scripts/sizes.py FOLDER…   (folders that are not there are passed over)
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

MODULE_LINES = 400
FUNCTION_LINES = 60


def oversized(path: Path) -> Iterator[str]:
    """One line for the module, and one for each of its functions, that is over its limit."""
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    if lines > MODULE_LINES:
        yield f"{path}: {lines} lines, more than {MODULE_LINES}: find the missing concept and give it a file"
    for node in ast.walk(ast.parse(text, filename=str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f"{path}:{node.lineno}: {node.name} has {length} lines, more than {FUNCTION_LINES}"


def main(folders: list[str]) -> int:
    files = sorted(path for folder in folders for path in Path(folder).rglob("*.py"))
    complaints = [line for path in files for line in oversized(path)]
    print("\n".join(complaints) or f"{len(files)} modules, none too long")
    return 1 if complaints else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
