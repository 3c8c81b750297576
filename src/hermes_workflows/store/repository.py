"""The receipts repository itself: what makes one, what it is recognised by, and its first commit.

It is written file by file, not by `git init`, so that nothing of the machine's git (templates, hooks, user, signing,
line ends, GIT_* variables) can get into it. Everything here is frozen by golden tests: the genesis commit is the
common root of all runs of all workspaces, which is what lets runs made on two machines be one pull request.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from ..core.receipts import Author
from ..errors import IntegrityError, NotFound, StoreFailure
from . import peek
from .commits import Commit
from .durability import Disk, Durability, disk_for
from .objects import Objects
from .trees import FILE, Folder, Item, Trees

GENESIS = "5a9177a7b9186b21ed7aaecafae83d28aaca53c9"
MAIN = "refs/heads/main"

# 2026-01-01: any constant would do, except the epoch, which some tools take for "no date".
_GENESIS_TIME = 1767225600

_README = """\
# Receipts of durable workflow runs

Every run of hermes-workflows is a list of receipts: JSON files, each added by one commit and never changed.
This commit is the first of every run, the same in every workspace.

A run lives under `refs/runs/<id>`, in the folder `runs/<day it started>/<id>/`; finished runs are also collected
on the branch `ledger`. Plain git reads all of it:

    git log runs/<id>                       what happened, in order
    git show runs/<id>                      the newest receipt
    git diff main...runs/<id>               everything the run recorded
    git diff A:runs/<day>/<a> B:runs/<day>/<b>
                                            two runs compared, given their ids or commits A and B

What may differ between two equal executions (times, attempts, usage) stands in each receipt's `execution` block.
In this repository `git diff` leaves that block out. Elsewhere it can be left out by its lines:

    git diff -I'"(seq|started_at|finished_at|duration_seconds|attempt|runner|cost_usd|input_tokens|output_tokens)":'

Other useful commands:

    git fetch <here> 'refs/runs/*:refs/remotes/origin/runs/*'     runs, into a clone
    git clone --mirror <here> backup.git                          a backup; never copy files of a live repository

People answer a review with `hermes-workflows review respond`. Do not push to `refs/runs`: it is refused.
"""

_ATTRIBUTES = """\
* -text
*.json diff=receipt
"""

# sed, because it is everywhere git is and starts in a millisecond: a textconv in Python took 31 s for 100 files, and
# one that cannot be started is fatal to `git diff`. It relies on receipts' two-space indent.
_TEXTCONV = r"sed -e '/^  \"execution\": {$/,/^  },\\{0,1\\}$/d'"

_CONFIG = """\
[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
	logAllRefUpdates = false
	hooksPath = hooks
	autocrlf = false
[gc]
	auto = 0
[maintenance]
	auto = false
[commit]
	gpgSign = false
[tag]
	gpgSign = false
[receive]
	denyNonFastForwards = true
	denyDeletes = true
	autogc = false
	hideRefs = refs/runs
	hideRefs = refs/heads/ledger
[diff "receipt"]
	textconv = "{textconv}"
[hermes]
	workspace = {workspace}
"""


# Without these git itself, or somebody's push, may do what nobody should.
_PROTECTING = (
    ("gc.auto", "0"),
    ("receive.denyNonFastForwards", "true"),
    ("receive.denyDeletes", "true"),
    ("receive.hideRefs", "refs/runs"),
    ("receive.hideRefs", "refs/heads/ledger"),
)


def create(path: Path, durability: Durability) -> None:
    """Make an empty receipts repository at `path`, all of it or nothing. Raises StoreFailure.

    Of two processes that create the same one, the first wins and the other finds it made.
    """
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        disk = disk_for(path.parent, durability)
        _write_repository(temporary, disk)
        _rename_new(temporary, path)
        disk.sync_folder(path.parent)
    except OSError as error:
        raise StoreFailure(
            f"cannot make the receipts repository {path}: {error.strerror or error}",
            hint="the folder must exist, be writable and have space",
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def workspace_id(path: Path) -> str:
    """Recognise the repository at `path` and return its workspace's random id.

    Raises NotFound when nothing is there, IntegrityError when it is something else.
    """
    if not os.path.lexists(path):
        raise NotFound(
            f"there is no receipts repository at {path}",
            hint="start a run to make one, or check the path in the registry",
        )
    try:
        config = (path / "config").read_text(encoding="utf-8", errors="replace")
    except NotADirectoryError:
        raise _foreign(path, "it is a file") from None
    except FileNotFoundError:
        raise _foreign(path, "it is no bare git repository") from None
    except OSError as error:
        raise StoreFailure(f"cannot read {path}: {error.strerror}") from error
    workspace = _setting(config, "hermes", "workspace")
    if workspace is None:
        raise _foreign(path, "its config names no hermes.workspace")
    if not peek.read_ref(path, MAIN):
        raise _foreign(path, "it has no branch main")
    return workspace


def missing_settings(path: Path) -> list[tuple[str, str]]:
    """Settings of a receipts repository that this one lacks, as after it was restored from a mirror: name and value."""
    config = (path / "config").read_text(encoding="utf-8", errors="replace")
    squeezed = {" ".join(line.split()).lower() for line in config.splitlines()}
    return [
        (name, value) for name, value in _PROTECTING if f"{name.rpartition('.')[2]} = {value}".lower() not in squeezed
    ]


def _foreign(path: Path, why: str) -> IntegrityError:
    return IntegrityError(
        f"{path} is not a receipts repository of hermes-workflows: {why}",
        hint="name another path in the registry; in a restored mirror, set hermes.workspace to the id in its run.json",
    )


def _setting(config: str, section: str, name: str) -> str | None:
    current = ""
    for line in config.splitlines():
        line = line.strip()
        if line.startswith("["):
            current = line.strip("[] ").lower()
        elif current == section:
            key, _, value = line.partition("=")
            if key.strip().lower() == name:
                return value.strip().strip('"') or None
    return None


def _write_repository(path: Path, disk: Disk) -> None:
    path.mkdir()
    for folder in (
        "objects/info",
        "objects/pack",
        "refs/heads",
        "refs/tags",
        "refs/runs",
        "info",
        "hermes/locks",
        "hermes/pending",
    ):
        (path / folder).mkdir(parents=True)
    genesis = _write_genesis(Objects(path, disk), disk)
    assert genesis == GENESIS, genesis
    for name, content in _files():
        (path / name).write_text(content, encoding="utf-8", newline="\n")
    for folder, _, names in os.walk(path):
        for name in names:
            descriptor = os.open(os.path.join(folder, name), os.O_RDONLY)
            try:
                disk.sync_file(descriptor)
            finally:
                os.close(descriptor)
        disk.sync_folder(folder)


def _files() -> Iterator[tuple[str, str]]:
    yield "HEAD", f"ref: {MAIN}\n"
    yield "description", "Receipts of durable workflow runs\n"
    # A bare repository of git 2.39 reads attributes from here only, never from a tree.
    yield "info/attributes", _ATTRIBUTES
    yield "config", _CONFIG.format(textconv=_TEXTCONV, workspace=secrets.token_hex(8))
    yield MAIN, GENESIS + "\n"


def _write_genesis(objects: Objects, disk: Disk) -> str:
    barrier = disk.barrier()

    def write(kind: bytes, body: bytes) -> bytes:
        return objects.write(kind, body, barrier)

    files = {"README.md": _README, ".gitattributes": _ATTRIBUTES}
    items = {name: Item(FILE, write(b"blob", content.encode())) for name, content in files.items()}
    root = Trees(lambda _: b"").put(Folder([], []), items, write)
    author = Author("hermes-workflows")
    message = "Receipts of durable workflow runs\n"
    commit = write(b"commit", Commit(root.oid, (), message, author, author, _GENESIS_TIME).serialise())
    barrier.settle()
    return commit.hex()


def _rename_new(temporary: Path, path: Path) -> None:
    try:
        os.rename(temporary, path)
    except OSError:
        # A folder that is not empty is somebody's, and will be recognised or refused when it is opened.
        if not path.is_dir():
            raise
