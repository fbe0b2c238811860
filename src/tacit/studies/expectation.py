"""What repeated runs reach: means with their standard errors, and the widths of the coefficients' intervals.

Forecasts and comparisons tell the same figures, which are worked out here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.data.table import Table
from tacit.methods import Method
from tacit.report.curve import CurvePoint
from tacit.report.metrics import Metrics, evaluate


@dataclass(frozen=True, kw_only=True)
class ExpectedWidth:
    """The 95 % interval of one coefficient, in original units.

    Attributes:
        term: its name, with its class where there are several.
        half_width: the median over runs; infinite if in half of them or more the coefficient is not identified.
        standard_error: the same of its standard error.
        not_identified: in which share of the runs nothing is known of it.
    """

    term: str
    half_width: float
    standard_error: float
    not_identified: float


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """How good a model is over repeated runs, and how much it tells of each coefficient.

    Attributes:
        accuracy, log_loss, calibration_error: means over runs; the last is the expected calibration error.
        auc, average_precision: None where the records that were measured on have none.
        accuracy_gain: how far the accuracy is above that of the commonest class.
        log_loss_gain: how far the log-loss is below that of the class frequencies.
        widths: one for each coefficient; empty if the method gives no intervals.
        widening: the median coefficient's interval, as a multiple of the exact fit's; None without either.
        not_identified: how many coefficients nothing is known of, on average.
        is_useful: whether the log-loss is below that of the class frequencies, and the accuracy not below that of the
            commonest class, both by two standard errors.
    """

    accuracy: CurvePoint
    auc: CurvePoint | None
    average_precision: CurvePoint | None
    log_loss: CurvePoint
    calibration_error: CurvePoint
    accuracy_gain: CurvePoint
    log_loss_gain: CurvePoint
    widths: tuple[ExpectedWidth, ...]
    widening: CurvePoint | None
    not_identified: float
    is_useful: bool


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """One run: its figures, and the half-width and standard error of each coefficient, infinite if not identified."""

    metrics: Metrics
    half_widths: Mapping[str, float]
    standard_errors: Mapping[str, float]


def measure_run(model: Method, test: Table) -> MeasuredRun:
    """A fitted model, measured on records that may be seen."""
    rows = model.facts_.coefficients if model.facts_.has_standard_errors else ()
    return MeasuredRun(
        metrics=evaluate(test.arrays()[1], model.predict_proba(test), test.schema.target.classes),
        half_widths={row.label: math.inf if row.half_width is None else row.half_width for row in rows},
        standard_errors={row.label: math.inf if row.standard_error is None else row.standard_error for row in rows},
    )


def expectation(epsilon: float, runs: Sequence[MeasuredRun], exact: Mapping[str, float]) -> Expectation:
    """The figures of several runs at one epsilon; `exact` are the half-widths of the exact fit."""
    figures = [run.metrics for run in runs]

    def point(values: Sequence[float | None]) -> CurvePoint:
        return _point(epsilon, [math.nan if value is None else value for value in values])

    right = point([one.accuracy - one.majority_rate for one in figures])
    loss = point([one.base_log_loss - one.log_loss for one in figures])
    with_area = all(one.auc is not None for one in figures)
    with_precision = all(one.average_precision is not None for one in figures)
    return Expectation(
        accuracy=point([one.accuracy for one in figures]),
        auc=point([one.auc for one in figures]) if with_area else None,
        average_precision=point([one.average_precision for one in figures]) if with_precision else None,
        log_loss=point([one.log_loss for one in figures]),
        calibration_error=point([one.expected_calibration_error for one in figures]),
        accuracy_gain=right,
        log_loss_gain=loss,
        widths=tuple(_width(term, runs) for term in _terms(runs)),
        widening=_widening(epsilon, runs, exact),
        not_identified=float(np.mean([sum(map(math.isinf, run.half_widths.values())) for run in runs])),
        is_useful=loss.mean - 2 * loss.standard_error > 0 and right.mean + 2 * right.standard_error >= 0,
    )


def median_widths(runs: Sequence[MeasuredRun]) -> dict[str, float]:
    """The median half-width of each coefficient; infinite where half of the runs do not identify it."""
    return {term: _width(term, runs).half_width for term in _terms(runs)}


def _terms(runs: Sequence[MeasuredRun]) -> list[str]:
    return list(dict.fromkeys(term for run in runs for term in run.half_widths))


def _width(term: str, runs: Sequence[MeasuredRun]) -> ExpectedWidth:
    half_widths = [run.half_widths.get(term, math.inf) for run in runs]
    errors = [run.standard_errors.get(term, math.inf) for run in runs]
    return ExpectedWidth(
        term=term,
        half_width=_median(half_widths),
        standard_error=_median(errors),
        not_identified=float(np.mean(np.isinf(half_widths))),
    )


def _widening(epsilon: float, runs: Sequence[MeasuredRun], exact: Mapping[str, float]) -> CurvePoint | None:
    """Of each run the median over coefficients, so that half of them are narrower; then the median over runs."""
    known = {term: width for term, width in exact.items() if 0 < width < math.inf}
    if not known or not _terms(runs):
        return None
    each = [_median([run.half_widths.get(term, math.inf) / width for term, width in known.items()]) for run in runs]
    middle = _median(each)
    spread = _point(epsilon, each).standard_error if all(map(math.isfinite, each)) else 0.0
    return CurvePoint(epsilon, middle, spread)


def _median(values: Sequence[float]) -> float:
    """The median; infinite if half of the values are."""
    return float(np.median(values)) if values else math.inf


def _point(epsilon: float, values: Sequence[float]) -> CurvePoint:
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return CurvePoint(epsilon, float(np.mean(values)), spread / math.sqrt(len(values)))
