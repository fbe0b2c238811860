"""Look through a party's records for its owner: which record, in which line, has what in a column that does not fit.

What is found holds values of records. It is for the owner's eyes alone: nothing here is sent, logged or kept. The
records are coded by the very expressions by which a study's table is, so what is shown here is what happens there.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Literal

import duckdb

from tacit.data.feature import Feature, Numeric, Target
from tacit.data.finding import ColumnFinding, check_columns
from tacit.data.schema import Schema
from tacit.data.source import CSV_ENDINGS, Source, connect, no_records_in_errors, open_file, open_query, read_header
from tacit.data.sql import code_expression, finding_expressions, text_of
from tacit.errors import DataError

Trouble = Literal["missing", "unreadable", "outside"]
_LONGEST_VALUE = 80  # characters that are shown


@dataclass(frozen=True, kw_only=True)
class UnfitValue:
    """One value that does not fit.

    Attributes:
        record: the number of the record, from 1.
        line: the line of the text file in which the record begins, from 1; None where there are no lines.
        column, value: what stands where; the value is cut short.
        trouble: "missing" where none may be, "unreadable", or "outside" the bounds, to which it is clipped.
    """

    record: int
    line: int | None
    column: str
    value: str
    trouble: Trouble


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """What a look through the records found.

    Attributes:
        n_records: how many there are.
        n_unfit: how many of them add nothing to a study, since something in them is missing or cannot be read.
        columns: what is unusual in each column, counted.
        values: the first values that do not fit, in the order of the records.
        most: how many values of each column are listed at most.
    """

    n_records: int
    n_unfit: int
    columns: Mapping[str, ColumnFinding]
    values: tuple[UnfitValue, ...]
    most: int

    @property
    def is_well(self) -> bool:
        """Whether every record counts as it is."""
        return not self.values


def inspect_file(path: Path, schema: Schema, *, most: int = 50, spill: Path | None = None) -> Inspection:
    """Look through a CSV, TSV or Parquet file.

    Raises:
        DataError: if it cannot be read, or its columns are not those of the schema.
    """
    connection = connect(spill)
    wanted = (*schema.feature_names, schema.target.name)
    source = open_file(path, wanted, connection)
    found = _inspect(source, schema, connection, most)
    ending = next((end for end in CSV_ENDINGS if path.name.lower().endswith(end)), None)
    if ending is None or not found.values:
        return found
    lines = _lines_of(path, {value.record for value in found.values}, read_header(path, wanted, CSV_ENDINGS[ending])[1])
    return replace(found, values=tuple(replace(value, line=lines.get(value.record)) for value in found.values))


def inspect_query(
    sql: str,
    schema: Schema,
    database: str | None = None,
    *,
    password: str | None = None,
    most: int = 50,
    spill: Path | None = None,
) -> Inspection:
    """Look through the result of a query, as `Table.from_query` runs it."""
    connection = connect(spill)
    return _inspect(open_query(sql, database, connection, password), schema, connection, most)


def _inspect(source: Source, schema: Schema, connection: duckdb.DuckDBPyConnection, most: int) -> Inspection:
    items: tuple[Feature | Target, ...] = (*schema.features, schema.target)
    check_columns([item.name for item in items], schema.ignore, source.column_names, source.name)
    places = {name: (column, kind) for name, column, kind in source.columns}
    parts = []
    for k, item in enumerate(items):
        column, kind = places[item.name]
        parts.append(f"{code_expression(item, column, kind)} AS v{k}, {text_of(column)} AS t{k}")
    with no_records_in_errors(source.name):
        connection.execute(
            f"CREATE TABLE memory.main.numbered AS SELECT row_number() OVER () AS record, {', '.join(parts)} "
            f"FROM {source.relation}"
        )
        counts = [count for k, item in enumerate(items) for count in finding_expressions(item, f"v{k}")]
        unfit = " OR ".join(f"({_condition(item, k)})" for k, item in enumerate(items))
        row = connection.execute(
            f"SELECT count(*), count_if({unfit}), {', '.join(counts)} FROM memory.main.numbered"
        ).fetchone()
        assert row is not None  # an aggregate without GROUP BY has one row
        n_records, n_unfit, *found = (int(number or 0) for number in row)
        if n_records == 0:
            raise DataError(f"{source.name} has column names but no records")
        columns = {
            item.name: ColumnFinding(found[3 * k], found[3 * k + 1], 0, found[3 * k + 2])
            for k, item in enumerate(items)
        }
        values = [value for k, item in enumerate(items) for value in _values(connection, item, k, most)]
    values.sort(key=lambda value: value.record)
    return Inspection(n_records=n_records, n_unfit=n_unfit, columns=columns, values=tuple(values), most=most)


def _condition(item: Feature | Target, k: int) -> str:
    """When a record adds nothing because of this column."""
    may_be_missing = isinstance(item, Feature) and item.missing not in ("error", "drop")
    return f"coalesce(isnan(v{k}), FALSE)" + ("" if may_be_missing else f" OR v{k} IS NULL")


def _values(connection: duckdb.DuckDBPyConnection, item: Feature | Target, k: int, most: int) -> Iterator[UnfitValue]:
    outside = "FALSE"
    if isinstance(item, Numeric) and item.bounds is not None:
        low, high = item.bounds
        outside = f"(NOT isnan(v{k}) AND (v{k} < {low!r}::DOUBLE OR v{k} > {high!r}::DOUBLE))"
    rows = connection.execute(
        f"SELECT record, coalesce(t{k}, ''), CASE WHEN v{k} IS NULL THEN 'missing' WHEN isnan(v{k}) THEN 'unreadable' "
        f"ELSE 'outside' END FROM memory.main.numbered WHERE ({_condition(item, k)}) OR coalesce({outside}, FALSE) "
        f"ORDER BY record LIMIT {int(most)}"
    ).fetchall()
    for record, text, trouble in rows:
        yield UnfitValue(
            record=int(record), line=None, column=item.name, value=str(text)[:_LONGEST_VALUE], trouble=trouble
        )


def _lines_of(path: Path, records: set[int], delimiter: str) -> dict[int, int]:
    """The line in which each of these records begins; a text in quotes may go over several lines."""
    found: dict[int, int] = {}
    last, number = max(records), 0
    with _opened(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        next(reader, None)
        begins = reader.line_num + 1
        for row in _rows(reader):
            if row:  # an empty line is no record
                number += 1
                if number in records:
                    found[number] = begins
            begins = reader.line_num + 1
            if number >= last:
                break
    return found


def _rows(reader: Iterator[Sequence[str]]) -> Iterator[Sequence[str]]:
    """The rows, up to one that this reader cannot read; the records after it have no line."""
    try:
        yield from reader
    except csv.Error:
        return


@contextmanager
def _opened(path: Path) -> Iterator[IO[str]]:
    is_packed = path.name.lower().endswith(".gz")
    with (
        gzip.open(path, "rt", encoding="utf-8-sig", newline="", errors="replace")
        if is_packed
        else path.open(encoding="utf-8-sig", newline="", errors="replace")
    ) as file:
        yield file
