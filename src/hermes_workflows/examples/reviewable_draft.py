"""A draft by an agent, reviewed by a person.

The agent is mocked, so the example runs without an account: its receipts say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hermes_workflows import agent, ask, workflow


@dataclass
class DraftRequest:
    topic: str


@dataclass
class Draft:
    title: str
    body: str


@dataclass
class Review:
    """The answer's form: `action` becomes buttons."""

    action: Literal["approve", "revise"]
    feedback: str = ""


@dataclass
class ReviewedDraft:
    title: str
    body: str
    approved: bool
    feedback: str


@workflow
async def reviewable_draft_workflow(inputs: DraftRequest) -> ReviewedDraft:
    """Draft a launch note on a topic and ask a person whether it may go out."""
    draft = await agent(
        "writer",
        prompt=f"Write a short, plain announcement on: {inputs.topic}",
        returns=Draft,
        mock_output=Draft(
            title=f"Announcing {inputs.topic}",
            body=f"{inputs.topic} is here.\nEvery step leaves a receipt that you can read with git log.",
        ),
    )
    review = await ask(
        prompt=f"May “{draft.title}” go out?",
        key="review_draft",
        input=draft,
        returns=Review,
    )
    return ReviewedDraft(
        title=draft.title,
        body=draft.body,
        approved=review.action == "approve",
        feedback=review.feedback,
    )


if __name__ == "__main__":
    raise SystemExit(reviewable_draft_workflow.run())
