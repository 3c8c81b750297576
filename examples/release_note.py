"""A release note: an agent writes it from the log, a person approves it or says what to change."""

from dataclasses import dataclass
from typing import Literal

from hermes_workflows import agent, ask, bash, goal, workflow


@dataclass
class Release:
    version: str
    commits: int = 20


@dataclass
class Note:
    title: str
    changes: list[str]


@dataclass
class Verdict:
    action: Literal["approve", "revise"]
    feedback: str = ""


@workflow
async def release_note_workflow(release: Release) -> Note:
    log = await bash(["git", "log", "--format=%s", f"--max-count={release.commits}"], name="log", check=True)

    async def write(last: Note | None, feedback: str | None) -> Note:
        given = {"version": release.version, "log": log.stdout, "last": last, "feedback": feedback}
        return await agent("writer", prompt="Write a release note from this log.", input=given, returns=Note)

    async def review(note: Note) -> Verdict:
        return await ask(f"Publish this note of {release.version}?", key="review_note", input=note, returns=Verdict)

    return await goal(write, review)


if __name__ == "__main__":
    raise SystemExit(release_note_workflow.run())
