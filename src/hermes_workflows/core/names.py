"""Names that become paths and refs: every component made from foreign text is made here.

A component is unchanged when it is already safe everywhere: in a git tree and a ref, on Windows, on a file system
that folds case, and beside the reserved forms of a run's tree (`x.json`, `x.attempt-1`, `request` …).
Anything else becomes `<readable>-<hash of the original>`. The original name stands in the JSON; a path is not
translated back.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from ..errors import InvalidInput

MAX_COMPONENT = 80
"""Bytes of one component; what a receipt's file name adds (`.attempt-12.json`) stays far below 255."""

MAX_KEY = 1000
"""Bytes of a whole key: with the folder of a clone before it, a path still checks out on every system."""

MAX_RUN_ID = 100

MAX_NAME = 1000
"""Characters of a name that is kept as it was written, as those of signals are."""

_ALLOWED = re.compile(r"[a-z0-9_][a-z0-9._-]*")
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DEVICES = frozenset({"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(10)})
_RESERVED = re.compile(r"(?:request|response|start|fired)|.*\.(?:json|start|(?:attempt|late)-[0-9]+)")
# What ends a line somewhere, moves a cursor, turns the reading direction, or is no character: none will be added to it.
_UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# Bytes of a component of somebody else's naming; file systems take 255.
_MAX_FOREIGN = 200
# Also what HFS+ leaves out of names (joiners, marks of direction, the byte order mark), and separators of Windows.
_FOREIGN = re.compile('[\x00-\x1f\x7f-\x9f<>:"|?*\\\\\u200c-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]')
# git's own folder and files, and what they are called on old Windows.
_GIT = re.compile(r"\.git[ .]*|git~[0-9]+|\.git(?:modules|attributes|ignore)|gi[0-9a-z]{0,6}~[0-9]+", re.IGNORECASE)
_TRAILING_NUMBER = re.compile(r"[0-9]+\Z")

# Letters only, as jj writes its change ids: a digest that ended in digits would get a fan-out folder of its own.
_LETTERS = str.maketrans("0123456789abcdef", "ghjkmnpqrstvwxyz")
_DIGEST_LETTERS = 12

# Tells which characters Unicode 3.2 had: their normal form never changes again.
_FROZEN = unicodedata.ucd_3_2_0


def slug(original: str) -> str:
    """One path component for a name written by anybody; `slug(slug(x)) == slug(x)`.

    Two names that look alike but differ (case, a stripped character) get different components; two spellings of one
    text (composed or decomposed accents) get the same.
    """
    if _is_safe(original, MAX_COMPONENT) and not _RESERVED.fullmatch(original):
        return original
    return _with_digest(original)


def clean_key(key: str) -> str:
    """An explicit key as it stands in the run: components joined by "/", each one made safe.

    Empty components vanish (`a//b` is `a/b`). Raises `InvalidInput` for a key with nothing in it, and for one longer
    than `MAX_KEY` bytes.
    """
    if not isinstance(key, str):
        raise InvalidInput(f"a key must be text, not {type(key).__name__}", hint="write key=str(…), or key_by=…")
    cleaned = "/".join(slug(part) for part in key.split("/") if part)
    if not cleaned:
        raise InvalidInput(f"the key {key!r} names nothing", hint="give it at least one letter or digit")
    if len(cleaned) > MAX_KEY:
        raise InvalidInput(f"a key has at most {MAX_KEY} bytes, not {len(cleaned)}: {cleaned[:40]}…", hint="shorten it")
    return cleaned


def fan_out(key: str) -> str:
    """The path of a clean key below `steps/`: numbered siblings go into folders of a hundred.

    `tick-250` becomes `tick-2xx/tick-250`, `tick-99` stays. A flat folder of 10,000 receipts costs 40 ms a commit.
    Two keys never share a path: a numbered component always stands right below its own folder.
    """
    return "/".join(_fan_out_component(part) for part in key.split("/"))


def is_one_line(name: str) -> bool:
    """Whether a name that is kept as it was written can be shown in a line, a command and a commit as it is."""
    # Most are plain, which Python knows of a text without looking at it again.
    return len(name) <= MAX_NAME and ((name.isascii() and name.isprintable()) or _UNWRITABLE.search(name) is None)


def check_name(name: str, what: str) -> str:
    """A name that is kept as it is written, unchanged. Raises InvalidInput for none, and for one of several lines."""
    clean_key(name)
    if not is_one_line(name):
        shown = repr(name) if len(name) <= MAX_RUN_ID else repr(name[:40]) + "…"
        raise InvalidInput(
            f"{shown} is no name of a {what}",
            hint=f"it is one line of at most {MAX_NAME} characters, without control characters",
        )
    return name


def check_run_id(run_id: str) -> str:
    """The id, unchanged, or `InvalidInput` saying what an id may be."""
    if _RUN_ID.fullmatch(run_id):
        return run_id
    shown = repr(run_id) if len(run_id) <= MAX_RUN_ID else repr(run_id[:40]) + "…"
    raise InvalidInput(
        f"{shown} is not a run id",
        hint="use 1 to 100 ASCII letters, digits, dots, dashes and underscores, starting with a letter or digit",
    )


def source_paths(paths: Iterable[str]) -> dict[str, str]:
    """What a run calls the files of a project, by their paths in it: the same, where every clone can have them.

    Capitals, spaces and all letters stay, as in the project's own repository. What the git of some system refuses to
    check out, or would put elsewhere, gets a component with a hash: `.git` in each of its disguises, devices, what
    Windows takes off a name's end, signs and controls that have a meaning, names that are too long. So do names that
    meet where case is folded.
    """
    made = {path: "/".join(map(_portable, path.split("/"))) for path in paths}
    met = Counter(name.casefold() for name in made.values())
    return {path: name if met[name.casefold()] == 1 else _apart(path, name) for path, name in made.items()}


def _portable(part: str) -> str:
    return part if _is_portable(part) else _with_digest(part, part)


def _apart(path: str, name: str) -> str:
    last = path.rpartition("/")[2]
    return "".join([*name.rpartition("/")[:2], _with_digest(last, last)])


def _is_portable(part: str) -> bool:
    return (
        _FOREIGN.search(part) is None
        and len(part.encode()) <= _MAX_FOREIGN
        and part not in ("", ".", "..")
        and not part.endswith((" ", "."))
        and part.partition(".")[0].rstrip().lower() not in _DEVICES
        and _GIT.fullmatch(part) is None
        and (part.isascii() or _normal("NFC", part) == part)
    )


# A step asks for it twice.
@lru_cache(maxsize=256)
def run_component(run_id: str) -> str:
    """The name of a run's ref and folder: the id itself when it is lower-case and safe, else with a hash.

    Refs are files on disks that fold case, so `WF_A` and `wf_a` must not meet in one.
    """
    if _is_safe(run_id, MAX_RUN_ID):
        return run_id
    return _with_digest(run_id)


def _is_safe(name: str, limit: int) -> bool:
    """Safe as a folder, a file and the last part of a ref, on every system a clone may be read on."""
    return (
        _ALLOWED.fullmatch(name) is not None
        and len(name) <= limit
        and ".." not in name
        and not name.endswith((".", ".lock"))
        and name.partition(".")[0] not in _DEVICES  # Windows opens the device for `con.json` too
    )


def _with_digest(original: str, told_apart: str | None = None) -> str:
    """A readable name with a hash of the original as it is composed, or of what tells it from others."""
    from hashlib import sha256  # noqa: PLC0415  # it loads OpenSSL, a tenth of what the fast `status` takes

    composed = _normal("NFC", original)
    # Lone surrogates (from file names) are hashed, not refused: the JSON refuses them, and with a path.
    hashed = composed if told_apart is None else told_apart
    digest = sha256(hashed.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LETTERS].translate(_LETTERS)
    readable = _readable(composed)[: MAX_COMPONENT - _DIGEST_LETTERS - 1].rstrip("._-") or "x"
    named = f"{readable}-{digest}"
    return named if _is_safe(named, MAX_COMPONENT) else f"{readable.replace('.', '-')}-{digest}"


def _readable(text: str) -> str:
    """What is left of a name in plain ASCII, for people who look at the folder; the digest tells names apart."""
    # An accent is dropped from its letter, so that `Café` reads `cafe`. A long text is cut before the work.
    decomposed = _normal("NFKD", text[:400])
    letters = "".join(c for c in decomposed if not _FROZEN.combining(c))
    return re.sub(r"[^a-z0-9._]+", "-", letters.lower()).strip("._-")


def _normal(form: Literal["NFC", "NFKD"], text: str) -> str:
    """The normal form of what was in Unicode 3.2; later characters stay, since each Python knows more of them.

    A name must not get another path because the runner was upgraded.
    """
    runs = itertools.groupby(text, key=lambda c: _FROZEN.category(c) != "Cn")
    return "".join(unicodedata.normalize(form, "".join(run)) if known else "".join(run) for known, run in runs)


def _fan_out_component(part: str) -> str:
    found = _TRAILING_NUMBER.search(part)
    if found is None:
        return part
    hundreds = found.group().lstrip("0")[:-2]  # by text: a component may end in 80 digits
    return f"{part[: found.start()]}{hundreds}xx/{part}" if hundreds else part
