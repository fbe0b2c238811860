"""What lasts: databases of a known version that only their owner reads, and files that appear whole or not at all."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from tacit.errors import SettingError
from tacit.storage import OWNER_ONLY, Database, open_database, write_json, write_secret, write_whole

SCHEMA = "CREATE TABLE IF NOT EXISTS note (number INTEGER PRIMARY KEY, text TEXT NOT NULL);"


def opened(path: Path | None, version: int = 1) -> Database:
    return open_database(path, SCHEMA, use="for notes", version=version)


def notes(database: sqlite3.Connection) -> list[str]:
    return [text for (text,) in database.execute("SELECT text FROM note ORDER BY number")]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_was_written_is_there_for_the_next_who_opens(tmp_path: Path) -> None:
    first = opened(tmp_path / "notes.db")
    first.execute("INSERT INTO note VALUES (1, 'a')")
    second = opened(tmp_path / "notes.db")
    assert notes(second) == ["a"]
    first.close()
    second.close()


def test_a_database_is_flushed_at_each_commit(tmp_path: Path) -> None:
    database = opened(tmp_path / "notes.db")
    assert database.execute("PRAGMA synchronous").fetchone() == (2,)
    assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    database.close()


def test_a_new_database_is_its_owners_alone(tmp_path: Path) -> None:
    database = opened(tmp_path / "notes.db")
    database.execute("INSERT INTO note VALUES (1, 'a')")
    assert {path.name: mode_of(path) for path in tmp_path.iterdir()} == {
        "notes.db": OWNER_ONLY,
        "notes.db-wal": OWNER_ONLY,
        "notes.db-shm": OWNER_ONLY,
    }
    database.close()


def test_a_database_that_others_may_read_is_shut_to_them(tmp_path: Path) -> None:
    opened(tmp_path / "notes.db").close()
    (tmp_path / "notes.db").chmod(0o640)
    opened(tmp_path / "notes.db").close()
    assert mode_of(tmp_path / "notes.db") == 0o600


@pytest.mark.parametrize("path", [None, ":memory:"])
def test_without_a_file_a_database_lives_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    database = open_database(path, SCHEMA, use="for notes")
    database.execute("INSERT INTO note VALUES (1, 'a')")
    assert notes(database) == ["a"]
    database.close()
    assert list(tmp_path.iterdir()) == []


def test_a_transaction_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    database = opened(tmp_path / "notes.db")
    with database.transaction() as within:
        within.execute("INSERT INTO note VALUES (1, 'a')")
        with database.transaction():  # joins the outer one
            within.execute("INSERT INTO note VALUES (2, 'b')")
        assert notes(sqlite3.connect(tmp_path / "notes.db")) == []
    assert notes(database) == ["a", "b"]
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"), database.transaction():
        database.executemany("INSERT INTO note VALUES (?, 'c')", [(3,), (1,)])
    assert notes(database) == ["a", "b"]
    assert not database.in_transaction
    database.close()


def test_a_new_database_has_the_version_of_its_format(tmp_path: Path) -> None:
    database = opened(tmp_path / "notes.db", version=3)
    assert database.execute("PRAGMA user_version").fetchone() == (3,)
    database.close()


def test_a_database_without_a_version_is_of_the_first(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / "notes.db")
    old.execute(SCHEMA)
    old.execute("INSERT INTO note VALUES (1, 'a')")
    old.commit()
    old.close()
    database = opened(tmp_path / "notes.db")
    assert notes(database) == ["a"]
    assert database.execute("PRAGMA user_version").fetchone() == (1,)
    database.close()


@pytest.mark.parametrize(
    ("written", "read", "message"),
    [
        (2, 1, r"notes\.db was written by a newer release \(format 2; this one reads 1\); update Tacit"),
        (1, 2, r"notes\.db was written by an older release \(format 1; this one reads 2\); use that release"),
        (0, 2, r"notes\.db was written by an older release \(format 1; this one reads 2\); use that release"),
    ],
)
def test_a_database_of_another_version_is_refused_and_stays_as_it_is(
    tmp_path: Path, written: int, read: int, message: str
) -> None:
    path = tmp_path / "notes.db"
    other = opened(path, version=max(written, 1))
    other.execute("INSERT INTO note VALUES (1, 'a')")
    other.execute(f"PRAGMA user_version = {written}")
    other.close()
    with pytest.raises(SettingError, match=message):
        open_database(path, "CREATE TABLE IF NOT EXISTS other (x);", use="for notes", version=read)
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA user_version").fetchone() == (written,)
    assert database.execute("SELECT name FROM sqlite_schema").fetchall() == [("note",)]
    database.close()


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("this is not a database, and long enough to be read as one " * 20)
    with pytest.raises(SettingError, match=r"text cannot be used for notes: file is not a database; name a writable"):
        opened(tmp_path / "text")
    with pytest.raises(SettingError, match=r"none/notes\.db cannot be used for notes: No such file or directory"):
        opened(tmp_path / "none" / "notes.db")
    with pytest.raises(SettingError, match="cannot be used for notes: unable to open"):
        opened(tmp_path)


def test_many_may_open_a_new_database_at_once(tmp_path: Path) -> None:
    failed: list[BaseException] = []

    def use(number: int) -> None:
        try:
            database = opened(tmp_path / "notes.db")
            database.execute("INSERT INTO note VALUES (?, 'a')", (number,))
            database.close()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    database = opened(tmp_path / "notes.db")
    assert notes(database) == ["a"] * 8
    database.close()


@pytest.mark.parametrize("content", ["line\nä\n", b"\x00\xff", ""])
def test_a_file_holds_what_was_written_and_nothing_stays_beside_it(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "file"
    path.write_text("before, and longer than what comes")
    write_whole(path, content)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_file_is_flushed_before_it_takes_its_name_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed = []

    def fsync(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        flushed.append(("folder" if is_folder else "file", (tmp_path / "file").exists()))

    monkeypatch.setattr("tacit.storage.os.fsync", fsync)
    write_whole(tmp_path / "file", "a")
    assert flushed == [("file", False), ("folder", True)]


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "file").write_text("before")
    monkeypatch.setattr("tacit.storage.os.fsync", full)
    with pytest.raises(SettingError, match=r"file' cannot be written \(No space left on device\); name a file"):
        write_whole(tmp_path / "file", "after")
    with pytest.raises(SettingError, match=r"secret' cannot be written \(No space left on device\)"):
        write_secret(tmp_path / "secret", "half")
    assert (tmp_path / "file").read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["none/file", "."])
def test_a_path_that_is_no_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingError, match=f"'{name}' cannot be written"):
        write_whole(name, "a")
    assert list(tmp_path.iterdir()) == []


def test_the_mode_is_as_asked_less_what_the_process_withholds(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "shared", "a")
        write_whole(tmp_path / "own", "a", mode=OWNER_ONLY)
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "shared") == 0o640
    assert mode_of(tmp_path / "own") == OWNER_ONLY


def test_a_secret_is_its_owners_alone_and_is_never_written_over(tmp_path: Path) -> None:
    write_secret(tmp_path / "secret", "a")
    assert mode_of(tmp_path / "secret") == OWNER_ONLY
    with pytest.raises(SettingError, match="secret exists and is not written over; name another folder"):
        write_secret(tmp_path / "secret", "b")
    assert (tmp_path / "secret").read_text() == "a"


def test_json_is_written_to_be_read(tmp_path: Path) -> None:
    write_json(tmp_path / "file.json", {"a": [1, None]})
    text = (tmp_path / "file.json").read_text()
    assert json.loads(text) == {"a": [1, None]}
    assert text.endswith("}\n")


# --- what is known of a file -----------------------------------------------------------------------------------------


def test_what_is_known_of_a_file_lasts_until_somebody_else_writes_to_it(tmp_path: Path) -> None:
    own, other = opened(tmp_path / "notes.db"), opened(tmp_path / "notes.db")
    own.known["notes"] = ["a"]
    own.execute("INSERT INTO note VALUES (1, 'a')")
    with own.transaction():
        own.execute("INSERT INTO note VALUES (2, 'b')")
        own.known["notes"] = ["a", "b"]
    notes(other)
    assert own.known == {"notes": ["a", "b"]}
    other.execute("INSERT INTO note VALUES (3, 'c')")
    assert own.known == {}
    own.known["notes"] = notes(own)
    other.execute("DELETE FROM note")
    with own.transaction() as database:  # nobody else can write from here on
        assert database.known == {}
    own.close()
    other.close()


def test_what_was_taken_back_is_not_known() -> None:
    database = opened(None)
    database.known["notes"] = []

    def fail() -> None:
        with database.transaction():
            database.execute("INSERT INTO note VALUES (1, 'a')")
            database.known["notes"] = ["a"]
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        fail()
    assert database.known == {}
    assert notes(database) == []


def test_what_is_known_has_a_bound() -> None:
    database = opened(None)
    for number in range(10_000):
        database.known[number] = number
    assert len(database.known) <= 1025


def test_after_a_commit_that_fails_nothing_is_left_open(tmp_path: Path) -> None:
    """As on a full disk: whatever came next would have joined the open transaction, and never been on the disk."""
    database = opened(tmp_path / "notes.db")
    database.execute("CREATE TABLE about (number INTEGER REFERENCES note DEFERRABLE INITIALLY DEFERRED)")
    database.execute("PRAGMA foreign_keys = ON")
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"), database.transaction():
        database.execute("INSERT INTO about VALUES (7)")  # is only looked at by the commit
    assert not database.in_transaction
    with database.transaction():
        database.execute("INSERT INTO note VALUES (1, 'a')")
    assert notes(opened(tmp_path / "notes.db")) == ["a"]
    database.close()


def test_a_transaction_that_is_interrupted_while_it_begins_is_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in a notebook: all that came later would have joined it, and been gone with the process."""
    database = opened(tmp_path / "notes.db")

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Database, "_look", interrupt)
        with pytest.raises(KeyboardInterrupt), database.transaction():  # noqa: PT012, RUF100
            pass
    assert not database.in_transaction
    with database.transaction():
        database.execute("INSERT INTO note VALUES (1, 'a')")
    assert notes(opened(tmp_path / "notes.db")) == ["a"]
    database.close()


def test_who_opened_an_earlier_format_writes_nothing_into_a_later_one(tmp_path: Path) -> None:
    earlier = opened(tmp_path / "notes.db")
    with earlier.transaction():
        earlier.execute("INSERT INTO note VALUES (1, 'a')")
    later = open_database(tmp_path / "notes.db", SCHEMA, use="for notes", version=2, upgrades={1: ""})
    with pytest.raises(sqlite3.DatabaseError, match="another release has changed the format"), earlier.transaction():
        earlier.execute("INSERT INTO note VALUES (2, 'b')")
    with pytest.raises(sqlite3.DatabaseError, match="another release has changed the format"):
        _ = earlier.known
    assert notes(later) == ["a"]
    earlier.close()
    later.close()


def test_a_snapshot_shows_one_moment_and_holds_up_nobody(tmp_path: Path) -> None:
    reader, writer = opened(tmp_path / "notes.db"), opened(tmp_path / "notes.db")
    with reader.snapshot():
        assert notes(reader) == []
        writer.execute("INSERT INTO note VALUES (1, 'a')")
        assert notes(reader) == []
        with reader.snapshot():  # one within another is the same
            assert notes(reader) == []
    assert notes(reader) == ["a"]
    with reader.transaction(), reader.snapshot():  # and one within a transaction is part of it
        reader.execute("INSERT INTO note VALUES (2, 'b')")
    assert notes(writer) == ["a", "b"]
    reader.close()
    writer.close()
