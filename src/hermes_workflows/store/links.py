"""How many names an open file has, asked in a way that costs its next sync nothing.

Since Linux 6.13 a file whose times somebody asked for gets a finer one with its next change (multigrain timestamps),
and on ext4 without a journal the next sync then writes the inode as well: one more wait for the disk. `fstat` asks for
everything; statx(2) is told what is wanted.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable

# linux/stat.h, linux/fcntl.h. The structure has 256 bytes; its fifth word is the number of names.
_EMPTY_PATH = 0x1000
_NUMBER_OF_NAMES = 0x4
_Found = ctypes.c_uint32 * 64
_WORD = 4


def _find_statx() -> Callable[[int, bytes, int, int, object], int] | None:
    if sys.platform != "linux":
        return None  # pragma: no cover  # Linux alone has the call
    function = getattr(ctypes.CDLL(None), "statx", None)
    if function is None:
        return None  # pragma: no cover  # a C library without it
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p]
    function.restype = ctypes.c_int
    call: Callable[[int, bytes, int, int, object], int] = function
    return call


_statx = _find_statx()


def names_of(descriptor: int) -> int:
    """0 for a file that was removed. Raises OSError."""
    if _statx is not None:
        found = _Found()
        if _statx(descriptor, b"", _EMPTY_PATH, _NUMBER_OF_NAMES, found) == 0:
            return int(found[_WORD])
    # Also where a sandbox forbids it; what is wrong with the file, this says.
    return os.fstat(descriptor).st_nlink
