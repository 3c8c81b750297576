"""What is shown beside a question, for every channel: values as they were given, texts as they were read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..core.receipts import ReviewReceipt


@dataclass(frozen=True)
class Shown:
    """One piece of evidence. `path` is set for a file; then `value` is its text, or None when it is `missing`."""

    title: str
    value: Any
    path: str | None = None
    missing: str | None = None


def evidence_of(question: ReviewReceipt) -> Iterator[Shown]:
    """The evidence of a request receipt, in the author's order."""
    assert question.request is not None  # a request receipt always holds its question
    read = question.execution.evidence or {}
    for each in question.request.evidence:
        if each.path is None:
            yield Shown(each.title, each.value)
        else:
            file = read.get(each.path, {})
            cut = f"\n[… cut; the file has {file['bytes']:,} bytes]" if file.get("truncated") else ""
            text = file["text"] + cut if "text" in file else None
            yield Shown(each.title, text, each.path, None if text is not None else file.get("missing", "not read"))
