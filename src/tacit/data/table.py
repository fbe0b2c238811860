"""A party's records as a stream of encoded row blocks; they may be larger than memory.

Nothing here shows a record: there is no head, no sample, and the repr tells the size alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from tacit.data.block import BLOCK_ROWS, Block, WeightedBlock
from tacit.data.encoding import Encoded, Floats, Ints
from tacit.data.feature import Numeric, Unfit
from tacit.data.finding import ColumnFinding, check_columns, check_findings
from tacit.data.moment import Moments, moments_of
from tacit.data.part import measured_rows
from tacit.data.person import person_codes, record_weights
from tacit.data.records import CodedRecords, Facts
from tacit.data.schema import Schema
from tacit.data.source import connect, open_file, open_query
from tacit.data.stream import ArrayRows, JoinedParts, LocalParts, Parts, RowStream, Weighing
from tacit.errors import DataError
from tacit.unit import Unit

if TYPE_CHECKING:
    from tacit.data.scheduler import Scheduler


@dataclass(frozen=True)
class TableCounts:
    """What encoding changed: for the party's own eyes."""

    clipped: dict[str, int]  # values outside the bounds, by column; only columns that have any
    rows_clipped: int  # rows scaled down to the norm bound
    dropped: int  # records that add nothing: by the rule missing="drop", or because they do not fit and are skipped


class Table:
    """A party's records, encoded by a schema.

    Made by `from_arrays`, `from_frame`, `from_file`, `from_query` or `from_dask`.

    Guarantees: every pass gives the same rows in the same order, whatever the block size; X is finite, float64 and
    C-contiguous; no row's norm exceeds `schema.radius`.

    A record that is dropped keeps its place: it counts in `n_records`, which is public, and adds nothing to any sum. So
    a record that becomes incomplete changes no number that is told. It moves a sum by what it added before, which no
    method's sensitivity is smaller than.

    A table may know whose each record is: give `person`, the name of a column that is no feature, or `persons`, one
    name for each record. Then `weighted_blocks("person")` tells what a record weighs: 1/m, if its person has m.

    Example:
        >>> import pandas as pd
        >>> import tacit
        >>> age, relapse = tacit.Numeric("age", 20, 90), tacit.Target("relapse", ("no", "yes"))
        >>> schema = tacit.Schema(features=(age,), target=relapse)
        >>> table = tacit.Table.from_frame(pd.DataFrame({"age": [20, 90], "relapse": ["no", "yes"]}), schema)
        >>> X, y = table.arrays()
        >>> X.tolist()  # scaled by the bounds
        [[-1.0], [1.0]]
    """

    def __init__(
        self,
        name: str,
        schema: Schema,
        facts: Facts,
        parts: Parts,
        count_rows_clipped: Callable[[], int],
    ) -> None:
        """Use the `from_...` functions instead."""
        self.name = name
        self.schema = schema
        self._facts = facts
        self._parts = parts
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

    def n_units(self, unit: Unit) -> int:
        """How many units of privacy the table has: records, persons, or the party as one; 0 where nothing tells."""
        if unit == "party":
            return 1
        return self.n_records if unit == "record" else self._facts.n_persons or 0

    @property
    def n_persons(self) -> int | None:
        """How many persons the records are of; None where nothing tells."""
        return self._facts.n_persons

    @property
    def person_column(self) -> str | None:
        """The column that says whose a record is, if there is one."""
        return self._facts.person_column

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

    @cached_property
    def measured(self) -> NDArray[np.bool_]:
        """Which complete rows a model is measured on where it is not fitted to all; the first look takes one pass."""
        return measured_rows(self.blocks())

    @cached_property
    def moments(self) -> Moments:
        """Sums over the complete rows that no model enters, for the party's own eyes; the first look takes one pass."""
        return moments_of(self.stream(), self.n_columns, self.n_classes)

    @cached_property
    def column_moments(self) -> Moments:
        """The same without products of different columns, of which a wide table has many."""
        return moments_of(self.stream(), self.n_columns, self.n_classes, crossed=False)

    def stream(self, unit: Unit | None = None, share: float = 1.0) -> RowStream:
        """The complete rows, for passes over them and for sums where they lie; with weights if there is a `unit`.

        The weights of a unit's records add up to `share`, but for rounding.
        """
        if unit == "person" and self.n_persons is None:
            raise DataError(f"{self.name} does not tell whose a record is; name the column, or give persons")
        same = {"record": 1.0, "party": 1.0 / max(self.n_complete, 1)}.get(unit or "")
        weighing = Weighing(own=unit == "person", same=same, share=share)
        return RowStream(self.name, self.n_complete, self._parts, weighing)

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """All complete rows, in blocks of exactly `rows` (the last one may be shorter)."""
        if rows < 1:
            raise DataError(f"rows={rows} must be at least 1")
        return self.stream().blocks(rows)

    def weighted_blocks(self, unit: Unit, rows: int = BLOCK_ROWS) -> Iterator[WeightedBlock]:
        """The same with weights: those of a unit's records add up to 1, but for rounding."""
        return self.stream(unit).blocks(rows)

    def arrays(self) -> tuple[Floats, Ints]:
        """All complete rows at once, for a table that fits into memory."""
        for block in self.blocks(self.n_records):
            return block.X, block.y
        return np.zeros((0, self.n_columns)), np.zeros(0, dtype=np.int64)

    @classmethod
    def from_arrays(cls, X: ArrayLike, y: ArrayLike, schema: Schema, *, persons: ArrayLike | None = None) -> Table:
        """A table of arrays: X has one column for each feature of the schema, in its order; y holds labels.

        `persons` says whose each record is: texts or numbers, the same for records of one person.
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
            encoded = encode_matrix(X.astype(np.float64, copy=False), y, schema)
        else:
            columns = {name: X[:, j] for j, name in enumerate(schema.feature_names)}
            encoded = schema.encode({**columns, schema.target.name: y}, "the arrays")
        return cls.from_encoded("arrays", schema, encoded, persons=persons)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        schema: Schema,
        *,
        ignore: Sequence[str] = (),
        name: str = "frame",
        person: str | None = None,
    ) -> Table:
        """A table of a data frame with the schema's columns; `person` names the one that says whose a record is."""
        needed = (*schema.feature_names, schema.target.name, *([] if person is None else [person]))
        frame = frame.set_axis([str(column) for column in frame.columns], axis="columns")
        check_columns(needed, (*schema.ignore, *ignore), list(frame.columns), name)
        if not len(frame):
            raise DataError(f"{name} has column names but no records")
        columns: Mapping[str, NDArray[Any]] = {column: np.asarray(frame[column]) for column in needed}
        persons = None if person is None else columns[person]
        table = cls.from_encoded(name, schema, schema.encode(columns, name), persons=persons)
        table._facts = replace(table._facts, person_column=person)
        return table

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        schema: Schema,
        *,
        ignore: Sequence[str] = (),
        unfit: Unfit = "error",
        spill: Path | None = None,
        person: str | None = None,
    ) -> Table:
        """A table of a CSV, TSV (also .gz) or Parquet file with a line of column names.

        With unfit="skip" a record that does not fit the schema is dropped; otherwise it is a DataError. `person` names
        a column that says whose a record is; a record without that does not fit.

        These texts are missing values: nothing at all, NA, NaN, NULL and ?, in any case. A Parquet file is read anew in
        every pass; a text file is copied once into a private store that is removed with the table. What does not fit
        into memory goes into a folder in `spill`; None takes the system's temporary folder.
        """
        connection = connect(spill)
        wanted = (*schema.feature_names, schema.target.name)
        source = open_file(Path(path), wanted, connection)
        return cls._of_records(source.name, schema, CodedRecords(source, schema, ignore, connection, unfit, person))

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
        person: str | None = None,
    ) -> Table:
        """A table of a query's result: a snapshot, taken once.

        `database` is the path of a DuckDB database, "sqlite:PATH" (the query is then in SQLite's SQL) or
        "postgres:DSN"; without one, the query may name files. `password` is for PostgreSQL and is in no message. For
        `spill` and `person` see `from_file`.
        """
        connection = connect(spill)
        source = open_query(sql, database, connection, password)
        return cls._of_records(source.name, schema, CodedRecords(source, schema, ignore, connection, unfit, person))

    @classmethod
    def from_dask(
        cls,
        files: str | Sequence[str],
        schema: Schema,
        scheduler: str | Scheduler,
        *,
        ignore: Sequence[str] = (),
        unfit: Unfit = "error",
    ) -> Table:
        """A table of Parquet files that the workers of the party's own Dask cluster can read. Needs `tacit[cluster]`.

        `files` are paths as the workers see them, or patterns such as "/records/2026-*.parquet". `scheduler` is an
        address, "tcp://127.0.0.1:8786", or a `Scheduler` with certificates for TLS. Sums are computed at the workers;
        where a method needs rows, they travel to this machine.
        """
        from tacit.data.cluster import ClusterParts, reach
        from tacit.data.parquet import Reading
        from tacit.data.scheduler import Scheduler

        cluster = reach(Scheduler(address=scheduler) if isinstance(scheduler, str) else scheduler)
        cluster.check(schema.n_columns)
        found = cluster.find([files] if isinstance(files, str) else files)
        parts = ClusterParts(cluster, found, Reading(schema, tuple(ignore), unfit))
        name = Path(found[0].path).name if len(found) == 1 else f"{len(found)} files"
        return cls(name, schema, parts.facts(), parts, parts.count_clipped if schema.clips_rows else lambda: 0)

    @classmethod
    def concatenate(cls, tables: Sequence[Table], name: str = "pooled") -> Table:
        """One stream over several tables of one schema, in the order given; a person in two of them counts as two."""
        if not tables:
            raise DataError("tables is empty; give at least one table")
        schema = tables[0].schema
        for table in tables:
            if table.schema != schema:
                raise DataError(f"table {table.name!r} has another schema than {tables[0].name!r}; use one for all")
        persons = [table.n_persons for table in tables]
        facts = Facts(
            n_records=sum(table.n_records for table in tables),
            class_counts=np.sum([table.class_counts for table in tables], axis=0),
            clipped=dict(sum((Counter(table._facts.clipped) for table in tables), Counter())),
            dropped=sum(table._facts.dropped for table in tables),
            n_persons=None if any(n is None for n in persons) else sum(n or 0 for n in persons),
        )
        return cls(
            name,
            schema,
            facts,
            JoinedParts([table._parts for table in tables]),
            lambda: sum(table.counts.rows_clipped for table in tables),
        )

    def take(self, rows: ArrayLike, name: str, *, persons: ArrayLike | None = None) -> Table:
        """A table of the rows at these positions, in their order; a position may come again.

        It knows no persons but those that are given.
        """
        X, y = self.arrays()
        chosen = np.asarray(rows, dtype=np.intp)
        return self.from_encoded(name, self.schema, Encoded(X[chosen], y[chosen], {}, 0, 0), persons=persons)

    def each_a_person(self) -> Table:
        """The same records, each of a person of its own."""
        facts = replace(self._facts, n_persons=self.n_records)
        return type(self)(self.name, self.schema, facts, LocalParts([self._ones]), self._count_rows_clipped)

    def _ones(self, rows: int) -> Iterator[WeightedBlock]:
        return (block._replace(weights=np.ones(len(block.y))) for block in self._parts.stream(rows))

    @classmethod
    def from_encoded(cls, name: str, schema: Schema, encoded: Encoded, *, persons: ArrayLike | None = None) -> Table:
        """A table of records that the schema has encoded; `persons` are those of all that were read."""
        X, y = encoded.X, encoded.y
        if not len(y):
            raise DataError(
                f"{name}: all {encoded.dropped} records have missing values and are dropped; nothing is left"
            )
        class_counts = np.bincount(y, minlength=schema.n_classes).astype(np.int64)
        n_persons, weights = None, None
        if persons is not None:
            codes = person_codes(persons, len(y) + encoded.dropped, name)
            n_persons = int(codes.max()) + 1
            weights = record_weights(codes if encoded.gone is None else codes[~encoded.gone])
        return cls(
            name,
            schema,
            Facts(len(y) + encoded.dropped, class_counts, encoded.clipped, encoded.dropped, n_persons),
            LocalParts([ArrayRows(X, y, weights)]),
            lambda: encoded.rows_clipped,
        )

    @classmethod
    def _of_records(cls, name: str, schema: Schema, records: CodedRecords) -> Table:
        streams = [partial(records.blocks, span=span) for span in records.spans()]
        return cls(
            name,
            schema,
            records.facts,
            LocalParts(streams, whole=records.blocks),
            records.n_clipped if schema.clips_rows else lambda: 0,
        )


def encode_matrix(X: Floats, y: NDArray[Any], schema: Schema) -> Encoded:
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
