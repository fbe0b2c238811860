"""Where a party's records lie: a CSV or Parquet file, or a query on a database. All are read by DuckDB.

A source says how to name the records in SQL; `records.py` codes and checks them. No error that leaves this module has
a record in it: DuckDB's own messages quote the lines that they stumble over, and are not passed on.
"""

from __future__ import annotations

import csv
import gzip
import re
import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import duckdb
import pandas as pd

from tacit.data.spill import SpillFolder
from tacit.data.sql import literal, quoted
from tacit.errors import DataError

CSV_ENDINGS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
DELIMITERS = (",", ";", "\t", "|")
MEMORY_LIMIT = "512MB"
THREADS = 2
SQLITE_ROWS = 16384
POSTGRES = "postgres:"


@dataclass(frozen=True)
class Source:
    """Records as SQL sees them."""

    name: str  # for messages
    relation: str  # what stands in FROM
    columns: tuple[tuple[str, str, str], ...]  # the column's name in the schema, its quoted name in SQL, its type
    path: Path | None = None  # a file that is read anew in every pass; otherwise the records are copied once

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns as the file has them."""
        return tuple(name for name, _, _ in self.columns)


def connect(spill: Path | None = None) -> duckdb.DuckDBPyConnection:
    """A private DuckDB in memory, which spills into a folder of its own, in `spill`, that is removed with it."""
    folder = SpillFolder(spill)
    connection = duckdb.connect(
        config={
            "memory_limit": MEMORY_LIMIT,
            "threads": THREADS,
            "temp_directory": str(folder.path),
            "preserve_insertion_order": True,
            # A party's machine must not fetch code because a query mentions a file type.
            "autoinstall_known_extensions": False,
        }
    )
    weakref.finalize(connection, folder.remove)
    return connection


@contextmanager
def no_records_in_errors(where: str) -> Iterator[None]:
    """Turn DuckDB's errors into a DataError that names the place and the kind of trouble, and quotes no record."""
    try:
        yield
    except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException) as error:
        # These speak of the query's own text, before a record is read.
        raise DataError(f"{where}: the query cannot be run: {error}") from None
    except duckdb.Error as error:
        line = re.search(r"CSV Error on Line: (\d+)", str(error))
        place = (
            f" in line {line.group(1)}: check its quotes, its number of columns and that it is UTF-8" if line else ""
        )
        told = f"{where} cannot be read{place}"
        if not place:
            told += (
                "; it is not of the kind that its name says, or not whole. Write it anew, or give it its right ending"
            )
        raise DataError(told) from None


def open_file(path: Path, wanted: Sequence[str], connection: duckdb.DuckDBPyConnection) -> Source:
    """The source that a file is; its kind is told by the end of its name."""
    if not path.is_file():
        raise DataError(f"{path} is not a file; give the path of a CSV, TSV or Parquet file")
    if path.stat().st_size == 0:
        raise DataError(f"{path.name} is empty; it needs a first line with column names, and records")
    name = path.name.lower()
    if name.endswith(".parquet"):
        return _parquet(path, connection)
    for ending, delimiter in CSV_ENDINGS.items():
        if name.endswith(ending):
            return _csv(path, wanted, delimiter)
    raise DataError(f"{path.name} is of no known kind; known endings are {[*CSV_ENDINGS, '.parquet']}")


def holds_password(database: str) -> bool:
    """Whether the address of a database has a password in it."""
    address = database.removeprefix(POSTGRES)
    if "://" in address:
        parts = urlsplit(address)
        return parts.password is not None or any("password" in key.lower() for key in parse_qs(parts.query))
    return database.startswith(POSTGRES) and re.search(r"password\s*=", address, re.IGNORECASE) is not None


def open_query(
    sql: str, database: str | None, connection: duckdb.DuckDBPyConnection, password: str | None = None
) -> Source:
    """The source that a query's result is; `password` opens a PostgreSQL database and is in no message."""
    if database is not None and database.startswith("sqlite:"):
        return _sqlite(sql, Path(database.removeprefix("sqlite:")), connection)
    if database is not None:
        _attach(database, connection, password)
    relation = f"({sql.strip().rstrip(';')}\n)"
    with no_records_in_errors("the query"):
        columns = _described(relation, connection)
    return Source("the query", relation, columns)


def _parquet(path: Path, connection: duckdb.DuckDBPyConnection) -> Source:
    relation = f"read_parquet({literal(str(path.resolve()))})"
    with no_records_in_errors(path.name):
        columns = _described(relation, connection)
    return Source(path.name, relation, columns, path)


def _csv(path: Path, wanted: Sequence[str], usual: str) -> Source:
    header, delimiter = header_of(path, wanted, usual)
    # Columns are named by position, so that no two names clash, and all are text, so that no type is guessed.
    names = [f"c{position}" for position in range(len(header))]
    types = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    compression = "gzip" if path.name.lower().endswith(".gz") else "none"
    relation = (
        f"read_csv({literal(str(path.resolve()))}, auto_detect=false, header=true, columns={{{types}}}, "
        f"delim={literal(delimiter)}, quote='\"', escape='\"', compression={literal(compression)})"
    )
    columns = tuple((found, quoted(name), "VARCHAR") for found, name in zip(header, names, strict=True))
    return Source(path.name, relation, columns)


def header_of(path: Path, wanted: Sequence[str], usual: str) -> tuple[list[str], str]:
    """The column names in the first line, and the delimiter under which it names most of what is wanted."""
    try:
        if path.name.lower().endswith(".gz"):
            with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as file:
                line = file.readline()
        else:
            with path.open(encoding="utf-8-sig", newline="") as file:
                line = file.readline()
    except (UnicodeDecodeError, OSError, EOFError):
        raise DataError(f"{path.name} cannot be read as text in UTF-8; save it so") from None
    if not line.strip():
        raise DataError(f"{path.name} is empty; it needs a first line with column names, and records")
    best: tuple[int, list[str], str] = (-1, [], usual)
    for delimiter in (usual, *DELIMITERS):
        header = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))]
        score = len({*header} & {*wanted})
        if score > best[0]:
            best = (score, header, delimiter)
    return best[1], best[2]


def _described(relation: str, connection: duckdb.DuckDBPyConnection) -> tuple[tuple[str, str, str], ...]:
    rows = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    return tuple((row[0], quoted(row[0]), row[1]) for row in rows)


def _attach(database: str, connection: duckdb.DuckDBPyConnection, password: str | None) -> None:
    kind = "postgres" if database.startswith(POSTGRES) else "duckdb"
    shown = "the PostgreSQL database" if kind == "postgres" else database  # a DSN may hold a password
    address = _with_password(database.removeprefix(POSTGRES), password)
    if kind == "duckdb" and not Path(address).is_file():
        raise DataError(f"database={database!r} is not a file; give a DuckDB file, 'sqlite:PATH' or 'postgres:DSN'")
    try:
        if kind == "postgres":
            connection.execute("LOAD postgres")
        connection.execute(f"ATTACH {literal(address)} AS source (TYPE {kind}, READ_ONLY)")
        connection.execute("USE source")
    except duckdb.Error as error:
        way_out = (
            "install DuckDB's postgres extension on this machine (INSTALL postgres) and check the DSN, or export the "
            "table to Parquet"
            if kind == "postgres"
            else "check that it is a DuckDB database that no other program is writing to"
        )
        raise DataError(f"{shown} cannot be opened ({type(error).__name__}); {way_out}") from None


def _with_password(address: str, password: str | None) -> str:
    """A PostgreSQL address, of either form that libpq reads, with the password in it."""
    if password is None:
        return address
    if "://" in address:
        return f"{address}{'&' if '?' in address else '?'}password={quote(password, safe='')}"
    escaped = password.replace("\\", "\\\\").replace("'", "\\'")
    return f"{address} password='{escaped}'".strip()


def _sqlite(sql: str, path: Path, connection: duckdb.DuckDBPyConnection) -> Source:
    """Copy a SQLite query's result into DuckDB as text. Python reads it, so that no extension is needed."""
    if not path.is_file():
        raise DataError(f"database 'sqlite:{path}' is not a file; give the path of a SQLite database")
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            # Otherwise an error about text that is not UTF-8 would quote it.
            database.text_factory = lambda text: text.decode("utf-8", errors="replace")
            cursor = database.execute(sql.strip().rstrip(";"))
            if cursor.description is None:
                raise DataError("the query gives no rows; it must be a SELECT")
            names = [column[0] for column in cursor.description]
            places = [f"c{position}" for position in range(len(names))]
            connection.execute(f"CREATE TABLE raw ({', '.join(f'{place} VARCHAR' for place in places)})")
            while rows := cursor.fetchmany(SQLITE_ROWS):
                chunk = _as_text(rows, places)
                connection.register("chunk", chunk)
                connection.execute("INSERT INTO raw SELECT * FROM chunk")
                connection.unregister("chunk")
    except sqlite3.Error as error:
        raise DataError(f"{path.name}: the query cannot be run by SQLite: {error}") from None
    return Source("the query", "raw", tuple((n, quoted(p), "VARCHAR") for n, p in zip(names, places, strict=True)))


def _as_text(rows: list[tuple[Any, ...]], places: list[str]) -> pd.DataFrame:
    texts = [[None if value is None else str(value) for value in column] for column in zip(*rows, strict=True)]
    return pd.DataFrame({place: pd.Series(column, dtype=object) for place, column in zip(places, texts, strict=True)})
