"""`diff`, `replay` and plain git, as processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.acceptance.command_line import Place, place

ROOT = Path(__file__).resolve().parents[2]
_ACTION = ROOT / "examples" / "github" / "replay.yml"
_FLOW = "flows/launch.py"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Runs `a` and `b` that did the same, and `c`, about something else; each waits for its review."""
    made = place(tmp_path_factory.mktemp("recorded"))
    for run_id, topic in (("a", "docs"), ("b", "docs"), ("c", "code")):
        made.start(run_id, topic=topic)
    made.work()
    return made


@pytest.fixture
def runs(recorded: Place, tmp_path: Path) -> Place:
    """The same, in a workspace whose code may be changed."""
    shutil.copytree(recorded.root, tmp_path / "copy")
    return Place(tmp_path / "copy")


def _change(site: Place, old: str, new: str) -> None:
    file = site.root / _FLOW
    file.write_text(file.read_text().replace(old, new))


def test_diff_exits_as_diff_does_and_names_where_the_runs_part(recorded: Place) -> None:
    same = recorded.run("diff", "a", "b")
    assert (same.code, same.json["equal"], same.json["differences"]) == (0, True, [])
    other = recorded.run("diff", "a", "c")
    assert (other.code, other.json["equal"]) == (1, False)
    assert other.json["first"] == {"what": "changed", "kind": "run", "key": ""}
    assert [each["key"] for each in other.json["differences"]] == ["", "writer", "review_draft"]
    moment = recorded.run("diff", "a@writer", "a").json
    assert [(each["what"], each["key"]) for each in moment["differences"]] == [("added", "review_draft")]
    assert moment["git"] is None


def test_diff_names_the_git_command_that_shows_the_same(recorded: Place) -> None:
    command = recorded.run("diff", "a", "c").json["git"]
    shown = subprocess.run(command, shell=True, cwd=recorded.root, capture_output=True, text=True, check=True).stdout
    assert '-      "topic": "docs"\n+      "topic": "code"' in shown
    assert '"execution"' not in shown


def test_diff_on_a_terminal_is_text_and_says_the_command_of_git(recorded: Place) -> None:
    code, seen = recorded.terminal("diff", "a", "c")
    assert code == 1
    assert "a and c part at the start: 3 differences, 0 calls the same" in seen
    assert '    request/input/topic: "docs" → "code"' in seen
    assert re.search(r"^git: git -C \S+ diff runs/a:", seen, re.M)


def test_replay_proves_that_the_present_code_decides_the_same(recorded: Place) -> None:
    done = recorded.run("replay", "--all")
    assert (done.code, done.json["replays"], done.json["checked"]) == (0, True, 3)
    assert done.json["runs"][0]["open"] == ["review_draft"]
    tip = recorded.git("rev-parse", "runs/b").strip()
    by_commit = recorded.run("replay", tip[:10], "a").json["runs"]
    assert [each["workflow_id"] for each in by_commit] == ["b", "a"]


def test_replay_exits_6_with_key_line_and_difference(runs: Place) -> None:
    _change(runs, 'agent("writer", input=inputs', 'agent("writer", "Be brief.", input=inputs')
    done = runs.run("replay", "--workflow", "launch", "--last", "2", "--summary", "summary.md")
    assert (done.code, done.json["failed"]) == (6, 2)
    error = done.json["runs"][0]["error"]
    assert (error["code"], error["key"], error["site"]) == ("divergence", "writer", "flows/launch.py:22")
    assert '+  "prompt": "Be brief.",' in error["request_diff"]
    assert "0 of 2 runs are decided as they were recorded" in (runs.root / "summary.md").read_text()
    code, seen = runs.terminal("replay", "a")
    assert code == 6
    assert "BAD   a: divergence in a: agent 'writer' was recorded with another request" in seen
    assert '      +  "prompt": "Be brief.",' in seen


def test_replay_prints_one_document_whatever_the_code_prints(runs: Place) -> None:
    _change(runs, "from dataclasses", "print('loaded')\nfrom dataclasses")
    _change(runs, "    text = await", "    print('deciding')\n    text = await")
    done = runs.run("replay", "a")
    assert done.json["replays"]
    assert "loaded" in done.stderr
    assert "deciding" in done.stderr


def test_replay_decides_with_the_hash_seed_of_runners(tmp_path: Path) -> None:
    site = place(tmp_path)
    _change(
        site, '    if inputs.topic == "bad"', "    for name in {*'abcdefgh'}: await bash('true', name=name)\n    if 0"
    )
    site.start("sets", ref="flows/launch.py:quick")
    site.work()
    site.environment["PYTHONHASHSEED"] = "5"
    assert site.run("replay", "sets").json["replays"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [((), 2), (("--all", "a"), 2), (("nobody",), 4), (("--workflow", "lunch"), 4), (("--last", "0"), 2)],
)
def test_replay_says_what_it_is_not_given(recorded: Place, arguments: tuple[str, ...], code: int) -> None:
    said = recorded.run("replay", *arguments)
    assert said.code == code
    assert said.stdout == ""


def test_plain_git_leaves_the_execution_block_out_everywhere(recorded: Place) -> None:
    """In a bare repository, with attributes and textconv of its own."""
    for shown in (
        recorded.git("log", "-p", "runs/a"),
        recorded.git("show", "runs/a"),
        recorded.git("diff", "main", "runs/a"),
    ):
        assert '+  "status": "' in shown
        assert '"execution"' not in shown
        assert '"seq"' not in shown
    assert '"execution"' in recorded.git("show", "--no-textconv", "runs/a")


def test_plain_git_shows_texts_that_look_like_execution_blocks_and_output_that_is_no_text(tmp_path: Path) -> None:
    site = place(tmp_path)
    text = '  "execution": {\n  "hidden": 1\n  },\nend'
    _change(site, 'mock_output=f"Draft of {inputs.topic}"', f"mock_output={text!r}")
    printing = r"""    await bash(r"printf 'a\r\n\0\033[2J\xf0'", key="raw")"""
    _change(site, '    if inputs.topic == "bad"', f"{printing}\n    if 0")
    site.start("wf")
    site.start("quick", ref="flows/launch.py:quick")
    site.work()
    shown = site.git("show", "runs/wf~1", "--", "*writer.json")
    assert shown.count("execution") == 1
    assert "hidden" in shown
    assert "requested_after" not in shown
    raw = site.git("show", "runs/quick~1", "--", "*raw.json")
    assert "Binary" not in raw
    assert "\\u001b[2J" in raw


def _script_of(step: str) -> str:
    found = re.search(rf"- name: {step}\n(?: +#.*\n)* +run: \|\n((?: {{10}}.*\n)+)", _ACTION.read_text())
    assert found, f"no step {step!r}"
    return re.sub(r"^ {10}", "", found[1], flags=re.M)


def test_the_action_of_the_examples_replays_what_it_fetched(
    recorded: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    job = place(tmp_path_factory.mktemp("job"))
    (job.root / ".hermes" / "workflows.registry.json").write_text(
        (recorded.root / ".hermes" / "workflows.registry.json").read_text()
    )
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**job.env(), "PATH": path, "RECEIPTS": str(recorded.receipts), "GITHUB_STEP_SUMMARY": "summary.md"}
    script = _script_of("Fetch the receipts") + _script_of("Decide the newest 200 runs again")
    done = subprocess.run(["bash", "-euc", script], cwd=job.root, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert json.loads((job.root / "replay.json").read_text())["checked"] == 3
    assert "3 of 3 runs" in (job.root / "summary.md").read_text()
