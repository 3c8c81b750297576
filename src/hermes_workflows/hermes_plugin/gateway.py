"""Answers from chat platforms: the hook that sees each message before Hermes' own checks and its model do.

not the shape of a token, or not signed here   it is talk: Hermes goes on as if we were not there
a token, from somebody who may not answer      dropped without a word, and logged; no model reads it
a token, from a sender of the registry's list  taken; what became of it is said in the chat

Hermes calls the hook in its event loop, where all its chats wait. So only what says which of the three it is happens
there: two small files and a signature. The answer is recorded in a thread, where a repository may be slow or locked.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ..review.chat import Message, Said

log = logging.getLogger(__name__)

# A look that costs nothing: the hook is called for every message of every chat.
_LIKELY: Final = re.compile(r"\s*`*hw1-[a-z2-7]{48}`*\s*", re.IGNORECASE)
_SORRY: Final = "Not recorded: the workspace cannot be read just now; Hermes' log says why."
_DROPPED: Final = {"action": "skip", "reason": "hermes-workflows: ignored"}
_TAKEN: Final = {"action": "skip", "reason": "hermes-workflows: taken"}

_TASK: Final = "hermes-workflows: an answer"

# One thread: who sends two lines gets the first one recorded.
_recorder: Final = ThreadPoolExecutor(1, "hermes-workflows-answers")
_working: set[asyncio.Task[None]] = set()


def on_message(event: Any = None, gateway: Any = None, **_: Any) -> dict[str, str] | None:
    """`pre_gateway_dispatch` of Hermes; None lets the message pass."""
    text = getattr(event, "text", None)
    if not isinstance(text, str) or not _LIKELY.fullmatch(text) or getattr(event, "internal", False):
        return None
    try:
        return _weighed(text, event, gateway)
    except Exception:
        # Hermes lets a message pass whose hook fails, and what may be one of ours is for no model to read.
        log.exception("a token could not be looked at")
        return _DROPPED


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


def _weighed(text: str, event: Any, gateway: Any) -> dict[str, str] | None:
    from ..errors import HermesError, NotFound
    from ..review.chat import weigh
    from ..review.tokens import written
    from .host import registry_here

    token, message = written(text), message_of(event)
    try:
        registry = registry_here()
    except NotFound:
        return None
    try:
        weighed = weigh(registry, token, message) if token else "talk"
    except (HermesError, OSError) as error:
        log.warning("a token could not be looked at: %s", error)
        if message is not None and message.may_answer(registry):
            _in_turn(_say(gateway, event, _SORRY))
        return _DROPPED
    if weighed == "ignored":
        log.warning("an answer from %s was dropped: not among hermes.senders", message and message.person)
        return _DROPPED
    if weighed == "talk" or token is None or message is None:
        return None
    _in_turn(_take(token, message, event, gateway))
    return _TAKEN


async def _take(token: str, message: Message, event: Any, gateway: Any) -> None:
    said = await asyncio.get_running_loop().run_in_executor(_recorder, _recorded, token, message)
    if said.reply:
        await _say(gateway, event, said.reply)


def _recorded(token: str, message: Message) -> Said:
    from ..review.chat import Said, take
    from .host import opened

    try:
        with opened() as every:
            return take(every.every, token, message)
    except Exception as error:
        log.warning("an answer could not be recorded: %s", error)
        return Said("refused", _SORRY)


async def _say(gateway: Any, event: Any, text: str) -> None:
    source = getattr(event, "source", None)
    thread = getattr(source, "thread_id", None)
    about = {"reply_to": getattr(event, "message_id", None), "metadata": {"thread_id": thread} if thread else None}
    try:
        if (adapter := _adapter(gateway, source)) is None:
            log.warning("no way to say in the chat: %s", text)
            return
        await adapter.send(getattr(source, "chat_id", None), text, **about)
    except Exception:
        log.exception("what became of an answer could not be said in the chat: %s", text)


def _in_turn(work: Coroutine[Any, Any, None]) -> None:
    """Begin it in the loop that the hook was called in; where there is none, do it here."""
    try:
        task = asyncio.get_running_loop().create_task(work, name=_TASK)
    except RuntimeError:
        asyncio.run(work)
        return
    # A loop holds its tasks weakly: one that nobody else holds may vanish.
    _working.add(task)
    task.add_done_callback(_working.discard)


def _adapter(gateway: Any, source: Any) -> Any:
    """What speaks to the platform: by Hermes' own way, which knows of profiles, else by the platform."""
    find = getattr(gateway, "_adapter_for_source", None)
    if callable(find):
        return find(source)
    adapters = getattr(gateway, "adapters", None)
    return adapters.get(getattr(source, "platform", None)) if isinstance(adapters, dict) else None
