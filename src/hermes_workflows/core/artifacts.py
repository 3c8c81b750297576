"""The files that a run keeps, as its receipts tell of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Conflict, NotFound
from .receipts import Receipt
from .spelling import suggestion
from .timestamps import render_time

_DIGITS = re.compile(r"[0-9a-f]{6,64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Kept:
    """One artifact: its call's key, its name, and where its content is. `size` in bytes."""

    key: str
    name: str
    sha256: str
    size: int
    media_type: str
    kept_at: str | None


def artifacts_of(receipts: Iterable[Receipt]) -> list[Kept]:
    """Every artifact among a run's receipts, oldest first."""
    return [_kept(each) for each in receipts if each.kind == "artifact" and _is_whole(each.output)]


def find_artifact(run_id: str, wanted: str, kept: Sequence[Kept]) -> Kept:
    """The newest artifact of that name, else of that key, else the one whose sha256 begins so (six digits at least).

    Raises NotFound, and Conflict for a beginning that several contents share.
    """
    for each in reversed(kept):
        if wanted in (each.name, each.key):
            return each
    matching = {each.sha256: each for each in kept if _DIGITS.fullmatch(wanted) and each.sha256.startswith(wanted)}
    if len(matching) > 1:
        raise Conflict(f"{len(matching)} artifacts of {run_id} begin with {wanted}", hint="write more of the sha256")
    if not matching:
        names = list(dict.fromkeys(each.name for each in kept))
        raise NotFound(f"{run_id} has no artifact {wanted!r}", hint=suggestion(wanted, names, "artifacts"))
    return next(iter(matching.values()))


def _is_whole(said: Any) -> bool:
    """Whether an output says what is needed: of a foreign run it may say anything, and some of it becomes a path."""
    if not isinstance(said, dict) or not isinstance(said.get("size"), int):
        return False
    texts = [said.get(name) for name in ("name", "sha256", "media_type")]
    return all(isinstance(text, str) for text in texts) and bool(_SHA256.fullmatch(said["sha256"]))


def _kept(receipt: Receipt) -> Kept:
    said, when = receipt.output, receipt.execution.finished_at
    return Kept(
        key=receipt.key,
        name=said["name"],
        sha256=said["sha256"],
        size=said["size"],
        media_type=said["media_type"],
        kept_at=render_time(when) if when else None,
    )
