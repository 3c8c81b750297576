"""One SQLite file that may vanish at any moment: open it, notice that it is gone, put a new one in its place.

- Nobody creates the file in place. A new one is filled beside it and renamed, so no half-made schema is ever seen.
- Opening takes `<file>.lock` shared, replacing takes it exclusively: an opener can not meet the moment in which the
  old `-wal` is gone and the old file still there (it would write a new `-wal` that the next file would then believe).
- Whoever holds a file that was replaced only reads and writes what no path leads to any more; SQLite itself checks
  before it deletes a `-wal` by name that the file was not moved.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from ..errors import HermesError, InvalidInput, NewerSchema, StoreFailure, TemporarilyLocked
from . import tables
from .flocks import let_go, open_to_lock

if TYPE_CHECKING:
    from pathlib import Path

BUSY_SECONDS = 10.0
# Filling a new file reads every run; another process should rather wait for it than fail or fill one more.
REPLACE_SECONDS = 120.0
_PAUSE = 0.01
# In nanoseconds: many times what Linux' and macOS' own file systems take for one moment, and what the others do, whose
# times are whole seconds.
_TICK = 100_000_000
_SECOND = 1_000_000_000
_COARSE_TICK = 2 * _SECOND
# Checkpoints sync; four times SQLite's default makes them rare and keeps the `-wal` at 16 MB.
CHECKPOINT_PAGES = 4000

_WRITABLE = "the folder must be writable to run workflows in it"

Fill = Callable[[sqlite3.Connection], None]
# When a `-wal` was written last, in nanoseconds, and its size.
Written = tuple[int, int]


class DatabaseGone(Exception):
    """The file is missing, damaged, of an older version, or no longer the one at its path."""


class Stamp(NamedTuple):
    """Which files a connection has open; a change means that the path leads elsewhere now."""

    file: tuple[int, int]
    wal: tuple[int, int]

    @classmethod
    def of(cls, path: Path) -> Stamp:
        return cls(_inode(path), _inode(_beside(path, "-wal")))


class Database:
    """An open connection and the stamp it had. Not thread-safe by itself."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self.connection = connection
        self.stamp = Stamp.of(path)
        self._name, self._wal = str(path), str(_beside(path, "-wal"))
        self._size = os.stat(path).st_size
        self._quiet: Written | None = None
        self._version = 0

    def check(self) -> Written:
        """Raise DatabaseGone when the path no longer leads to this file, or the file has shrunk (it never does)."""
        try:
            found = os.stat(self._name)
        except OSError as error:
            raise DatabaseGone(f"{self.path}: {error.strerror}") from None
        try:
            wal = os.stat(self._wal)
        except OSError:
            inode, written = (0, 0), (0, 0)
        else:
            inode, written = (wal.st_dev, wal.st_ino), (wal.st_mtime_ns, wal.st_size)
        if (found.st_dev, found.st_ino) != self.stamp.file or inode != self.stamp.wal:
            raise DatabaseGone(f"{self.path} was replaced")
        if found.st_size < self._size:
            raise DatabaseGone(f"{self.path} was cut")
        self._size = found.st_size
        return written

    def version(self) -> int:
        """A number that another connection's commit changes. Raises DatabaseGone, sqlite3.Error.

        SQLite is asked, which takes locks, only when the `-wal` has been written since, or so shortly before that
        another commit might have got the same time.
        """
        written = self.check()
        if written != self._quiet:
            (self._version,) = self.connection.execute("PRAGMA data_version").fetchone()
            tick = _TICK if written[0] % _SECOND else _COARSE_TICK
            self._quiet = written if time.time_ns() - written[0] > tick else None
        return self._version

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """BEGIN IMMEDIATE: a read-then-write upgrade would fail at once, whatever the timeout."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield self.connection
            self.connection.execute("COMMIT")
        except BaseException:
            # A disk that is full has rolled back by itself already.
            with suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self.connection.close()


def open_database(path: Path) -> Database:
    """Raises DatabaseGone when there is nothing usable, InvalidInput for a database of another program, NewerSchema."""
    with _lock(path, fcntl.LOCK_SH):
        return _open(path)


def open_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that neither creates nor writes; the same errors as `open_database`."""
    with _glance(path):
        try:
            return _checked(path, _connect(path, "ro"))
        except (DatabaseGone, StoreFailure):
            if _size(_beside(path, "-wal")):
                raise
            # In a folder that cannot be written no `-shm` can be made; with no `-wal` nothing can change below us.
            return _checked(path, _connect(path, "ro&immutable=1"))


def replace_database(path: Path, fill: Fill, *, distrust: Stamp | None = None) -> Database:
    """Put a new file at `path`, filled by `fill`, unless another process has just done so.

    `distrust` is the stamp of a file that turned out to be damaged: it is not taken for somebody's new one.
    A damaged file is kept beside as `<file>.damaged`, lest a mistyped path costs somebody a file.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _no_file(path, error) from None
    with _lock(path, fcntl.LOCK_EX):
        with suppress(DatabaseGone):
            found = _open(path)
            if distrust is None or found.stamp.file != distrust.file:
                return found
            found.close()
        try:
            _swap(path, _build(path, fill))
        except OSError as error:
            raise _no_file(path, error) from None
        return _open(path)


def damage_of(path: Path) -> str | None:
    """What SQLite finds wrong in the file, in its words; None also for one that is older, or not to be read now."""
    try:
        with closing(_connect(path, "ro")) as connection:
            (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        primary = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        return str(error) if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) else None
    except DatabaseGone:
        return None
    return None if said == "ok" else str(said)


def set_aside(path: Path) -> bool:
    """Take a damaged file away, as `<file>.damaged`: whoever opens it next makes a new one, living runners too.

    False when somebody has just done so.
    """
    with _lock(path, fcntl.LOCK_EX):
        if damage_of(path) is None:
            return False
        try:
            os.replace(path, _beside(path, ".damaged"))
            for ending in ("-wal", "-shm", "-journal"):
                _beside(path, ending).unlink(missing_ok=True)
        except OSError as error:
            raise _no_file(path, error) from None
    return True


def translated(error: sqlite3.Error, path: Path) -> Exception:
    """What a SQLite error means: the file is gone, somebody is writing, or the disk does not do as it should."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if code is not None else None
    text = str(error)
    missing_part = primary == sqlite3.SQLITE_ERROR and text.startswith(("no such table", "no such column"))
    unreadable = code is None and text.startswith("Could not decode")
    if primary in _GONE or code == sqlite3.SQLITE_READONLY_DBMOVED or missing_part or unreadable:
        return DatabaseGone(f"{path}: {text}")
    if primary in _BUSY:
        return TemporarilyLocked(f"{path} is being written by another process", hint="try again in a moment")
    if primary == sqlite3.SQLITE_FULL:
        return StoreFailure(f"{path}: the disk is full", hint="free some space and run the same command again")
    if primary == sqlite3.SQLITE_READONLY:
        return StoreFailure(f"{path} cannot be written", hint="check the permissions of the file and of its folder")
    return error


_GONE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}


def _open(path: Path) -> Database:
    connection = _checked(path, _connect(path, "rw"))
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        return Database(path, connection)
    except (OSError, sqlite3.Error) as error:
        # Somebody has just deleted it, or its disk fails.
        connection.close()
        raise translated(error, path) if isinstance(error, sqlite3.Error) else DatabaseGone(str(error)) from None


def _checked(path: Path, connection: sqlite3.Connection) -> sqlite3.Connection:
    try:
        check_version(path, connection)
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.Error):
            raise translated(error, path) from None
        raise
    return connection


def check_version(path: Path, connection: sqlite3.Connection) -> None:
    """Whose file is it, and of which version? The read also opens `-wal` and `-shm`, which the stamp needs."""
    (count,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if owner != tables.APPLICATION_ID and count:
        raise InvalidInput(
            f"{path} is a database of another program",
            hint="name another path for it in .hermes/workflows.registry.json; this file was left as it is",
        )
    if owner == tables.APPLICATION_ID and version > tables.SCHEMA_VERSION:
        raise NewerSchema(f"{path} was made by a newer version of this program", hint="upgrade hermes-workflows")
    if not count or version < tables.SCHEMA_VERSION:
        raise DatabaseGone(f"{path} has no tables of this version")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
    except sqlite3.Error as error:
        raise translated(error, path) from None
    connection.row_factory = sqlite3.Row
    return connection


def _build(path: Path, fill: Fill) -> Path:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    _sweep(path)
    made = _beside(path, f".{os.urandom(4).hex()}.new")
    try:
        with closing(_connect(made, "rwc")) as connection:
            _create(connection, fill)
    except (DatabaseGone, sqlite3.Error) as error:
        # Nothing was there before, so nothing is gone: the folder or the disk refuses a new file.
        found = translated(error, path) if isinstance(error, sqlite3.Error) else error
        raise StoreFailure(str(found), hint=_WRITABLE) if isinstance(found, DatabaseGone) else found from None
    return made


def _create(connection: sqlite3.Connection, fill: Fill) -> None:
    connection.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {tables.SCHEMA}")
    connection.execute("BEGIN")
    fill(connection)
    connection.execute("COMMIT")
    connection.execute(f"PRAGMA application_id = {tables.APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {tables.SCHEMA_VERSION}")
    connection.execute("PRAGMA journal_mode = WAL")


def _swap(path: Path, made: Path) -> None:
    if path.exists() and path.stat().st_size:
        os.replace(path, _beside(path, ".damaged"))
    # Before the new file: SQLite would take an old `-wal` beside it for the new file's own.
    for ending in ("-wal", "-shm", "-journal"):
        _beside(path, ending).unlink(missing_ok=True)
    os.replace(made, path)


def _sweep(path: Path) -> None:
    """What builders left that were killed; the exclusive lock says that none is alive."""
    for left in path.parent.glob(f"{path.name}.*.new*"):
        left.unlink(missing_ok=True)


@contextmanager
def _lock(path: Path, how: int) -> Iterator[None]:
    try:
        descriptor = open_to_lock(_beside(path, ".lock"), os.O_RDWR | os.O_CREAT, 0o666)
    except FileNotFoundError:
        raise DatabaseGone(f"{path.parent} does not exist") from None
    except OSError as error:
        raise _no_file(path, error) from None
    try:
        _wait_for(descriptor, how, path)
        yield
    finally:
        let_go(descriptor)


@contextmanager
def _glance(path: Path) -> Iterator[None]:
    """The shared lock without waiting and without creating anything."""
    try:
        descriptor = open_to_lock(_beside(path, ".lock"), os.O_RDONLY)
    except OSError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise DatabaseGone(f"{path} is being made again") from None
    finally:
        let_go(descriptor)


def _wait_for(descriptor: int, how: int, path: Path) -> None:
    for _ in range(int(REPLACE_SECONDS / _PAUSE)):
        try:
            return fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE)
    raise TemporarilyLocked(f"{path} is being made again by another process", hint="try again in a moment")


def _no_file(path: Path, error: OSError) -> HermesError:
    return StoreFailure(f"{path}: {error.strerror}", hint=_WRITABLE)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _inode(path: Path | str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)
