"""Two runs of one workflow that did the same: their receipts differ in `execution`, and nowhere else (FORMAT §4)."""

from __future__ import annotations

import json
from pathlib import Path

from tests.acceptance.workspaces import ENDS, Site


def _both(folder: Path) -> Site:
    """Every flow twice, to its end, with the same answers."""
    made = Site(folder / "ws")
    for flow, (given, _, _) in ENDS.items():
        for name in ("a", "b"):
            made.start(flow, f"{flow}-{name}", given)
    while any(run["status"] not in ("completed", "failed", "cancelled") for run in made.statuses().values()):
        made.work("--concurrency", "2")
        for name, run in made.statuses().items():
            if run["status"] != "waiting":
                continue
            if name.startswith("stopped"):
                made.run("cancel", name, "--reason", "enough", "--by", f"somebody of {name}")
            else:
                key = run["waiting_on"]["key"]
                action = "approve" if key.endswith("-2") else "revise"
                made.respond(name, key, {"action": action, "feedback": "shorter"}, f"{name}-{key}")
        # A first attempt of the one that needs two leaves a file for the second run.
        (made.root / "shaky-sleeping").unlink(missing_ok=True)
    return made


def test_git_diff_of_two_equal_runs_shows_execution_only(tmp_path: Path) -> None:
    site = _both(tmp_path)
    runs = site.statuses()
    for flow, (_, status, result) in ENDS.items():
        assert [(runs[f"{flow}-{name}"]["status"], runs[f"{flow}-{name}"]["result"]) for name in "ab"] == [
            (status, result)
        ] * 2
        if flow != "sleeping":
            _assert_equal(site, flow)
    replayed = site.run("replay", "--all")
    assert (replayed.code, replayed.json["failed"]) == (0, 0), replayed.stdout
    site.assert_sound()


def _assert_equal(site: Site, flow: str) -> None:
    compared = site.run("diff", f"{flow}-a", f"{flow}-b")
    assert (compared.code, compared.json["differences"]) == (0, [])
    one, other = (f"runs/{flow}-{name}:{_folder(site, f'{flow}-{name}')}" for name in ("a", "b"))
    # The textconv of the repository drops the `execution` block.
    shown = site.git("diff", one, other, "--", ":!*README.md")
    changed = [line for line in shown.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert changed == []
    whole = site.git("diff", "--no-textconv", "--name-only", one, other, "--", ":!*README.md").split()
    assert whole
    for path in whole:
        receipts = [json.loads(site.git("show", f"{tree}/{path}")) for tree in (one, other)]
        assert {name for name in receipts[0] if receipts[0][name] != receipts[1][name]} == {"execution"}, path


def _folder(site: Site, run_id: str) -> str:
    listed = site.git("ls-tree", "-r", "--name-only", f"runs/{run_id}", "runs/")
    found = next(line for line in listed.splitlines() if line.endswith(f"/{run_id}/run.json"))
    return found.removesuffix("/run.json")
