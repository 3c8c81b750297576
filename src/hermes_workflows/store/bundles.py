"""Runs as files: git bundles with their whole history, written and read, and tar archives of what they recorded.

# v2 git bundle                 what it is
-<commit> comment               a commit that whoever reads it must have already; none in ours
<commit> <ref>                  what is in it
                                an empty line, then a pack
"""

from __future__ import annotations

import io
import os
import re
import secrets
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.objects import ObjectID
from dulwich.pack import write_pack_data
from dulwich.repo import Repo

from ..core.names import run_component
from ..errors import Conflict, IntegrityError, InvalidInput, StoreFailure
from . import git_binary, peek
from .ports import Head
from .remotes import HEADS
from .snapshots import Snapshots
from .trees import FILE

_SIGNATURES = (b"# v2 git bundle\n", b"# v3 git bundle\n")
_LINE = re.compile(rb"(-?)([0-9a-f]{40})(?: ([^\n]*))?\n")

# A header that goes on longer is none: thousands of runs fit.
_LONGEST_LINE, _MOST_LINES = 4096, 20_000
_BAD_PARTS = frozenset({"", ".", "..", ".git"})


@dataclass(frozen=True)
class Header:
    """What a bundle says is in it: refs and their commits."""

    refs: Mapping[str, str]

    def tips(self) -> list[str]:
        """The commits it offers as runs, each once; other refs are none of ours."""
        wanted = (peek.RUNS, f"{HEADS}run/")
        return list(dict.fromkeys(commit for ref, commit in self.refs.items() if ref.startswith(wanted)))


def read_header(file: BinaryIO, name: str) -> Header:
    """Read up to where the pack begins. Raises InvalidInput for what is no bundle of commits with sha1 names."""
    if file.readline(_LONGEST_LINE) not in _SIGNATURES:
        raise InvalidInput(
            f"{name} is no git bundle",
            hint="`hermes-workflows export RUN --bundle FILE` makes one; a tar has no history",
        )
    refs: dict[str, str] = {}
    for _ in range(_MOST_LINES):
        line = file.readline(_LONGEST_LINE)
        if line == b"\n":
            return Header(refs)
        if line == b"@object-format=sha1\n":
            continue
        found = _LINE.fullmatch(line)
        if found is None or not (found[1] or found[3]):
            break
        # Commits that a bundle takes for granted are missed when it is unpacked, if they are not here.
        if not found[1]:
            refs[found[3].decode("utf-8", "replace")] = found[2].decode()
    raise InvalidInput(f"{name} has a header that is not a bundle's", hint="it is cut off, or has objects left out")


def write_bundle(repository: Path, head: Head, target: Path, git: str | None) -> None:
    """All of a run's commits in one file, which plain git clones and fetches from. Raises Conflict, StoreFailure.

    `git` is the git program, which packs tighter and faster than dulwich.
    """
    component = run_component(head.run_id)
    # HEAD lets `git clone FILE` check the run out.
    refs = ("HEAD", f"{HEADS}run/{component}", f"{peek.RUNS}{component}")
    lines = "".join(f"{head.tip} {ref}\n" for ref in refs)
    with _new_file(target) as file:
        file.write(f"{_SIGNATURES[0].decode()}{lines}\n".encode())
        file.flush()
        if git:
            _pack_by_git(git, repository, head.tip, file)
        else:
            _pack_by_dulwich(repository, head.tip, file)


def write_tar(snapshots: Snapshots, head: Head, target: Path) -> int:
    """What a run recorded, as plain files below a folder of its name; how many.

    A name that ends in .gz, .bz2 or .xz is compressed so. Equal runs give equal archives.
    Raises InvalidInput for a name that no tar has, Conflict, IntegrityError.
    """
    tip = bytes.fromhex(head.tip)
    snapshot, commit = snapshots.at(tip), snapshots.commit(tip)
    count = 0
    with _new_file(target) as file, _tar(file, target, head.tip) as archive:
        for path, item in snapshots.trees.walk(snapshot.run_folder()):
            if item.mode != FILE or _BAD_PARTS.intersection(path.split("/")):
                raise IntegrityError(f"{head.run_id}: {path} is no plain file", hint="hermes-workflows verify")
            data = snapshots.objects.read(item.oid, b"blob")
            entry = tarfile.TarInfo(f"{run_component(head.run_id)}/{path}")
            entry.size, entry.mtime, entry.mode = len(data), commit.time, 0o644
            archive.addfile(entry, io.BytesIO(data))
            count += 1
    return count


def _tar(file: BinaryIO, target: Path, tip: str) -> tarfile.TarFile:
    kinds: Mapping[str, Callable[..., tarfile.TarFile]] = {
        ".tar": tarfile.TarFile,
        ".gz": tarfile.TarFile.gzopen,
        ".tgz": tarfile.TarFile.gzopen,
        ".bz2": tarfile.TarFile.bz2open,
        ".xz": tarfile.TarFile.xzopen,
    }
    make = kinds.get(target.suffix)
    if make is None:
        raise InvalidInput(f"{target.name} is no name of a tar", hint=f"such names end in {', '.join(kinds)}")
    # As `git archive` writes it: the commit, where `git get-tar-commit-id` finds it.
    return make(name=None, mode="w", fileobj=file, format=tarfile.PAX_FORMAT, pax_headers={"comment": tip})


def _pack_by_git(git: str, repository: Path, tip: str, file: BinaryIO) -> None:
    done = subprocess.run(
        [git, "-c", f"safe.directory={repository}", "pack-objects", "--revs", "--stdout", "--delta-base-offset", "-q"],
        input=f"{tip}\n".encode(),
        cwd=repository,
        env={**git_binary.ENVIRONMENT, "GIT_DIR": str(repository)},
        stdout=file,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())
        raise IntegrityError(f"the run cannot be packed: {said}", hint="`hermes-workflows verify` says what is damaged")


def _pack_by_dulwich(repository: Path, tip: str, file: BinaryIO) -> None:
    with closing(Repo(str(repository))) as repo:
        try:
            count, records = repo.object_store.generate_pack_data([], [ObjectID(tip.encode())])
            write_pack_data(file.write, records, DEFAULT_OBJECT_FORMAT, num_records=count)
        except KeyError as error:
            raise IntegrityError(
                f"the run cannot be packed: {error} is missing", hint="`hermes-workflows verify` says what is damaged"
            ) from error


@contextmanager
def _new_file(target: Path) -> Iterator[BinaryIO]:
    """A file that gets its name when it is whole."""
    if target.exists():
        raise Conflict(f"{target} is there already", hint="remove it, or name another file")
    temporary = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, target)
    except OSError as error:
        raise StoreFailure(f"cannot write {target}: {error.strerror or error}", hint="name another file") from error
    finally:
        temporary.unlink(missing_ok=True)
