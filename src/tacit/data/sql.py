"""Codes as SQL: what `coding.py` does to arrays, DuckDB does to files.

Every coded column is a DOUBLE: a number for itself, a label as its position in the declared list, NULL for a missing
value, and NaN for what could not be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tacit.data.date import DATE_TEXT, DateRule
from tacit.data.feature import Categorical, Feature, Numeric, Target, Unfit
from tacit.data.label import BLANKS, LARGE, MISSING_TEXT, SMALL, WHOLE_NUMBER

FLOAT_TYPES = ("FLOAT", "DOUBLE", "REAL")
WHOLE_TYPES = (
    *(
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "UHUGEINT",
    ),
    "BOOLEAN",
)
UNREADABLE = "'NaN'::DOUBLE"


def quoted(name: str) -> str:
    """An identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text constant."""
    return "'" + text.replace("'", "''") + "'"


def code_expression(item: Feature | Target, column: str, column_type: str) -> str:
    """The code of one column, whose quoted name and DuckDB type are given."""
    if isinstance(item, Numeric):
        return _number(column, column_type) if item.date is None else _date(column, item.date)
    if isinstance(item, Categorical) and item.date is not None:
        return f"{_date(column, item.date)} - 1"  # categories are numbered from 0
    other = item.other_code if isinstance(item, Categorical) else None
    return _label(column, item.labels, item.codes, other)


def finding_expressions(item: Feature | Target, coded: str) -> list[str]:
    """Counts of missing, unreadable and out-of-bounds codes in one coded column."""
    outside = "0"
    if isinstance(item, Numeric) and item.bounds is not None:
        low, high = item.bounds
        beyond = f"{coded} < {low!r}::DOUBLE OR ({coded} > {high!r}::DOUBLE AND NOT isnan({coded}))"
        outside = f"coalesce(count_if({beyond}), 0)"
    return [f"count(*) - count({coded})", f"coalesce(count_if(isnan({coded})), 0)", outside]


def text_of(column: str) -> str:
    """The trimmed text of a column."""
    return f"trim(CAST({column} AS VARCHAR), {_blanks()})"


def kept_condition(items: Sequence[Feature | Target], coded: Sequence[str], unfit: Unfit) -> str:
    """Which records are complete under the rule missing="drop"; with unfit="skip", those too that fit otherwise."""
    needed = []
    for item, c in zip(items, coded, strict=True):
        rule = "error" if isinstance(item, Target) else item.missing
        if rule == "drop" or (rule == "error" and unfit == "skip"):
            needed.append(f"{c} IS NOT NULL")
        if unfit == "skip":
            needed.append(f"({c} IS NULL OR NOT isnan({c}))")
    return " AND ".join(needed) or "TRUE"


def _number(column: str, column_type: str) -> str:
    value = f"CAST({column} AS DOUBLE)"
    if column_type in FLOAT_TYPES:
        return f"CASE WHEN isnan({value}) THEN NULL WHEN isinf({value}) THEN {UNREADABLE} ELSE {value} END"
    if column_type in WHOLE_TYPES or column_type.startswith("DECIMAL"):
        return value
    raw = f"CAST({column} AS VARCHAR)"
    number = f"TRY_CAST({raw} AS DOUBLE)"
    # The usual case first: nothing after it is computed for values that are plain numbers. DuckDB also reads 1_000,
    # which other programs would not.
    return (
        f"CASE WHEN isfinite({number}) AND NOT contains({raw}, '_') THEN {number} "
        f"WHEN {column} IS NULL OR {_is_one_of(_small(column), MISSING_TEXT)} THEN NULL ELSE {UNREADABLE} END"
    )


def person_expression(column: str) -> str:
    """Whose a record is: a text in the form in which labels are compared, NULL where it is missing."""
    missing = f"{column} IS NULL OR {_is_one_of(_small(column), MISSING_TEXT)}"
    return f"CASE WHEN {missing} THEN NULL ELSE {_normal(column)} END"


def _normal(column: str) -> str:
    """As `label.normal`."""
    text = text_of(column)
    whole = f"regexp_full_match({text}, {literal(WHOLE_NUMBER)})"
    return f"CASE WHEN {whole} THEN split_part({text}, '.', 1) ELSE {_small(column)} END"


def _date(column: str, rule: DateRule) -> str:
    text = text_of(column)
    # Only what begins as 2026-11-18 does: of 3/4/26 nobody knows which is the month.
    day = f"TRY_CAST(left({text}, 10) AS DATE)"
    is_date = f"regexp_matches({text}, {literal(DATE_TEXT)}) AND {day} IS NOT NULL"
    return (
        f"CASE WHEN {is_date} THEN {_part(day, rule)} "
        f"WHEN {column} IS NULL OR {_is_one_of(_small(column), MISSING_TEXT)} THEN NULL ELSE {UNREADABLE} END"
    )


def _part(day: str, rule: DateRule) -> str:
    if rule.since is None:
        return f"CAST(date_part({literal(rule.part)}, {day}) AS DOUBLE)"
    return f"CAST(date_diff('day', DATE {literal(rule.since.isoformat())}, {day}) AS DOUBLE)"


def _label(column: str, labels: Sequence[str], codes: Mapping[str, int], other: int | None) -> str:
    form, small = _normal(column), _small(column)
    declared = {label: position for position, label in enumerate(labels)} | dict(codes)
    unknown = UNREADABLE if other is None else f"{other}::DOUBLE"
    # Again the usual case first: a label that is written as it is declared.
    return (
        f"CASE CAST({column} AS VARCHAR) {_cases(declared)} ELSE CASE {form} {_cases(codes)} "
        f"ELSE CASE WHEN {column} IS NULL OR {_is_one_of(small, MISSING_TEXT)} THEN NULL ELSE {unknown} END END END"
    )


def _cases(codes: Mapping[str, int]) -> str:
    return " ".join(f"WHEN {literal(name)} THEN {code}::DOUBLE" for name, code in codes.items())


def _small(column: str) -> str:
    return f"translate({text_of(column)}, {literal(LARGE)}, {literal(SMALL)})"


def _is_one_of(text: str, words: Sequence[str]) -> str:
    # Not IN, nor list_contains: DuckDB turns both into a join, which loses the order of records (its issue 24398).
    return f"CASE {text} {' '.join(f'WHEN {literal(word)} THEN TRUE' for word in words)} ELSE FALSE END"


def _blanks() -> str:
    return " || ".join(f"chr({ord(blank)})" for blank in BLANKS)
