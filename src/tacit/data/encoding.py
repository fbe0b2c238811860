"""From codes to the rows that methods see: the half of encoding that depends on the schema alone.

Codes come as a matrix V with one row per feature (each contiguous, as column stores give them); encoded rows leave as a
C-contiguous X with one column per encoded column. Per feature j with bounds, x = (v - middle_j) * 2 / (high_j - low_j),
clipped to [-1, 1]; labels become at most one 1; NaN becomes what the missing rule says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from tacit.data.feature import Binary, Categorical, Coding, Feature, Numeric

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Encoded:
    """Encoded records, and what was changed on the way.

    Guarantees: X is float64, C-contiguous and finite; y holds class indices; with a norm bound, no row's norm
    (as NumPy computes it) exceeds it.
    """

    X: Floats
    y: Ints
    clipped: dict[str, int]  # values outside the bounds, by column; only columns that have any
    rows_clipped: int  # rows scaled down to the norm bound
    dropped: int  # records left out by the rule missing="drop"
    gone: NDArray[np.bool_] | None = None  # which of the records that were read; None if none were

    def __repr__(self) -> str:
        """The shape alone: records are never shown."""
        return f"Encoded({self.X.shape[0]} records x {self.X.shape[1]} columns)"


class Layout:
    """Which feature goes to which encoded columns, and how; made once per schema."""

    def __init__(self, features: Sequence[Feature], coding: Coding) -> None:
        """Lay the features' columns side by side, in order."""
        widths = [len(feature.columns(coding)) for feature in features]
        starts = [0, *accumulate(widths)]
        self.n_columns = starts.pop()
        value_rows = [i for i, feature in enumerate(features) if not isinstance(feature, Categorical)]
        self._value_rows = np.array(value_rows, dtype=np.intp)
        self._value_columns = np.array([starts[i] for i in value_rows], dtype=np.intp)
        bounds = [_bounds_of(features[i]) for i in value_rows]
        self.middle = np.array([0.0 if b is None else b[0] + (b[1] - b[0]) / 2 for b in bounds])
        self.factor = np.array([1.0 if b is None else 2 / (b[1] - b[0]) for b in bounds])
        self._limit = np.array([np.inf if b is None else 1.0 for b in bounds])
        self._fills = [
            (position, _fill_of(features[i], self.middle[position], self.factor[position]))
            for position, i in enumerate(value_rows)
            if features[i].missing in ("indicator", "middle", "value")
        ]
        self._labels = [
            (i, starts[i], 1 if coding == "reference" else 0)
            for i, feature in enumerate(features)
            if isinstance(feature, Categorical)
        ]
        self._indicators = [
            (i, starts[i] + widths[i] - 1) for i, feature in enumerate(features) if feature.missing == "indicator"
        ]
        self._only_values = self.n_columns == len(value_rows)
        self.drop_rows = np.array([i for i, f in enumerate(features) if f.missing == "drop"], dtype=np.intp)

    @property
    def value_columns(self) -> NDArray[np.intp]:
        """The encoded columns of the numeric and binary features, in the order of `middle` and `factor`."""
        return self._value_columns

    def encode(self, V: Floats) -> Floats:
        """X of shape (m, n_columns) from codes V of shape (n_features, m); may share V's memory if nothing changes."""
        Z = self._scale(V if len(self._value_rows) == len(V) else V[self._value_rows], V)
        if self._only_values:
            return np.ascontiguousarray(Z.T)
        X = np.zeros((V.shape[1], self.n_columns))
        X[:, self._value_columns] = Z.T
        for i, start, first_code in self._labels:
            rows = np.flatnonzero(V[i] >= first_code)  # false for NaN: a missing label is no category
            X[rows, start - first_code + V[i, rows].astype(np.intp)] = 1.0
        for i, column in self._indicators:
            X[:, column] = np.isnan(V[i])
        return X

    def _scale(self, Z: Floats, V: Floats) -> Floats:
        if np.isinf(self._limit).all():
            return Z
        Z = Z - self.middle[:, None]
        Z *= self.factor[:, None]
        if np.isfinite(self._limit).all():
            np.clip(Z, -1.0, 1.0, out=Z)
        else:
            np.clip(Z, -self._limit[:, None], self._limit[:, None], out=Z)
        for position, value in self._fills:
            Z[position, np.isnan(V[self._value_rows[position]])] = value
        return Z


def clip_rows(X: Floats, norm_bound: float, *, overwrite: bool = False) -> tuple[Floats, int]:
    """Scale rows whose norm exceeds the bound down to it, and count them; with overwrite, in X itself.

    Guarantees: no row is scaled up; `np.linalg.norm(row) <= norm_bound` for every row returned, in floating point.
    """
    with np.errstate(over="ignore"):  # a norm that overflows is too long, and is dealt with below
        norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    # einsum adds in another order than norm does: near the bound, the slower sum decides.
    slack = (X.shape[1] + 8) * np.finfo(np.float64).eps
    near = np.flatnonzero(np.abs(norms - norm_bound) <= slack * norm_bound)
    norms[near] = np.linalg.norm(X[near], axis=1)
    long = np.flatnonzero(norms > norm_bound)
    if not len(long):
        return X, 0
    clipped = X if overwrite else X.copy()
    largest = np.abs(X[long]).max(axis=1, keepdims=True)
    unit = X[long] / largest  # so that the squares neither overflow nor vanish
    shrunk = norm_bound * (1 - slack) / np.linalg.norm(unit, axis=1, keepdims=True)
    clipped[long] = unit * shrunk
    return clipped, len(long)


def _fill_of(feature: Feature, middle: float, factor: float) -> float:
    """What stands for a missing value, encoded."""
    if isinstance(feature, Binary):
        return 0.5 if feature.missing == "middle" else 0.0
    fill = feature.fill if isinstance(feature, Numeric) else None
    return 0.0 if fill is None else float((fill - middle) * factor)


def _bounds_of(feature: Feature) -> tuple[float, float] | None:
    # A binary code is 0 or 1 already: with the bounds -1 and 1 scaling leaves it as it is.
    return feature.bounds if isinstance(feature, Numeric) else (-1.0, 1.0)
