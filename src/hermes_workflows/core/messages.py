"""What the messages of a run's commits say (FORMAT §6): a subject for people, a block of trailers a receipt.

They are an index for `git log`, never the truth, and are made from the receipts alone: `verify` makes them again.
Everything in them that comes from users or agents goes through `one_line`, so nobody's text can start a line and pose
as a trailer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from . import layout
from .receipts import Receipt

SUBJECT_LENGTH = 72

_TRAILER = re.compile(r"^Hermes-(\w+): (.*)$", re.MULTILINE)


def one_line(text: str) -> str:
    """`text` without line ends, control and direction characters: it fills one line and stays on it."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    spaced = "".join(" " if unicodedata.category(char)[0] in "CZ" else char for char in text)
    return " ".join(spaced.split())


def person_name(name: str) -> str:
    """A name as a commit can hold it: git takes brackets, and what ends in punctuation, apart."""
    return one_line(name.translate({ord("<"): None, ord(">"): None})).strip(" .,:;\"'\\") or "unknown"


def receipts_message(run_id: str, receipts: Sequence[Receipt], files: int) -> str:
    """The message of a commit that adds these receipts, or only files.

    That of a run that starts from another one tells of its start; the receipts it adopts stand in the other's log.
    """
    if receipts and receipts[0].execution.source:
        return _adoption_message(run_id, receipts)
    blocks = "\n\n".join(_trailer_block(run_id, receipt) for receipt in receipts)
    if len(receipts) == 1:
        subject = receipt_subject(run_id, receipts[0])
    elif receipts:
        subject = f"{len(receipts)} receipts: {', '.join(_label(run_id, receipt) for receipt in receipts)}"
    else:
        subject, blocks = f"{files} files", f"Hermes-Run: {run_id}"
    return f"{cut(subject)}\n\n{blocks}\n"


def _adoption_message(run_id: str, receipts: Sequence[Receipt]) -> str:
    source = receipts[0].execution.source or {}
    did = "reproduces" if source.get("how") == "reproduce" else "forked from"
    count = len(receipts) - 1
    adopted = f" ({count} receipt{'s' * (count != 1)} adopted)" if count else ""
    # What it is called comes first in a subject that may be cut.
    subject = f"{run_id}: {did} {one_line(source.get('run', ''))}{adopted}"
    return f"{cut(subject)}\n\n{_trailer_block(run_id, receipts[0])}\n"


def receipt_subject(run_id: str, receipt: Receipt) -> str:
    """`research/docs: completed (agent review_topic, 1.2 s)`."""
    execution = receipt.execution
    facts = [" ".join(filter(None, (receipt.kind, one_line(_name(receipt)))))]
    if execution.attempt and execution.attempt > 1:
        facts.append(f"attempt {execution.attempt}")
    if execution.duration_seconds is not None:
        facts.append(f"{execution.duration_seconds:.1f} s")
    return f"{_label(run_id, receipt)}: {receipt.status} ({', '.join(facts)})"


def trailers(message: str) -> list[dict[str, str]]:
    """One mapping a receipt, in order, as `{"Run": …, "Key": …}`."""
    blocks = message.split("\n\n")[1:]
    return [dict(_TRAILER.findall(block)) for block in blocks if _TRAILER.search(block)]


def run_named(message: str) -> str | None:
    """The run that the first block with a `Run` names."""
    _, _, blocks = message.partition("\n\n")
    # The messages of all runs are looked through when they are listed, and mostly have one.
    _, found, rest = f"\n{blocks}".partition("\nHermes-Run: ")
    if "\nHermes-Run: " not in rest:
        return rest.partition("\n")[0] if found else None
    return next((block["Run"] for block in trailers(message) if "Run" in block), None)


def receipt_trailers(run_id: str, receipt: Receipt) -> dict[str, str]:
    """What a commit says of a receipt it adds, by trailer, without the `Hermes-`."""
    values = {
        "Run": run_id,
        "Key": one_line(receipt.key),
        "Kind": receipt.kind,
        "Status": receipt.status,
        "Seq": str(receipt.seq),
    }
    if source := receipt.execution.source:
        # Whom the run was started from, and the commit of that run.
        values |= {"Source": one_line(source.get("run", "")), "Commit": one_line(source.get("commit", ""))}
    return {name: value for name, value in values.items() if value}


def _trailer_block(run_id: str, receipt: Receipt) -> str:
    return "\n".join(f"Hermes-{name}: {value}" for name, value in receipt_trailers(run_id, receipt).items())


def _label(run_id: str, receipt: Receipt) -> str:
    return run_id if receipt.path in (layout.RUN, layout.RESULT) else one_line(receipt.key) or receipt.path


def _name(receipt: Receipt) -> str:
    request = receipt.request
    if isinstance(request, dict):
        return str(request.get("name") or "")
    return str(getattr(request, "workflow", ""))


def cut(subject: str) -> str:
    """A subject that every `git log` shows whole."""
    return subject if len(subject) <= SUBJECT_LENGTH else subject[: SUBJECT_LENGTH - 1] + "…"
