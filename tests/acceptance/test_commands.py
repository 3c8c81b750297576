"""The command line: data, talk, errors and exit codes, as scripts and people meet them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.acceptance.command_line import PROGRAM, REGISTRY, Place, place


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place(tmp_path / "ws")


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A workspace whose run `wf` waits for an answer; its tests only look."""
    made = place(tmp_path_factory.mktemp("reviewed") / "ws")
    made.start()
    made.work()
    return made


def test_run_prints_what_callers_have_always_read(here: Place) -> None:
    said = here.start("wf_launch")
    assert said.code == 0
    assert said.stdout == (
        '{"error":null,"result":null,"status":"running","waiting_on":null,"workflow_id":"wf_launch"}\n'
    )
    assert here.start("wf_launch").stdout == said.stdout


def test_a_whole_run_from_start_to_answer(here: Place) -> None:
    here.start()
    assert here.work("--worker-id", "quickstart-worker", "--max-commands", "5").code == 0
    waiting = here.run("status", "--db", ".hermes/workflows.sqlite", "--id", "wf").json
    assert (waiting["status"], waiting["state"], waiting["waiting_on"]["key"]) == ("waiting", "waiting", "review_draft")
    answer = '{"action":"approve","feedback":"Ship it."}'
    answered = here.run("review", "respond", "wf", "review_draft", "--json", answer, "--by", "you", "--message-id", "m")
    assert answered.json["provenance"]["kind"] == "manual"
    assert here.run("status", "wf").json["state"] == "queued"
    here.work()
    done = here.run("status", "wf").json
    assert (done["status"], done["result"]) == ("completed", "Draft of docs: approve")
    assert "wf: completed" in here.git("log", "--oneline", "runs/wf")
    assert "answered manually" in here.git("grep", "-h", "Review", "runs/wf", "--", "*README.md")


@pytest.mark.parametrize(
    ("arguments", "code", "said", "hint"),
    [
        (["run", "lunch"], 4, "no workflow 'lunch'", "did you mean 'launch'?"),
        (["run", "flows/lunch.py:launch"], 4, "no file flows/lunch.py", "file refs start from the workspace"),
        (["run", "flows/launch.py:lunch"], 2, "no workflow 'lunch'", "did you mean 'launch'?"),
        (["run", "nothing.here:launch"], 2, "no module 'nothing.here'", "install it"),
        (["run", "launch", "--input-json", "{"], 2, "--input-json: not JSON", "@FILE"),
        (["run", "launch", "--input-json", '{"topic": NaN}'], 2, "NaN", "@FILE"),
        (["run", "launch", "--input-json", '{"topic": 1, "topic": 2}'], 2, "topic", "@FILE"),
        (["run", "launch", "--input-json", '{"topic": 1}'], 2, "topic", ""),
        (["run", "launch", "--input-json", "@missing.json"], 2, "@missing.json", "a file that can be read"),
        (["run", "launch"], 2, "needs an input", "--input-json"),
        (["run", "launch", "--input-json", '{"topic":"x"}', "--id", "../x"], 2, "../x", ""),
        (["run", "launch", "--db", "defualt"], 4, "no database 'defualt'", "did you mean 'default'?"),
        (["run", "launch", "--config", "no.json"], 4, "no registry at", "init"),
        (["stauts"], 2, "no command 'stauts', did you mean 'status'?", "--help"),
        (["status", "wf", "--dbb", "x"], 2, "No such option", "--help"),
        (["status"], 2, "which run?", "status --help"),
        (["status", "wf"], 4, "no receipts at", "is --db the right one?"),
        (["worker", "--max-commands", "0"], 2, "max-commands", "--help"),
        (["runner", "run", "--idle-exit-after", "nan"], 2, "nan is no number", "--help"),
        (["runner", "run", "--lease-seconds", "inf"], 2, "lease-seconds", "--help"),
        (["runner", "run", "--concurrency", "9" * 30], 2, "concurrency", "--help"),
        (["runner", "run", "--worker-id", "../../x"], 2, "without a slash", "--help"),
        (["runner", "run", "--agent-command", ""], 2, "--agent-command: it is empty", ""),
        (["runner", "run", "--worker-id", "a\nb"], 2, "one line", "--help"),
        (["runner", "drain", "--wait", "--timeout", "nan"], 2, "nan is no number", "--help"),
        (["watch", "--interval", "inf"], 2, "interval", "--help"),
        (["list", "--offset", "9" * 30], 2, "offset", "--help"),
        (["list", "--by-workflow", "--state", "queued"], 2, "--status, not --state", "--help"),
        (["log", "--graph"], 2, "the graph of which run?", "--help"),
    ],
)
def test_a_mistake_gets_one_line_a_hint_and_its_exit_code(
    here: Place, arguments: list[str], code: int, said: str, hint: str
) -> None:
    answered = here.run(*arguments)
    assert (answered.code, answered.stdout) == (code, "")
    assert said in answered.error["message"]
    assert hint in (answered.error["hint"] or "")
    assert "\n" not in answered.error["message"]
    assert not here.receipts.exists()


def test_an_input_that_is_no_text_is_told_with_its_file(here: Place) -> None:
    (here.root / "latin.json").write_bytes('{"topic": "Größe"}'.encode("latin-1"))
    said = here.run("run", "launch", "--input-json", "@latin.json")
    assert (said.code, said.error["message"]) == (2, "latin.json: the JSON is not UTF-8 (byte 13)")


@pytest.mark.parametrize(
    "arguments",
    [("status", "wf\udcff"), ("status", "wf\udcff", "--json"), ("cancel", "\udcff")],
)
def test_an_argument_that_is_no_text_is_named_and_nothing_is_looked_up_by_it(
    reviewed: Place, arguments: tuple[str, ...]
) -> None:
    """Names of files may be any bytes, and so may what is typed; ids and words are text."""
    said = reviewed.begun(*arguments)
    assert (said.code, said.stdout) == (2, "")
    assert "\\udcff' is no text in UTF-8" in said.error["message"]


def test_discovery_passes_over_what_is_no_code_of_the_workspace(here: Place) -> None:
    source = (here.root / "flows" / "launch.py").read_bytes()
    for name in ("env/lib.py", ".hidden/x.py", "flows/notes.txt"):
        (here.root / name).parent.mkdir(exist_ok=True)
        (here.root / name).write_bytes(source)
    (here.root / "env" / "pyvenv.cfg").touch()
    (here.root / "flows" / "begun.py").write_text("from hermes_workflows import workflow\n\n@workflow\nasync def half(")
    found = [row["workflow_ref"] for row in here.run("registry", "discover").json]
    assert {ref.partition(":")[0] for ref in found} == {"flows/launch.py"}


def test_a_traceback_is_shown_only_when_asked_for(here: Place) -> None:
    assert "Traceback" not in here.run("run", "lunch").stderr
    assert "Traceback" in here.run("run", "lunch", "--debug").stderr


def test_another_input_for_an_id_is_a_conflict(here: Place) -> None:
    here.start("wf", topic="docs")
    said = here.start("wf", topic="other")
    assert (said.code, said.error["code"]) == (5, "conflict")
    assert "/topic" in said.error["message"]


@pytest.mark.parametrize("folder", [".", "flows", ".hermes"])
def test_the_registry_is_found_from_any_folder_of_the_workspace(reviewed: Place, folder: str) -> None:
    assert reviewed.run("status", "wf", cwd=folder).json["status"] == "waiting"


def test_a_run_is_found_in_whichever_database_it_is_in(tmp_path: Path) -> None:
    dbs = {"default": "workflows.sqlite", "other": "other.sqlite"}
    workflows = {"launch": {"workflow_ref": "flows/launch.py:launch", "db": "other"}}
    made = place(tmp_path / "ws", {"dbs": dbs, "workflows": workflows})
    made.start("there")
    made.start("here", "flows/launch.py:launch")
    made.work()
    assert [run["workflow_id"] for run in made.run("list").json] == ["here", "there"]
    assert {row["workflow_id"] for row in made.run("review", "list").json} == {"here", "there"}
    assert made.run("status", "there").json["status"] == "waiting"
    assert made.run("status", "the").json["workflow_id"] == "there"
    assert made.run("status", "there", "--db", "default").code == 4
    assert made.run("review", "respond", "there", "review_draft", "--action", "approve").code == 0


def test_input_comes_from_a_file_or_from_stdin(here: Place) -> None:
    (here.root / "in.json").write_text('{"topic": "from a file"}')
    here.run("run", "launch", "--id", "one", "--input-json", "@in.json")
    here.run("run", "launch", "--id", "two", "--input-json", "-", typed='{"topic": "from stdin"}')
    inputs = here.git("grep", "-h", '"topic"', "runs/one", "runs/two", "--", "*run.json")
    assert "from a file" in inputs
    assert "from stdin" in inputs


@pytest.mark.parametrize(("ref", "topic", "code"), [("quick", "fine", 0), ("quick", "bad", 1), ("launch", "x", 3)])
def test_drain_executes_here_and_its_exit_code_says_how_it_ended(here: Place, ref: str, topic: str, code: int) -> None:
    given = json.dumps({"topic": topic})
    said = here.run("run", f"flows/launch.py:{ref}", "--input-json", given, "--drain")
    assert said.code == code
    assert said.json["status"] == {0: "completed", 1: "failed", 3: "waiting"}[code]


def test_a_file_that_is_a_program_records_its_run_and_drains_it(here: Place) -> None:
    python = [sys.executable, "launch.py"]
    given = ["--id", "wf", "--input-json", '{"topic": "x"}']
    assert here.run(*given, cwd="flows", program=python).json["status"] == "running"
    assert here.run(*given, "--drain", cwd="flows", program=python).code == 3
    assert here.run("status", "wf").json["workflow"] == "flows/launch.py:launch"


def test_deciding_has_a_fixed_hash_seed_and_commands_keep_their_own(here: Place) -> None:
    here.begun("run", "flows/launch.py:seeded", "--id", "wf")
    here.begun("runner", "run", "--idle-exit-after", "0.1")
    assert here.run("status", "wf").json["result"] == {"body": "0", "command": "unset"}


@pytest.mark.untraced
def test_status_reads_neither_pydantic_nor_dulwich_nor_click(reviewed: Place) -> None:
    listed = [sys.executable, "-X", "importtime", "-m", "hermes_workflows"]
    said = reviewed.run("status", "wf", program=listed)
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in said.stderr.splitlines()}
    assert "sqlite3" in imported
    assert imported.isdisjoint({"pydantic", "dulwich", "click", "rich", "dataclasses", "asyncio"})


@pytest.mark.parametrize("name", ["w", "wf"])
def test_status_is_the_same_whichever_way_it_was_found(reviewed: Place, name: str) -> None:
    quick = reviewed.run("status", "wf").json
    assert reviewed.run("status", name, "--debug").json == quick
    assert reviewed.run("list").json == [quick]


def test_everything_survives_the_loss_of_the_index(here: Place) -> None:
    here.start("wf")
    here.start("other", topic="more")
    here.work()
    before = here.run("list").json
    for damage in (here.sqlite.unlink, lambda: here.sqlite.write_bytes(b"garbage" * 1000)):
        damage()
        # A run that comes back is queued once, to be looked at: the only thing that receipts do not say.
        assert here.run("status", "wf").json | {"pending_commands": []} == before[1]
        assert [run | {"pending_commands": []} for run in here.run("list").json] == before
        assert [row["workflow_id"] for row in here.run("review", "list").json] == ["wf", "other"]


def test_a_repository_that_is_gone_is_not_replaced_by_an_empty_one(here: Place) -> None:
    here.start()
    here.receipts.rename(here.root / "elsewhere.git")
    said = here.start("new")
    assert said.code == 6
    assert "is gone" in said.error["message"]
    assert not here.receipts.exists()


def test_a_foreign_repository_is_refused(here: Place) -> None:
    subprocess.run(["git", "init", "-q", "--bare", here.receipts], check=True)
    said = here.start()
    assert said.code == 6
    assert str(here.receipts) in said.error["message"]


def test_cancel_is_requested_once_and_delivered_by_a_runner(here: Place) -> None:
    here.start()
    here.work()
    assert here.run("cancel", "wf", "--reason", "no longer needed").json["cancel"] == "requested"
    here.work()
    assert here.run("status", "wf").json["status"] == "cancelled"
    assert here.run("cancel", "wf").json["cancel"] == "cancelled"
    assert here.run("review", "list").json == []


def test_a_workspace_is_made_once(tmp_path: Path) -> None:
    bare = Place(tmp_path)
    assert bare.run("init").code == 0
    assert bare.run("init").code == 5
    assert bare.run("list").json == []
    assert "*.git/" in (tmp_path / ".hermes" / ".gitignore").read_text()
    assert bare.run("doctor").json["ok"] is True


def test_workflows_are_listed_discovered_and_examined(here: Place) -> None:
    assert here.run("registry", "list").json["workflows"]["launch"]["workflow_ref"] == "flows/launch.py:launch"
    found = {row["workflow_ref"]: row["registered"] for row in here.run("registry", "discover").json}
    assert found["flows/launch.py:launch"] is True
    assert found["flows/launch.py:quick"] is False
    assert here.run("registry", "doctor").code == 0
    (here.root / "flows" / "launch.py").write_text("import nothing_like_this\n")
    examined = here.run("registry", "doctor")
    assert examined.code == 6
    assert "flows/launch.py:1: ModuleNotFoundError" in examined.json["findings"][0]["what"]


def test_one_workflow_is_shown_with_what_it_takes_and_its_sources(here: Place) -> None:
    shown = here.run("registry", "show", "launch").json
    assert (shown["workflow_ref"], shown["name"]) == ("flows/launch.py:launch", "launch")
    assert "topic" in shown["input"]["properties"]
    assert "@workflow" in shown["sources"]["flows/launch.py"]
    assert here.run("registry", "show", "lunch").error["hint"].startswith("did you mean")


def test_an_unknown_key_of_the_registry_is_told_beside_the_data(tmp_path: Path) -> None:
    made = place(tmp_path / "ws", REGISTRY | {"notifications": {}})
    said = made.start()
    assert said.code == 0
    assert "warning: " in said.stderr
    assert "notifications is not a known key" in said.stderr
    assert said.json["status"] == "running"


def test_verify_and_doctor_find_nothing_wrong_with_a_fresh_run(reviewed: Place) -> None:
    found = reviewed.run("verify").json
    assert (found["problems"], found["runs"]) == ([], 1)
    assert found["git"].endswith("fsck --full")
    assert reviewed.run("verify", "wf").code == 0
    assert reviewed.run("doctor").json["ok"] is True
    assert reviewed.run("index", "rebuild").json["unreadable"] == {}


def test_a_run_that_cannot_be_read_is_named_and_hides_no_other(here: Place) -> None:
    broken = {"empty": b"", "garbage": b"\xff not a commit", "astray": b"", ".DS_Store": b"Bud1"}
    here.start("sound")
    broken["astray"] = here.git("rev-parse", "main").encode()
    for name, content in broken.items():
        (here.receipts / "refs" / "runs" / name).write_bytes(content)
    checked = here.run("verify")
    assert checked.code == 6
    assert checked.json["runs"] == 5
    assert {problem["workflow_id"] for problem in checked.json["problems"]} == set(broken)
    assert all(problem["hint"] for problem in checked.json["problems"])
    for options in ((), ("--by-workflow",)):
        listed = here.run("list", *options)
        assert listed.code == 0
        assert len(listed.json) == 1
        assert all(f"run {name} cannot be read" in listed.stderr for name in broken)


def test_the_doctor_finds_what_a_power_cut_left_and_its_advice_repairs_it(here: Place) -> None:
    here.start("wf")
    here.start("other", topic="more")
    commit = here.git("rev-parse", "runs/wf").strip()
    (here.receipts / "refs" / "runs" / "wf").write_bytes(b"")
    (here.receipts / "objects" / "00").mkdir(exist_ok=True)
    (empty := here.receipts / "objects" / "00" / ("0" * 38)).write_bytes(b"")
    examined = here.run("doctor")
    assert examined.code == 6
    problems = {finding["what"]: finding["hint"] for finding in examined.json["findings"] if finding["hint"]}
    assert any("refs/runs/wf holds no commit id" in what for what in problems)
    assert any(str(empty) in what for what in problems)
    assert here.run("status", "other").code == 0
    empty.unlink()
    (here.receipts / "refs" / "runs" / "wf").unlink()
    assert f"unreachable commit {commit}" in here.git("fsck", "--unreachable")
    here.git("update-ref", "refs/runs/wf", commit)
    assert here.run("status", "wf").json["status"] == "running"
    assert here.run("doctor").code == 0


@pytest.mark.parametrize("command", [["list"], ["status", "wf"]])
def test_a_reader_who_has_seen_enough_is_no_error(reviewed: Place, command: list[str]) -> None:
    child = subprocess.Popen(
        [*PROGRAM, *command], cwd=reviewed.root, env=reviewed.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.close()
    _, stderr = child.communicate(timeout=60)
    assert (child.returncode, stderr) == (0, b"")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("status w", "wf"),
        ("run la", "launch"),
        ("review respond wf ", "review_draft"),
        ("review sh", "show"),
    ],
)
def test_the_shell_completes_runs_aliases_and_keys(reviewed: Place, words: str, offered: str) -> None:
    line = f"hermes-workflows {words}"
    reviewed.environment = {
        "_HERMES_WORKFLOWS_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }
    try:
        said = reviewed.run(
            program=[sys.executable, "-c", "import sys; from hermes_workflows.cli.main import main; main()"]
        )
    finally:
        reviewed.environment = {}
    assert f"plain,{offered}" in said.stdout.splitlines()
