"""Coefficients as a person reads them: by name, in the columns' original units."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema
from tacit.models.inference import Inference
from tacit.report.facts import INTERCEPT, CoefficientRow

Floats = npt.NDArray[np.float64]

_MOST = 700.0  # exp(700) is near the largest double


def coefficient_rows(
    coef: Floats, intercept: Floats, schema: Schema, inference: Inference | None
) -> tuple[CoefficientRow, ...]:
    """One row for the intercept and one for each column, for each class where there are more than two."""
    units = schema.original_units()
    names = (*schema.column_names, INTERCEPT)
    rows = []
    for c, (weights, constant) in enumerate(zip(coef, intercept, strict=True)):
        values = units @ np.append(weights, constant)
        class_name = None if len(coef) == 1 else schema.target.classes[c]
        for i in (len(names) - 1, *range(len(names) - 1)):
            at = i if len(coef) == 1 else c * len(names) + i
            rows.append(_row(names[i], float(values[i]), class_name, inference, at))
    return tuple(rows)


def _row(name: str, value: float, class_name: str | None, inference: Inference | None, at: int) -> CoefficientRow:
    odds_ratio = float(np.exp(np.clip(value, -_MOST, _MOST)))
    if inference is None:
        return CoefficientRow(name=name, value=value, odds_ratio=odds_ratio, class_name=class_name)
    return CoefficientRow(
        name=name,
        value=value,
        odds_ratio=odds_ratio,
        standard_error=float(inference.standard_error[at]),
        z=float(inference.z[at]),
        p=float(inference.p[at]),
        odds_low=float(np.exp(np.clip(inference.low[at], -_MOST, _MOST))),
        odds_high=float(np.exp(np.clip(inference.high[at], -_MOST, _MOST))),
        class_name=class_name,
    )
