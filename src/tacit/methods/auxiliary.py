"""Auxiliary data: public rows without labels, from wherever they come, in a federation's encoded columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from tacit.data.encoding import clip_rows
from tacit.data.schema import Schema
from tacit.data.source import connect, no_records_in_errors, open_file
from tacit.data.table import Table
from tacit.errors import SettingError

Floats = npt.NDArray[np.float64]
Auxiliary: TypeAlias = npt.ArrayLike | pd.DataFrame | Table | Path
"""Encoded columns, a data frame with the schema's features, a table, or the path of a CSV, TSV or Parquet file."""


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
            connection = connect()
            source = open_file(Path(public), schema.feature_names, connection)
            columns_in_sql = ", ".join(quoted for _, quoted, _ in source.columns)
            with no_records_in_errors(source.name):
                frame = connection.execute(f"SELECT {columns_in_sql} FROM {source.relation}").df()
            return _encoded(frame.set_axis(source.column_names, axis="columns"), schema)
    try:
        return np.asarray(public, dtype=np.float64)
    except (TypeError, ValueError):
        raise SettingError("public is no matrix of numbers; give encoded columns, a data frame or a path") from None
