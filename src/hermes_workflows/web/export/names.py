"""Which file an address of the dashboard is in an exported folder. Pure.

No name is foreign: what has only small letters, digits and `._-` stays as it is, all else becomes its plain signs and a
hash. So every file system takes it, two never differ by their case alone, and nothing leaves the folder.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from typing import Final
from urllib.parse import unquote

FILE: Final = re.compile(r"(?:[a-z0-9_][a-z0-9._~-]{0,99}/){0,40}[a-z0-9_][a-z0-9._~-]{0,105}")
_PLAIN: Final = re.compile(r"[a-z0-9_][a-z0-9._-]{0,79}")
# Names of devices, and ends of names, that mean something to some file system or to us.
_TAKEN: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?|.*\.(?:html)?")
# Characters of a whole path; Windows counts 260 with what stands before it.
_LONGEST: Final = 150


def file_of(path: str) -> str:
    """The file of a page that lies at `path`, as `/calls/wf/draft/write`, quoted as in an address."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts == [""]:
        return "index.html"
    named = "/".join(map(part_of, parts))
    if len(named) > _LONGEST:
        named = f"{part_of(parts[0])}/{_hashed('/'.join(parts[1:]))}"
    return f"{named}.html"


def part_of(text: str) -> str:
    """`text` as one part of a path; two texts never have the same."""
    return text if _PLAIN.fullmatch(text) and not _TAKEN.fullmatch(text) else _hashed(text)


def relative(file: str, page: str) -> str:
    """How `page` links to `file`."""
    return posixpath.relpath(file, posixpath.dirname(page) or ".")


def _hashed(text: str) -> str:
    # A `~` is in no plain name.
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-") or "x"
    return f"{plain}~{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
