"""What lasts on this machine: SQLite files that forget nothing, and files that appear whole or not at all.

A database says which version of its format it has (SQLite's `user_version`). An older file is brought up to date where
its owner says how; any other version is refused, and the file stays as it is.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from tacit.errors import SettingError
from tacit.rand import Rng

VERSION = 1
OWNER_ONLY = 0o600
_MEMORY = ":memory:"
_MOST_KNOWN = 1024
_TIMEOUT = 30.0  # seconds for which another process may hold the file
_RNG = Rng.system()


class Database(sqlite3.Connection):
    """An open SQLite file; several threads may use it one after the other.

    Guarantees:
        A statement outside a transaction, and a transaction as a whole, is on the disk when it has returned.
    """

    version: int | None = None  # of the format in which this process reads and writes; None until that is checked
    _known: dict[Hashable, Any] | None = None
    _state = -1  # of the file, when something was last known of it
    _is_seen = False  # whether the file was looked at for the reading that is going on

    def transaction(self) -> AbstractContextManager[Database]:
        """All or nothing; a transaction within a transaction joins it."""
        return _Transaction(self)

    @property
    def known(self) -> dict[Hashable, Any]:
        """What is in this file, as far as somebody who read or wrote it put it here, so that it is not looked up again.

        Whoever keeps something here changes it with each statement that makes it untrue. It is empty once another
        connection has written to the file, and once a transaction was taken back.
        """
        if self._known is None or not (self._is_seen or self.in_transaction):  # in a transaction nobody else writes
            self._look()
        assert self._known is not None
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        return self._known

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Several look-ups as one: what is known at the start counts for all, whatever others write meanwhile."""
        self._look()
        self._is_seen = True
        try:
            yield
        finally:
            self._is_seen = False

    def snapshot(self) -> AbstractContextManager[Database]:
        """Several statements that read the file as it is at one moment. Others may write meanwhile; it does not."""
        return _Transaction(self, "BEGIN")

    def _look(self) -> None:
        (state,) = self.execute("PRAGMA data_version").fetchone()  # SQLite's count of what other connections commit
        if state != self._state or self._known is None:
            if self.version is not None and _version(self) != self.version:
                raise sqlite3.DatabaseError("another release has changed the format of this file; start this one again")
            self._state, self._known = state, {}

    def _take_back(self) -> None:
        self._known = None
        if self.in_transaction:
            self.execute("ROLLBACK")


class _Transaction:
    """A transaction, or a part of the one that is open."""

    __slots__ = ("_begin", "_database", "_is_part")

    def __init__(self, database: Database, begin: str = "BEGIN IMMEDIATE") -> None:
        self._database = database
        self._begin = begin
        self._is_part = database.in_transaction

    def __enter__(self) -> Database:
        if not self._is_part:
            try:
                self._database.execute(self._begin)
                self._database._look()
            except BaseException:  # such as Ctrl-C
                self._database._take_back()
                raise
        return self._database

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._is_part:
            return
        if kind is not None:
            self._database._take_back()
            return
        try:
            self._database.execute("COMMIT")
        except BaseException:  # such as a full disk: nothing that comes later may join what is still open
            self._database._take_back()
            raise


def open_database(
    path: str | Path | None,
    schema: str,
    *,
    use: str,
    version: int = VERSION,
    upgrades: Mapping[int, str] | None = None,
) -> Database:
    """Open the database at `path`, or make it, readable by its owner alone.

    Args:
        path: the file; None, or ":memory:", lives and dies with the process.
        schema: the statements that make the tables, each with IF NOT EXISTS.
        use: what the file is for, as an error says it: "as a ledger".
        version: the version of the format that `schema` describes; raise it when the tables change.
        upgrades: the statements that bring a file of an older version to the next, by that version.

    Raises:
        SettingError: if the file cannot be written, is no database, or has another version.
    """
    file = _MEMORY if path is None else str(path)
    try:
        _make_private(file)
        database = sqlite3.connect(
            file, timeout=_TIMEOUT, isolation_level=None, check_same_thread=False, factory=Database
        )
    except (OSError, sqlite3.Error) as error:
        raise _unusable(file, use, error) from error
    try:
        # A commit is flushed to the disk before it returns; without that, a power cut could forget a release.
        database.execute("PRAGMA synchronous = FULL")
        database.execute("PRAGMA journal_mode = WAL")
        _prepare(database, file, schema, version, upgrades or {})
        database.version = version
    except sqlite3.Error as error:
        database.close()
        raise _unusable(file, use, error) from error
    except SettingError:
        database.close()
        raise
    return database


def write_whole(path: str | Path, content: str | bytes, *, mode: int = 0o666, flush: bool = True) -> None:
    """Write a file, on the disk when this returns; a reader, or a crash, finds what was there before or all of it.

    Args:
        path: the file.
        content: what it is to hold; text is written as UTF-8.
        mode: the permissions of the new file, less those that the process withholds (umask).
        flush: whether to wait for the disk; without that a power cut may bring back what was there before.

    Raises:
        SettingError: if it cannot be written; the file is then as it was.
    """
    target = Path(path)
    temporary = target.parent / f".tacit-{_RNG.bytes(8).hex()}.tmp"
    try:
        _write_new(temporary, content, mode, flush=flush)
        temporary.replace(target)
        if flush:
            _flush_folder(target.parent)
    except OSError as error:
        raise _unwritable(target, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_json(path: str | Path, form: object, *, mode: int = 0o666, flush: bool = True) -> None:
    """Write a small JSON file, whole or not at all."""
    write_whole(path, json.dumps(form, indent=1) + "\n", mode=mode, flush=flush)


def write_secret(path: Path, content: str | bytes) -> None:
    """Write a file that only its owner may read, and that must not exist yet."""
    try:
        _write_new(path, content, OWNER_ONLY)
        _flush_folder(path.parent)
    except FileExistsError:
        raise SettingError(f"{path} exists and is not written over; name another folder") from None
    except OSError as error:
        raise _unwritable(path, error) from error


def make_private_folder(folder: Path) -> Path:
    """The folder, made if it is not there; only its owner may look into it, or read the files in it.

    That holds of a folder that was there before, too: another program may have made it for everybody's eyes.

    Raises:
        SettingError: if it cannot be made, or belongs to somebody else.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in (folder, *folder.iterdir()):
            _shut(path)
    except OSError as error:
        raise SettingError(
            f"{folder} cannot be used as a folder for one's own eyes ({error.strerror}); name another one"
        ) from error
    return folder


def _shut(path: Path) -> None:
    """Take every right to a file or folder from all but its owner."""
    with suppress(FileNotFoundError):  # a temporary file that is gone
        mode = path.lstat().st_mode
        if mode & 0o077 and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            path.chmod(stat.S_IMODE(mode) & 0o700)


def _make_private(file: str) -> None:
    """Make a new database's file before SQLite does, which would let others read it; shut one that is open to them."""
    if file == _MEMORY:
        return
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY))
    for ending in ("", "-wal", "-shm"):
        _shut(Path(file + ending))


def _prepare(database: Database, file: str, schema: str, version: int, upgrades: Mapping[int, str]) -> None:
    """Check the version of the format; make the tables of a new file, and bring an older one up to date."""
    found = _version(database) or version
    if found > version:
        raise SettingError(
            f"{file} was written by a newer release (format {found}; this one reads {version}); update Tacit"
        )
    steps = [upgrades.get(older) for older in range(found, version)]
    if None in steps:
        raise SettingError(
            f"{file} was written by an older release (format {found}; this one reads {version}); "
            f"use that release, or name another file"
        )
    script = " ".join(filter(None, steps))
    try:
        database.executescript(f"BEGIN IMMEDIATE; {script} {schema} ; PRAGMA user_version = {version}; COMMIT;")
    except sqlite3.Error:
        if database.in_transaction:
            database.execute("ROLLBACK")
        if _version(database) != version:  # another process may have brought it up to date in the meantime
            raise


def _version(database: Database) -> int | None:
    """The version of the format; None of a file without tables, and 1 of tables that do not say."""
    (found,) = database.execute("PRAGMA user_version").fetchone()
    if found:
        return int(found)
    (n_tables,) = database.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
    return 1 if n_tables else None


def _write_new(path: Path, content: str | bytes, mode: int, *, flush: bool = True) -> None:
    data = content.encode() if isinstance(content, str) else content
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if flush:
                os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _flush_folder(folder: Path) -> None:
    """Make a new name in the folder outlast a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unusable(file: str, use: str, error: Exception) -> SettingError:
    reason = error.strerror if isinstance(error, OSError) else error
    return SettingError(f"{file} cannot be used {use}: {reason}; name a writable file of its own")


def _unwritable(path: Path, error: OSError) -> SettingError:
    reason = error.strerror or type(error).__name__
    return SettingError(f"{str(path)!r} cannot be written ({reason}); name a file in a folder that exists and is yours")
