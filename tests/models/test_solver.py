from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from tacit.errors import DataError, NotConverged, SettingError, SingularCurvature
from tacit.models import solver
from tacit.models.solver import BlockRecords, Extent, Problem, fit, minimise


def in_blocks(X, y, rows=100):
    return lambda: [(X[i : i + rows], y[i : i + rows]) for i in range(0, len(X), rows)]


def table(seed=0, rows=300, features=4, classes=2, spread=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) + 0.3
    scores = X @ rng.normal(size=(features, classes)) * spread + rng.gumbel(size=(rows, classes))
    return X, scores.argmax(axis=1).astype(np.int64)


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("l2", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("intercept", ["free", "none"])
def test_equals_scikit_learn(classes, l2, intercept):
    X, y = table(classes=classes)
    solution = fit(in_blocks(X, y), problem=Problem(n_features=4, n_classes=classes, l2=l2, intercept=intercept))
    other = LogisticRegression(
        C=1 / l2, fit_intercept=intercept == "free", tol=1e-12, max_iter=10_000, solver="newton-cg"
    )
    other.fit(X, y)
    np.testing.assert_allclose(solution.coef, other.coef_, atol=1e-7)
    np.testing.assert_allclose(solution.intercept, other.intercept_, atol=1e-7)
    assert solution.distance_bound <= 1e-8


@pytest.mark.parametrize("constant", [0.5, 2.0])
def test_a_constant_feature_is_one_more_penalised_column(constant):
    X, y = table()
    solution = fit(in_blocks(X, y), problem=Problem(n_features=4, l2=3.0, intercept="feature", constant=constant))
    longer = np.c_[X, np.full(len(X), constant)]
    plain = fit(in_blocks(longer, y), problem=Problem(n_features=5, l2=3.0, intercept="none"))
    np.testing.assert_allclose(solution.theta, plain.theta, atol=1e-9)
    np.testing.assert_allclose(solution.intercept, plain.theta[-1:] * constant, atol=1e-9)


def test_maximum_likelihood_equals_statsmodels():
    X, y = table(rows=500)
    solution = fit(in_blocks(X, y), problem=Problem(n_features=4))
    other = sm.Logit(y, np.c_[X, np.ones(len(X))]).fit(disp=0, tol=1e-12)
    np.testing.assert_allclose(solution.theta, other.params, atol=1e-8)
    assert solution.log_likelihood == pytest.approx(other.llf, abs=1e-9)
    assert solution.objective == -solution.log_likelihood


def test_units_of_the_features_do_not_matter():
    X, y = table(rows=500)
    units = np.array([1e-6, 1.0, 1e5, 1e3])
    plain, scaled = (fit(in_blocks(Z, y), problem=Problem(n_features=4)) for Z in (X, X * units))
    np.testing.assert_allclose(scaled.coef * units, plain.coef, rtol=1e-7)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("size", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("l2", [1e-3, 1.0])
def test_far_starts_lead_to_the_same_optimum(classes, size, l2):
    X, y = table(classes=classes)
    problem = Problem(n_features=4, n_classes=classes, l2=l2, intercept="feature")
    start = np.random.default_rng(1).normal(size=problem.loss.shape) * size
    far = Problem(n_features=4, n_classes=classes, l2=l2, intercept="feature", start=start)
    np.testing.assert_allclose(
        fit(in_blocks(X, y), problem=far).theta, fit(in_blocks(X, y), problem=problem).theta, atol=3e-9
    )


def test_a_start_at_the_optimum_takes_one_pass():
    X, y = table()
    first = fit(in_blocks(X, y), problem=Problem(n_features=4, l2=1.0, tolerance=1e-8))
    again = fit(in_blocks(X, y), problem=Problem(n_features=4, l2=1.0, tolerance=1e-7, start=first.theta))
    assert again.passes == 1


@pytest.mark.parametrize("l2", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_separable_classes_with_a_penalty(l2, classes):
    X, _ = table()
    y = np.digitize(X[:, 0], [0.3, 0.9][: classes - 1]).astype(np.int64)
    solution = fit(in_blocks(X, y), problem=Problem(n_features=4, n_classes=classes, l2=l2, intercept="feature"))
    gradient = solution.problem.loss.fold([(X, y)], solution.theta).gradient + l2 * solution.theta
    assert np.linalg.norm(gradient) <= l2 * 1e-5
    assert np.linalg.norm(gradient) / np.linalg.eigvalsh(solution.curvature)[0] <= 1e-5


def test_separable_classes_without_a_penalty_have_no_optimum():
    X, _ = table()
    with pytest.raises(NotConverged, match=r"separates the classes.*set l2 > 0"):
        fit(in_blocks(X, (X[:, 0] > 0).astype(np.int64)), problem=Problem(n_features=4))


def test_a_feature_that_separates_some_records_has_no_optimum():
    X, y = table()
    X[:, 3] = (np.arange(len(X)) < 20) & (y == 1)
    with pytest.raises(NotConverged, match="some of their records"):
        fit(in_blocks(X, y), problem=Problem(n_features=4))


def test_collinear_columns_are_named():
    X, y = table()
    X[:, 3] = X[:, 0] - 2 * X[:, 2] + 1
    names = ("age", "weight", "pressure", "sum")
    with pytest.raises(SingularCurvature, match="columns age, pressure, sum, intercept are collinear"):
        fit(in_blocks(X, y), problem=Problem(n_features=4, column_names=names))
    with pytest.raises(SingularCurvature, match="columns 0, 2, 3, intercept are collinear"):
        fit(in_blocks(X, y), problem=Problem(n_features=4))
    assert fit(in_blocks(X, y), problem=Problem(n_features=4, l2=1e-2)).distance_bound < 1e-5


def test_an_optimum_that_rounding_hides_is_not_returned():
    rng = np.random.default_rng(0)
    X = np.c_[np.eye(5)[rng.integers(0, 5, 20_000)], rng.normal(size=20_000)]  # the first five add up to the intercept
    y = (X @ rng.normal(size=6) + rng.logistic(size=20_000) > 0).astype(np.int64)
    told = []
    with pytest.raises(NotConverged, match="nearly collinear that rounding hides the optimum"):
        fit(in_blocks(X, y, 5000), problem=Problem(n_features=6, l2=1e-8), on_pass=lambda n, _: told.append(n))
    assert max(told) < 20
    assert fit(in_blocks(X, y, 5000), problem=Problem(n_features=6, l2=1.0)).distance_bound < 1e-6


@pytest.mark.parametrize("classes", [2, 3])
def test_an_empty_column_is_named(classes):
    X, y = table(classes=classes)
    X[:, 1] = 0
    with pytest.raises(SingularCurvature, match="column 1 is always 0"):
        fit(in_blocks(X, y), problem=Problem(n_features=4, n_classes=classes))


def test_a_missing_class_needs_a_penalised_intercept():
    X, _ = table()
    y = np.zeros(len(X), dtype=np.int64)
    with pytest.raises(NotConverged, match="no record has class 1"):
        fit(in_blocks(X, y), problem=Problem(n_features=4, l2=1.0))
    solution = fit(in_blocks(X, y), problem=Problem(n_features=4, l2=1.0, intercept="feature"))
    assert solution.intercept[0] < 0


def test_no_records_is_a_data_error():
    with pytest.raises(DataError, match="no records"):
        fit(lambda: [], problem=Problem(n_features=2))
    with pytest.raises(DataError, match="no records"):
        fit(lambda: [(np.zeros((0, 2)), np.zeros(0, dtype=np.int64))], problem=Problem(n_features=2))


@pytest.mark.parametrize(
    ("X", "y", "match"),
    [
        (np.zeros((3, 5)), np.zeros(3, dtype=np.int64), r"want \(rows, 2\)"),
        (np.zeros((3, 2), dtype=np.float32), np.zeros(3, dtype=np.int64), "float64"),
        (np.zeros((3, 2)), np.zeros(2, dtype=np.int64), r"want \(3,\)"),
        (np.zeros((3, 2)), np.full(3, 2), "class indices from 0 to 1"),
        (np.full((3, 2), np.nan), np.zeros(3, dtype=np.int64), "column age, height"),
        (np.full((3, 2), np.inf), np.zeros(3, dtype=np.int64), "column age, height"),
    ],
)
def test_unfit_blocks_are_data_errors(X, y, match):
    with pytest.raises(DataError, match=match):
        fit(lambda: [(X, y)], problem=Problem(n_features=2, column_names=("age", "height")))


def test_too_few_passes_never_return_something_else():
    X, y = table()
    with pytest.raises(NotConverged, match=r"gradient norm is still .* after 2 passes"):
        fit(in_blocks(X, y), problem=Problem(n_features=4, max_passes=2))


@settings(max_examples=20, deadline=None)
@given(rows=st.integers(1, 400), classes=st.sampled_from([2, 3]))
def test_the_block_size_does_not_matter(rows, classes):
    X, y = table(classes=classes)
    problem = Problem(n_features=4, n_classes=classes, l2=0.1)
    one, other = fit(in_blocks(X, y, rows), problem=problem), fit(in_blocks(X, y, 300), problem=problem)
    np.testing.assert_allclose(one.theta, other.theta, atol=1e-11)
    assert one.n_records == other.n_records == 300


@pytest.mark.parametrize("order", ["shuffled", "sorted by class"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_table_longer_than_its_head_is_streamed(order, classes, monkeypatch):
    monkeypatch.setattr(solver, "_START_ROWS", 500)
    X, y = table(rows=5000, classes=classes)
    if order != "shuffled":
        X, y = X[np.argsort(y, kind="stable")], np.sort(y)
    reads = 0

    def blocks():
        nonlocal reads
        reads += 1
        return iter(in_blocks(X, y)())

    solution = fit(blocks, problem=Problem(n_features=4, n_classes=classes))
    assert reads == solution.passes + 1  # the head is read once more
    monkeypatch.setattr(solver, "_START_ROWS", 10_000)
    whole = fit(in_blocks(X, y), problem=Problem(n_features=4, n_classes=classes))
    np.testing.assert_allclose(solution.theta, whole.theta, atol=3e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_parties_that_add_up_fit_what_one_table_fits(classes):
    X, y = table(classes=classes)
    problem = Problem(n_features=4, n_classes=classes)
    parties = [BlockRecords(in_blocks(X[i::3], y[i::3]), problem) for i in range(3)]

    class Together:
        def sums(self, theta, *, curvature=True):
            return parties[0].sums(theta) + parties[1].sums(theta) + parties[2].sums(theta)

        def extent(self):
            seen = [party.extent() for party in parties]
            return Extent(
                column_bound=np.max([e.column_bound for e in seen], axis=0),
                class_counts=np.sum([e.class_counts for e in seen], axis=0),
            )

    together, pooled = minimise(Together(), problem=problem), fit(in_blocks(X, y), problem=problem)
    np.testing.assert_allclose(together.theta, pooled.theta, atol=1e-10)
    assert together.distance_bound < 1e-8
    assert together.n_records == pooled.n_records


def test_a_short_table_is_read_once():
    X, y = table()
    reads = []
    fit(lambda: reads.append(1) or in_blocks(X, y)(), problem=Problem(n_features=4))
    assert len(reads) == 1


def test_progress_is_told():
    X, y = table()
    told = []
    solution = fit(in_blocks(X, y), problem=Problem(n_features=4), on_pass=lambda n, norm: told.append((n, norm)))
    assert [n for n, _ in told] == list(range(1, solution.passes + 1))
    assert told[-1][1] == solution.gradient_norm


@pytest.mark.parametrize("classes", [2, 3])
def test_the_linear_term_shifts_the_gradient(classes):
    X, y = table(classes=classes)
    shape = Problem(n_features=4, n_classes=classes, l2=2.0, intercept="feature").loss.shape
    linear = np.random.default_rng(3).normal(size=shape) * 20
    problem = Problem(n_features=4, n_classes=classes, l2=2.0, intercept="feature", linear=linear)
    solution = fit(in_blocks(X, y), problem=problem)
    gradient = problem.loss.fold([(X, y)], solution.theta).gradient
    np.testing.assert_allclose(gradient + 2.0 * solution.theta + linear, 0, atol=1e-7)
    assert solution.distance_bound < 1e-8


def test_the_symmetric_softmax_solution_is_returned():
    X, y = table(classes=4)
    for l2 in (0.0, 1.0):
        theta = fit(in_blocks(X, y), problem=Problem(n_features=4, n_classes=4, l2=l2)).theta
        np.testing.assert_allclose(theta.sum(axis=0), 0, atol=1e-14)


@pytest.mark.parametrize(
    ("settings_", "match"),
    [
        ({"l2": -1.0}, "l2 = -1"),
        ({"l2": np.inf}, "l2 = inf"),
        ({"intercept": "fixed"}, "intercept = 'fixed'"),
        ({"constant": 0.0}, "constant = 0.0"),
        ({"tolerance": 0.0}, "tolerance = 0.0"),
        ({"max_passes": 0}, "max_passes = 0"),
        ({"start": np.zeros(2)}, "start has shape"),
        ({"column_names": ("a",)}, "column_names has 1 entries"),
        ({"linear": np.zeros(3)}, "linear needs every parameter penalised"),
    ],
)
def test_contradictory_settings_are_refused(settings_, match):
    with pytest.raises(SettingError, match=match):
        Problem(**{"n_features": 2, **settings_})


@pytest.mark.slow
def test_a_large_table_is_certified_in_few_passes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300_000, 30))
    y = (rng.random(len(X)) < expit(X @ rng.normal(size=30) * 0.3)).astype(np.int64)
    solution = fit(in_blocks(X, y, 16384), problem=Problem(n_features=30))
    assert solution.passes <= 6
    assert solution.distance_bound <= 2e-9
