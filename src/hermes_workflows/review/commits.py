"""Answers that were pushed as commits: `reviews/<key>/response.json` on a branch for the run (SEMANTICS §8).

What such a branch holds beside it is refused with its path; what is read here is never executed, and no ref of a run
moves because of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..core import layout
from ..core.canonical import parse
from ..core.encoding import Plain, decode
from ..core.receipts import SCHEMA, Provenance
from ..errors import IntegrityError, InvalidInput
from ..store.ports import Proposal
from .imported import Imported, answered, questions, reasons_of

if TYPE_CHECKING:
    from ..workspace import Workspace


def import_commits(workspace: Workspace, *, fetched: bool = True, run_id: str | None = None) -> list[Imported]:
    """Take the answers that were pushed as commits; those on fetched branches too, unless only ours are wanted.

    With a `run_id`, those to this run alone.
    """
    done: list[Imported] = []
    for proposal in workspace.ledger.proposals(fetched=fetched):
        if run_id is not None and proposal.run_id != run_id:
            continue
        each = list(_import_commit(workspace, proposal))
        done += each
        workspace.ledger.settle(proposal, refused=any(one.outcome == "refused" for one in each))
    return done


def _import_commit(workspace: Workspace, proposal: Proposal) -> Iterator[Imported]:
    by = _commit_provenance(proposal)
    source = proposal.commit[:12]
    if proposal.faults:
        refused = [_key(path) for path in proposal.answers] or [""]
        for key in refused:
            yield Imported(proposal.run_id, key, source, by.by, "refused", by.kind, proposal.faults)
        return
    keys = {layout.response(key): key for key in questions(workspace, proposal.run_id)}
    for path, data in proposal.answers.items():
        try:
            payload = content(data)
        except (InvalidInput, IntegrityError) as error:
            yield Imported(proposal.run_id, _key(path), source, by.by, "refused", by.kind, tuple(reasons_of(error)))
        else:
            yield answered(workspace, proposal.run_id, source, by, keys.get(path, _key(path)), payload)


def _commit_provenance(proposal: Proposal) -> Provenance:
    """A name in a commit is a claim of whoever made it; a signature by a key that the operator has listed is none."""
    signed = proposal.signature == "good"
    return Provenance(
        kind="human" if signed else "manual",
        by=_text(proposal.signer if signed else proposal.author) or "unknown",
        channel="commit",
        message_id=proposal.commit,
        verified="signature" if signed else "none",
        origin={
            "commit": proposal.commit,
            "author": _text(f"{proposal.author} <{proposal.email}>"),
            "signature": proposal.signature,
            "ref": proposal.ref,
        },
    )


def _text(said: str) -> str:
    """What is no UTF-8 in a commit (older gits write names in Latin-1) as something that a receipt can hold."""
    return said.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def content(data: bytes) -> Plain:
    """The answer in a response.json: written by hand, or copied from a receipt with all that stands around it."""
    value = parse(data)
    if isinstance(value, dict) and value.get("schema") == SCHEMA:
        return decode(value.get("output"), _no_blob)
    return value  # type: ignore[return-value]  # Json is Plain without bytes


def _no_blob(sha256: str) -> bytes:
    raise IntegrityError(f"a pushed answer brings no artifact {sha256[:12]}")


def _key(path: str) -> str:
    return path.split("/", 1)[-1].removesuffix("/response.json")
