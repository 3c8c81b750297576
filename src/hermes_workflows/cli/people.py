"""Who stands behind an answer or a request that comes through the command line (SEMANTICS §8)."""

from __future__ import annotations

import os
import sys
from typing import Literal

from ..core.receipts import Provenance
from ..errors import InvalidInput

Kind = Literal["human", "manual", "test"]


def interactive() -> bool:
    """Whether a person types: only then can an answer be a human one."""
    return sys.stdin.isatty()


def provenance(
    by: str | None, kind: Kind | None = None, channel: str = "cli", message_id: str | None = None
) -> Provenance:
    """Raises InvalidInput for a human answer that no person typed."""
    if kind == "human" and not interactive():
        raise InvalidInput(
            "an answer is human only when a person types it in a terminal",
            hint="leave --kind out (it is recorded as manual), or pass --kind test",
        )
    me = operating_system_user()
    return Provenance(
        kind=kind or ("human" if interactive() else "manual"),
        by=by or me,
        channel=channel,
        message_id=message_id,
        # A name that somebody typed is a claim; the account they are logged in with is not.
        verified="os-user" if by in (None, me) else "none",
    )


def operating_system_user() -> str:
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        return os.environ.get("USER") or os.environ.get("USERNAME") or "unknown"
