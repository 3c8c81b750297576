"""How healthy is this checkout? Checks in parallel, a summary by an agent, a plan that a person accepts or sends back.

hermes-workflows run repo-health --id wf_repo_health --input-json '{"base": "HEAD"}'
hermes-workflows runner run --agent-command 'python3 examples/agents/summariser.py' --idle-exit-after 1
hermes-workflows review respond wf_repo_health review_plan --action revise --feedback 'Name the owners.'
hermes-workflows runner run --agent-command 'python3 examples/agents/summariser.py' --idle-exit-after 1
hermes-workflows review respond wf_repo_health review_plan-2 --action approve
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hermes_workflows import agent, ask, bash, goal, parallel, pipeline, workflow


@dataclass
class RepoHealthRequest:
    """`base` is the commit to compare with; `at_most` bounds how many changed files are looked at."""

    base: str = "HEAD"
    at_most: int = 5


@dataclass
class Check:
    name: str
    ok: bool
    output: str


@dataclass
class FileReport:
    path: str
    lines: int
    long_lines: int


@dataclass
class Summary:
    headline: str
    risk: Literal["low", "medium", "high"]
    findings: list[str] = field(default_factory=list)


@dataclass
class Verdict:
    action: Literal["approve", "revise"]
    feedback: str = ""


@dataclass
class Plan:
    text: str


@dataclass
class RepoHealth:
    summary: Summary
    plan: str
    checks: list[Check]
    files: list[FileReport]


async def check(name: str, command: str | list[str]) -> Check:
    """A command whose exit code is a finding, not a failure: without `check=True` it comes back whatever it is."""
    result = await bash(command, name=name, timeout=120)
    return Check(name, result.ok, (result.stdout + result.stderr).strip()[-400:])


async def history() -> Check:
    """A branch of several steps: the second command depends on the first one's output."""
    head = await bash("git rev-parse --short HEAD 2>/dev/null || echo none", name="head")
    commit = head.stdout.strip()
    if commit == "none":
        return Check("history", False, "there are no commits")
    log = await bash(["git", "log", "-1", "--format=%s", commit], name="subject")
    return Check("history", log.ok, f"{commit} {log.stdout.strip()}")


async def changed_files(base: str, at_most: int) -> list[str]:
    """What differs from `base`, filled up with other files, so that there is something to look at."""
    # Values go to a shell through its environment: put into the text, they could be read as commands.
    listed = await bash(
        "git diff --name-only \"$BASE\" -- '*.py'; git ls-files '*.py' | head -n \"$AT_MOST\"",
        env={"BASE": base, "AT_MOST": str(at_most)},
        name="changed-files",
    )
    return sorted(set(listed.stdout.split()))[:at_most]


async def count_lines(path: str) -> FileReport:
    counted = await bash(["awk", "length > 120 {n++} END {print NR, n+0}", path], name="count", check=True)
    lines, long_lines = counted.stdout.split()
    return FileReport(path, int(lines), int(long_lines))


@workflow
async def repo_health(inputs: RepoHealthRequest) -> RepoHealth:
    # Two checks at a time. Each branch has its own folder of keys: parallel/history/head, parallel/history/subject.
    checks = await parallel(
        {
            "compiles": check("compile", "python3 -m compileall -q src examples"),
            "whitespace": check("whitespace", ["git", "diff", "--check", inputs.base]),
            "history": history(),
        },
        limit=2,
    )
    paths = await changed_files(inputs.base, inputs.at_most)
    files = await pipeline(paths, count_lines, limit=3)

    summary = await agent(
        "summariser",
        prompt="Summarise the health of this repository for its maintainers.",
        input={"checks": list(checks.values()), "files": files},
        returns=Summary,
    )

    async def write_plan(last: Plan | None, feedback: str | None) -> Plan:
        return await agent(
            "planner",
            prompt="Write a plan of one paragraph for the findings.",
            input={"summary": summary, "last": last, "feedback": feedback},
            returns=Plan,
        )

    async def review_plan(plan: Plan) -> Verdict:
        return await ask("Is this plan good enough to act on?", key="review_plan", input=plan, returns=Verdict)

    # `revise` goes round again, with the feedback; each round has its own keys: goal/2/planner, review_plan-2.
    plan = await goal(write_plan, review_plan, max_iters=5)
    return RepoHealth(summary, plan.text, list(checks.values()), files)


if __name__ == "__main__":
    raise SystemExit(repo_health.run())
