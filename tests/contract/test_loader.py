"""Loading workflows by name: what a name means, what counts as the code, and that edits are seen."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_workflows.errors import HermesError, InvalidInput, NotFound
from hermes_workflows.loader import CannotLoad, Loader
from hermes_workflows.registry import load as load_registry
from hermes_workflows.registry import parse

FLOW = """
from hermes_workflows import workflow

@workflow
async def draft(topic: str) -> str:
    return {answer!r}
"""


@pytest.fixture(autouse=True)
def _modules_as_before(tmp_path: Path) -> Iterator[None]:
    """What the workflows of other tests have left in this process is not here."""
    tests, (modules, path) = str(tmp_path.parent.parent), (dict(sys.modules), list(sys.path))
    sys.path[:] = [entry for entry in path if not entry.startswith(tests)]
    for name, module in modules.items():
        places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        if any(str(place).startswith(tests) for place in places):
            del sys.modules[name]
    yield
    sys.path[:] = path
    sys.modules.update(modules)
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def loader(root: Path, files: dict[str, str], registry: str = "{}") -> Loader:
    write(root, {".hermes/workflows.registry.json": registry, **files})
    return Loader(load_registry(root / ".hermes" / "workflows.registry.json"))


def refused(root: Path, files: dict[str, str], ref: str) -> HermesError:
    with pytest.raises(HermesError) as caught:
        loader(root, files).load(ref)
    return caught.value


@pytest.mark.parametrize("ref", ["flows/a.py:draft", "flows/a.py", "flows.a:draft"])
def test_a_workflow_is_found_by_file_and_by_module(tmp_path: Path, ref: str) -> None:
    loaded = loader(tmp_path, {"flows/a.py": FLOW.format(answer="a")}).load(ref)
    assert loaded.definition.qualname == "draft"
    assert list(loaded.sources) == ["flows/a.py"]


@pytest.mark.parametrize("ref", ["flows.a:draft", "flows/a.py:draft"])
@pytest.mark.parametrize("ours", [{}, {"flows/__init__.py": ""}], ids=["folder", "package"])
@pytest.mark.parametrize(
    "others",
    [{"flows/a.py": ""}, {"flows/__init__.py": "", "flows/a.py": ""}, {"flows.py": ""}],
    ids=["folder", "package", "module"],
)
def test_a_package_that_another_workspace_has_left_imported_is_not_in_the_way(
    tmp_path: Path, others: dict[str, str], ours: dict[str, str], ref: str
) -> None:
    write(tmp_path / "others", others)
    sys.path.insert(0, str(tmp_path / "others"))
    importlib.import_module("flows" if "flows.py" in others else "flows.a")
    sys.path.pop(0)
    relative = FLOW.format(answer="a").replace("\n", "\nfrom .words import WORD\n", 1)
    made = loader(tmp_path / "ours", {"flows/a.py": relative, "flows/words.py": "WORD = 1", **ours})
    assert made.load(ref).definition.qualname == "draft"
    assert sys.modules["flows.words"].__file__ == str(tmp_path / "ours" / "flows" / "words.py")


def test_a_file_is_recorded_relative_to_the_workspace_from_wherever_it_was_named(tmp_path: Path) -> None:
    made = loader(tmp_path, {"flows/a.py": FLOW.format(answer="a")})
    start = tmp_path / "flows"
    for ref in ("a.py", "flows/a.py:draft", "../flows/a.py", str(start / "a.py")):
        assert made.load(ref, start).ref == "flows/a.py:draft"


def test_an_alias_means_its_ref_whatever_folder_one_stands_in(tmp_path: Path) -> None:
    registry = '{"workflows": {"d": {"workflow_ref": "flows/a.py:draft"}}}'
    made = loader(tmp_path, {"flows/a.py": FLOW.format(answer="a")}, registry)
    assert made.load("d", tmp_path / "elsewhere").ref == "flows/a.py:draft"


def test_an_unknown_alias_is_told_the_nearest_one(tmp_path: Path) -> None:
    registry = '{"workflows": {"reviewable-draft": {"workflow_ref": "a.py:draft"}}}'
    with pytest.raises(NotFound) as caught:
        loader(tmp_path, {}, registry).load("reviewable-drft")
    assert caught.value.hint == "did you mean 'reviewable-draft'?"


def test_two_files_of_one_name_never_run_each_others_code(tmp_path: Path) -> None:
    files = {
        "a/flow.py": "from shared import WORD\n" + FLOW.format(answer="a"),
        "b/flow.py": "from shared import WORD\n" + FLOW.format(answer="b"),
        "a/shared.py": "WORD = 'a'\n",
        "b/shared.py": "WORD = 'b'\n",
    }
    made = loader(tmp_path, files)
    one, other = made.load("a/flow.py"), made.load("b/flow.py")
    assert (one.modules["a.flow"].WORD, other.modules["b.flow"].WORD) == ("a", "b")
    assert one.find("shared", "WORD") == "a"
    assert one.code != other.code


def test_the_code_is_every_project_module_that_is_imported_and_no_other(tmp_path: Path) -> None:
    files = {
        "flow.py": "import json, dep\nfrom pkg import part\n" + FLOW.format(answer="x"),
        "pkg/__init__.py": "",
        "pkg/part.py": "from .deep import thing\nfrom . import late\n",
        "pkg/deep.py": "def thing():\n    import only_when_called\n",
        "pkg/late.py": "",
        "pkg/unused.py": "",
        "only_when_called.py": "",
        ".venv/lib/site-packages/dep.py": "",
    }
    sys.path.append(str(tmp_path / ".venv" / "lib" / "site-packages"))
    found = loader(tmp_path, files).load("flow.py").sources
    wanted = {"flow.py", "only_when_called.py", "pkg/__init__.py", "pkg/deep.py", "pkg/late.py", "pkg/part.py"}
    assert set(found) == wanted


def test_the_identity_of_code_does_not_depend_on_what_else_was_loaded(tmp_path: Path) -> None:
    files = {"a.py": "import c\n" + FLOW.format(answer="a"), "b.py": "import c\n" + FLOW.format(answer="b"), "c.py": ""}
    alone = loader(tmp_path, files).load("b.py").code
    both = loader(tmp_path, files)
    both.load("a.py")
    assert both.load("b.py").code == alone


def test_an_unchanged_workflow_is_the_same_object(tmp_path: Path) -> None:
    made = loader(tmp_path, {"a.py": FLOW.format(answer="a")})
    first = made.load("a.py")
    assert made.fresh(first) is first
    assert made.load(first.ref) is first


@pytest.mark.parametrize("edited", ["flow.py", "words.py"])
def test_an_edit_is_seen_at_once_even_of_the_same_size(tmp_path: Path, edited: str) -> None:
    files = {
        "flow.py": "import words\nHERE = 'old'\n" + FLOW.format(answer="x"),
        "words.py": "THERE = 'old'\n",
    }
    made = loader(tmp_path, files)
    before = made.load("flow.py")
    write(tmp_path, {edited: files[edited].replace("old", "new")})
    after = made.fresh(before)
    seen = {"flow.py": after.modules["flow"].HERE, "words.py": after.modules["flow"].words.THERE}
    assert seen.pop(edited) == "new"
    assert set(seen.values()) == {"old"}
    assert after.code != before.code


def test_a_file_may_be_a_program_too(tmp_path: Path) -> None:
    text = FLOW.format(answer="a") + "\nraise SystemExit(draft.run())\n"
    assert loader(tmp_path, {"a.py": text}).load("a.py").definition.qualname == "draft"


def test_loading_leaves_no_bytecode_in_the_workspace(tmp_path: Path) -> None:
    loader(tmp_path, {"a.py": "import b\n" + FLOW.format(answer="a"), "b.py": ""}).load("a.py")
    assert not list(tmp_path.rglob("*.pyc"))


def test_a_project_file_named_like_a_standard_module_does_not_replace_it(tmp_path: Path) -> None:
    sys.modules.pop("zipapp", None)
    made = loader(tmp_path, {"a.py": "import zipapp\n" + FLOW.format(answer="a"), "zipapp.py": "BROKEN = True\n"})
    loaded = made.load("a.py")
    assert not hasattr(loaded.modules["a"].zipapp, "BROKEN")
    assert list(loaded.sources) == ["a.py"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def broken(:\n", "a.py:1: "),
        ("x = 1\nimport nothing_like_this\n", "a.py:2: ModuleNotFoundError"),
        ("\n\nraise ValueError('no luck')\n", "a.py:3: ValueError: no luck"),
        ("import b\n", "b.py:1: ZeroDivisionError"),
        ("raise SystemExit(3)\n", "a.py:1: SystemExit: 3"),
    ],
)
def test_code_that_cannot_be_imported_is_named_by_file_and_line(tmp_path: Path, text: str, said: str) -> None:
    error = refused(tmp_path, {"a.py": text, "b.py": "1 / 0\n"}, "a.py:draft")
    assert isinstance(error, CannotLoad)
    assert said in error.message
    assert "\n" not in error.message


def test_a_repaired_file_loads_without_a_new_process(tmp_path: Path) -> None:
    made = loader(tmp_path, {"a.py": "import b\n" + FLOW.format(answer="a"), "b.py": "1 / 0\n"})
    with pytest.raises(CannotLoad):
        made.load("a.py")
    write(tmp_path, {"b.py": "ok = 1\n"})
    assert made.load("a.py").definition.qualname == "draft"


def test_what_failed_for_a_reason_outside_of_the_code_loads_when_the_reason_is_gone(tmp_path: Path) -> None:
    text = "from pathlib import Path\nWORD = Path(__file__).with_name('word.txt').read_text()\n"
    made = loader(tmp_path, {"a.py": text + FLOW.format(answer="a")})
    with pytest.raises(CannotLoad, match=r"a\.py:2: FileNotFoundError"):
        made.load("a.py")
    write(tmp_path, {"word.txt": "here"})
    assert made.load("a.py").modules["a"].WORD == "here"


@pytest.mark.parametrize(
    ("ref", "message", "hint"),
    [
        ("a.py:drft", "a.py has no workflow 'drft'", "did you mean 'draft'?"),
        ("a.py:plain", "a.py:plain is not a workflow", "decorate it with @workflow"),
        ("nothing_here:draft", "no module 'nothing_here'", "install it"),
        ("a.b.c:draft", "no module 'a.b.c'", "install it"),
        ("os.path:join", "os.path:join is not a workflow", "name a module of yours"),
        ("sys:exit", "sys:exit is not a workflow", "name a module of yours"),
        ("json:dumps", "json:dumps is not a workflow", "decorate it"),
        ("missing.py:draft", "no file missing.py", "file refs start from the workspace"),
    ],
)
def test_a_name_that_means_nothing_says_what_is_near(tmp_path: Path, ref: str, message: str, hint: str) -> None:
    files = {"a.py": FLOW.format(answer="a") + "\ndef plain(): ...\n"}
    error = refused(tmp_path, files, ref)
    assert message in error.message
    assert hint in (error.hint or "")


def test_a_file_with_several_workflows_asks_which(tmp_path: Path) -> None:
    error = refused(
        tmp_path, {"a.py": FLOW.format(answer="a") + FLOW.format(answer="b").replace("draft", "other")}, "a.py"
    )
    assert isinstance(error, InvalidInput)
    assert "defines 2 workflows: draft, other" in error.message


def test_a_file_outside_the_workspace_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"outside.py": FLOW.format(answer="a")})
    error = refused(tmp_path / "ws", {}, "../outside.py:draft")
    assert "lies outside the workspace" in error.message


def test_an_installed_workflow_counts_its_own_file(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "site-packages"
    write(site, {"installed/__init__.py": "", "installed/flow.py": "from . import part\n" + FLOW.format(answer="a")})
    write(site, {"installed/part.py": ""})
    sys.path.append(str(site))
    loaded = loader(tmp_path / "ws", {}).load("installed.flow:draft")
    assert list(loaded.sources) == ["installed/flow.py"]
    assert loaded.ref == "installed.flow:draft"


def test_a_run_from_elsewhere_cannot_say_what_is_imported_here(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FOREIGN)
    (tmp_path / "danger.py").write_text("raise SystemExit('imported')\n\n\nasync def flow():\n    pass\n")
    text = '{"workflows": {"known": {"workflow_ref": "hermes_workflows.examples.reviewable_draft"}}}'
    loader = Loader(parse(text, tmp_path / ".hermes" / "workflows.registry.json"))
    assert loader.load_foreign("flow.py:flow").ref == "flow.py:flow"
    assert loader.load_foreign("hermes_workflows.examples.reviewable_draft:reviewable_draft_workflow").code
    for ref in ("danger.py:flow", "flow.py:helper", "antigravity:flow", "../flow.py:flow", "danger", "flow.py"):
        with pytest.raises(InvalidInput, match="is none of this workspace's"):
            loader.load_foreign(ref)
    with pytest.raises(InvalidInput) as refused:
        loader.load_foreign("flows/gone.py:flow")
    assert "put that file into this workspace" in str(refused.value.hint)
    assert "antigravity" not in sys.modules


FOREIGN = """
from hermes_workflows import workflow

async def helper() -> None:
    pass

@workflow
async def flow() -> None:
    pass
"""
