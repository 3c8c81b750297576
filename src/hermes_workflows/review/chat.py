"""Answers from a chat: what is told of a question there, and what a message that is a token of ours does.

A chat has no form. A question is told with one line for each answer that is one choice; sending that line back gives
the answer, and everything else in the chat stays talk. Taken is only what a sender on the registry's list sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from ..core.receipts import Provenance, ReviewReceipt
from ..errors import Conflict, HermesError, NotFound
from ..registry import DatabasePaths, Registry
from ..store.secret_key import secret_key
from .answer import Review, find_review
from .imported import reasons_of
from .tokens import Option, Shown, Token, issue, opened, options_of

if TYPE_CHECKING:
    from ..workspace import Workspace

CHANNEL: Final = "hermes-chat"
LASTING: Final = timedelta(days=7)
"""How long a token lasts when its question does not expire before; a reminder brings new ones."""

# Where a program writes, or whoever likes under any name: an account there proves no person.
_UNPROVEN: Final = frozenset(
    {"api_server", "cron", "email", "homeassistant", "irc", "local", "msgraph_webhook", "ntfy", "webhook"}
)


@dataclass(frozen=True)
class Message:
    """A message of a chat, as its platform has told of it. `bot` says that a program wrote it."""

    platform: str
    chat: str
    sender: str
    message_id: str | None = None
    name: str = ""
    bot: bool = False

    @property
    def person(self) -> str:
        """The sender's own name is whatever the sender likes: only the platform's id says who it is."""
        return f"{self.platform}:{self.sender}"

    def may_answer(self, registry: Registry) -> bool:
        return self.person in registry.hermes.senders

    @property
    def provenance(self) -> Provenance:
        told = {"platform": self.platform, "chat": self.chat, "message": self.message_id, "sender": self.sender}
        origin = {name: value for name, value in (told | {"name": self.name}).items() if value}
        return Provenance(
            kind="manual" if self.bot or self.platform in _UNPROVEN else "human",
            by=self.person,
            channel=CHANNEL,
            # Platforms count their messages in each chat anew.
            message_id=self.message_id and f"{self.platform}/{self.chat}/{self.message_id}",
            verified="signature",
            origin=origin,
        )


@dataclass(frozen=True)
class Said:
    """What became of a message. `talk`: it is none of ours. `ignored`: its sender may not answer, and hears nothing."""

    outcome: Literal["talk", "ignored", "recorded", "refused"]
    reply: str = ""


@dataclass(frozen=True)
class Line:
    """What to send back for one answer."""

    label: str
    token: str


def key_file(paths: DatabasePaths) -> Path:
    return paths.sqlite.parent / "hermes" / f"{paths.sqlite.stem}.key"


def lines_of(workspace: Workspace, run_id: str, key: str) -> tuple[Sequence[Line], datetime]:
    """A line for each answer to an open question that is one choice, and until when they are good.

    Raises NotFound, Conflict for a question that is closed, and what `secret_key` raises.
    """
    head, receipts = workspace.ledger.read(run_id)
    review = find_review(run_id, key, receipts)
    if not review.open:
        raise Conflict(f"{key} of {run_id} is answered", hint="nothing can be sent for it")
    given = Shown(workspace.ledger.home, run_id, review.request, head.tip)
    expires = _expiry(review.request, workspace.clock.now())
    secret = secret_key(key_file(workspace.paths))
    options = enumerate(_options(review.request))
    return [Line(option.label, issue(secret, given, number, expires)) for number, option in options], expires


def weigh(registry: Registry, text: str, message: Message | None) -> Literal["talk", "ignored", "listed"]:
    """What a message whose text is `text`, as `tokens.written` gives it, is to be taken for. It opens no repository.

    `talk`: no database of the registry has signed it; `ignored`: signed, but its sender may not answer. A `message` of
    None is of nobody. Raises what reading a key raises.
    """
    if not any(_genuine(paths, text) for paths in registry.dbs.values()):
        return "talk"
    return "listed" if message is not None and message.may_answer(registry) else "ignored"


def take(workspaces: Sequence[Workspace], text: str, message: Message | None) -> Said:
    """What a message whose text is `text`, as `tokens.written` gives it, does.

    A `message` of None is of nobody: it answers nothing. Raises what reading a ledger and a key raises.
    """
    signed = [(each, token) for each in workspaces if (token := _genuine(each.paths, text)) is not None]
    if not signed:
        return Said("talk")
    if message is None or not any(message.may_answer(workspace.registry) for workspace, _ in signed):
        return Said("ignored")
    for workspace, token in signed:
        if (found := _shown(workspace, token)) is not None:
            return _take(workspace, token, found, message)
    return Said("refused", "The question that this line was for is not there any more.")


def _take(workspace: Workspace, token: Token, found: Shown, message: Message) -> Said:
    if (why := _stale(workspace, token, found)) is not None:
        return Said("refused", why)
    option = _options(found.question)[token.choice]
    try:
        workspace.answer(found.run_id, found.question.key, option.payload, message.provenance)
    except HermesError as error:
        return Said("refused", f"Not recorded: {'; '.join(reasons_of(error))}.")
    return Said("recorded", f"Recorded: {option.label}, for {found.question.key} of {found.run_id}.")


def _stale(workspace: Workspace, token: Token, found: Shown) -> str | None:
    if workspace.clock.now() >= token.expires:
        return f"This line expired on {token.expires:%Y-%m-%d at %H:%M} UTC. The question may still be open."
    now = _review(workspace, found.run_id, found.question.key)
    if now is None or Shown(found.home, found.run_id, now.request, found.commit).binding != token.binding:
        return "The question has changed since this line was sent. Nothing was recorded."
    return None


def _genuine(paths: DatabasePaths, text: str) -> Token | None:
    file = key_file(paths)
    # Without a key nothing was ever signed here.
    return opened(secret_key(file), text) if file.exists() else None


def _shown(workspace: Workspace, token: Token) -> Shown | None:
    """The question that a token was made for, as it was then."""
    try:
        head, receipts = workspace.ledger.at(token.commit)
    except (NotFound, Conflict):
        return None
    asked = [each for each in receipts if isinstance(each, ReviewReceipt) and each.status == "requested"]
    known = (Shown(workspace.ledger.home, head.run_id, each, head.tip) for each in asked)
    return next((each for each in known if each.binding == token.binding), None)


def _review(workspace: Workspace, run_id: str, key: str) -> Review | None:
    try:
        return find_review(run_id, key, workspace.ledger.read(run_id)[1])
    except NotFound:
        return None


def _options(question: ReviewReceipt) -> tuple[Option, ...]:
    return options_of(question.request.returns) if question.request else ()


def _expiry(question: ReviewReceipt, now: datetime) -> datetime:
    own = question.execution.expires_at
    return min(own, now + LASTING) if own else now + LASTING
