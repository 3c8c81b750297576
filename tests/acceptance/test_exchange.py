"""Runs that travel, as people and scripts send and receive them: the whole way, and what may be in it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.acceptance.command_line import Place, place


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    path = tmp_path / "hub.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", path], check=True)
    return path


def workspace(folder: Path, name: str, hub: Path | None = None, **environment: str) -> Place:
    made = place(folder / name, **environment)
    assert made.run("init").code in (0, 5)
    made.start(f"{name}_first", "flows/launch.py:quick")
    made.work()
    if hub is not None:
        made.git("remote", "add", "origin", str(hub))
    return made


def heads(path: Path) -> set[str]:
    done = subprocess.run(
        ["git", "-C", path, "for-each-ref", "--format=%(refname)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def without_git(folder: Path) -> dict[str, str]:
    """The PATH of a machine that has no git."""
    (folder / "bin").mkdir()
    return {"PATH": str(folder / "bin")}


@pytest.mark.parametrize("git", [True, False])
def test_a_run_goes_to_a_colleague_and_is_looked_at_there(tmp_path: Path, hub: Path, git: bool) -> None:
    environment = {} if git else without_git(tmp_path)
    ada, bob = (workspace(tmp_path, name, hub, **environment) for name in ("ada", "bob"))
    assert ada.run("sync").json["push"]["refused"] == []
    came = bob.run("sync", "origin").json
    assert came["fetch"]["new"][-1] == "runs/ada_first"
    assert {"refs/runs/ada_first", "refs/runs/bob_first"} <= heads(hub)
    assert bob.run("show", "origin/ada_first").json["result"] == "docs"
    assert bob.run("verify", "origin/ada_first").code == 0
    assert bob.run("diff", "origin/ada_first", "bob_first").code == 0
    assert bob.run("replay", "origin/ada_first").json["replays"] is True
    subprocess.run(["git", "-C", bob.receipts, "fsck", "--full", "--strict"], check=True)


def test_an_imported_run_is_used_like_one_that_was_made_here(tmp_path: Path) -> None:
    ada, bob = workspace(tmp_path, "ada"), workspace(tmp_path, "bob")
    ada.start("wf", "launch")
    ada.work()
    exported = ada.run("export", "wf", "--bundle", "../wf.bundle").json
    assert exported["bytes"] == (tmp_path / "wf.bundle").stat().st_size
    (arrived,) = bob.run("import", "../wf.bundle").json["runs"]
    assert (arrived["commit"], arrived["new"]) == (exported["commit"], True)
    assert bob.run("show", "wf").json["receipts"] == ada.run("show", "wf").json["receipts"]
    assert bob.run("verify", "wf").json["problems"] == []
    assert bob.run("replay", "wf").json["replays"] is True
    assert bob.run("status", "wf").json["state"] == "running"
    assert bob.run("fork", "wf", "--id", "mine").code == 0
    bob.work()
    assert bob.run("review", "respond", "mine", "review_draft", "--json", '{"action": "approve"}').code == 0
    bob.work()
    assert bob.run("status", "mine").json["status"] == "completed"
    assert bob.run("verify", "--all").json["problems"] == []
    assert bob.run("review", "respond", "wf", "review_draft", "--json", '{"action": "approve"}').code == 5


def test_an_imported_run_is_left_alone_by_runners(tmp_path: Path) -> None:
    ada, bob = workspace(tmp_path, "ada"), workspace(tmp_path, "bob")
    ada.start("wf", "launch")
    ada.run("export", "wf", "--bundle", "../wf.bundle")
    bob.run("import", "../wf.bundle")
    assert bob.work().json["commands"] == 0
    bob.run("index", "rebuild")
    bob.sqlite.unlink()
    assert bob.work().json["commands"] == 0
    assert bob.run("status", "wf").json["receipts"] == 1


@pytest.mark.parametrize(
    "hostile",
    [
        {"GIT_DIR": "/nonexistent", "GIT_INDEX_FILE": "/nonexistent", "GIT_WORK_TREE": "/", "HOME": ""},
        {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "remote.origin.url", "GIT_CONFIG_VALUE_0": "/nonexistent"},
        {"GIT_OBJECT_DIRECTORY": "/nonexistent", "GIT_NAMESPACE": "other"},
    ],
    ids=["hook", "config", "objects"],
)
def test_variables_of_another_repository_have_no_say(tmp_path: Path, hub: Path, hostile: dict[str, str]) -> None:
    ada = workspace(tmp_path, "ada", hub)
    there = Place(ada.root, hostile)
    assert there.run("sync").json["push"]["refused"] == []
    assert there.run("export", "ada_first", "--bundle", "../a.bundle").code == 0
    assert "refs/runs/ada_first" in heads(hub)
    assert there.run("import", "../a.bundle").json["runs"][0]["new"] is False


def test_habits_of_the_users_git_have_no_say(tmp_path: Path, hub: Path) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    # Hooks of the receiving side would be that repository's own business.
    (hooks / "pre-push").write_text("#!/bin/sh\nexit 1\n")
    (hooks / "pre-push").chmod(0o755)
    config = f"""\
[core]
\thooksPath = {hooks}
\tautocrlf = true
[push]
\tgpgSign = true
\tfollowTags = true
\tdefault = nothing
[commit]
\tgpgSign = true
[fetch]
\tprune = true
[transfer]
\tfsckObjects = false
[user]
\tuseConfigOnly = true
"""
    (tmp_path / "gitconfig").write_text(config)
    ada = workspace(tmp_path, "ada", hub, GIT_CONFIG_GLOBAL=str(tmp_path / "gitconfig"))
    assert ada.run("sync").json["push"]["refused"] == []
    assert "refs/runs/ada_first" in heads(hub)


def test_a_refused_ref_is_a_conflict_and_the_rest_is_sent(tmp_path: Path, hub: Path) -> None:
    ada, bob = workspace(tmp_path, "ada", hub), workspace(tmp_path, "bob", hub)
    for each in (ada, bob):
        each.start("same", "flows/launch.py:quick", topic=each.root.name)
    assert ada.run("push").code == 0
    said = bob.run("push")
    assert said.code == 5
    assert [one["ref"] for one in said.json["refused"]] == ["refs/runs/same"]
    assert "refs/runs/bob_first" in heads(hub)


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("push",), 4, "not_found"),
        (("fetch", "nowhere"), 4, "not_found"),
        (("fetch", "gone"), 69, "remote_failure"),
        (("fetch", "runs_things"), 2, "invalid_input"),
        (("export", "ada_first"), 2, "invalid_input"),
        (("export", "nothing", "--bundle", "x"), 4, "not_found"),
        (("export", "ada_first", "--tar", "flows/launch.py"), 5, "conflict"),
        (("export", "ada_first", "--tar", "no/folder/x.tar"), 74, "store_failure"),
        (("export", "ada_first", "--tar", "x.zip"), 2, "invalid_input"),
        (("import", "nothing"), 4, "not_found"),
        (("import", "flows/launch.py"), 2, "invalid_input"),
    ],
)
def test_what_goes_wrong_is_one_error_with_a_way_on(
    ada: Place, arguments: tuple[str, ...], code: int, error: str
) -> None:
    said = ada.run(*arguments)
    assert (said.code, said.error["code"]) == (code, error), said
    assert said.error["hint"] or error == "not_found"
    assert "Traceback" not in said.stderr


@pytest.fixture(scope="module")
def ada(tmp_path_factory: pytest.TempPathFactory) -> Place:
    made = workspace(tmp_path_factory.mktemp("errors"), "ada")
    made.git("remote", "add", "gone", "/nonexistent/x.git")
    made.git("remote", "add", "runs_things", "ext::sh -c 'touch pwned'")
    return made


def test_two_commands_that_import_at_once_agree(tmp_path: Path) -> None:
    ada, bob = workspace(tmp_path, "ada"), workspace(tmp_path, "bob")
    ada.run("export", "ada_first", "--bundle", "../a.bundle")
    children = [bob.command("import", "../a.bundle") for _ in range(3)]
    assert [child.wait() for child in children] == [0, 0, 0]
    assert bob.run("verify", "--all").json["problems"] == []
    assert not list((bob.receipts / "hermes" / "arriving").iterdir())


def test_on_a_terminal_each_of_them_names_the_git_command(tmp_path: Path, hub: Path) -> None:
    ada = workspace(tmp_path, "ada", hub)
    for arguments, word in (
        (("push",), "push origin"),
        (("fetch",), "fetch --no-tags origin"),
        (("export", "ada_first", "--bundle", "a.bundle"), "bundle create"),
        (("export", "ada_first", "--tar", "a.tar"), "archive --format=tar"),
        (("import", "a.bundle"), "fetch "),
    ):
        code, seen = ada.terminal(*arguments)
        assert code == 0
        assert f"git: git -C .hermes/workflows.git {word}" in seen
