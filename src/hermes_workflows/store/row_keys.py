"""Keys of queue rows that belong to a run and to no call of its body. `$` cannot occur in a call's key."""

from __future__ import annotations

# When a call that others answer is over; the call's key follows.
EXPIRY = "$expiry/"
# When a cancelled run must be done with its cleanup, an ending one with what executes, and any run with everything.
CLEANUP = "$cleanup"
END = "$end"
DEADLINE = "$deadline"
