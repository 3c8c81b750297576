"""How long something took or has been going on, as people read it."""

from __future__ import annotations


def duration(seconds: float | None) -> str:
    """`5 ms`, `1.2 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`; empty for None."""
    if seconds is None:
        return ""
    if 0 <= seconds < 0.1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else lasting(seconds)


def lasting(seconds: float) -> str:
    """The same of what still goes on: whole seconds, since the next look shows another number."""
    whole = max(int(seconds), 0)
    for size, unit, small, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"
