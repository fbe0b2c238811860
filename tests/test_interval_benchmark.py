"""What `benchmarks/intervals.py` counts: on numbers that are known, it must say what they are."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.interval.figures import drawn_figures, numbers_told, real_figures
from benchmarks.interval.laws import Cell, cells, draw
from benchmarks.interval.real import exact_fit
from scipy.special import expit

from tacit.data.schema import Binary, Numeric, Schema, Target
from tacit.data.table import Table
from tacit.models.inference import infer
from tacit.models.problem import Problem
from tacit.models.solver import fit
from tacit.report.row import INTERCEPT, CoefficientRow

NAMES = ["a", "b"]


def told_of(estimate, error):
    """Symmetric intervals about the estimates, (runs, 4, k)."""
    return np.stack([estimate, estimate - 1.959964 * error, estimate + 1.959964 * error, error], axis=1)


def test_right_intervals_cover_with_spread_and_width_one():
    truth = np.array([[2.0, -1.0]]) * np.ones((4000, 1))
    error = np.array([[0.5, 3.0]]) * np.ones((4000, 1))
    estimate = truth + error * np.random.default_rng(0).normal(size=truth.shape)
    found = drawn_figures(told_of(estimate, error), truth, NAMES)
    assert found["covered"] == pytest.approx(0.95, abs=0.01)
    assert found["missed"] == pytest.approx(1 - found["covered"], abs=1e-4)
    assert found["spread"] == pytest.approx(1, abs=0.03)
    assert found["width"] == pytest.approx(1, abs=0.03)
    assert found["reference_width"] == pytest.approx([2 * 1.96 * 0.5, 2 * 1.96 * 3], rel=0.04)


def test_a_coefficient_without_an_interval_is_neither_covered_nor_missed():
    truth = np.zeros((4, 2))
    told = told_of(np.array([[0.0, 0.0], [0.0, 9.0], [0.0, 9.0], [9.0, 0.0]]), np.ones((4, 2)))
    told[2:, :, 1] = np.nan
    found = drawn_figures(told, truth, NAMES)
    assert found["identified_runs"] == [4, 2]
    assert found["covered_runs"] == [3, 1]
    assert found["covered"] == pytest.approx(4 / 6, abs=1e-4)
    assert found["missed"] == 2 / 8
    assert found["not_identified"] == 2 / 8
    assert found["least"] == ["b", 0.5]


def test_where_nothing_is_identified_nothing_is_said_to_be_covered():
    found = drawn_figures(np.full((3, 4, 2), np.nan), np.zeros((3, 2)), NAMES)
    assert (found["covered"], found["missed"], found["not_identified"]) == (None, 0, 1)
    assert found["least"] is found["spread"] is found["width"] is None


def test_sampling_error_is_removed_and_a_standard_error_below_the_exact_one_is_a_miss():
    # se = 5 and se_exact = 3 leave 4 for the noise: 1.96 * 4 = 7.84. In the last run b has se = 2 < 3.
    estimate = np.array([[7.8, 0.0], [7.9, 0.0], [-7.8, 0.0]])
    error = np.array([[5.0, 5.0], [5.0, 5.0], [5.0, 2.0]])
    found = real_figures(told_of(estimate, error), np.zeros(2), np.full(2, 3.0), NAMES)
    assert found["covered_runs"] == [2, 2]
    assert found["below_exact"] == [0, 1]
    assert found["below"] == pytest.approx(1 / 6, abs=1e-4)
    assert found["wider"] == pytest.approx(5 / 3, abs=1e-4)


def test_rows_are_read_by_name_and_one_without_an_interval_is_unknown():
    rows = [
        CoefficientRow(name="b", estimate=1.0, standard_error=0.5, low=0.0, high=2.0),
        CoefficientRow(name="a", estimate=None, prediction=3.0),
    ]
    told = numbers_told(rows, NAMES)
    assert np.isnan(told[:, 0]).all()
    assert told[:, 1].tolist() == [1.0, 0.0, 2.0, 0.5]


def test_a_category_with_one_label_leaves_the_exact_fit_at_its_limit():
    chance = np.random.default_rng(3)
    n = 4000
    X = np.column_stack([chance.uniform(-1, 1, n), chance.random(n) < 0.01, np.zeros(n)]).astype(float)
    y = (chance.random(n) < expit(X[:, 0] - 0.5)).astype(np.int64)
    y[X[:, 1] == 1] = 0
    schema = Schema((Numeric("age", 0, 100), Binary("odd"), Binary("never")), Target("y", ("0", "1")))
    found = exact_fit(X, y, schema)
    assert found.names == ("age", INTERCEPT)
    nearly = fit(lambda: [(X, y)], problem=Problem(n_features=3, l2=1e-5))  # the odd category's is near -12
    slope = nearly.coef[0][0] / 50  # in units of age; encoded, 50 is 0
    assert found.estimate == pytest.approx([slope, nearly.intercept[0] - 50 * slope], rel=1e-3)


_MANY = {
    "heavy": 100_000,
    "heavy-wrong": 100_000,
    "bent": 100_000,
}  # by which labels of rows before clipping can be told
_TRIED = [Cell(law, _MANY.get(law, 20_000), d, 1.0) for law, d in sorted({(c.law, c.n_features) for c in cells()})]


@pytest.mark.parametrize("cell", _TRIED, ids=lambda cell: cell.name)
def test_labels_follow_the_truth_that_a_cell_claims(cell):
    """The exact fit of the encoded rows must be within its own sampling error of the truth, in original units."""
    drawn = draw(cell, seed=5)
    table = Table.from_arrays(drawn.X, drawn.y, drawn.schema)
    found = fit(table.blocks, problem=Problem(n_features=cell.n_features))
    told = infer(found, units=drawn.schema.original_units())
    z = (told.estimate - drawn.truth) / told.standard_error
    assert np.abs(z).max() < 4.5
    assert np.sqrt(np.mean(z**2)) < 2
    assert np.abs(drawn.truth / told.standard_error).max() > 5  # so that a truth of another scale would show


def test_rare_records_are_as_rare_as_said():
    drawn = draw(Cell("rare", 200_000, 6, 1.0), seed=0)
    assert drawn.y.mean() == pytest.approx(0.02, abs=0.002)
