"""Figures over repeated runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.report.metrics import evaluate
from tacit.studies.expectation import MeasuredRun, expectation


def run(p: float, widths: dict[str, float]) -> MeasuredRun:
    """Ten records, four of them positive, all given the probability p; the scores rank nothing."""
    y = np.array([0] * 6 + [1] * 4)
    metrics = evaluate(y, np.tile([1 - p, p], (10, 1)), ("no", "yes"))
    return MeasuredRun(metrics=metrics, half_widths=widths, standard_errors={k: v / 2 for k, v in widths.items()})


def test_means_medians_and_gains() -> None:
    runs = [run(0.3, {"a": 1.0, "b": 8.0}), run(0.4, {"a": 2.0, "b": math.inf}), run(0.6, {"a": 6.0, "b": math.inf})]
    found = expectation(0.5, runs, {"a": 1.0, "b": 4.0})
    losses = [-(0.6 * math.log(1 - p) + 0.4 * math.log(p)) for p in (0.3, 0.4, 0.6)]
    assert found.log_loss.mean == pytest.approx(np.mean(losses))
    assert found.log_loss.standard_error == pytest.approx(np.std(losses, ddof=1) / math.sqrt(3))
    assert found.log_loss_gain.mean == pytest.approx(losses[1] - np.mean(losses))  # 0.4 is the frequency itself
    assert found.accuracy_gain.mean == pytest.approx((0 + 0 - 0.2) / 3)
    assert found.auc is not None
    assert found.auc.mean == 0.5
    a, b = found.widths
    assert (a.half_width, a.standard_error, a.not_identified) == (2.0, 1.0, 0.0)
    assert b.half_width == math.inf
    assert b.not_identified == pytest.approx(2 / 3)
    assert found.not_identified == pytest.approx(2 / 3)
    assert found.widening is not None
    assert found.widening.mean == math.inf  # in two of three runs one of the two medians is unbounded
    assert not found.is_useful


def test_a_model_that_gains_loss_and_loses_accuracy_is_not_useful() -> None:
    y = np.array([0] * 900 + [1] * 100)
    good = np.where(y == 1, 0.9, 0.01)
    bold = np.where(y == 1, 0.9, np.where(np.arange(1000) % 5, 0.01, 0.51))  # a fifth of the others is called positive
    told = []
    for p in (good, bold):
        metrics = evaluate(y, np.column_stack([1 - p, p]), ("no", "yes"))
        told.append(expectation(1.0, [MeasuredRun(metrics=metrics, half_widths={}, standard_errors={})] * 3, {}))
    assert told[0].is_useful
    assert told[1].log_loss_gain.mean > 0.1
    assert told[1].accuracy_gain.mean < 0
    assert not told[1].is_useful
