"""Keys of queue rows that belong to a run and to no call of its body. `$` cannot occur in a call's key."""

from __future__ import annotations

# When a call that others answer is over; the call's key follows.
EXPIRY = "$expiry/"
# When a cancelled run must be done with its cleanup, an ending one with what executes, and any run with everything.
CLEANUP = "$cleanup"
END = "$end"
DEADLINE = "$deadline"
# Notices to people: that there is a question, that it is still open, that nobody has answered in time.
ASKED = "$notify/"
REMIND = "$remind/"
EXPIRED = "$expired/"

# When a row is due that only says that something was done: in the year 9999.
FOREVER = 253_370_764_800.0
