"""A program that stands for an agent's: it says what a real one once said, and keeps how it was asked."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_workflows.core.redaction import Redactor
from hermes_workflows.core.values import codec_for
from hermes_workflows.runner.agents import AgentAttempt, AgentOutcome, AgentRequest, World, run_agent
from hermes_workflows.runner.stopping import StopSignal
from hermes_workflows.settings import AgentSettings

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "agents"
NOW = datetime(2026, 11, 29, 10, 0, tzinfo=UTC)
# Files that are named on the command line are kept, since they are gone when the program has ended.
SCRIPT = """
import json, os, re, sys
here = os.path.dirname(os.path.abspath(__file__))
given = sys.stdin.read()
words = [word.partition("=")[2] if word.startswith("--") else word for word in sys.argv[1:]]
words += re.findall(r"Your task is in the file (\\S+),", "".join([given[:999], *sys.argv]))
files = {os.path.basename(word): open(word).read() for word in words if len(word) < 4096 and os.path.isfile(word)}
asked = {"argv": sys.argv[1:], "stdin": given, "files": files, "env": dict(os.environ), "cwd": os.getcwd()}
with open(os.path.join(here, "asked"), "a") as kept: kept.write(json.dumps(asked) + "\\n")
says = json.load(open(os.path.join(here, "says")))
for option, text in says["writes"].items():
    open(sys.argv[sys.argv.index(option) + 1], "w").write(text)
sys.stdout.write(says["stdout"]); sys.stderr.write(says["stderr"])
sys.exit(says["status"])
"""


@dataclass(frozen=True)
class Answer:
    answer: int


def fixture(name: str) -> str:
    return (FIXTURES / name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Asked:
    """How the program was started, once."""

    argv: list[str]
    stdin: str
    files: dict[str, str]
    env: dict[str, str]
    cwd: str

    def after(self, option: str) -> str:
        """The word that follows an option."""
        return self.argv[self.argv.index(option) + 1]


@dataclass
class Program:
    """What it says is the same each time. `writes` are texts by the option whose value names their file."""

    folder: Path
    stdout: str = ""
    stderr: str = ""
    status: int = 0
    writes: dict[str, str] = field(default_factory=dict)
    refused: list[AgentAttempt] = field(default_factory=list)

    def ask(
        self,
        preset: str,
        *,
        returns: Any = Answer,
        prompt: str = "What is it?",
        request: dict[str, Any] | None = None,
        attempts: int = 1,
        budget: float | None = None,
        recorded: tuple[Any, ...] = (),
        **settings: Any,
    ) -> AgentOutcome:
        """One call through a preset; `request` are further fields of the request."""
        script = self.folder / "program.py"
        script.write_text(SCRIPT)
        says = {"stdout": self.stdout, "stderr": self.stderr, "status": self.status, "writes": self.writes}
        (self.folder / "says").write_text(json.dumps(says))
        codec = codec_for(returns)
        asked = AgentRequest(
            run="wf_1",
            key="review/docs",
            operation_id="wf_1/review/docs",
            name="reviewer",
            prompt=prompt,
            returns=codec.json_schema,
            **(request or {}),
        )
        command = (sys.executable, "-S", "-E", str(script))
        entry = AgentSettings(preset, **{"command": command, "timeout": 60.0, **settings})
        env = {"PATH": os.environ["PATH"]}
        world = World(self.folder, env, Redactor({"PW": "hunter2-hunter2"}), StopSignal(), lambda: NOW, recorded)
        return run_agent(asked, entry, codec, world, on_attempt=self.refused.append, attempts=attempts, budget=budget)

    @property
    def asked(self) -> list[Asked]:
        lines = (self.folder / "asked").read_text().splitlines()
        return [Asked(**json.loads(line)) for line in lines]

    @property
    def last(self) -> Asked:
        return self.asked[-1]
