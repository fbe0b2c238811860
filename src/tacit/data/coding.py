"""From the columns of a table in memory to codes: the half of encoding that reads records.

A code is a float64. Numbers stand for themselves, labels become their position in the declared list, and a missing
value is NaN. What `sql.py` does to files, this does to NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tacit.data.date import DateRule
from tacit.data.feature import Binary, Categorical, Feature, Numeric, Target
from tacit.data.finding import ColumnFinding
from tacit.data.label import BLANKS, MISSING_TEXT, normal, small

Floats = NDArray[np.float64]


def code_column(feature: Feature | Target, values: NDArray[Any]) -> tuple[Floats, NDArray[np.bool_], int]:
    """The codes of one column, which values could not be read, and how many different labels those were."""
    match feature:
        case Numeric(date=DateRule() as rule):
            return *_code_dates(values, rule), 0
        case Categorical(date=DateRule() as rule):
            months, unreadable = _code_dates(values, rule)
            return months - 1, unreadable, int(unreadable.any())  # categories are numbered from 0
        case Numeric():
            numbers, unreadable = _code_numbers(values)
            return numbers, unreadable, 0
        case Categorical():
            return _code_labels(values, feature.codes, feature.other_code)
        case Binary() | Target():
            return _code_labels(values, feature.codes, None)


def finding_of(feature: Feature | Target, codes: Floats, unreadable: NDArray[np.bool_], distinct: int) -> ColumnFinding:
    """Count what is unusual in one coded column."""
    n_unreadable = int(np.count_nonzero(unreadable))
    outside = 0
    if isinstance(feature, Numeric) and feature.bounds is not None:
        low, high = feature.bounds
        outside = int(np.count_nonzero(codes < low) + np.count_nonzero(codes > high))
    return ColumnFinding(
        missing=int(np.count_nonzero(np.isnan(codes))) - n_unreadable,
        unreadable=n_unreadable,
        distinct=distinct if n_unreadable else 0,
        outside=outside,
        n_records=len(codes),
    )


def _code_numbers(values: NDArray[Any]) -> tuple[Floats, NDArray[np.bool_]]:
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64, copy=False)
        infinite = np.isinf(numbers)
        return (np.where(infinite, np.nan, numbers) if infinite.any() else numbers), infinite
    numbers = np.full(len(values), np.nan)
    missing = np.asarray(pd.isna(values), dtype=bool)
    for position in np.flatnonzero(~missing):
        value = values[position]
        text = value.strip(BLANKS) if isinstance(value, str) else value
        if isinstance(text, str) and small(text) in MISSING_TEXT:
            missing[position] = True
        else:
            numbers[position] = _number(text)
    return numbers, np.isnan(numbers) & ~missing


def _code_dates(values: NDArray[Any], rule: DateRule) -> tuple[Floats, NDArray[np.bool_]]:
    """The numbers of dates: of texts, of dates and of NumPy's and pandas' times."""
    missing = np.asarray(pd.isna(values), dtype=bool)
    numbers = np.full(len(values), np.nan)
    for position in np.flatnonzero(~missing):
        text = str(values[position]).strip(BLANKS)
        missing[position] = small(text) in MISSING_TEXT
        found = rule.number(text)
        numbers[position] = np.nan if found is None else found
    return numbers, np.isnan(numbers) & ~missing


def _number(value: object) -> float:
    """The finite number that a value or its text stands for, or NaN."""
    if not isinstance(value, str | Real | Decimal | np.bool_):
        return np.nan
    # float() also reads 1_000 and digits of other scripts, which other programs would not.
    if isinstance(value, str) and (not value.isascii() or "_" in value):
        return np.nan
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return np.nan
    return number if np.isfinite(number) else np.nan


def _code_labels(
    values: NDArray[Any], codes: Mapping[str, int], other: int | None
) -> tuple[Floats, NDArray[np.bool_], int]:
    missing_code, unknown_code = -1.0, -2.0
    kind, distinct = _factorise(values)
    forms = [normal(value) for value in distinct]
    # A declared label comes first: a category may be called "NA".
    code = [
        codes.get(form, missing_code if form in MISSING_TEXT else unknown_code if other is None else other)
        for form in forms
    ]
    coded = np.array([*code, missing_code], dtype=np.float64)[kind]  # kind is -1 for None and NaN
    unknown = coded == unknown_code
    coded[coded < 0] = np.nan
    return coded, unknown, len({form for form, c in zip(forms, code, strict=True) if c == unknown_code})


def _factorise(values: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    if values.dtype.kind == "O":
        # True, 1 and 1.0 are equal in Python, and lists cannot be compared: their texts can.
        missing = np.asarray(pd.isna(values), dtype=bool)
        texts = [None if gone else normal(value) for value, gone in zip(values, missing, strict=True)]
        values = np.array(texts, dtype=object)
    kinds, distinct = pd.factorize(values)
    return kinds, distinct
