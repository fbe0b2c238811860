"""A party's records as a stream of encoded row blocks; they may be larger than memory.

Nothing here shows a record: there is no head, no sample, and the repr tells the size alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from tacit.data.encoding import Encoded, Floats, Ints
from tacit.data.feature import Numeric, Unfit
from tacit.data.finding import ColumnFinding, check_columns, check_findings
from tacit.data.records import CodedRecords, Facts
from tacit.data.schema import Schema
from tacit.data.source import connect, open_file, open_query
from tacit.errors import DataError

BLOCK_ROWS = 16384


class Block(NamedTuple):
    """Some rows of a table: X of shape (m, n_columns), and y, their class indices. Both are read-only."""

    X: Floats
    y: Ints

    def __repr__(self) -> str:
        """The shape alone: records are never shown."""
        return f"Block({self.X.shape[0]} rows x {self.X.shape[1]} columns)"


@dataclass(frozen=True)
class TableCounts:
    """What encoding changed: for the party's own eyes."""

    clipped: dict[str, int]  # values outside the bounds, by column; only columns that have any
    rows_clipped: int  # rows scaled down to the norm bound
    dropped: int  # records that add nothing: by the rule missing="drop", or because they do not fit and are skipped


class Table:
    """A party's records, encoded by a schema. Made by `from_arrays`, `from_frame`, `from_file` or `from_query`.

    Guarantees: every pass gives the same rows in the same order, whatever the block size; X is finite, float64 and
    C-contiguous; no row's norm exceeds `schema.radius`.

    A record that is dropped keeps its place: it counts in `n_records`, which is public, and adds nothing to any sum. So
    a record that becomes incomplete changes no number that is told. It moves a sum by what it added before, which no
    method's sensitivity is smaller than.
    """

    def __init__(
        self,
        name: str,
        schema: Schema,
        facts: Facts,
        stream: Callable[[int], Iterator[Block]],
        count_rows_clipped: Callable[[], int],
    ) -> None:
        """Use the `from_...` functions instead."""
        self.name = name
        self.schema = schema
        self._facts = facts
        self._stream = stream  # blocks of about so many rows
        self._count_rows_clipped = count_rows_clipped

    def __repr__(self) -> str:
        """Name and size: records are never shown."""
        return f"Table({self.name!r}, n_records={self.n_records}, n_columns={self.n_columns})"

    @property
    def n_records(self) -> int:
        """How many records the table has, with those that were dropped: what may be told of its size."""
        return self._facts.n_records

    @property
    def n_complete(self) -> int:
        """How many rows the table gives; for the party's own eyes."""
        return self._facts.n_records - self._facts.dropped

    @property
    def n_columns(self) -> int:
        """How many columns an encoded row has."""
        return self.schema.n_columns

    @property
    def n_classes(self) -> int:
        """How many classes the target has."""
        return self.schema.n_classes

    @property
    def class_counts(self) -> Ints:
        """How many complete records each class has."""
        return self._facts.class_counts.copy()

    @cached_property
    def counts(self) -> TableCounts:
        """What encoding changed. For a file with a norm bound, the first look takes one pass over the records."""
        return TableCounts(dict(self._facts.clipped), self._count_rows_clipped(), self._facts.dropped)

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """All complete rows, in blocks of exactly `rows` (the last one may be shorter)."""
        if rows < 1:
            raise DataError(f"rows={rows} must be at least 1")
        n_seen = 0
        for block in _regroup(self._stream(rows), rows):
            n_seen += len(block.y)
            block.X.flags.writeable = False
            block.y.flags.writeable = False
            yield block
        if n_seen != self.n_complete:
            raise DataError(f"{self.name} gave {n_seen} records in this pass, {self.n_complete} before; open it again")

    def arrays(self) -> tuple[Floats, Ints]:
        """All complete rows at once, for a table that fits into memory."""
        for block in self.blocks(self.n_records):
            return block.X, block.y
        return np.zeros((0, self.n_columns)), np.zeros(0, dtype=np.int64)

    @classmethod
    def from_arrays(cls, X: ArrayLike, y: ArrayLike, schema: Schema) -> Table:
        """A table of arrays: X has one column for each feature of the schema, in its order; y holds labels.

        X is used in place if nothing needs to be changed: do not write into it afterwards.
        """
        X, y = np.asarray(X), np.asarray(y)
        if X.ndim != 2 or X.shape[1] != len(schema.features):
            raise DataError(f"X has shape {X.shape}; the schema wants (n_records, {len(schema.features)})")
        if not len(X):
            raise DataError(f"X has shape {X.shape}: no records; give at least one")
        if y.shape != X.shape[:1]:
            raise DataError(f"y has shape {y.shape}, X has {X.shape[0]} records; give one label for each")
        if X.dtype.kind in "biuf" and all(isinstance(f, Numeric) and f.missing == "error" for f in schema.features):
            encoded = _encode_matrix(X.astype(np.float64, copy=False), y, schema)
        else:
            columns = {name: X[:, j] for j, name in enumerate(schema.feature_names)}
            encoded = schema.encode({**columns, schema.target.name: y}, "the arrays")
        return cls.from_encoded("arrays", schema, encoded)

    @classmethod
    def from_frame(
        cls, frame: pd.DataFrame, schema: Schema, *, ignore: Sequence[str] = (), name: str = "frame"
    ) -> Table:
        """A table of a data frame with the schema's columns."""
        needed = (*schema.feature_names, schema.target.name)
        frame = frame.set_axis([str(column) for column in frame.columns], axis="columns")
        check_columns(needed, (*schema.ignore, *ignore), list(frame.columns), name)
        if not len(frame):
            raise DataError(f"{name} has column names but no records")
        columns: Mapping[str, NDArray[Any]] = {column: np.asarray(frame[column]) for column in needed}
        return cls.from_encoded(name, schema, schema.encode(columns, name))

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        schema: Schema,
        *,
        ignore: Sequence[str] = (),
        unfit: Unfit = "error",
        spill: Path | None = None,
    ) -> Table:
        """A table of a CSV, TSV (also .gz) or Parquet file with a line of column names.

        With unfit="skip" a record that does not fit the schema is dropped; otherwise it is a DataError.

        These texts are missing values: nothing at all, NA, NaN, NULL and ?, in any case. A Parquet file is read anew in
        every pass; a text file is copied once into a private store that is removed with the table. What does not fit
        into memory goes into a folder in `spill`; None takes the system's temporary folder.
        """
        connection = connect(spill)
        wanted = (*schema.feature_names, schema.target.name)
        source = open_file(Path(path), wanted, connection)
        return cls._of_records(source.name, schema, CodedRecords(source, schema, ignore, connection, unfit))

    @classmethod
    def from_query(
        cls,
        sql: str,
        schema: Schema,
        database: str | None = None,
        *,
        password: str | None = None,
        ignore: Sequence[str] = (),
        unfit: Unfit = "error",
        spill: Path | None = None,
    ) -> Table:
        """A table of a query's result: a snapshot, taken once.

        `database` is the path of a DuckDB database, "sqlite:PATH" (the query is then in SQLite's SQL) or
        "postgres:DSN"; without one, the query may name files. `password` is for PostgreSQL and is in no message. For
        `spill` see `from_file`.
        """
        connection = connect(spill)
        source = open_query(sql, database, connection, password)
        return cls._of_records(source.name, schema, CodedRecords(source, schema, ignore, connection, unfit))

    @classmethod
    def concatenate(cls, tables: Sequence[Table], name: str = "pooled") -> Table:
        """One stream over several tables of one schema, in the order given."""
        if not tables:
            raise DataError("tables is empty; give at least one table")
        schema = tables[0].schema
        for table in tables:
            if table.schema != schema:
                raise DataError(f"table {table.name!r} has another schema than {tables[0].name!r}; use one for all")
        facts = Facts(
            n_records=sum(table.n_records for table in tables),
            class_counts=np.sum([table.class_counts for table in tables], axis=0),
            clipped=dict(sum((Counter(table._facts.clipped) for table in tables), Counter())),
            dropped=sum(table._facts.dropped for table in tables),
        )
        return cls(
            name,
            schema,
            facts,
            lambda rows: (block for table in tables for block in table._stream(rows)),
            lambda: sum(table.counts.rows_clipped for table in tables),
        )

    def take(self, rows: ArrayLike, name: str) -> Table:
        """A table of the rows at these positions, in their order; a position may come again."""
        X, y = self.arrays()
        chosen = np.asarray(rows, dtype=np.intp)
        return self.from_encoded(name, self.schema, Encoded(X[chosen], y[chosen], {}, 0, 0))

    @classmethod
    def from_encoded(cls, name: str, schema: Schema, encoded: Encoded) -> Table:
        """A table of records that the schema has encoded."""
        X, y = encoded.X, encoded.y
        if not len(y):
            raise DataError(
                f"{name}: all {encoded.dropped} records have missing values and are dropped; nothing is left"
            )
        class_counts = np.bincount(y, minlength=schema.n_classes).astype(np.int64)
        return cls(
            name,
            schema,
            Facts(len(y) + encoded.dropped, class_counts, encoded.clipped, encoded.dropped),
            lambda rows: (Block(X[i : i + rows], y[i : i + rows]) for i in range(0, len(y), rows)),
            lambda: encoded.rows_clipped,
        )

    @classmethod
    def _of_records(cls, name: str, schema: Schema, records: CodedRecords) -> Table:
        def encoded(rows: int) -> Iterator[tuple[Block, int]]:
            for codes in records.codes(rows):
                X, n_clipped = schema.encode_codes(codes[:-1])
                yield Block(X, codes[-1].astype(np.int64)), n_clipped

        return cls(
            name,
            schema,
            records.facts,
            lambda rows: (block for block, _ in encoded(rows)),
            lambda: sum(n for _, n in encoded(BLOCK_ROWS)) if schema.clips_rows else 0,
        )


def _encode_matrix(X: Floats, y: NDArray[Any], schema: Schema) -> Encoded:
    """Encode numbers that stand in one matrix already, without taking it apart; NaN and infinity are errors."""
    labels = schema.encode_labels(y, "the arrays")
    findings = {name: ColumnFinding() for name in schema.feature_names}
    if not np.isfinite(X).all():
        bad = np.isinf(X).sum(axis=0), np.isnan(X).sum(axis=0)
        findings = {
            n: ColumnFinding(int(nan), int(inf)) for n, inf, nan in zip(schema.feature_names, *bad, strict=True)
        }
    check_findings(schema.features, None, findings, "the arrays")
    clipped: dict[str, int] = {}
    for j, feature in enumerate(schema.features):
        if isinstance(feature, Numeric) and feature.bounds is not None:
            low, high = feature.bounds
            outside = int(np.count_nonzero(X[:, j] < low) + np.count_nonzero(X[:, j] > high))
            clipped |= {feature.name: outside} if outside else {}
    encoded, rows_clipped = schema.encode_codes(X.T)
    return Encoded(encoded, labels, clipped, rows_clipped, 0)


def _regroup(blocks: Iterator[Block], rows: int) -> Iterator[Block]:
    """The same rows in blocks of exactly `rows`; a block that has that size already is not copied."""
    waiting: list[Block] = []
    n_waiting = 0
    for block in blocks:
        if not waiting and len(block.y) == rows:
            yield block
            continue
        waiting.append(block)
        n_waiting += len(block.y)
        if n_waiting >= rows:
            joined = _joined(waiting)
            whole = n_waiting - n_waiting % rows
            for start in range(0, whole, rows):
                yield Block(joined.X[start : start + rows], joined.y[start : start + rows])
            waiting = [Block(joined.X[whole:], joined.y[whole:])] if whole < n_waiting else []
            n_waiting -= whole
    if waiting:
        yield _joined(waiting)


def _joined(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    return Block(np.concatenate([block.X for block in blocks]), np.concatenate([block.y for block in blocks]))
