"""How the values of the queue port look as SQLite rows."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from sqlite3 import Row
from typing import Any, NamedTuple, cast

from ..core.summary import ENDED, RunSummary
from .liveness import standing
from .queue_port import Indexed, Kind, ReviewRow, RunnerRow, Stuck, Work, WorkRow
from .texts import dump, load
from .wanted import searched

# The status of a review nobody has answered; the others are those of its response.
OPEN = "open"
_LISTS = ("executing", "agents", "only")


class Carried(Indexed):
    """A run's row that another process has made: as SQLite keeps it, which is handed over in a tenth of the time.

    Its summary is there for whoever asks.
    """

    values: dict[str, Any]
    home: str

    def __init__(self, values: dict[str, Any], home: str, reviews: tuple[ReviewRow, ...]) -> None:
        # All that are frozen are made so, and a summary is an attribute like the others.
        vars(self).update({name: values[name] for name in ("tip", "folder", "sealed")})
        vars(self).update(values=values, home=home, reviews=reviews)

    @cached_property
    def summary(self) -> RunSummary:
        return RunSummary.from_json(load(self.values["summary"]))

    def __reduce__(self) -> tuple[type[Carried], tuple[Any, ...]]:
        return Carried, (self.values, self.home, self.reviews)


def carried(indexed: Indexed) -> Carried:
    return Carried(run_values(indexed), indexed.summary.home, indexed.reviews)


class Standing(NamedTuple):
    """What of a run's row says what is to be done with it."""

    run_id: str
    seq: int
    ended: bool
    home: str


def standing_of(indexed: Indexed) -> Standing:
    if isinstance(indexed, Carried):
        values = indexed.values
        return Standing(values["run_id"], values["seq"], values["status"] in ENDED, indexed.home)
    summary = indexed.summary
    return Standing(summary.run_id, summary.seq, summary.ended, summary.home)


def run_values(indexed: Indexed) -> dict[str, Any]:
    if isinstance(indexed, Carried):
        return indexed.values
    summary = indexed.summary
    # `asdict` copies every value deeply; a shallow look is enough to write it down.
    fields = {
        **vars(summary),
        "open_reviews": {key: vars(review) for key, review in summary.open_reviews.items()},
        "open_waits": {key: vars(wait) for key, wait in summary.open_waits.items()},
        "recent": [vars(event) for event in summary.recent],
    }
    waiting_on = summary.waiting_on
    return {
        "run_id": summary.run_id,
        "status": summary.status,
        "started_at": summary.started_at or "",
        "seq": summary.seq,
        "tip": indexed.tip,
        "folder": indexed.folder,
        "sealed": indexed.sealed,
        "workflow": summary.workflow,
        "source": (summary.source or {}).get("run"),
        "text": searched(summary),
        "summary": dump(fields),
        "waiting_on": waiting_on.key if waiting_on else None,
    }


def indexed_of(row: Row) -> Indexed:
    summary = RunSummary.from_json(load(row["summary"]))
    return Indexed(summary, row["tip"], row["folder"], bool(row["sealed"]))


def review_values(review: ReviewRow, workflow: str) -> dict[str, Any]:
    return {
        "run_id": review.run_id,
        "key": review.key,
        "status": review.status,
        "requested_at": review.requested_at or "",
        "workflow": workflow,
        "assignee": review.assignee,
        "review": dump(vars(review)),
    }


def review_of(row: Row) -> ReviewRow:
    return ReviewRow(**load(row["review"]))


def merged(old: ReviewRow | None, new: ReviewRow) -> ReviewRow:
    """What is known about a review after `new`, in whichever order its request and its response are heard of."""
    if old is None or (old.status, new.status) == (OPEN, OPEN):
        return new
    response, question = (old, new) if new.status == OPEN else (new, old)
    return replace(
        response,
        prompt=response.prompt or question.prompt,
        assignee=response.assignee or question.assignee,
        requested_at=response.requested_at or question.requested_at,
        expires_at=response.expires_at or question.expires_at,
    )


def withdrawn(review: ReviewRow) -> ReviewRow:
    """A question that its run's end left open: nobody may answer it any more."""
    return replace(review, status="withdrawn")


def stuck_of(row: Row) -> Stuck:
    return Stuck(**dict(row))


def runner_values(runner: RunnerRow) -> dict[str, Any]:
    lists = {name: dump(list(getattr(runner, name))) for name in _LISTS}
    return {**vars(runner), **lists, "said": dump(dict(runner.said))}


def runner_of(row: Row) -> RunnerRow:
    return RunnerRow(**{**dict(row), **told_by(row)})


def told_by(row: Row) -> dict[str, Any]:
    """What a heartbeat's row has as JSON."""
    lists = {name: tuple(load(row[name])) for name in _LISTS}
    return {**lists, "said": load(row["said"]), "draining": bool(row["draining"])}


def work_of(row: Row) -> Work:
    kind = cast(Kind, row["kind"])
    return Work(row["run_id"], kind, row["key"], row["fingerprint"], row["visible_at"], row["name"])


def work_row_of(row: Row, elapsed: float, boot_id: str) -> WorkRow:
    return WorkRow(
        work=work_of(row),
        status=standing(row, elapsed, boot_id),
        runner=row["runner"],
        claims=row["claims"],
        offered_at=row["offered_at"],
        claimed_at=row["claimed_at"],
    )
