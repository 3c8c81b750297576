"""Runs the presets against the real programs, without an account and without a network but for the package indexes.

    python scripts/test_agents.py [--keep FOLDER] [NAME ...]        names: claude codex gemini opencode hermes llm

One program at a time: it is installed into a temporary folder (from npm or PyPI), pointed at a fake model on loopback,
asked through a workflow and its receipts, and removed. `--keep` installs into FOLDER and leaves it there, for the next
time. Each program answers a typed question, a prompt of 200 KB and one of 5 MB, a question with limited tools, and
fails when its model refuses.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.agents.fake_llm import INPUT_TOKENS, OUTPUT_TOKENS, REFUSAL, FakeModel  # noqa: E402

INSTALL_SECONDS = 900
CALL_SECONDS = 300
ANSWER = {"answer": 42, "risk": "low", "seen": "2026-11-29T10:00:00Z", "price": "1.10"}
FLOW = """
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from hermes_workflows import agent, workflow


@dataclass
class Answer:
    answer: int
    risk: Literal["low", "high"] = "high"
    seen: datetime | None = None
    price: Decimal | None = None


@dataclass
class Question:
    size: int = 0
    tools: list[str] | None = None


@workflow
async def question(given: Question) -> Answer:
    prompt = "What is it? " + "All of this matters. " * (given.size // 21)
    return await agent("tester", prompt, returns=Answer, tools=given.tools)
"""


@dataclass(frozen=True)
class Program:
    """How a program is installed, told of the fake model, and configured as an agent.

    `settings` are files in its home, `tools` a limit to give and the tools that the model must then be offered.
    """

    name: str
    package: str
    model: str
    settings: Callable[[str], Mapping[str, str]] = lambda url: {}
    variables: Callable[[str], Mapping[str, str]] = lambda url: {}
    tools: tuple[Sequence[str], Sequence[str]] | None = None
    entry: Mapping[str, Any] = field(default_factory=dict)

    @property
    def from_npm(self) -> bool:
        return self.name in ("claude", "codex", "gemini", "opencode")


def _codex(url: str) -> dict[str, str]:
    provider = f'name = "fake"\nbase_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "FAKE_KEY"\n'
    retries = "request_max_retries = 0\nstream_max_retries = 0\n"
    return {".codex/config.toml": f'model_provider = "fake"\n[model_providers.fake]\n{provider}{retries}'}


def _gemini(url: str) -> dict[str, str]:
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": False}}
    return {".gemini/settings.json": json.dumps(settings | {"privacy": {"usageStatisticsEnabled": False}})}


def _opencode(url: str) -> dict[str, str]:
    models = {"fake-model": {"name": "fake", "limit": {"context": 10_000_000, "output": 8000}}}
    options = {"baseURL": f"{url}/v1", "apiKey": "fake"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": options, "models": models}
    settings = {"autoupdate": False, "small_model": "fake/fake-model", "provider": {"fake": provider}}
    return {".config/opencode/opencode.json": json.dumps(settings)}


def _hermes(url: str) -> dict[str, str]:
    keys = {"default": "fake-model", "provider": "custom", "base_url": f"{url}/v1", "api_key": "fake"}
    lines = [f"  {name}: {json.dumps(value)}\n" for name, value in keys.items()]
    return {".hermes/config.yaml": f"model:\n{''.join(lines)}  context_length: 4000000\n"}


def _llm(url: str) -> dict[str, str]:
    fields = {"model_id": "fake-model", "model_name": "fake-model", "api_base": f"{url}/v1", "supports_schema": True}
    return {".llm/extra-openai-models.yaml": json.dumps([fields | {"supports_tools": True}])}


PROGRAMS = (
    Program(
        "claude",
        "@anthropic-ai/claude-code",
        "claude-sonnet-4-5",
        variables=lambda url: {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "fake",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        tools=(["Read", "Bash(git *)"], ["Bash", "Read", "StructuredOutput"]),
    ),
    Program("codex", "@openai/codex", "fake-model", _codex, lambda url: {"FAKE_KEY": "fake"}),
    Program(
        "gemini",
        "@google/gemini-cli",
        "gemini-2.5-flash",
        _gemini,
        lambda url: {"GEMINI_API_KEY": "fake", "GOOGLE_GEMINI_BASE_URL": url},
        (["read_file"], ["read_file"]),
    ),
    Program("opencode", "opencode-ai", "fake/fake-model", _opencode, tools=(["read"], ["read"])),
    Program(
        "hermes",
        "hermes-agent==0.19.*",
        "fake-model",
        _hermes,
        tools=(["file"], ["patch", "read_file", "search_files", "write_file"]),
    ),
    Program(
        "llm",
        "llm",
        "fake-model",
        _llm,
        lambda url: {"OPENAI_API_KEY": "fake"},
        (["llm_version"], ["llm_version"]),
        {"structured": True},
    ),
)


class Trial:
    """One program, installed in `folder`, and a workspace that asks it."""

    def __init__(self, program: Program, installed: Path, folder: Path) -> None:
        self.program = program
        self.folder = folder
        self.workspace = folder / "workspace"
        self.bin = installed / ("node_modules/.bin" if program.from_npm else "bin")
        self.failures: list[str] = []
        self.passed = 0
        (self.workspace / ".hermes").mkdir(parents=True)
        (self.workspace / "flow.py").write_text(FLOW)
        entry = {"preset": program.name, "model": program.model, "timeout": CALL_SECONDS, **program.entry}
        registry = self.workspace / ".hermes" / "workflows.registry.json"
        registry.write_text(json.dumps({"dbs": {"default": "workflows.sqlite"}, "agents": {"tester": entry}}))

    def all(self) -> None:
        self._case("a typed answer", FakeModel(ANSWER), {}, self._answered)
        for size in (200_000, 5_000_000):
            self._case(f"a prompt of {size:,} bytes", FakeModel(ANSWER), {"size": size}, self._whole_prompt)
        limit = self.program.tools
        given = {"tools": list(limit[0]) if limit else ["anything"]}
        self._case("limited tools", FakeModel(ANSWER), given, self._limited if limit else self._not_limited)
        self._case("a refusal of the model", FakeModel(ANSWER, status=400), {}, self._refused)

    def _case(self, name: str, model: FakeModel, given: Any, check: Callable[[FakeModel, Any, Any], None]) -> None:
        with model.serving():
            status = self._ask(model.url, given)
            try:
                check(model, given, status)
                self.passed += 1
                print(f"  ok    {name}", flush=True)
            except AssertionError as error:
                self.failures.append(name)
                print(f"  FAIL  {name}: {error}\n{json.dumps(status, indent=2)}", flush=True)

    def _ask(self, url: str, given: Any) -> Any:
        home = self.folder / "home"
        for name, text in self.program.settings(url).items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text)
        environment = {
            "PATH": os.pathsep.join([str(self.bin), os.environ["PATH"]]),
            "HOME": str(home),
            "LLM_USER_PATH": str(home / ".llm"),
            **self.program.variables(url),
        }
        command = [sys.executable, "-m", "hermes_workflows", "run", "flow.py:question", "--drain"]
        done = subprocess.run(
            [*command, "--input-json", json.dumps(given)],
            cwd=self.workspace,
            env={**environment, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            timeout=2 * CALL_SECONDS,
            check=False,
        )
        return json.loads(done.stdout) if done.stdout.strip() else {"said": done.stderr}

    # -- what must be so -----------------------------------------------------------------------------------------

    def _answered(self, model: FakeModel, given: Any, status: Any) -> None:
        assert status.get("result") == ANSWER, "the answer did not come back as it was said"
        run = json.loads(self._look("status", status["workflow_id"]))
        usage = run["usage"]
        assert usage["input_tokens"] >= INPUT_TOKENS, usage
        assert usage["output_tokens"] >= OUTPUT_TOKENS, usage

    def _whole_prompt(self, model: FakeModel, given: Any, status: Any) -> None:
        self._answered(model, given, status)
        longest = max(len(request.text) for request in model.requests)
        by_file = any("Your task is in the file" in request.text for request in model.requests)
        assert longest >= given["size"] * 0.99 or by_file, f"the model heard {longest:,} characters"
        print(f"        {'through a file' if by_file else 'as a prompt'}")

    def _limited(self, model: FakeModel, given: Any, status: Any) -> None:
        self._answered(model, given, status)
        assert self.program.tools is not None
        offered = {tool for request in model.requests for tool in request.tools}
        assert offered == set(self.program.tools[1]), f"the model was offered {sorted(offered)}"

    def _not_limited(self, model: FakeModel, given: Any, status: Any) -> None:
        assert "cannot limit an agent" in json.dumps(status), "it must not run without the limit"
        assert model.requests == []

    def _refused(self, model: FakeModel, given: Any, status: Any) -> None:
        assert status.get("status") == "failed", "a failure is no answer"
        assert REFUSAL in json.dumps(status["error"]), "the message of the provider must be told"

    def _look(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "hermes_workflows", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        done = subprocess.run(command, cwd=self.workspace, env=environment, capture_output=True, text=True, check=True)
        return done.stdout


def install(program: Program, folder: Path) -> None:
    if (folder / "installed").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    if program.from_npm:
        command = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", program.package]
    else:
        venv.create(folder, with_pip=True)
        command = [str(folder / "bin" / "pip"), "install", "--quiet", program.package]
    subprocess.run(command, check=True, timeout=INSTALL_SECONDS, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (folder / "installed").touch()


def version_of(program: Program, trial: Trial) -> str:
    command = [str(trial.bin / program.name), "--version"]
    environment = {**os.environ, "HOME": str(trial.folder)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=CALL_SECONDS, check=False)
    return (done.stdout or done.stderr).strip().splitlines()[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *(each.name for each in PROGRAMS)])
    options = parser.parse_args()
    passed = failed = 0
    for program in PROGRAMS:
        if options.names and program.name not in options.names:
            continue
        with tempfile.TemporaryDirectory(prefix="test-agents-", ignore_cleanup_errors=True) as place:
            installed = (options.keep.resolve() if options.keep else Path(place)) / program.name
            install(program, installed)
            trial = Trial(program, installed, Path(place) / "trial")
            print(f"{program.name}: {version_of(program, trial)}", flush=True)
            trial.all()
            passed, failed = passed + trial.passed, failed + len(trial.failures)
            shutil.rmtree(trial.folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
