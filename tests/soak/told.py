"""What the receipts of one run say, read with git's own program and without a line of the store."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

Receipt = Mapping[str, Any]


@dataclass(frozen=True)
class Told:
    """One run as the commit `tip` has it; `files` are its JSON files by their paths in the run's folder."""

    run_id: str
    tip: str
    files: Mapping[str, Receipt]

    @property
    def started(self) -> Receipt:
        return self.files["run.json"]

    @property
    def end(self) -> Receipt | None:
        return self.files.get("result.json")

    @property
    def questions(self) -> list[Receipt]:
        """Those that nobody has answered, the oldest first."""
        return [] if self.end else self._without("reviews/*/request.json", "request.json", "response.json")

    @property
    def children(self) -> dict[str, str]:
        """Open child runs by the keys of their calls."""
        begun = self._begun("child")
        return {each["key"]: each["execution"]["child"] for each in begun}

    @property
    def signals(self) -> list[str]:
        """The names that are waited for; no workflow of the soak waits twice for one."""
        names = [each["request"]["name"] for each in self._begun("signal")]
        return [name for name in names if f"signals/{name}/1.json" not in self.files]

    @property
    def status(self) -> str:
        if self.end:
            return str(self.end["status"])
        return "waiting" if self.questions else "running"

    @property
    def error(self) -> str | None:
        failure = (self.end or {}).get("error")
        return f"{failure['type']}: {_text(failure['message'])}" if failure else None

    @property
    def failed_at(self) -> str | None:
        """The innermost line of the workspace's own code in the recorded traceback."""
        transcript = (self.end or {}).get("execution", {}).get("transcript") or {}
        lines = re.findall(r'File "[^"]*/(flows\.py)", line (\d+)', _text(transcript.get("traceback") or ""))
        return ":".join(lines[-1]) if lines else None

    @property
    def cancelled(self) -> str | None:
        requests = self._matching("control/*-cancel.json")
        if not requests:
            return None
        by = requests[0]["execution"].get("provenance")
        who = f", by {by['by']} ({by['kind']})" if by and by["kind"] != "policy" else ""
        return f"{requests[0]['request']['reason']}{who}"

    @property
    def paused(self) -> str | None:
        said = [each for each in self._matching("control/*.json") if each["status"] in ("pause", "resume", "cancel")]
        if not said or said[-1]["status"] != "pause":
            return None
        execution = said[-1]["execution"]
        return f"by {execution['provenance']['by']} since {execution['finished_at']}: {said[-1]['request']['reason']}"

    def _begun(self, kind: str) -> list[Receipt]:
        open_ = [] if self.end else self._without("steps/*.start.json", ".start.json", ".json")
        return [each for each in open_ if each["kind"] == kind]

    def _without(self, pattern: str, ending: str, answer: str) -> list[Receipt]:
        """The files of a pattern beside which there is no answer, in the order of their receipts."""
        return [
            receipt
            for path, receipt in self._sorted()
            if fnmatch(path, pattern) and path.removesuffix(ending) + answer not in self.files
        ]

    def _matching(self, pattern: str) -> list[Receipt]:
        return [receipt for path, receipt in self._sorted() if fnmatch(path, pattern)]

    def _sorted(self) -> Sequence[tuple[str, Receipt]]:
        return sorted(self.files.items(), key=lambda item: item[1]["execution"]["seq"])


class Reader:
    """Reads runs of one repository; receipts never change, so each is read once."""

    def __init__(self, receipts: Path) -> None:
        self._receipts = receipts
        self._known: dict[str, Receipt] = {}

    def tip(self, run_id: str) -> str:
        return self._git("for-each-ref", "--format=%(objectname)", f"refs/runs/{run_id}").decode().strip()

    def run(self, run_id: str) -> Told | None:
        tip = self.tip(run_id)
        if not tip:
            return None
        listed = self._git("ls-tree", "-r", "--format=%(objectname) %(path)", tip).decode().splitlines()
        lines = [line.split(" ", 1) for line in listed if f"/{run_id}/" in line and line.endswith(".json")]
        self._read([blob for blob, _ in lines if blob not in self._known])
        return Told(run_id, tip, {path.split(f"/{run_id}/", 1)[1]: self._known[blob] for blob, path in lines})

    def _read(self, blobs: Sequence[str]) -> None:
        output = self._git("cat-file", "--batch", given="".join(f"{blob}\n" for blob in blobs)) if blobs else b""
        for blob in blobs:
            head, output = output.split(b"\n", 1)
            size = int(head.split()[2])
            self._known[blob] = json.loads(output[:size])
            output = output[size + 1 :]

    def _git(self, *arguments: str, given: str | None = None) -> bytes:
        text = None if given is None else given.encode()
        done = subprocess.run(
            ["git", "-C", self._receipts, *arguments], input=text, capture_output=True, check=False, timeout=60
        )
        assert done.returncode == 0, f"git {arguments}: {done.stderr.decode()}"
        return done.stdout


def _text(stored: Any) -> str:
    return "\n".join(stored["$lines"]) if isinstance(stored, dict) else str(stored)
