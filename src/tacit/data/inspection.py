"""What does not fit a schema in an owner's own file: line, column, value and what was probably meant.

A party's daemon never says such things: an answer must not depend on what a record is like. The owner, who holds the
file, may know, and needs to. So nothing here is called by anything that travels.

    found = inspect_file("north.csv", schema)
    for misfit in found.misfits:
        print(misfit.told())
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb

from tacit.data.feature import Binary, Categorical, Feature, Numeric, Target
from tacit.data.finding import LEAST_VALUES
from tacit.data.label import near
from tacit.data.schema import Schema
from tacit.data.source import CSV_ENDINGS, Source, connect, header_of, no_records_in_errors, open_file
from tacit.data.sql import code_expression, person_expression, text_of

MOST_MISFITS = 20
"""Shown of each column; all are counted."""
_LONGEST = 60  # characters of a value
_UNNAMED = "names no person; say whose the record is, or leave it out"


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """One value that does not fit, with what to do about it."""

    record: int  # counted from 1
    line: int | None  # in a text file
    column: str
    value: str
    why: str
    is_error: bool  # otherwise it is clipped, left out or put into a bucket, as the schema says

    def told(self) -> str:
        """One line."""
        place = f"record {self.record:,}" if self.line is None else f"line {self.line:,}"
        return f"{place}, column {self.column!r}: {self.value!r} {self.why}"


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """All that was found in one file; for its owner alone."""

    file: str
    n_records: int = 0
    problems: tuple[str, ...] = ()  # of the file as a whole: columns, units, classes
    misfits: tuple[Misfit, ...] = ()  # the first ones of each column
    counts: dict[str, int] = field(default_factory=dict)  # of all misfits, by column
    class_counts: dict[str, int] = field(default_factory=dict)

    @property
    def fits(self) -> bool:
        """Whether the file can be used as it is: nothing is an error."""
        return not self.problems and not any(misfit.is_error for misfit in self.misfits)

    def lines(self) -> list[str]:
        """Everything in words, the gravest first."""
        told = [f"{self.file}: {problem}" for problem in self.problems]
        for misfit in sorted(self.misfits, key=lambda one: not one.is_error):
            told.append(f"{self.file}, {misfit.told()}")
        for column, count in self.counts.items():
            shown = sum(misfit.column == column for misfit in self.misfits)
            if count > shown:
                told.append(f"{self.file}: column {column!r} has {count - shown:,} more of these")
        if self.n_records:
            classes = ", ".join(f"{count:,} of class {name!r}" for name, count in self.class_counts.items())
            told.append(f"{self.file}: {self.n_records:,} records{f': {classes}' if classes else ''}")
        return told


def inspect_file(
    path: str | Path, schema: Schema, *, ignore: Sequence[str] = (), person: str | None = None
) -> Inspection:
    """Compare a CSV, TSV or Parquet file with a schema; `person` names the column that says whose a record is.

    Raises a DataError only where the file cannot be read at all; whatever else is wrong is in the result.
    """
    connection = connect()
    wanted = (*schema.feature_names, schema.target.name)
    source = open_file(Path(path), wanted, connection)
    named = () if person is None else (person,)
    problems = _column_problems((*wanted, *named), (*schema.ignore, *ignore), source.column_names)
    items = [item for item in (*schema.features, schema.target) if item.name in source.column_names]
    with no_records_in_errors(source.name):
        looked = _Look(source, items, connection, person)
    found = [looked.misfits(item, position) for position, item in enumerate(items)]
    unnamed, n_unnamed = looked.unnamed()
    records = [*(record for misfits, _ in found for record, _, _ in misfits), *unnamed]
    lines = _lines_of(Path(path), wanted, records)
    misfits = tuple(
        Misfit(
            record=record, line=lines.get(record), column=item.name, value=_short(value), **_judged(item, value, kind)
        )
        for item, (of_column, _) in zip(items, found, strict=True)
        for record, value, kind in of_column
    ) + tuple(
        Misfit(record=record, line=lines.get(record), column=person or "", value="", why=_UNNAMED, is_error=True)
        for record in unnamed
    )
    counts = {item.name: count for item, (_, count) in zip(items, found, strict=True) if count}
    problems += looked.problems()
    return Inspection(
        file=source.name,
        n_records=looked.n_records,
        problems=tuple(problems),
        misfits=misfits,
        counts=counts | ({person or "": n_unnamed} if n_unnamed else {}),
        class_counts=looked.class_counts(schema.target),
    )


class _Look:
    """The file inside DuckDB: each record with its place, its texts and its codes."""

    def __init__(
        self,
        source: Source,
        items: Sequence[Feature | Target],
        connection: duckdb.DuckDBPyConnection,
        person: str | None = None,
    ) -> None:
        self._connection, self._items = connection, items
        places = {name: (column, kind) for name, column, kind in source.columns}
        parts = []
        for position, item in enumerate(items):
            column, kind = places[item.name]
            parts += [f"{text_of(column)} AS t{position}", f"{code_expression(item, column, kind)} AS v{position}"]
        self._has_persons = person in places
        if person is not None and person in places:
            parts.append(f"{person_expression(places[person][0])} AS p")
        connection.execute(f"CREATE TABLE looked AS SELECT {', '.join(parts or ['1'])} FROM {source.relation}")
        self.n_records = int(self._all("SELECT count(*) FROM looked")[0][0])

    def misfits(self, item: Feature | Target, position: int) -> tuple[list[tuple[int, str, str]], int]:
        """The first records of a column that do not fit, each with its text and kind of misfit; and how many do not."""
        v = f"v{position}"
        cases = f"CASE WHEN {v} IS NULL THEN 'missing' WHEN isnan({v}) THEN 'unreadable'"
        if isinstance(item, Numeric) and item.bounds is not None:
            low, high = item.bounds
            cases += f" WHEN {v} < {low!r}::DOUBLE OR {v} > {high!r}::DOUBLE THEN 'outside'"
        if isinstance(item, Categorical) and item.other_code is not None:
            cases += f" WHEN {v} = {item.other_code} THEN 'other'"
        query = f"SELECT rowid + 1 AS record, t{position} AS value, {cases} END AS kind FROM looked"
        rows = self._all(f"SELECT * FROM ({query}) WHERE kind IS NOT NULL ORDER BY record LIMIT {MOST_MISFITS}")
        count = self._all(f"SELECT count(*) FROM ({query}) WHERE kind IS NOT NULL")[0][0]
        return [(int(record), value or "", str(kind)) for record, value, kind in rows], int(count)

    def unnamed(self) -> tuple[list[int], int]:
        """The first records that name no person, and how many there are."""
        if not self._has_persons:
            return [], 0
        rows = self._all(f"SELECT rowid + 1 FROM looked WHERE p IS NULL ORDER BY rowid LIMIT {MOST_MISFITS}")
        return [int(row[0]) for row in rows], int(self._all("SELECT count(*) FROM looked WHERE p IS NULL")[0][0])

    def problems(self) -> list[str]:
        """What is wrong with a whole column, or with all records."""
        if not self.n_records:
            return ["has column names but no records"]
        told = []
        for position, item in enumerate(self._items):
            if isinstance(item, Numeric) and item.bounds is not None and self._is_all_outside(position, item.bounds):
                low, high = item.bounds
                told.append(
                    f"column {item.name!r}: every value lies outside the declared {low:g} to {high:g}; "
                    f"it is probably in another unit"
                )
        return told

    def class_counts(self, target: Target) -> dict[str, int]:
        """How many records each class has."""
        if target not in self._items:
            return {}
        v = f"v{list(self._items).index(target)}"
        counts = dict(self._all(f"SELECT {v}, count(*) FROM looked GROUP BY {v}"))
        return {name: int(counts.get(float(code), 0)) for code, name in enumerate(target.classes)}

    def _is_all_outside(self, position: int, bounds: tuple[float, float]) -> bool:
        v, (low, high) = f"v{position}", bounds
        known = f"{v} IS NOT NULL AND NOT isnan({v})"
        query = f"SELECT count(*), count_if({v} < {low!r}::DOUBLE OR {v} > {high!r}::DOUBLE) FROM looked WHERE {known}"
        n, outside = self._all(query)[0]
        return bool(n >= LEAST_VALUES and n == outside)

    def _all(self, query: str) -> list[Any]:
        return self._connection.execute(query).fetchall()


def _column_problems(wanted: Sequence[str], ignored: Collection[str], found: Sequence[str]) -> list[str]:
    problems = []
    extra = [name for name in found if name not in wanted and name not in ignored]
    for name in wanted:
        if name not in found:
            close = near(name, extra)
            hint = f"; is it the column {close!r}?" if close else "; the first line must name every column of the study"
            problems.append(f"column {name!r} is missing{hint}")
    if extra:
        problems.append(f"columns {extra} are not in the study; leave them out with ignore = {extra} in [study]")
    for name in sorted({name for name in found if list(found).count(name) > 1}):
        problems.append(f"column {name!r} appears more than once; keep one of them")
    return problems


def _judged(item: Feature | Target, value: str, kind: str) -> dict[str, Any]:
    """Why a value does not fit and what can be done, and whether that is an error."""
    if kind == "missing":
        if isinstance(item, Target):
            return {"why": "is no label; label the record or remove it", "is_error": True}
        if item.missing == "error":
            return {"why": "is missing; fill it in, or let the study say what a missing value is", "is_error": True}
        return {"why": f"is missing; the study's rule is {item.missing!r}", "is_error": False}
    if kind == "outside":
        low, high = (item.bounds if isinstance(item, Numeric) else None) or (math.nan, math.nan)
        return {"why": f"lies outside {low:g} to {high:g} and counts as the bound", "is_error": False}
    if kind == "other":
        return {"why": "is no declared category and goes into the bucket 'other'", "is_error": False}
    if not isinstance(item, Target | Binary) and item.date is not None:
        return {"why": "is no date; write it as 2026-11-18", "is_error": True}
    if isinstance(item, Numeric):
        return {"why": "is no finite number; correct it, or leave it empty", "is_error": True}
    labels = item.labels
    close = near(value, labels)
    hint = f"; is {close!r} meant?" if close else f"; declared are {', '.join(labels[:8])}{', ...' * (len(labels) > 8)}"
    return {"why": f"is not declared{hint}", "is_error": True}


def _lines_of(path: Path, wanted: Sequence[str], records: Collection[int]) -> dict[int, int]:
    """The line of a text file on which each of these records begins; nothing for other files."""
    usual = next((cut for ending, cut in CSV_ENDINGS.items() if path.name.lower().endswith(ending)), None)
    if not records or usual is None:
        return {}
    delimiter = header_of(path, wanted, usual)[1]
    numbered = enumerate(_starts(path, delimiter))  # the line of column names is number 0
    return {record: line for record, line in islice(numbered, max(records) + 1) if record in records}


def _starts(path: Path, delimiter: str) -> Iterator[int]:
    """Where each row of a text file begins; empty lines are no rows."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        before = 0
        for row in reader:
            if row:
                yield before + 1
            before = reader.line_num


def _short(value: str) -> str:
    return value if len(value) <= _LONGEST else f"{value[:_LONGEST]}..."
