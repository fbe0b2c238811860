"""Coefficients as a person reads them: by name, in the columns' original units, each by one estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Numeric, Schema
from tacit.models.inference import Inference
from tacit.report.facts import FitFacts
from tacit.report.row import INTERCEPT, CoefficientRow, row_of

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]

_NUMBERS = ("estimate", "standard_error", "z", "p", "low", "high")


def coefficient_rows(
    coef: Floats | None, intercept: Floats | None, schema: Schema, inference: Inference | None
) -> tuple[CoefficientRow, ...]:
    """One row for the intercept and one for each column, for each class where there are more than two.

    Where there is an `inference`, all numbers of a row are its own; `coef` and `intercept`, with which the model
    predicts, are then told apart from them. Without one the row has the model's own coefficient and nothing else.
    """
    if coef is None or intercept is None:
        return ()
    units = schema.original_units()
    per = {feature.name: feature.per for feature in schema.features if isinstance(feature, Numeric)}
    names = (*schema.column_names, INTERCEPT)
    rows = []
    for c, (weights, constant) in enumerate(zip(coef, intercept, strict=True)):
        values = units @ np.append(weights, constant)
        class_name = None if len(coef) == 1 else schema.target.classes[c]
        for i in (len(names) - 1, *range(len(names) - 1)):
            at = i if len(coef) == 1 else c * len(names) + i
            told = {"class_name": class_name, "per": per.get(names[i], 1.0)}
            rows.append(_row(names[i], float(values[i]), inference, at, told))
    return tuple(rows)


def _row(name: str, value: float, inference: Inference | None, at: int, told: Mapping[str, Any]) -> CoefficientRow:
    if inference is None:
        estimate = told["per"] * value if np.isfinite(value) else None
        return CoefficientRow(name=name, estimate=estimate, **told)
    numbers = {key: float(getattr(inference, key)[at]) for key in _NUMBERS}
    return row_of(name, numbers, prediction=value, **told)


def fit_facts(inference: Inference | None, n_records: int | None) -> FitFacts | None:
    """How well the model fits, where an inference tells."""
    if inference is None:
        return None
    return FitFacts(
        log_likelihood=inference.log_likelihood,
        aic=inference.aic,
        n_records=n_records,
        null_log_likelihood=inference.null_log_likelihood,
        degrees=inference.n_slopes,
    )


def coefficient_table(rows: Sequence[CoefficientRow]) -> pd.DataFrame:
    """The rows as a data frame: NaN where a number is not known; `class` only where there are several classes."""
    import pandas as pd

    table = pd.DataFrame(
        [row.as_dict() for row in rows], columns=list(CoefficientRow(name="", estimate=None).as_dict())
    )
    numbers = [column for column in table.columns if column not in ("term", "class", "identified")]
    table[numbers] = table[numbers].astype(np.float64)
    return table if any(row.class_name is not None for row in rows) else table.drop(columns="class")


def interval_table(rows: Sequence[CoefficientRow]) -> pd.DataFrame:
    """The 95 % interval of each term, by its name (and class): -inf and inf where it is not identified.

    NaN where no interval was computed, which is ignorance of another kind.
    """
    table = coefficient_table(rows)
    table.loc[~table["identified"], ["low", "high"]] = -np.inf, np.inf
    keys = ["class", "term"] if "class" in table else ["term"]
    return table.set_index(keys)[["low", "high"]]
