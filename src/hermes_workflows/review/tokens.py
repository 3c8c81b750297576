"""Tokens that answer a question from a chat: one for each choice, and nothing but a whole token is one.

    hw1-  then in base32: expiry (4 bytes) · choice (1) · commit (8) · binding (6) · mac (11)

`commit` is where the run stood when the question was shown: it finds run and question again. `binding` is of the
workspace, the run, the key, what is asked, and that commit. The mac is of all that, by a key that never leaves the
workspace. So a token is good for one choice of one question as it was shown, until it expires; and once, because a
question takes one answer. Pure.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from ..core.canonical import dumps
from ..core.encoding import Plain
from ..core.receipts import ReviewReceipt
from ..core.values import check_schema
from ..errors import InvalidInput
from .forms import Form, form_of, shown

PREFIX: Final = "hw1-"
MOST_CHOICES: Final = 8
"""A question of more choices is not answered by a line of a chat."""

_COMMIT, _BINDING, _MAC = 8, 6, 11
_BODY = 4 + 1 + _COMMIT + _BINDING
# Both lengths are whole groups of base32, so that no two texts mean one token.
_SHAPE = re.compile(rf"{PREFIX}[a-z2-7]{{{(_BODY + _MAC) * 8 // 5}}}")


@dataclass(frozen=True)
class Option:
    """A whole answer that is one choice. `label` is what a person reads."""

    label: str
    payload: Plain


@dataclass(frozen=True)
class Shown:
    """A question as somebody was shown it, when the run stood at `commit`."""

    home: str
    run_id: str
    question: ReviewReceipt
    commit: str

    @property
    def binding(self) -> bytes:
        asked = self.question
        what: list[Any] = [asked.key, asked.fingerprint, asked.execution.evidence]
        return hashlib.sha256(dumps([self.home, self.run_id, self.commit, *what])).digest()[:_BINDING]


@dataclass(frozen=True)
class Token:
    """What a token of ours says; that it is one of ours has been checked. `commit` is the beginning of its name."""

    expires: datetime
    choice: int
    commit: str
    binding: bytes


def written(text: str) -> str | None:
    """The token that a message is, whole; None for everything else: what is said around a token makes it talk."""
    # A phone begins with a capital, and who copies code takes its marks along.
    bare = text.strip().strip("`").lower()
    return bare if _SHAPE.fullmatch(bare) else None


def issue(key: bytes, given: Shown, choice: int, expires: datetime) -> str:
    """The token for one choice of a question."""
    commit = bytes.fromhex(given.commit)[:_COMMIT]
    body = int(expires.timestamp()).to_bytes(4, "big") + bytes([choice]) + commit + given.binding
    return PREFIX + base64.b32encode(body + _mac(key, body)).decode().lower()


def opened(key: bytes, text: str) -> Token | None:
    """What `text`, as `written` gives it, says; None when this key has not signed it."""
    data = base64.b32decode(text.removeprefix(PREFIX).upper())
    body, mac = data[:_BODY], data[_BODY:]
    if not hmac.compare_digest(mac, _mac(key, body)):
        return None
    expires = datetime.fromtimestamp(int.from_bytes(body[:4], "big"), UTC)
    return Token(expires, body[4], body[5 : 5 + _COMMIT].hex(), body[5 + _COMMIT :])


def options_of(schema: Mapping[str, Any]) -> tuple[Option, ...]:
    """The answers to this schema that are one choice; none when more has to be said, or there are too many."""
    found = tuple(_options(form_of(schema)))
    try:
        fitting = tuple(each for each in found if not check_schema(each.payload, schema))
    except InvalidInput:
        # A question may have come from elsewhere, with a schema that is none.
        return ()
    return fitting if len(fitting) <= MOST_CHOICES else ()


def _options(form: Form) -> list[Option]:
    named = {field.name: field for field in form.fields if field.required and field.kind in ("choice", "boolean")}
    field = named.get("action") or next(iter(named.values()), None)
    if field is None or field.nullable:
        return []
    if field.kind == "boolean":
        return [Option("yes", form.assemble({field.name: True})), Option("no", form.assemble({field.name: False}))]
    return [Option(shown(choice), form.assemble({field.name: choice})) for choice in field.choices]


def _mac(key: bytes, body: bytes) -> bytes:
    return hmac.digest(key, PREFIX.encode() + body, "sha256")[:_MAC]
