"""Records inside DuckDB: coded, checked once, and read as a stream in a fixed order.

A Parquet file is read anew in every pass and may be larger than memory. A text file or a query is copied once, as
codes, into a private DuckDB that spills to disk: parsing text in every pass would be slow, and a query need not give
its rows in the same order twice. With a person column every source is copied: records get their weights once
(`person`), and names of persons are kept nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np

from tacit.data.block import BLOCK_ROWS, WeightedBlock
from tacit.data.encoding import Floats, Ints
from tacit.data.feature import Feature, Target, Unfit
from tacit.data.finding import ColumnFinding, check_columns, check_findings
from tacit.data.person import unnamed_persons
from tacit.data.schema import Schema
from tacit.data.source import Source, no_records_in_errors
from tacit.data.sql import code_expression, finding_expressions, kept_condition, person_expression, text_of
from tacit.data.stream import PART_ROWS
from tacit.errors import DataError

VECTOR = 2048  # DuckDB's unit of fetching
NUMBER = "file_row_number"  # what DuckDB calls a record's number in its file, from 0
Span = tuple[int, int]
"""From this record of a file up to that one, without it."""


@dataclass(frozen=True)
class Facts:
    """What one look at all records told."""

    n_records: int  # with those that were dropped
    class_counts: Ints
    clipped: dict[str, int]
    dropped: int
    n_persons: int | None = None  # whose records these are, those of dropped ones too; None where nothing tells
    person_column: str | None = None  # which column tells it, if it has a name


class CodedRecords:
    """The coded records of one source."""

    def __init__(
        self,
        source: Source,
        schema: Schema,
        ignore: Sequence[str],
        connection: duckdb.DuckDBPyConnection,
        unfit: Unfit = "error",
        person: str | None = None,
        facts: Facts | None = None,
    ) -> None:
        """Code the records and check that they fit the schema; a DataError tells all that does not.

        With `facts` they were looked at before, and are not again.
        """
        self._source, self._schema, self._connection, self._unfit = source, schema, connection, unfit
        self._items: tuple[Feature | Target, ...] = (*schema.features, schema.target)
        self._coded = [f"v{position}" for position in range(len(self._items))]
        self._person = person
        # A record's number in a Parquet file; a file with a column of that name is read in one go.
        self._numbered = source.path is not None and person is None and NUMBER not in source.column_names
        names = [item.name for item in self._items] + ([] if person is None else [person])
        check_columns(names, (*schema.ignore, *ignore), source.column_names, source.name)
        self._kept = kept_condition(self._items, self._coded, unfit)
        if person is not None and unfit == "skip":
            self._kept += " AND p IS NOT NULL"
        self._stamp = _stamp_of(source.path)
        with no_records_in_errors(source.name):
            self._code()
            self.facts = self._look() if facts is None else facts
            if person is not None:
                self.facts = replace(self.facts, n_persons=self._weigh(), person_column=person)

    def spans(self) -> list[Span | None]:
        """Where the parts of the records begin and end; None is all of them."""
        n = self.facts.n_records
        if not self._numbered or n <= PART_ROWS:
            return [None]
        return [(start, min(start + PART_ROWS, n)) for start in range(0, n, PART_ROWS)]

    def blocks(self, rows: int, span: Span | None = None) -> Iterator[WeightedBlock]:
        """The encoded records, in blocks of about `rows`; those of a span of records, or all; always in one order."""
        return (block for block, _ in self._encoded(rows, span))

    def n_clipped(self) -> int:
        """How many rows are scaled down to the norm bound: a pass over all records."""
        return sum(n for _, n in self._encoded(BLOCK_ROWS, None))

    def _encoded(self, rows: int, span: Span | None) -> Iterator[tuple[WeightedBlock, int]]:
        n = len(self._schema.features)
        for codes in self._codes(rows, span):
            X, n_clipped = self._schema.encode_codes(codes[:n])
            weights = np.ones(len(X)) if self._person is None else codes[n + 1]
            yield WeightedBlock(X, codes[n].astype(np.int64), weights), n_clipped

    def _codes(self, rows: int, span: Span | None) -> Iterator[Floats]:
        """Codes of shape (n_features + 1, m), the class in the last row, m about `rows`.

        With a person column there is one row more, with the records' weights.
        """
        if _stamp_of(self._source.path) != self._stamp:
            raise DataError(f"{self._source.name} has changed since it was opened; open it again")
        # A cursor of its own, so that one pass may run inside another.
        cursor = self._connection.cursor()
        within = "" if span is None else f" AND r >= {span[0]} AND r < {span[1]}"
        try:
            with no_records_in_errors(self._source.name):
                columns = ", ".join([*self._coded, *([] if self._person is None else ["w"])])
                cursor.execute(f"SELECT {columns} FROM memory.main.coded WHERE {self._kept}{within}")
                while len(frame := cursor.fetch_df_chunk(-(-rows // VECTOR))):
                    yield frame.to_numpy().T
        finally:
            cursor.close()

    def _code(self) -> None:
        places = {name: (column, column_type) for name, column, column_type in self._source.columns}
        expressions = ", ".join(
            f"{code_expression(item, *places[item.name])} AS {coded}"
            for item, coded in zip(self._items, self._coded, strict=True)
        )
        if self._person is not None:
            expressions += f", {person_expression(places[self._person][0])} AS p"
        if self._numbered:
            expressions += f", {NUMBER} AS r"
        kind = "TABLE" if self._source.path is None or self._person is not None else "VIEW"
        self._connection.execute(
            f"CREATE {kind} memory.main.coded AS SELECT {expressions} FROM {self._source.relation}"
        )

    def _look(self) -> Facts:
        """Count everything that is unusual in one query over all records."""
        n_read = self._one("SELECT count(*) FROM memory.main.coded")[0]
        if n_read == 0:
            raise DataError(f"{self._source.name} has column names but no records")
        counts = [c for item, v in zip(self._items, self._coded, strict=True) for c in finding_expressions(item, v)]
        classes = [f"coalesce(count_if({self._coded[-1]} = {k}), 0)" for k in range(self._schema.n_classes)]
        n_kept, *found = self._one(
            f"SELECT count(*), {', '.join(counts + classes)} FROM memory.main.coded WHERE {self._kept}"
        )
        if n_kept == 0 and self._unfit == "error":
            raise DataError(
                f"{self._source.name}: all {n_read} records have missing values and are dropped; nothing is left"
            )
        findings = {}
        for position, item in enumerate(self._items):
            missing, unreadable, outside = found[3 * position : 3 * position + 3]
            distinct = self._distinct(item) if unreadable else 0
            looked_at = n_kept if self._unfit == "error" else 0  # what a record is like must not decide about an answer
            findings[item.name] = ColumnFinding(missing, unreadable, distinct, outside, looked_at)
        hint = "`tacit check STUDY --data FILE` shows its owner every line"
        check_findings(self._schema.features, self._schema.target, findings, self._source.name, hint)
        return Facts(
            n_records=n_read,
            class_counts=np.array(found[-self._schema.n_classes :], dtype=np.int64),
            clipped={name: finding.outside for name, finding in findings.items() if finding.outside},
            dropped=n_read - n_kept,
        )

    def _weigh(self) -> int:
        """Give each complete record its weight, and forget the names; how many persons there are.

        Records without a name are an error, or each is a person of its own that adds nothing: what a record is like
        must not decide about an answer.
        """
        unnamed, first = self._one(
            "SELECT count(*), coalesce(min(rowid), 0) + 1 FROM memory.main.coded WHERE p IS NULL"
        )
        if unnamed and self._unfit == "error":
            raise unnamed_persons(f"{self._source.name}, column {self._person!r}", unnamed, first)
        n_persons = self._one("SELECT count(DISTINCT p) FROM memory.main.coded")[0]
        coded = ", ".join(self._coded)
        counted = f"SELECT p, count(*) AS m FROM memory.main.coded WHERE {self._kept} GROUP BY p"
        # A join loses the order of records: it is asked for.
        self._connection.execute(
            f"CREATE TABLE memory.main.weighed AS SELECT {coded}, 1::DOUBLE / m AS w FROM memory.main.coded "
            f"JOIN ({counted}) USING (p) WHERE {self._kept} ORDER BY memory.main.coded.rowid"
        )
        self._connection.execute("DROP TABLE memory.main.coded")
        self._connection.execute("ALTER TABLE memory.main.weighed RENAME TO coded")
        self._kept = "TRUE"  # no others are left
        return n_persons + unnamed

    def _distinct(self, item: Feature | Target) -> int:
        """How many different texts could not be read in a column."""
        column, column_type = next((c, t) for name, c, t in self._source.columns if name == item.name)
        expression = code_expression(item, column, column_type)
        return self._one(
            f"SELECT count(DISTINCT {text_of(column)}) FROM {self._source.relation} WHERE isnan({expression})"
        )[0]

    def _one(self, query: str) -> tuple[int, ...]:
        row = self._connection.execute(query).fetchone()
        assert row is not None  # an aggregate without GROUP BY has one row
        return tuple(int(value) for value in row)


def _stamp_of(path: Path | None) -> tuple[int, int] | None:
    if path is None:
        return None
    try:
        status = path.stat()
    except OSError:
        return (-1, -1)
    return (status.st_size, status.st_mtime_ns)
