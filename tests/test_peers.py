"""Peers of `benchmarks/private_accuracy.py`: without noise the plain fit, and no less noise than the promise needs."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from tacit.privacy.gaussian import gaussian_delta, mu_of_pure

ROOT = Path(__file__).parent.parent
NAMES = ("task", "attribute", "frequency", "marginal", "tight_objective", "double_noise", "descent")
RELATIONS = ("replace-one", "add-remove")


@pytest.fixture(scope="module")
def peers() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        files = {name: name if name in ("task", "attribute") else f"{name}_peer" for name in NAMES}
        yield SimpleNamespace(**{name: importlib.import_module(f"peers.{file}") for name, file in files.items()})
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture(scope="module")
def task(peers) -> Any:
    """Three features: two categories of 3 and 2 columns, one column; labels that depend on them."""
    rng = np.random.default_rng(7)
    n = 4000
    first, second = rng.integers(4, size=n), rng.integers(3, size=n)
    second = np.where(rng.random(n) < 0.5, first % 3, second)  # features that go together
    X = np.hstack([np.eye(4)[first][:, 1:], np.eye(3)[second][:, 1:], rng.choice([-0.5, 0.5], size=(n, 1))])
    X /= 2  # so that no row is clipped
    y = (rng.random(n) < expit(X @ np.array([2.0, -1.0, 1.0, 2.0, -2.0, 1.0]) - 0.5)).astype(np.int64)
    train, test = slice(0, 3000), slice(3000, None)
    attributes = peers.attribute.Attributes.of(2 * X[train], 2 * X[test], (3, 2, 1))
    return peers.task.Task(X[train], y[train], X[test], math.inf, 1e-7, "replace-one", 0, attributes, y[test])


def plain_scores(task: Any, loss_slope: Any = lambda s, y: expit(s) - y, l2: float = 0.0) -> np.ndarray:
    """The fit of the logistic loss by plain Newton steps on rows with a constant."""
    U = task.rows
    theta = np.zeros(U.shape[1])
    for _ in range(50):
        s = U @ theta
        p = expit(s)
        gradient = U.T @ loss_slope(s, task.y) + l2 * theta
        theta -= np.linalg.solve((U * (p * (1 - p) + 1e-12)[:, None]).T @ U + l2 * np.eye(len(theta)), gradient)
    return task.scores(theta)


@pytest.mark.parametrize("relation", RELATIONS)
def test_without_noise_a_peer_is_the_plain_fit(peers, task, relation: str) -> None:
    task = replace(task, relation=relation)
    plain = plain_scores(task)
    assert peers.double_noise.double_noise_scores(task, iterations=60) == pytest.approx(plain, abs=1e-3)
    assert peers.tight_objective.tight_objective_scores(task) == pytest.approx(plain_scores(task, l2=1.0), abs=1e-3)
    assert task.scores(peers.descent.descend(task, 4000, 8.0, 0.9)) == pytest.approx(plain, abs=1e-3)
    share = task.y.mean()
    assert peers.frequency.frequency_scores(task) == pytest.approx(np.full(1000, math.log(share / (1 - share))))


def test_without_noise_marginals_give_the_fit_of_the_polynomial(peers, task) -> None:
    _, slope, curvature = peers.marginal.polynomial()
    data = task.attributes
    rows = np.hstack([*(level[data.train[:, k]] for k, level in enumerate(data.levels)), np.ones((3000, 1))])
    signs = 2.0 * task.y - 1
    theta = np.linalg.solve(2 * curvature * rows.T @ rows, -slope * rows.T @ signs)
    assert peers.marginal.marginal_scores(task) == pytest.approx(data.scores(theta), abs=1e-6)


def test_the_polynomial_is_near_the_loss(peers) -> None:
    a, b, c = peers.marginal.polynomial()
    s = np.linspace(-6, 6, 200)
    assert np.abs(np.logaddexp(0, -s) - (a + b * s + c * s**2)).max() < 0.4
    assert b == pytest.approx(-0.5)


def test_codes_are_levels_of_their_columns(peers) -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([np.eye(3)[rng.integers(3, size=50)][:, 1:], rng.uniform(-1, 1, 50), rng.integers(5, size=50)])
    data = peers.attribute.Attributes.of(X, X, (2, 1, 1))
    back = np.hstack([level[data.train[:, k]] for k, level in enumerate(data.levels)])
    assert np.array_equal(back[:, :2], X[:, :2])
    assert np.abs(back[:, 2] - X[:, 2]).max() <= 1 / 16 + 1e-12
    assert np.array_equal(back[:, 3], X[:, 3])
    for name, width in (("a9a", 123), ("adult_dpml", 104)):
        assert sum(peers.attribute.WIDTHS[name]) == width


class Spending:
    """A generator that keeps the scales of what is drawn from it."""

    def __init__(self) -> None:
        self.rng, self.scales, self.gumbels = np.random.default_rng(0), [], []

    def normal(self, scale: float = 1.0, size: Any = None) -> Any:
        self.scales.append(scale)
        return self.rng.normal(scale=scale, size=size)

    def gumbel(self, scale: float, size: Any) -> Any:
        self.gumbels.append(scale)
        return self.rng.gumbel(scale=scale, size=size)


def watched(task: Any, relation: str) -> tuple[Any, Spending]:
    asked, spending = replace(task, epsilon=0.5, relation=relation), Spending()
    asked.__dict__["rng"] = spending
    return asked, spending


@pytest.mark.parametrize("relation", RELATIONS)
def test_marginals_spend_no_more_than_the_promise(peers, task, relation: str) -> None:
    asked, spending = watched(task, relation)
    peers.marginal.marginal_scores(asked)
    steps = 2 if relation == "replace-one" else 1
    squared = sum(steps / scale**2 for scale in spending.scales)  # tables move by the root of `steps`
    squared += sum(mu_of_pure(2 * steps / scale) ** 2 for scale in spending.gumbels)
    assert squared == pytest.approx(asked.mu**2, rel=1e-6)
    assert len(spending.gumbels) == len(spending.scales) - len(asked.attributes.levels) > 0


@pytest.mark.parametrize("relation", RELATIONS)
def test_descent_spends_no_more_than_the_promise(peers, task, relation: str) -> None:
    asked, spending = watched(task, relation)
    peers.descent.descend(asked, 7, 2.0, 0.9)
    steps = 2 if relation == "replace-one" else 1
    assert sum((steps / scale) ** 2 for scale in spending.scales) == pytest.approx(asked.mu**2)


@pytest.mark.parametrize("relation", RELATIONS)
def test_double_noise_spends_no_more_than_the_promise(peers, task, relation: str) -> None:
    asked, spending = watched(task, relation)
    peers.double_noise.double_noise_scores(asked, iterations=4)
    steps = 2 if relation == "replace-one" else 1
    gradient, trace, direction = (np.array(spending.scales[k::3]) for k in range(3))
    squared = np.sum((steps / gradient) ** 2) + np.sum((0.25 / trace) ** 2) + np.sum((steps / direction) ** 2)
    assert squared == pytest.approx(asked.mu**2)


def test_a_record_moves_a_newton_direction_no_further_than_its_noise_allows() -> None:
    rng = np.random.default_rng(5)
    worst = 0.0
    for _ in range(300):
        d, L, h = 3, 10 ** rng.uniform(-1, 1), 0.25
        rows = rng.normal(size=(rng.integers(1, 5), d)) * 10 ** rng.uniform(-2, 0.5)
        A, g = rows.T @ rows + L * np.eye(d), rng.normal(size=d)
        u = rng.normal(size=d)
        u = u / np.linalg.norm(u) if rng.random() < 0.5 else g / np.linalg.norm(g)
        moved = np.linalg.norm(np.linalg.solve(A, g) - np.linalg.solve(A + h * np.outer(u, u), g))
        worst = max(worst, float(moved / (h * np.linalg.norm(g) / (L**2 + h * L))))
    assert 0.9 < worst <= 1 + 1e-9


def test_one_rows_delta_is_what_integration_gives(peers) -> None:
    z = np.linspace(0, 12, 400_001)
    weights = np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) * (z[1] - z[0])
    for epsilon, s in ((1.0, 3.0), (0.1, 8.0), (0.01, 2.0), (0.3, 0.9)):
        c = 0.02 * epsilon
        losses = np.maximum(0.0, 1 - np.exp(epsilon - c - 1 / (2 * s**2) - z / s))
        expected = float(np.sum(weights * losses) - 0.5 * weights[0] * losses[0])
        assert peers.tight_objective.one_row_delta(epsilon, s, c) == pytest.approx(expected, rel=1e-4)


def test_the_noise_of_an_objective_keeps_the_promise_and_not_much_more(peers, task) -> None:
    for epsilon in (0.1, 1.0, 5.0):
        one, other = (replace(task, epsilon=epsilon, relation=relation) for relation in reversed(RELATIONS))
        l2 = max(1.0, 0.25 / math.expm1(epsilon / 10))
        s, twice = peers.tight_objective.noise_std(one, l2), peers.tight_objective.noise_std(other, l2)
        assert gaussian_delta(epsilon, 1 / s) < one.delta  # what a fixed vector would cost
        assert gaussian_delta(epsilon, 1 / (0.8 * s)) > one.delta
        assert 1.9 * s < twice < 2.2 * s


def test_the_oracle_is_asked_once_a_cell(peers, task, monkeypatch) -> None:
    asked = replace(task, epsilon=1.0)
    calls = []
    monkeypatch.setattr(peers.descent, "GRID", ((3, 2.0, 0.0), (5, 2.0, 0.0)))
    monkeypatch.setattr(peers.descent, "_test_loss", lambda task, settings: calls.append(settings) or -settings[0])
    assert peers.descent.oracle(asked) == peers.descent.oracle(replace(asked, seed=3)) == (5, 2.0, 0.0)
    assert len(calls) == 2
    peers.descent.oracle(replace(asked, epsilon=2.0))
    assert len(calls) == 4
