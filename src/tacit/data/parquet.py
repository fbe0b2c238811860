"""Parquet files as a worker of a party's cluster reads them: what is in a file, and the blocks of a span of it.

Everything here runs at a worker. A worker opens a file for each task anew or keeps it open from the last one; either
way it first makes sure that the file is the one that was looked at when the table was opened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TypeVar

import duckdb
import numpy as np

from tacit.data.block import WeightedBlock
from tacit.data.feature import Unfit
from tacit.data.records import CodedRecords, Facts, Span
from tacit.data.schema import Schema
from tacit.data.source import connect, no_records_in_errors, open_file
from tacit.data.sql import literal
from tacit.errors import DataError

T = TypeVar("T")
COMPARED = ("tacit", "dask", "distributed", "numpy", "scipy", "duckdb")
_OPEN_FILES = 8  # that a worker keeps open
_TAIL = 8  # bytes at the end of a Parquet file: the length of its footer, and a mark


@dataclass(frozen=True)
class ParquetFile:
    """A file as one worker saw it. The footer tells of every row group where it is and what it spans."""

    path: str
    size: int
    footer: str  # SHA-256
    n_records: int


def own_versions() -> tuple[tuple[str, str], ...]:
    """The versions here of all that computes a sum."""
    return tuple((package, version(package)) for package in COMPARED)


@dataclass(frozen=True)
class Reading:
    """How records are read: public facts, the owner's rule for records that do not fit, and the party's versions."""

    schema: Schema
    ignore: tuple[str, ...]
    unfit: Unfit
    versions: tuple[tuple[str, str], ...] = field(default_factory=own_versions)


FileSpan = tuple[ParquetFile, Span]
"""Some records of a file that lie one after another."""


def find_files(patterns: Sequence[str]) -> list[ParquetFile]:
    """The files that the patterns name, in their order, and for each pattern in that of their names."""
    found: list[ParquetFile] = []
    for pattern in patterns:
        paths = sorted(map(str, _matching(pattern))) if any(sign in pattern for sign in "*?[") else [pattern]
        if not paths:
            raise DataError(f"{pattern} names no file; give the paths of Parquet files as the workers see them")
        found += [see_file(path) for path in paths]
    return found


def see_file(path: str) -> ParquetFile:
    """A file as this worker sees it."""
    size, footer = _look_at_end(path)
    with no_records_in_errors(Path(path).name), duckdb.connect() as connection:
        rows = connection.execute(f"SELECT sum(num_rows) FROM parquet_file_metadata({literal(path)})")
        found = rows.fetchone()
    return ParquetFile(path, size, footer, int(found[0]) if found else 0)


def _look_at_end(path: str) -> tuple[int, str]:
    """A file's size, and the digest of its footer."""
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL))
            tail = file.read()
            length = int.from_bytes(tail[:4], "little")
            if tail[4:] != b"PAR1" or length > size - _TAIL:
                raise DataError(f"{path} is no Parquet file, or is not whole; a cluster reads Parquet only")
            file.seek(size - _TAIL - length)
            return size, hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); put it where every worker can") from None


def look_at(file: ParquetFile, reading: Reading) -> Facts:
    """What one look at all records of a file tells; a DataError tells what does not fit."""
    connection = connect()
    source = open_file(Path(file.path), _wanted(reading.schema), connection)
    return CodedRecords(source, reading.schema, reading.ignore, connection, reading.unfit).facts


def span_blocks(spans: Sequence[FileSpan], reading: Reading, rows: int) -> Iterator[WeightedBlock]:
    """The encoded records of some spans, in blocks of about `rows`."""
    return chain.from_iterable(_opened(file, reading).blocks(rows, span) for file, span in spans)


def sum_spans(
    spans: Sequence[FileSpan], reading: Reading, part_sum: Callable[[partial[Iterator[WeightedBlock]]], T]
) -> T:
    """What `part_sum` makes of some spans."""
    return part_sum(partial(span_blocks, spans, reading))


def list_blocks(spans: Sequence[FileSpan], reading: Reading, rows: int) -> list[WeightedBlock]:
    """The records of some spans as they travel to the party's own machine."""
    return [WeightedBlock(np.ascontiguousarray(X), y, weights) for X, y, weights in span_blocks(spans, reading, rows)]


def count_clipped(file: ParquetFile, reading: Reading) -> int:
    """How many rows of a file are scaled down to the norm bound."""
    return _opened(file, reading).n_clipped()


def _opened(file: ParquetFile, reading: Reading) -> CodedRecords:
    for (package, own), (_, wanted) in zip(_here(), reading.versions, strict=True):
        if own != wanted:
            raise DataError(f"a worker has {package} {own}, the party's machine {wanted}; install the same versions")
    if _look_at_end(file.path) != (file.size, file.footer):
        raise DataError(f"{file.path} has changed since it was opened; open it again")
    return _records(file, reading)


_here = lru_cache(maxsize=1)(own_versions)


@lru_cache(maxsize=_OPEN_FILES)
def _records(file: ParquetFile, reading: Reading) -> CodedRecords:
    connection = connect()
    source = open_file(Path(file.path), _wanted(reading.schema), connection)
    n_classes = reading.schema.n_classes
    known = Facts(file.n_records, np.zeros(n_classes, dtype=np.int64), {}, 0)  # all were looked at before
    return CodedRecords(source, reading.schema, reading.ignore, connection, reading.unfit, facts=known)


def _matching(pattern: str) -> Iterator[Path]:
    """The files that a pattern names, from the root or from the worker's own folder on."""
    path = Path(pattern)
    root = Path(path.anchor) if path.anchor else Path()
    return root.glob(str(path.relative_to(root) if path.anchor else path))


def _wanted(schema: Schema) -> tuple[str, ...]:
    return (*schema.feature_names, schema.target.name)
