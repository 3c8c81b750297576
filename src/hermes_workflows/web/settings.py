"""What whoever starts the dashboard decides: whom it serves, where it listens, and in whose name it records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..registry import DatabasePaths, Registry
from ..workspace import Surroundings

CHANNEL = "local-dashboard"


@dataclass(frozen=True)
class WebSettings:
    """`token` lets a browser in: once, or every time when it is `lasting`.

    Without `remote` only this machine is served. `hosts` are names, beside those of the loopback, by which browsers
    may call us. Everything lies below `root_path`, as `/workflows`.
    Answers are recorded as given by `by` through `channel`, and as of `kind`: whatever a browser sends.
    A stream of events is looked at every `look_seconds` and ends after `stream_seconds`; the browser comes back then.
    """

    registry: Registry
    databases: tuple[DatabasePaths, ...]
    surroundings: Surroundings
    token: str
    port: int = 0
    lasting: bool = False
    remote: bool = False
    hosts: tuple[str, ...] = ()
    root_path: str = ""
    by: str = "unknown"
    kind: Literal["human", "manual"] = "manual"
    channel: str = CHANNEL
    look_seconds: float = 1.0
    stream_seconds: float = 300.0
