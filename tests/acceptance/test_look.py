"""`log` and `show`, and the words that name a run, as people and scripts meet them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acceptance.command_line import Place, place


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A workspace whose run `wf` waits for an answer, beside a run `quick` that has ended; its tests only look."""
    made = place(tmp_path_factory.mktemp("look") / "ws")
    made.start()
    made.start("quick", "flows/launch.py:quick")
    made.work("--worker-id", "desk")
    return made


@pytest.fixture(scope="module")
def fetched(tmp_path_factory: pytest.TempPathFactory, here: Place) -> Place:
    """A workspace that has fetched both from the remote `origin`, and has a run of its own."""
    made = place(tmp_path_factory.mktemp("fetched") / "ws")
    made.start("own", "flows/launch.py:quick")
    made.work()
    made.git("fetch", "-q", str(here.receipts), "refs/runs/*:refs/remotes/origin/runs/*")
    return made


def test_log_lists_the_receipts_of_a_run_oldest_first(here: Place) -> None:
    document = here.run("log", "wf").json
    assert [(each["seq"], each["key"], each["status"]) for each in document["receipts"]] == [
        (0, "", "started"),
        (1, "writer", "completed"),
        (2, "review_draft", "requested"),
    ]
    assert document["receipts"][1]["who"] == "desk"
    assert document["git"] == "git -C .hermes/workflows.git log --reverse runs/wf"
    assert [each["seq"] for each in here.run("log", "wf", "--limit", "1").json["receipts"]] == [2]


def test_log_ends_with_the_key_that_is_named(here: Place) -> None:
    document = here.run("log", "wf@writer").json
    assert [each["key"] for each in document["receipts"]] == ["", "writer"]
    # Plain git would show the whole run.
    assert document["git"] is None


def test_on_a_terminal_it_reads_as_a_table_and_names_the_git_command(here: Place) -> None:
    code, seen = Place(here.root, {"COLUMNS": "150"}).terminal("log", "wf")
    assert code == 0
    assert "writer (agent writer)" in seen
    assert seen.rstrip().endswith("git: git -C .hermes/workflows.git log --reverse runs/wf")


def test_the_graph_is_the_tree_of_scopes(here: Place) -> None:
    graph = here.run("log", "wf", "--graph").json["graph"]
    assert [(each["key"], each["kind"], each["status"]) for each in graph] == [
        ("writer", "agent", "completed"),
        ("review_draft", "review", "open"),
    ]
    assert "└─ review_draft: open (review)" in here.terminal("log", "wf", "--graph")[1]


def test_log_without_a_run_is_about_all_of_them(here: Place) -> None:
    runs = here.run("log").json["runs"]
    assert {run["workflow_id"]: run["status"] for run in runs} == {"quick": "completed", "wf": "waiting"}
    assert here.run("log", "--all").json["runs"] == runs
    assert here.run("log", "wf", "--all").code == 2


def test_show_tells_everything_of_one_call(here: Place) -> None:
    (receipt,) = here.run("show", "wf@writer").json["receipts"]
    assert (receipt["path"], receipt["output"]) == ("steps/writer.json", "Draft of docs")
    code, seen = here.terminal("show", "wf@review_draft")
    assert code == 0
    for part in (
        "review_draft: requested (review)",
        "Ship it?",
        "git: git -C .hermes/workflows.git show runs/wf:runs/",
    ):
        assert part in seen


def test_the_git_command_shows_the_same_receipt(here: Place) -> None:
    line = here.run("show", "wf@writer").json["git"].split()
    assert line[:3] == ["git", "-C", ".hermes/workflows.git"]
    assert '"output": "Draft of docs"' in here.git(*line[3:])


def test_show_tells_what_a_run_is(here: Place) -> None:
    document = here.run("show", "quick").json
    assert (document["status"], document["input"], document["result"]) == (
        "completed",
        {"risk": 1, "topic": "docs"},
        "docs",
    )
    assert document["readme"].startswith("# Run `quick`: completed")
    assert 'result    "docs"' in here.terminal("show", "quick")[1]


def test_a_run_at_a_commit_is_what_it_was(here: Place) -> None:
    commit = here.git("rev-parse", "runs/wf~1").strip()
    document = here.run("show", commit[:9]).json
    assert (document["workflow_id"], document["commit"], document["status"]) == ("wf", commit, "running")
    assert [each["key"] for each in document["calls"]] == ["writer"]
    # It has no README yet: plain git shows what there is.
    assert "steps/" in here.git(*document["git"].split()[3:])


@pytest.mark.parametrize(
    ("arguments", "code", "said", "hint"),
    [
        (["show", "qick"], 4, "no run 'qick'", "did you mean 'quick'?"),
        (["show", "wf@riter"], 4, "run wf has no key 'riter'", "did you mean 'writer'?"),
        (["log", "origin/wf"], 4, "no fetched run 'origin/wf'", "there are no fetched runs yet"),
        (["show", "0123456789"], 4, "no commit of a run", "log"),
    ],
)
def test_a_word_that_means_no_run_gets_the_nearest_one(
    here: Place, arguments: list[str], code: int, said: str, hint: str
) -> None:
    answer = here.run(*arguments)
    assert answer.code == code
    assert said in answer.error["message"]
    assert hint in answer.error["hint"]


def test_fetched_runs_are_looked_at_by_their_remote(fetched: Place) -> None:
    runs = {(run["remote"], run["workflow_id"]) for run in fetched.run("log").json["runs"]}
    assert runs == {(None, "own"), ("origin", "wf"), ("origin", "quick")}
    assert fetched.run("show", "origin/q").json["result"] == "docs"
    assert fetched.run("status", "origin/wf").json["status"] == "waiting"
    assert fetched.run("review", "show", "origin/wf", "review_draft").json["request"]["prompt"] == "Ship it?"
    assert [run["workflow_id"] for run in fetched.run("list").json] == ["own"]


def test_what_was_fetched_and_is_ours_is_listed_once(fetched: Place) -> None:
    own = fetched.git("rev-parse", "runs/own").strip()
    fetched.git("update-ref", "refs/remotes/hub/runs/own", own)
    try:
        assert [run["remote"] for run in fetched.run("log").json["runs"] if run["workflow_id"] == "own"] == [None]
    finally:
        fetched.git("update-ref", "-d", "refs/remotes/hub/runs/own")


def test_an_id_that_nobody_knows_is_answered_with_ours(fetched: Place) -> None:
    assert fetched.run("show", "zzz").error["hint"] == "known runs: own"


def test_verify_is_about_whole_runs(here: Place) -> None:
    said = here.run("verify", "wf@writer")
    assert (said.code, said.error["message"]) == (2, "a run is verified whole")
    assert here.run("verify", "wf", "--all").code == 2


def test_a_fetched_run_is_acted_on_by_nobody_here(fetched: Place) -> None:
    said = fetched.run("cancel", "origin/wf")
    assert said.code == 5
    assert "was fetched" in said.error["message"]
    assert fetched.run("review", "respond", "origin/wf", "review_draft", "--action", "approve").code == 5


def test_looking_writes_nothing_not_even_a_lost_index(tmp_path: Path) -> None:
    there = place(tmp_path / "ws")
    there.start()
    for file in there.sqlite.parent.glob("*.sqlite*"):
        file.unlink()
    before = _files(there.root)
    assert there.run("show", "w").json["workflow_id"] == "wf"
    assert there.run("log", "wf").code == there.run("log", "wf", "--graph").code == there.run("log").code == 0
    assert _files(there.root) == before


def _files(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("log wf", ["wf"]),
        ("show wf@", ["wf@writer", "wf@review_draft"]),
        ("show wf@rev", ["wf@review_draft"]),
        ("show origin/", ["origin/quick", "origin/wf"]),
        ("show origin/wf@w", ["origin/wf@writer"]),
        ("show nothing@", []),
        ("accept wf w", ["writer"]),
    ],
)
def test_the_shell_completes_runs_and_keys(here: Place, fetched: Place, words: str, offered: list[str]) -> None:
    where = fetched if "origin" in words else here
    typed = {"COMP_WORDS": f"hermes-workflows {words}", "COMP_CWORD": str(len(words.split()))}
    asking = Place(where.root, {**typed, "_HERMES_WORKFLOWS_COMPLETE": "bash_complete"})
    assert [line.partition(",")[2] for line in asking.run().stdout.split()] == offered


def test_the_shell_completes_remotes(tmp_path: Path) -> None:
    made = place(tmp_path / "ws")
    made.start()
    for name in ("origin", "backup"):
        made.git("remote", "add", name, "nowhere")
    typed = {"COMP_WORDS": "hermes-workflows push or", "COMP_CWORD": "2"}
    asking = Place(made.root, {**typed, "_HERMES_WORKFLOWS_COMPLETE": "bash_complete"})
    assert asking.run().stdout.split() == ["plain,origin"]


def test_bash_leaves_a_run_and_its_key_in_one_word(here: Place) -> None:
    assert here.run("completion", "bash").stdout.startswith("COMP_WORDBREAKS=${COMP_WORDBREAKS//@}\n")
    assert here.run("completion", "zsh").stdout.startswith("#compdef hermes-workflows\n")


def test_a_run_is_found_in_whichever_database_it_is(tmp_path: Path) -> None:
    registry = {"dbs": {"default": "workflows.sqlite", "other": "other.sqlite"}}
    there = place(tmp_path / "ws", registry)
    started = ["run", "flows/launch.py:quick", "--input-json", '{"topic": "docs"}', "--id"]
    there.run(*started, "wf_here")
    there.run(*started, "wf_other", "--db", "other")
    there.work("--db", "other")
    ended = [there.run("status", run_id).json["status"] for run_id in ("wf_here", "wf_other")]
    assert ended == ["running", "completed"]
    document = there.run("show", "wf_o").json
    assert (document["workflow_id"], "other.git" in document["git"]) == ("wf_other", True)
    assert there.run("log", document["commit"][:8]).json["workflow_id"] == "wf_other"
    assert {run["workflow_id"] for run in there.run("log").json["runs"]} == {"wf_here", "wf_other"}
