"""Plain arrays as matrices: what cannot be one, or holds no numbers, is refused in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tacit.errors import DataError, SettingError

Floats = npt.NDArray[np.float64]


def names_of(X: Any) -> list[str] | None:
    """A data frame's column names; None for anything else, and for a data frame whose columns are numbered."""
    if isinstance(X, pd.DataFrame) and all(isinstance(name, str) for name in X.columns):
        return [str(name) for name in X.columns]
    return None


def to_matrix(X: Any, name: str) -> npt.NDArray[Any]:
    """X as an array of two dimensions, whatever it holds; `name` is what messages call it."""
    if hasattr(X, "toarray"):
        raise SettingError(f"{name} is a sparse matrix; give a dense one, for instance {name}.toarray()")
    if X is None or isinstance(X, str | bytes | dict | set):
        raise SettingError(f"{name} is a {type(X).__name__}; give a matrix of shape (n, d), or a data frame")
    try:
        matrix = np.asarray(X)
    except ValueError as error:
        raise SettingError(f"{name} is no matrix: its rows have different lengths; give (n, d)") from error
    if matrix.dtype.kind == "c":
        raise SettingError(f"Complex data not supported: {name} has complex numbers; give real ones")
    if matrix.ndim != 2:
        raise SettingError(
            f"{name} of shape {matrix.shape} is no matrix of shape (n, d). Reshape your data: "
            f"{name}.reshape(-1, 1) if it is one feature, {name}.reshape(1, -1) if it is one record"
        )
    return matrix


def to_numbers(X: Any, name: str) -> Floats:
    """X as a matrix of finite numbers; refuses text, and names the row and column of the first NaN or infinity."""
    if isinstance(X, pd.DataFrame):
        columns, names = [X.iloc[:, j] for j in range(X.shape[1])], [str(column) for column in X.columns]
    else:
        matrix = to_matrix(X, name)
        if matrix.dtype.kind in "biuf":
            numbers = matrix.astype(np.float64, copy=False)
            _check_finite(numbers, name, range(matrix.shape[1]))
            return numbers
        columns, names = [pd.Series(column) for column in matrix.T], [str(j) for j in range(matrix.shape[1])]
    text = [column for column, values in zip(names, columns, strict=True) if not _is_numeric(values)]
    if text:
        raise DataError(
            f"{name} holds what is no number in column {', '.join(text[:5])}{', ...' if len(text) > 5 else ''}; give "
            f"numbers, or declare categories in a Schema and make Tables of it"
        )
    numbers = np.empty((len(X), len(columns)))
    for j, values in enumerate(columns):
        numbers[:, j] = values.to_numpy(dtype=np.float64, na_value=np.nan)
    _check_finite(numbers, name, names)
    return numbers


def _is_numeric(values: pd.Series[Any]) -> bool:
    if values.dtype == object:
        return all(isinstance(value, Real | np.bool_) for value in values[values.notna()])
    return bool(pd.api.types.is_numeric_dtype(values) and values.dtype.kind != "c")


def _check_finite(numbers: Floats, name: str, columns: Sequence[object]) -> None:
    bad = ~np.isfinite(numbers)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        kind = "NaN" if np.isnan(numbers[row, column]) else "inf"
        raise DataError(
            f"{name} has {np.count_nonzero(bad)} values that are no finite numbers, the first ({kind}) in row {row}, "
            f"column {columns[column]}; fill them in, or leave those records out"
        )
