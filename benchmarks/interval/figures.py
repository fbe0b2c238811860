"""From what many runs told of each coefficient to one line of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.report.row import CoefficientRow

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

Z = 1.959964  # of a 95 % interval
_SELDOM = 0.1  # a coefficient that is identified in fewer runs than this share is not called the least covered


def numbers_told(rows: Sequence[CoefficientRow], names: Sequence[str]) -> Floats:
    """(4, k): estimate, low, high and standard error of each name; NaN where no interval was told."""
    by_name = {row.name: row for row in rows}
    told = np.full((4, len(names)), np.nan)
    for j, name in enumerate(names):
        row = by_name[name]
        numbers = (row.estimate, row.low, row.high, row.standard_error)
        if all(number is not None for number in numbers):
            told[:, j] = np.array(numbers, dtype=np.float64)
    return told


def drawn_figures(told: Floats, truth: Floats, names: Sequence[str]) -> dict[str, Any]:
    """Of told (runs, 4, k) and truth (runs, k)."""
    estimate, low, high, standard_error = np.moveaxis(told, 1, 0)
    known = np.isfinite(standard_error)
    error = estimate - truth
    reference = np.array([_reference_width(error[known[:, j], j]) for j in range(len(names))])
    ratio = ((high - low) / reference)[known & np.isfinite(reference)]
    return _shares(known, known & (low <= truth) & (truth <= high), names) | {
        "spread": _number(np.std((error / standard_error)[known])) if known.any() else None,
        "width": _number(np.median(ratio)) if len(ratio) else None,
        "median_width": _medians(high - low, known),
        "reference_width": [_number(value) for value in reference],
    }


def real_figures(told: Floats, exact: Floats, exact_error: Floats, names: Sequence[str]) -> dict[str, Any]:
    """Of told (runs, 4, k), and the exact estimates (k,) with their sampling errors (k,).

    The exact estimate is of the same records, so that what lies between is due to the noise alone. That has the
    variance se^2 - se_exact^2; a standard error below the exact one is a miss, whatever the estimate.
    """
    estimate, standard_error = told[:, 0], told[:, 3]
    known = np.isfinite(standard_error)
    below = known & (standard_error < exact_error)
    counted = known & (standard_error > exact_error)
    noise = np.sqrt(np.where(counted, standard_error**2 - exact_error**2, np.nan))
    away = estimate - exact
    close = known & ~below & (np.abs(away) <= Z * np.nan_to_num(noise))
    return _shares(known, close, names) | {
        "below": _number(below.sum() / known.sum()) if known.any() else None,
        "spread": _number(np.std((away / noise)[counted])) if counted.any() else None,
        "wider": _number(np.median((standard_error / exact_error)[known])) if known.any() else None,
        "below_exact": below.sum(axis=0).tolist(),
    }


def _shares(known: Truths, hit: Truths, names: Sequence[str]) -> dict[str, Any]:
    """Shares of all coefficients of all runs, and the counts of each coefficient."""
    identified, covered = known.sum(axis=0), hit.sum(axis=0)
    often = [j for j in range(len(names)) if identified[j] >= max(1.0, _SELDOM * len(known))]
    least = min(often, key=lambda j: covered[j] / identified[j], default=None)
    return {
        "covered": _number(hit.sum() / known.sum()) if known.any() else None,
        "missed": _number((known & ~hit).mean()),
        "not_identified": _number(1 - known.mean()),
        "least": None if least is None else [names[least], _number(covered[least] / identified[least])],
        "names": list(names),
        "identified_runs": identified.tolist(),
        "covered_runs": covered.tolist(),
    }


def _reference_width(error: Floats) -> float:
    """The width of the interval that knows how far estimates spread about the truth."""
    return 2 * Z * float(np.std(error, ddof=1)) if len(error) > 1 else math.nan


def _medians(width: Floats, known: Truths) -> list[float | None]:
    return [_number(np.median(width[known[:, j], j])) if known[:, j].any() else None for j in range(width.shape[1])]


def _number(value: float | np.floating[Any]) -> float | None:
    """Five digits, which a table does not show; None where there is none."""
    return float(f"{float(value):.5g}") if math.isfinite(value) else None
