"""What the kit says when a test fails. These are failed assertions, so that pytest shows them as such."""

from __future__ import annotations

from operator import methodcaller

SAME_AGAIN = (
    "A body may depend on its input and on what its calls return, and on nothing else. "
    "Take times, random numbers and files from a @step; sort a set before you iterate over it."
)

# What pytest reads of a module: a failed assertion is shown where the test made it, a fault of ours with all frames.
HIDDEN = methodcaller("errisinstance", AssertionError)


class ReplayMismatch(AssertionError):
    """A body decided otherwise than before from the same receipts; the message names keys and lines."""


class Unscripted(AssertionError):
    """A run needed an answer that the test has not scripted, or no more of them."""


class TookTooLong(AssertionError):
    """A run was not over after its time, in seconds of the real world; the message says what went on."""


class ReplayWarning(UserWarning):
    """A replay in another process was asked for and is not possible; the one in this process was made."""


class Halt(BaseException):
    """Ends a test's run at once with `failure`; not an Exception, which the runner would take for a stuck run."""

    def __init__(self, failure: AssertionError) -> None:
        super().__init__(failure)
        self.failure = failure
