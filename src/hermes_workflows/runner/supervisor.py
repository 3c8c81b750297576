"""What a runner tells the supervisor that started it, in systemd's protocol: ready, alive, stopping.

One datagram a word, to the socket that `$NOTIFY_SOCKET` names. Alive means that the loop comes round: a runner whose
threads live and whose loop hangs says nothing, and is started anew when the watchdog's time is over.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping

_MICROSECONDS = 1_000_000
# In seconds: a supervisor that does not read must not hold up who renews the leases.
_PATIENCE = 0.5

log = logging.getLogger("hermes_workflows.runner")


class Supervisor:
    """Tells nobody without an `address`. `watchdog` is after how many silent seconds we would be killed, or None."""

    def __init__(self, address: str | None = None, watchdog: float | None = None) -> None:
        self._address = address
        self._watchdog = watchdog
        self._told_of_it = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], pid: int) -> Supervisor:
        """The supervisor that this environment names; its watchdog only when it watches process `pid`."""
        address = environment.get("NOTIFY_SOCKET")
        if not address or address[0] not in "/@":
            return cls()
        watched = environment.get("WATCHDOG_PID") in (None, str(pid))
        microseconds = environment.get("WATCHDOG_USEC", "") if watched else ""
        seconds = int(microseconds) / _MICROSECONDS if microseconds.isdecimal() else None
        return cls(address, seconds or None)

    def ready(self) -> None:
        self._tell("READY=1\nSTATUS=waiting for work, and executing it")

    def alive(self, silent: float) -> None:
        """Called about once a second; `silent` is for how many seconds the loop has not come round."""
        if self._watchdog is not None and silent < self._watchdog / 2:
            self._tell("WATCHDOG=1")

    def stopping(self) -> None:
        self._tell("STOPPING=1\nSTATUS=stopping")

    def _tell(self, said: str) -> None:
        if self._address is None:
            return
        # A name that begins with @ is one of Linux's, of no file.
        address = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ours:
                ours.settimeout(_PATIENCE)
                ours.connect(address)
                ours.sendall(said.encode())
        except OSError as error:
            # It may be starting anew itself, so the next word is tried again.
            if not self._told_of_it:
                log.warning("the supervisor does not listen at %s: %s", self._address, error.strerror or error)
            self._told_of_it = True
