"""`maintenance run` beside four runners that write as fast as they can: nothing fails, nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acceptance.workspaces import Site

RUNNERS = 4
STEPS = 60


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "ws")


def test_it_works_beside_four_writing_runners(site: Site) -> None:
    runs = [f"wf-{number}" for number in range(2 * RUNNERS)]
    for name in runs:
        site.start("steps", name, {"n": STEPS})
    runners = [site.runner("--worker-id", f"worker-{number}", idle=0.5) for number in range(RUNNERS)]
    maintained = 0
    while any(runner.lives() for runner in runners):
        done = site.run("maintenance", "run", *(["--full"] if maintained % 2 else []))
        assert done.code == 0, done.stderr
        maintained += 1
    assert [runner.wait() for runner in runners] == [0] * RUNNERS, [runner.stderr for runner in runners]
    assert maintained > 1
    assert {run["status"] for run in site.statuses().values()} == {"completed"}
    for name in runs:
        assert len([path for path in site.paths(name) if path.startswith("steps/")]) == STEPS
    site.assert_sound()


def test_two_at_once_are_one_and_a_word(site: Site) -> None:
    site.start("steps", given={"n": 3})
    site.work()
    both = [site.command("maintenance", "run") for _ in range(2)]
    codes = sorted(child.wait() for child in both)
    assert codes in ([0, 0], [0, 75])
    done = site.run("maintenance", "run").json
    assert done["after"]["loose"] == 0
    assert "pack-refs --all" in done["git"]


def test_a_moved_ref_is_named_by_verify_and_put_back_by_the_next_command(site: Site) -> None:
    site.start("steps", given={"n": 3})
    site.work()
    tip = site.tips()["refs/runs/steps"]
    site.git("update-ref", "refs/runs/steps", f"{tip}~1")
    found = site.run("verify", "steps")
    assert found.code == 6
    assert found.json["first_bad_commit"] == site.git("rev-parse", f"{tip}~1").strip()
    assert "does not lead back" in found.json["problems"][0]["message"]
    assert site.status("steps")["status"] == "completed"
    site.run("list")
    assert site.tips()["refs/runs/steps"] == tip
    (told,) = site.run("verify").json["problems"]
    site.git("update-ref", "-d", told["path"])
    assert site.run("verify").code == 0


def test_a_damaged_ledger_is_one_problem_among_others_and_the_doctors_advice_repairs_it(site: Site) -> None:
    site.start("steps", given={"n": 3})
    site.work()
    ledger, sealed = site.receipts / "refs/heads/ledger", site.tips()["refs/heads/ledger"]
    ledger.write_text("garbage")
    examined = site.run("doctor")
    assert examined.code == 6
    assert any("refs/heads/ledger holds no commit id" in finding["what"] for finding in examined.json["findings"])
    assert any("no runner is up" in finding["what"] for finding in examined.json["findings"])
    checked = site.run("verify")
    assert [(one["workflow_id"], one["path"]) for one in checked.json["problems"]] == [("", "refs/heads/ledger")]
    ledger.unlink()
    assert f"dangling commit {sealed}" in site.git("fsck")
    site.git("update-ref", "refs/heads/ledger", sealed)
    assert site.run("doctor").code == 0
    assert site.run("verify").code == 0
