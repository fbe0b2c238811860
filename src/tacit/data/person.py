"""Whose a record is: a column of names, and what a record weighs if a person has several.

A person with m complete records gives each of them the weight 1/m. A sum of terms, one for each record, then holds the
mean of the person's terms. How far that can move is what one record can move: `methods.cohort` has the proof.

Names are compared in the form of labels (`label.normal`), so that 7 and 7.0, or A7 and a7, are one person. Two persons
that are taken for one are protected together. One person under two names is protected as two: names must be right.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from tacit.data.encoding import Floats, Ints
from tacit.data.label import MISSING_TEXT, normal
from tacit.errors import DataError


def person_codes(persons: ArrayLike, n_records: int, where: str) -> Ints:
    """A whole number for each record, the same for records of one person: 0, 1, ... in no special order."""
    given: NDArray[Any] = np.asarray(persons)
    if given.shape != (n_records,):
        raise DataError(f"{where}: persons of shape {given.shape} must name one person for each of {n_records} records")
    distinct, inverse = np.unique(given.astype(str), return_inverse=True)
    texts = [normal(text) for text in distinct.tolist()]
    unnamed = np.array([text in MISSING_TEXT for text in texts])
    missing = np.asarray(pd.isna(given)) | unnamed[inverse]
    if missing.any():
        raise unnamed_persons(where, int(np.count_nonzero(missing)), int(np.argmax(missing)) + 1)
    forms = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    return np.array([forms[text] for text in texts], dtype=np.int64)[inverse]


def unnamed_persons(where: str, count: int, first: int) -> DataError:
    """The error of records that are nobody's, for the eyes of their owner: `first` counts from 1."""
    return DataError(
        f"{where}: {count} records name no person, the first is record {first} (its line is one further down, below "
        f"the column names); say whose they are, or leave them out"
    )


def record_weights(codes: Ints) -> Floats:
    """1/m for each record of a person with m records."""
    counts = np.bincount(codes) if len(codes) else np.zeros(1)
    weights: Floats = 1.0 / counts[codes]
    return weights
