"""Every block of code in README and documentation does what its page says."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.docs.likeness import alike
from tests.docs.pages import PAGES, ROOT, Block, blocks_of, name_of
from tests.docs.session import Session

_COMMAND = re.compile(r"^\$ (.*(?:\n> .*)*)\n", re.M)
_NO_CODE = ("text", "markdown", "yaml")


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=name_of)
def test_a_page_does_what_it_shows(page: Path, tmp_path: Path) -> None:
    session = Session(tmp_path)
    for block in blocks_of(page):
        _check(block, session)


def test_every_make_target_that_a_page_names_is_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    blocks = [block for page in PAGES for block in blocks_of(page) if block.language == "bash"]
    named = {(block.place, name) for block in blocks for name in re.findall(r"^make ([a-z]+)", block.text, re.M)}
    assert named
    assert {(place, name) for place, name in named if name not in targets} == set()


def test_every_comment_of_a_check_stands_right_before_its_block() -> None:
    for page in PAGES:
        lines = page.read_text(encoding="utf-8").splitlines()
        lonely = [n for n, line in enumerate(lines, 1) if line.startswith("<!-- check:") and lines[n][:3] != "```"]
        assert lonely == [], f"{name_of(page)}: {lonely}"


def _check(block: Block, session: Session) -> None:
    wishes = block.wishes
    if "skip" in wishes:
        assert wishes["skip"].startswith("because "), f"{block.place} does not say why it is not run"
        return
    if (program := wishes.get("needs")) and not shutil.which(program):
        pytest.skip(f"{block.place} needs {program}")
    if name := wishes.get("same-as"):
        assert block.text == (ROOT / name).read_text(encoding="utf-8"), f"{block.place} is not {name}"
    if name := wishes.get("file"):
        _write(session.workspace / name, block.text)
    elif "prints" in wishes:
        assert alike(block.text, session.printed, block.language), f"{block.place}: it printed\n{session.printed}"
    elif not ("same-as" in wishes and block.language == "python") and block.language not in _NO_CODE:
        _TRIED[block.language](block, session)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def _place(block: Block, session: Session) -> Path:
    return session.checkout if block.wishes.get("in") == "the checkout" else session.workspace


def _run(block: Block, session: Session) -> None:
    code = session.run(block.text, place=_place(block, session), terminal="on" in block.wishes)
    assert code == int(block.wishes.get("exit", "0")), f"{block.place} ended with {code}\n{session.printed}"


def _run_python(block: Block, session: Session) -> None:
    _write(session.workspace / "block.py", block.text)
    code = session.run("python block.py", place=_place(block, session))
    assert code == 0, f"{block.place}\n{session.printed}"


def _type(block: Block, session: Session) -> None:
    """What stands after `$` is typed; what follows it must be what the terminal shows."""
    parts = _COMMAND.split(block.text)
    assert parts[0] == "", f"{block.place} begins with no command"
    for command, shown in zip(parts[1::2], parts[2::2], strict=True):
        session.run(command.replace("\n> ", "\n"), place=_place(block, session), terminal=True)
        assert alike(shown, session.printed, "text"), f"{block.place}: $ {command}\n{session.printed}"


def _read_json(block: Block, session: Session) -> None:
    json.loads(block.text)


_TRIED = {"bash": _run, "sh": _run, "console": _type, "python": _run_python, "json": _read_json}
