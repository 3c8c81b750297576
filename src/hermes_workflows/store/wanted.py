"""Which runs a list is to show, and the words that a search compares.

Light on purpose: the fast `list` imports this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..core.summary import RunSummary

# Characters of each part of a run's text: a search reads those of every run, so they are few.
_PART = 200
# Words beyond that are one phrase.
_WORDS = 8

LIVING = ("running", "waiting")


class Wanted(NamedTuple):
    """Runs that are all of this. `source` is the run that they were forked or reproduced from.

    `older` are those that come after one in the list: when that one was started, and its id.
    Each word of `text` stands in a run's id, in the beginning of its input, or in why it stands where it does.
    """

    statuses: tuple[str, ...] = ()
    workflow: str | None = None
    source: str | None = None
    text: str = ""
    older: tuple[str, str] | None = None

    @property
    def words(self) -> list[str]:
        return self.text.casefold().split(maxsplit=_WORDS - 1)


EVERY = Wanted()


class WantedReviews(NamedTuple):
    """Questions that are all of this: of a status (`open`, or that of an answer), of a workflow, put to somebody."""

    status: str | None = None
    workflow: str | None = None
    assignee: str | None = None


def searched(summary: RunSummary) -> str:
    """The text of a run that `Wanted.text` is looked for in. What was fetched may have anything for a reason."""
    error, asked = summary.error, summary.waiting_on
    why = (
        f"{error.get('type', '')}: {error.get('message', '')}" if isinstance(error, dict) else "",
        summary.cancel_requested or "",
        (summary.paused or {}).get("reason", ""),
        f"{asked.key} {asked.prompt}" if asked else "",
    )
    return "\n".join((summary.run_id, *(str(part)[:_PART] for part in why if part), summary.given)).casefold()
