"""A forge for the command line: a bare repository, and a `gh` that answers from a file of recorded JSON.

What is asked is kept in `asked.jsonl`, one line a call; what is told (POST, PATCH) changes what is answered after.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_GH = """#!{python} -SE
import json, sys
from pathlib import Path

here = Path(__file__).parent
arguments = sys.argv[1:]
assert arguments[0] == "api", arguments
method = arguments[arguments.index("--method") + 1]
given = json.load(sys.stdin) if "--input" in arguments else None
path, _, query = arguments[-1].partition("?")
with open(here / "asked.jsonl", "a") as asked:
    asked.write(json.dumps({{"method": method, "path": path, "query": query, "given": given}}) + "\\n")
state = json.loads((here / "forge.json").read_text())
answers = state["answers"]
repository = "repos/acme/runs/"
name = path.removeprefix(repository)
if method == "POST" and name == "pulls":
    number = 7
    pull = {{"number": number, "html_url": f"https://forge.test/acme/runs/pull/{{number}}",
        "user": {{"login": "robot"}},
        "title": given["title"], "body": given["body"], "state": "open",
        "head": {{"ref": given["head"], "repo": {{"full_name": "acme/runs"}}}},
        "base": {{"ref": given["base"], "repo": {{"full_name": "acme/runs"}}}}}}
    answers["pulls"] = [pull]
    answers[f"pulls/{{number}}"] = answer = pull
elif method == "PATCH":
    answers[name].update(given)
    answers["pulls"] = [answers[name]]
    answer = answers[name]
elif method == "POST":
    answers.setdefault(name, []).append(given)
    answer = given
else:
    if "page=2" in query:
        answer = []
    elif name in answers:
        answer = answers[name]
    elif name == "pulls" or name.endswith(("/reviews", "/comments")):
        answer = []
    else:
        print(json.dumps({{"message": "Not Found"}}))
        print("gh: Not Found (HTTP 404)", file=sys.stderr)
        raise SystemExit(1)
(here / "forge.json").write_text(json.dumps(state))
print(json.dumps(answer))
"""

_ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}


@dataclass
class Forge:
    """`folder` has `gh` in it, to be put on the PATH; `hub` is the repository that stands for the remote."""

    folder: Path
    hub: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}"}

    def answer(self, name: str, document: Any) -> None:
        """What `gh api repos/acme/runs/NAME` answers from now on."""
        state = json.loads((self.folder / "forge.json").read_text())
        state["answers"][name] = document
        (self.folder / "forge.json").write_text(json.dumps(state))

    def answered(self, name: str) -> Any:
        return json.loads((self.folder / "forge.json").read_text())["answers"].get(name)

    def review(self, login: str, state: str, commit: str, text: str = "", number: int = 31) -> None:
        """Somebody reviews pull request 7; the reviews before stay."""
        review = {
            "id": number,
            "user": {"login": login, "type": "User"},
            "state": state,
            "body": text,
            "commit_id": commit,
            "html_url": f"https://forge.test/acme/runs/pull/7#pullrequestreview-{number}",
        }
        self.answer("pulls/7/reviews", [*(self.answered("pulls/7/reviews") or []), review])

    def permit(self, login: str, permission: str) -> None:
        self.answer(f"collaborators/{login}/permission", {"permission": permission, "user": {"login": login}})

    @property
    def asked(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "asked.jsonl").read_text().splitlines()]

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", self.hub, *arguments], env=_ENVIRONMENT, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()


def forge(root: Path) -> Forge:
    folder = root / "forge"
    folder.mkdir()
    (folder / "forge.json").write_text('{"answers": {}}')
    (folder / "asked.jsonl").touch()
    (folder / "gh").write_text(_GH.format(python=sys.executable))
    (folder / "gh").chmod(0o755)
    hub = root / "hub.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", hub], env=_ENVIRONMENT, check=True)
    return Forge(folder, hub)
