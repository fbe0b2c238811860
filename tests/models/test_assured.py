"""A penalised fit that always ends: each of its searches alone, on records that are hard to fit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import NotConverged, SettingError
from tacit.models import assured
from tacit.models.assured import FitBounds, assured_fit
from tacit.models.problem import Problem
from tacit.models.sensitivity import minimiser_norm_bound
from tacit.models.solver import BlockRecords

Rows = tuple[np.ndarray, np.ndarray]


def hard_rows(kind: str, classes: int, radius: float) -> Rows:
    chance = np.random.default_rng(3)
    X = chance.normal(size=(30, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = chance.integers(0, classes, size=30)
    match kind:
        case "separable":
            y = (X[:, 0] > 0).astype(np.int64)
        case "collinear":
            X[:, 1] = X[:, 0]
            X /= np.linalg.norm(X, axis=1, keepdims=True)
        case "one row":
            X[:] = X[0]
        case "one class":
            y[:] = 0
    return 0.999 * radius * X, y


def problem_of(classes: int, l2_mean: float, radius: float) -> tuple[Problem, FitBounds]:
    problem = Problem(n_features=3, n_classes=classes, l2=30 * l2_mean, intercept="none")
    bounds = FitBounds(
        loss=problem.loss, l2=problem.l2, weight=30, n_rows=30, radius=radius,
        norm_bound=minimiser_norm_bound(l2_mean, radius, classes),
    )  # fmt: skip
    return problem, bounds


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", ["separable", "collinear", "one row", "one class"])
@pytest.mark.parametrize("radius", [0.1, 100.0])
def test_every_search_reaches_what_is_promised(kind: str, classes: int, radius: float) -> None:
    """The path needs no luck: it is the one with the proof. All three end at the same model."""
    X, y = hard_rows(kind, classes, radius)
    problem, bounds = problem_of(classes, 1e-3 * radius**2, radius)
    path = assured._Path(BlockRecords(lambda: [(X, y)], problem), problem, bounds)
    quick = assured_fit(lambda: [(X, y)], problem=problem, bounds=bounds, distance=2 * bounds.reachable)
    for start in (path.descend, path.follow):
        theta = path.finish(start(), bounds.reachable)
        assert theta is not None
        assert float(np.linalg.norm(theta - quick)) <= 3 * bounds.reachable


def test_a_fit_whose_quick_search_fails_still_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = hard_rows("separable", 2, 1.0)
    problem, bounds = problem_of(2, 1e-4, 1.0)
    wanted = assured_fit(lambda: [(X, y)], problem=problem, bounds=bounds, distance=1e-9)

    def fails(*_: object, **__: object) -> None:
        raise NotConverged("no luck")

    monkeypatch.setattr(assured, "fit", fails)
    monkeypatch.setattr(assured._Path, "descend", lambda self: None)
    found = assured_fit(lambda: [(X, y)], problem=problem, bounds=bounds, distance=1e-9)
    assert float(np.linalg.norm(found - wanted)) <= 2e-9


def test_a_distance_out_of_reach_is_refused_before_a_record_is_read() -> None:
    problem, bounds = problem_of(2, 1e-4, 1.0)

    def unread() -> list[Rows]:
        raise AssertionError("a record was read")

    with pytest.raises(SettingError, match=r"with l2 = 0.003 a fit of 30 records .* choose a larger l2"):
        assured_fit(unread, problem=problem, bounds=bounds, distance=bounds.reachable / 2)


def test_what_can_be_reached_shrinks_with_the_penalty_until_nothing_is_proven() -> None:
    reachable = [problem_of(2, 10.0**-exponent, 1.0)[1].reachable for exponent in range(14)]
    assert reachable == sorted(reachable)
    assert reachable[0] < 1e-14
    assert reachable[6] < 1e-6
    assert math.isinf(reachable[-1])
