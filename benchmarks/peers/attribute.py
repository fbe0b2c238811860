"""Records as codes, for a peer that counts: one code for each feature of a table.

A one-hot feature has its categories as levels, and one for none of them. A column that takes at most 16 values has
these: what values a documented column can take is public. Any other column is cut into 16 bins of equal width between
its public bounds, and a bin stands for its middle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.uint8]

BINS = 16
# Which columns are one feature, where a table comes encoded and names none: the census's documented coding.
WIDTHS = {
    "a9a": (5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41),
    "adult_dpml": (7, 16, 7, 14, 6, 5, 2, 41, 1, 1, 1, 1, 1, 1),
}


@dataclass(frozen=True)
class Attributes:
    """Codes of the training and the test records, and what the levels of each feature are in encoded columns."""

    train: Codes
    test: Codes
    levels: tuple[Floats, ...]  # of shape (levels, columns), one for each feature

    @classmethod
    def of(cls, X: Floats, X_test: Floats, widths: Sequence[int]) -> Attributes:
        """Cut encoded rows, not clipped, into features that are so many columns wide."""
        train, test, levels = [], [], []
        for columns in _slices(widths):
            own = _levels(X[:, columns])
            levels.append(own)
            train.append(_codes(X[:, columns], own))
            test.append(_codes(X_test[:, columns], own))
        return cls(np.stack(train, axis=1), np.stack(test, axis=1), tuple(levels))

    def columns(self) -> list[slice]:
        """Where the columns of each feature are."""
        return list(_slices([level.shape[1] for level in self.levels]))

    def scores(self, theta: Floats) -> Floats:
        """Log odds of the test records; the last number of theta is the intercept."""
        found = np.full(len(self.test), theta[-1])
        for k, columns in enumerate(self.columns()):
            found += (self.levels[k] @ theta[columns])[self.test[:, k]]
        return found


def widths_of(name: str, schema: Schema) -> tuple[int, ...]:
    """How many columns each feature of a data set has."""
    return WIDTHS.get(name) or tuple(len(feature.columns(schema.coding)) for feature in schema.features)


def _slices(widths: Sequence[int]) -> Iterator[slice]:
    for width, end in zip(widths, accumulate(widths), strict=True):
        yield slice(end - width, end)


def _levels(columns: Floats) -> Floats:
    """The levels of a feature, by the rule above."""
    if columns.shape[1] > 1:
        return np.vstack([np.zeros(columns.shape[1]), np.eye(columns.shape[1])])
    values = np.unique(columns)
    if len(values) <= BINS:
        return values[:, None]
    low = -1.0 if values[0] < 0 else 0.0  # encoded bounds are -1 and 1, or 0 and 1
    return low + (1.0 - low) * (np.arange(BINS) + 0.5)[:, None] / BINS


def _codes(columns: Floats, levels: Floats) -> Codes:
    """The nearest level of each record."""
    if columns.shape[1] > 1:
        return np.where(columns.max(axis=1) > 0.5, columns.argmax(axis=1) + 1, 0).astype(np.uint8)
    edges = (levels[1:, 0] + levels[:-1, 0]) / 2
    return np.searchsorted(edges, columns[:, 0]).astype(np.uint8)
