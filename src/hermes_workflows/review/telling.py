"""A notice as a chat shows it: what is asked, where, and one line to send back for each answer that is one choice.

What agents and users have written in it calls nobody, commands nothing, attaches no file, and does not turn what stands
beside it. A label stays in its line, so that no line to send back seems to be for another answer. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from ..core.inert import GAP, inert
from ..core.messages import one_line
from ..core.plain import plain
from .chat import Line

# Characters of what is asked: chats take some four thousand in a message.
LONGEST: Final = 1500

_TAB: Final = "Workflows, in Hermes' dashboard"

_HEADS: Final = {
    "requested": "A question waits",
    "reminder": "A question still waits",
    "expired": "Nobody has answered in time",
}
_RULES: Final = (
    # `hermes send` attaches the file that such a word names, and obeys what stands in double brackets.
    (re.compile(r"(MEDIA)(?=\s*:)", re.IGNORECASE), rf"\1{GAP}"),
    (re.compile(r"\[(?=\[)"), f"[{GAP}"),
    # `<!channel>` and `<#1>` of chats.
    (re.compile(r"<(?=[!#@&])"), f"<{GAP}"),
    # What stands between these is code, which is shown as it is.
    (re.compile("`"), "'"),
)


def message(notice: Mapping[str, Any], lines: Sequence[Line] = (), expires: datetime | None = None) -> str:
    """The text of a notice (`hermes.notice/1`); `lines` are good until `expires`."""
    about = one_line(f"{notice['workflow'] or 'a workflow'}, run {notice['workflow_id']}, {notice['key']}")
    parts = [f"{_HEADS[notice['event']]}: {harmless(about)}", harmless(_cut(str(notice["prompt"])))]
    if notice["assignee"]:
        parts[0] += f" (for {harmless(one_line(str(notice['assignee'])))})"
    if notice["event"] != "expired":
        parts += _answering(notice, lines, expires)
    return "\n\n".join(parts) + "\n"


def harmless(text: str) -> str:
    """Foreign text on its way into a chat."""
    text = inert(plain(text))
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text


def _answering(notice: Mapping[str, Any], lines: Sequence[Line], expires: datetime | None) -> list[str]:
    parts = [f"{harmless(one_line(line.label))}:\n`{line.token}`" for line in lines]
    if lines and expires is not None:
        head = "To answer, send one of these lines back, alone. They are good once, until "
        parts.insert(0, f"{head}{expires:%Y-%m-%d %H:%M} UTC.")
    parts.append(f"{'Or in' if lines else 'Answer in'} a browser: {_TAB}")
    return [*parts, f"Or in a terminal: {harmless(str(notice['respond']))}"]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"
