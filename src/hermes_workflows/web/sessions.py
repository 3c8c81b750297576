"""Who has been let in: a token is exchanged for a session, and what a session's forms carry is signed.

A session lives as long as the process. Its cookie names the port, because browsers share cookies between ports.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading

# More browsers than that are no people; the oldest session gives way.
_MOST = 1000


class Sessions:
    """Thread-safe. A token that is not `lasting` is good for one exchange."""

    def __init__(self, token: str, *, lasting: bool, port: int) -> None:
        self.cookie = f"hermes_workflows_{port}"
        self._token: str | None = token
        self._lasting = lasting
        self._key = secrets.token_bytes(32)
        self._known: dict[str, None] = {}
        self._lock = threading.Lock()

    def exchange(self, token: str) -> str | None:
        """A new session for the token; None for a wrong one, and for one that was exchanged already."""
        with self._lock:
            if not self._token or not hmac.compare_digest(token.encode(), self._token.encode()):
                return None
            if not self._lasting:
                self._token = None
            session = secrets.token_urlsafe(32)
            self._known[session] = None
            while len(self._known) > _MOST:
                del self._known[next(iter(self._known))]
            return session

    def knows(self, session: str) -> bool:
        # A lookup by hash: how long it takes says nothing about another session's name.
        with self._lock:
            return session in self._known

    def sign(self, *parts: str) -> str:
        """A mark that only this process can make: which text it was made for cannot be changed."""
        message = b"".join(len(part.encode()).to_bytes(8, "big") + part.encode() for part in parts)
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()

    def is_signed(self, mark: str, *parts: str) -> bool:
        return hmac.compare_digest(mark.encode(), self.sign(*parts).encode())

    def csrf(self, session: str) -> str:
        """What every form of a session carries, and no other site can know."""
        return self.sign("csrf", session)
