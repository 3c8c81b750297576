"""Answers from chat platforms: the hook that sees each message before Hermes' own checks and its model do.

not the shape of a token, or not signed here   it is talk: Hermes goes on as if we were not there
a token, from somebody who may not answer      dropped without a word, and logged; no model reads it
a token, from a sender of the registry's list  taken; what became of it is said in the chat
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ..review.chat import Message, Said

log = logging.getLogger(__name__)

# A look that costs nothing: the hook is called for every message of every chat.
_LIKELY: Final = re.compile(r"\s*`*hw1-[a-z2-7]{48}`*\s*", re.IGNORECASE)
_replies: set[asyncio.Task[None]] = set()


def on_message(event: Any = None, gateway: Any = None, **_: Any) -> dict[str, str] | None:
    """`pre_gateway_dispatch` of Hermes; None lets the message pass."""
    text = getattr(event, "text", None)
    if not isinstance(text, str) or not _LIKELY.fullmatch(text) or getattr(event, "internal", False):
        return None
    said = _said(text, event)
    if said is None or said.outcome == "talk":
        return None
    if said.reply:
        _reply(gateway, event, said.reply)
    return {"action": "skip", "reason": f"hermes-workflows: {said.outcome}"}


def message_of(event: Any) -> Message | None:
    """What the receipt will say of a message; None when nobody, or no platform, is named."""
    from ..review.chat import Message

    source = getattr(event, "source", None)
    platform, sender = getattr(source, "platform", None), getattr(source, "user_id", None)
    platform = getattr(platform, "value", platform)
    if not platform or not sender:
        return None
    number = getattr(event, "message_id", None) or getattr(source, "message_id", None)
    return Message(
        platform=str(platform),
        chat=str(getattr(source, "chat_id", "") or ""),
        sender=str(sender),
        message_id=None if number is None else str(number),
        name=str(getattr(source, "user_name", "") or ""),
        bot=bool(getattr(source, "is_bot", False)),
    )


def _said(text: str, event: Any) -> Said | None:
    from ..errors import HermesError, NotFound
    from ..review.chat import Said, take
    from ..review.tokens import written
    from .host import opened, registry_here

    token, message = written(text), message_of(event)
    try:
        registry = registry_here()
    except NotFound:
        return None
    except (HermesError, OSError) as error:
        # What may be one of ours is for no model to read.
        log.warning("a token could not be looked at: %s", error)
        return Said("ignored")
    listed = message is not None and message.may_answer(registry)
    try:
        with opened() as every:
            said = take(every.every, token, message) if token else None
    except (HermesError, OSError) as error:
        log.warning("a token could not be looked at: %s", error)
        sorry = "Not recorded: the workspace cannot be read just now; Hermes' log says why."
        return Said("refused", sorry if listed else "")
    if said is not None and said.outcome == "ignored":
        log.warning("an answer from %s was dropped: not among hermes.senders", message and message.person)
    return said


def _reply(gateway: Any, event: Any, text: str) -> None:
    source = getattr(event, "source", None)
    adapter = _adapter(gateway, source)
    if adapter is None:
        log.warning("no way to say in the chat: %s", text)
        return
    thread = getattr(source, "thread_id", None)
    sending = _send(
        adapter, source, text, getattr(event, "message_id", None), {"thread_id": thread} if thread else None
    )
    try:
        task = asyncio.get_running_loop().create_task(sending)
    except RuntimeError:
        sending.close()
        log.warning("no loop to say it from: %s", text)
        return
    # A loop holds its tasks weakly: one that nobody else holds may vanish.
    _replies.add(task)
    task.add_done_callback(_replies.discard)


def _send(
    adapter: Any, source: Any, text: str, reply_to: str | None, metadata: dict[str, Any] | None
) -> Coroutine[Any, Any, None]:
    async def send() -> None:
        try:
            await adapter.send(source.chat_id, text, reply_to=reply_to, metadata=metadata)
        except Exception:
            log.exception("what became of an answer could not be said in the chat")

    return send()


def _adapter(gateway: Any, source: Any) -> Any:
    """What speaks to the platform: by Hermes' own way, which knows of profiles, else by the platform."""
    find = getattr(gateway, "_adapter_for_source", None)
    if callable(find):
        return find(source)
    adapters = getattr(gateway, "adapters", None)
    return adapters.get(getattr(source, "platform", None)) if isinstance(adapters, dict) else None
