"""Rows without labels, from wherever they come, in encoded columns: records to predict, and public auxiliary data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from tacit.data.encoding import clip_rows
from tacit.data.label import normal
from tacit.data.matrix import names_of, to_matrix
from tacit.data.schema import Schema
from tacit.data.source import connect, no_records_in_errors, open_file
from tacit.data.table import Table
from tacit.errors import SettingError

Floats = npt.NDArray[np.float64]
Auxiliary: TypeAlias = npt.ArrayLike | pd.DataFrame | Table | Path
"""Encoded columns, a data frame with the schema's features, a table, or the path of a CSV, TSV or Parquet file."""

Rows: TypeAlias = npt.ArrayLike | pd.DataFrame | Table
"""Records to predict: an array or a data frame in the columns' own units, or a table of the model's schema."""


def encode_rows(X: Rows, schema: Schema, model: str) -> Floats:
    """Records to predict, encoded and clipped as the schema does it for the parties' tables.

    A data frame's columns are found by name; an array has one for each feature, in the schema's order. `model` is what
    messages call the model.
    """
    if isinstance(X, Table):
        if (X.schema.features, X.schema.coding) != (schema.features, schema.coding):
            raise SettingError("X is a table of another schema than the model's; encode it by `model.schema_`")
        return X.arrays()[0]
    if isinstance(X, pd.DataFrame) and names_of(X) is not None:
        return schema.encode_features({name: X[name].to_numpy() for name in schema.feature_names if name in X}, "X")
    matrix, n_features = to_matrix(X, "X"), len(schema.features)
    if matrix.shape[1] != n_features:
        names = ", ".join(schema.feature_names[:10]) + (", ..." if n_features > 10 else "")
        raise SettingError(
            f"X has {matrix.shape[1]} features, but {model} is expecting {n_features} features as input: {names}"
        )
    return schema.encode_features({name: matrix[:, j] for j, name in enumerate(schema.feature_names)}, "X")


def read_frame(path: Path, wanted: Sequence[str]) -> pd.DataFrame:
    """All columns of a CSV, TSV or Parquet file; `wanted` are names that its first line should have."""
    connection = connect()
    source = open_file(path, wanted, connection)
    columns = ", ".join(quoted for _, quoted, _ in source.columns)
    with no_records_in_errors(source.name):
        frame: pd.DataFrame = connection.execute(f"SELECT {columns} FROM {source.relation}").df()
    return frame.set_axis(source.column_names, axis="columns")


def auxiliary_rows(public: Any, schema: Schema) -> Floats:
    """The rows, of shape (N, d) with N >= 1, none longer than the schema's radius, if it has one."""
    X = _encoded(public, schema)
    if X.ndim != 2 or X.shape[1] != schema.n_columns:
        raise SettingError(
            f"public of shape {X.shape} does not have the federation's {schema.n_columns} encoded columns"
        )
    if not len(X) or not np.isfinite(X).all():
        raise SettingError(f"public has {len(X)} rows; it needs at least one, and finite values only")
    return X if schema.radius is None else clip_rows(X, schema.radius, overwrite=False)[0]


def _encoded(public: Any, schema: Schema) -> Floats:
    match public:
        case None:
            raise SettingError("public is missing: Ensemble needs rows without labels that everybody may see")
        case Table():
            if (public.schema.features, public.schema.coding) != (schema.features, schema.coding):
                raise SettingError("public is a table of another schema; build it from the federation's")
            return public.arrays()[0]
        case pd.DataFrame():
            columns = {name: public[name].to_numpy() for name in schema.feature_names if name in public}
            return schema.encode_features(columns, "public")
        case str() | Path():
            return _encoded(read_frame(Path(public), schema.feature_names), schema)
    try:
        return np.asarray(public, dtype=np.float64)
    except (TypeError, ValueError):
        raise SettingError("public is no matrix of numbers; give encoded columns, a data frame or a path") from None


def positions_of(X: Rows, y: npt.ArrayLike | None, classes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The position of each record's label among the classes, however it is written: 1, 1.0 and "1" are the same.

    A table brings its own labels.
    """
    if isinstance(X, Table):
        return X.arrays()[1]
    if y is None:
        raise SettingError("y is missing: give the true classes, or a Table, which brings its own")
    labels = np.asarray(y)
    n_records = len(X) if isinstance(X, np.ndarray | pd.DataFrame | list) else len(np.asarray(X))
    if labels.shape != (n_records,):
        raise SettingError(
            f"y of shape {labels.shape} does not fit the {n_records} records of X; give one label for each"
        )
    position = {normal(label): i for i, label in enumerate(classes.tolist())}
    values, inverse = np.unique(labels, return_inverse=True)
    indices = np.array([position.get(normal(value), -1) for value in values.tolist()], dtype=np.int64)
    if np.any(indices < 0):
        raise SettingError(f"y holds {np.sum(indices < 0)} labels that are none of the classes {', '.join(position)}")
    told: npt.NDArray[np.int64] = indices[inverse]
    return told
