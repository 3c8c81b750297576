"""Other repositories: where they are, which of their refs are kept here under what name, and the port to reach them.

Remotes are those of git itself, in the receipts repository's own config. What is fetched lies under
`refs/remotes/<remote>/` and nowhere else (FORMAT §2):

    there                     here
    refs/heads/<branch>       refs/remotes/<remote>/<branch>          main, ledger/<workspace id>, run/<id>, answer/<id>
    refs/runs/<id>            refs/remotes/<remote>/runs/<id>
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dulwich.objects import ObjectID
from dulwich.refs import DiskRefsContainer, Ref

from ..core.plain import git_line
from ..core.redaction import Redactor
from ..core.spelling import suggestion
from ..errors import InvalidInput, NotFound
from . import git_binary, peek

if TYPE_CHECKING:
    from dulwich.config import ConfigFile

HEADS = "refs/heads/"
DEFAULT = "origin"

# A slash would make `REMOTE/RUN` ambiguous; a dash in front would make an option of the name.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(://|::)")
# Of git's own `ext::` runs any command, and others ask nobody who they are.
SCHEMES = ("file", "http", "https", "ssh")


@dataclass(frozen=True)
class Remote:
    """A repository to exchange with: `url` is what is fetched from, `push_url` what is pushed to."""

    name: str
    url: str
    push_url: str

    @property
    def shown(self) -> str:
        """Its address without a password."""
        return Redactor().text(self.url)

    @property
    def prefix(self) -> str:
        return f"{peek.REMOTES}{self.name}/"


class Transport(Protocol):
    """The way to one remote. Every method may raise RemoteFailure; nothing that comes from there is executed."""

    def refs(self, *, for_push: bool = False) -> dict[str, str]:
        """What the remote has below `refs/heads/` and `refs/runs/`: name to commit id.

        `for_push` asks where pushes go, which may be another address.
        """

    def fetch(self, *, prune: bool) -> None:
        """Bring its refs up to date below `refs/remotes/<remote>/`, and move nothing else.

        `prune` drops those that are gone there. Raises IntegrityError for objects that no repository should hold.
        """

    def push(self, values: Mapping[str, str]) -> dict[str, str]:
        """Move its refs to these commits, forwards only; why it did not, for each that did not move."""

    def replace(self, ref: str, old: str, new: str) -> str | None:
        """Move one ref to `new` from `old` and from nothing else, forwards or not; why it did not."""


def remote_names(repository: Path) -> list[str]:
    """The remotes of a repository, in the order of their names."""
    return _names(_config(repository))


def find_remote(repository: Path, name: str | None = None) -> Remote:
    """The remote of this name; without one, the only one or `origin`. Raises NotFound, InvalidInput."""
    config = _config(repository)
    known = _names(config)
    wanted = name or (known[0] if len(known) == 1 else DEFAULT)
    if wanted not in known:
        add = git_line(repository, "remote", "add", wanted if _NAME.fullmatch(wanted) else DEFAULT, "URL")
        hint = suggestion(wanted, known, "remotes") if known else f"`{add}` adds one"
        raise NotFound(f"no remote {wanted!r} in {repository}", hint=hint)
    if not _NAME.fullmatch(wanted):
        raise InvalidInput(f"the remote's name {wanted!r} cannot stand before a run's id", hint="rename it in git")
    section = (b"remote", wanted.encode())
    urls = [value.decode() for value in config.get_multivar(section, b"url")] if section in config else []
    if not urls:
        hint = git_line(repository, "remote", "set-url", wanted, "URL")
        raise InvalidInput(f"remote {wanted!r} has no url", hint=hint)
    pushed = [value.decode() for value in config.get_multivar(section, b"pushurl")]
    remote = Remote(wanted, urls[0], pushed[0] if pushed else urls[0])
    for url in (remote.url, remote.push_url):
        _check_url(remote, url)
    return remote


def kept_as(remote: Remote, ref: str) -> str | None:
    """The name under which a remote's ref is kept here; None for one that is not taken."""
    if ref.startswith(peek.RUNS):
        return f"{remote.prefix}runs/{ref.removeprefix(peek.RUNS)}"
    branch = ref.removeprefix(HEADS)
    # A branch of this name would take the place of the runs; HEAD is git's own word.
    if branch == ref or branch.partition("/")[0] in ("runs", "HEAD"):
        return None
    return remote.prefix + branch


def kept_of(remote: Remote, theirs: Mapping[str, str]) -> dict[str, str]:
    """What a remote has, by the names that it is kept under here."""
    return {name: commit for ref, commit in theirs.items() if (name := kept_as(remote, ref))}


def prune(repository: Path, remote: Remote, theirs: Mapping[str, str]) -> None:
    """Forget what was fetched from a remote and is not there any more."""
    kept = kept_of(remote, theirs)
    gone = {ref: value for ref, value in peek.all_refs(repository, remote.prefix).items() if ref not in kept and value}
    if gone and not git_binary.delete_refs(str(repository), gone):
        refs = DiskRefsContainer(str(repository))
        for ref, value in gone.items():
            refs.remove_if_equals(Ref(ref.encode()), ObjectID(value.encode()))


def is_exchanged(ref: str) -> bool:
    """Whether a remote's ref is any of our business."""
    return ref.startswith((HEADS, peek.RUNS))


def _config(repository: Path) -> ConfigFile:
    # A tenth of what it takes to start a command, and only those that exchange ask for it.
    from dulwich.config import ConfigFile  # noqa: PLC0415

    return ConfigFile.from_path(repository / "config")


def _names(config: ConfigFile) -> list[str]:
    return sorted(section[1].decode() for section in config.sections() if section[0] == b"remote" and len(section) > 1)


def _check_url(remote: Remote, url: str) -> None:
    found = _SCHEME.match(url)
    if url.startswith("-") or (found and (found[2] == "::" or found[1].lower() not in SCHEMES)):
        raise InvalidInput(
            f"remote {remote.name!r} is at {Redactor().text(url)!r}, which is no address to exchange with",
            hint=f"a local path, host:path, or one of {', '.join(f'{scheme}://' for scheme in SCHEMES)}",
        )
