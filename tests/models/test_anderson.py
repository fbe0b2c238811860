"""Accelerated ascent: monotone, plain often enough, exact where the step is linear, and honest about its error."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.special import expit

from tacit.models.anderson import PLAIN_EVERY, Ascending, Ascent, ascend, extrapolate, normal_optimum

Array = np.ndarray


class Logistic:
    """The oracle in plain sight: logistic regression with a ridge, and its fixed curvature."""

    def __init__(self, X: Array, y: Array, l2: float = 1.0) -> None:
        self.X, self.y, self.l2 = X, y, l2
        self.B = X.T @ X / 4 + l2 * np.eye(X.shape[1])
        self.factor = cho_factor(self.B)
        self.accepted = -np.inf
        self.asked: list[Array] = []
        self.told = self.compared = 0

    def value(self, v: Array) -> float:
        margin = self.X @ v
        return float((self.y * margin - np.logaddexp(0, margin)).sum() - self.l2 / 2 * v @ v)

    def gradient(self, v: Array) -> Array:
        return self.X.T @ (self.y - expit(self.X @ v)) - self.l2 * v

    def curvature(self, v: Array) -> Array:
        p = expit(self.X @ v)
        return (self.X * (p * (1 - p))[:, None]).T @ self.X + self.l2 * np.eye(len(v))

    def step(self, v: Array) -> Array:
        return cho_solve(self.factor, self.gradient(v))

    def ask(self, point: Array) -> None:
        self.asked.append(point)

    def is_better(self) -> bool:
        self.compared += 1
        return self.value(self.asked[-1]) >= self.accepted - 1e-9

    def accept(self) -> Array:
        self.told += 1
        self.accepted = self.value(self.asked[-1])
        return self.step(self.asked[-1])

    def optimum(self) -> Array:
        v = np.zeros(self.X.shape[1])
        for _ in range(100):
            step, length = np.linalg.solve(self.curvature(v), self.gradient(v)), 1.0
            while self.value(v + length * step) < self.value(v) - 1e-9:
                length /= 2
            v = v + length * step
        return v


def logistic(kind: str, n: int = 2000, d: int = 20, norm: float = 3.0, seed: int = 0) -> Logistic:
    rng = np.random.default_rng(seed)
    if kind == "heavy":
        X = rng.standard_t(3, size=(n, d))
    elif kind == "correlated":
        X = np.cumsum(rng.normal(size=(n, d)), axis=1) / np.sqrt(d)
    elif kind == "categories":
        X = np.eye(d + 1)[rng.choice(d + 1, size=n, p=np.arange(1, d + 2) / np.arange(1, d + 2).sum())][:, :d]
    else:
        X = rng.normal(size=(n, d))
    theta = rng.normal(size=d)
    y = (rng.random(n) < expit(X @ theta * norm / np.linalg.norm(theta))).astype(float)
    return Logistic(X, y)


KINDS = ["gaussian", "heavy", "correlated", "categories"]


def relative_error(ascent: Ascent, optimum: Array) -> float:
    return float(np.linalg.norm(ascent.point - optimum) / np.linalg.norm(optimum))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", [0.0, 2.0])
@pytest.mark.parametrize("memory", [0, 5])
def test_it_finds_the_optimum_and_knows_how_near_it_is(kind: str, start: float, memory: int) -> None:
    oracle = logistic(kind)
    chosen = Ascending(memory=memory, tolerance=1e-6, max_rounds=5000, from_zero=not start)
    ascent = ascend(oracle, np.full(20, start), settings=chosen)
    assert ascent.converged
    assert ascent.error <= 1e-6
    assert relative_error(ascent, oracle.optimum()) <= 5 * 1e-6


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.integers(0, 10_000),
    st.floats(-3, 3),
    st.integers(0, 8),
    st.sampled_from([1.0, 4.0, 8.0]),
    st.booleans(),
)
def test_accepted_points_never_fall_and_plain_images_come_often(
    kind: str, seed: int, start: float, memory: int, norm: float, from_zero: bool
) -> None:
    oracle = logistic(kind, n=300, d=6, norm=norm, seed=seed)
    chosen = Ascending(memory=memory, tolerance=1e-9, max_rounds=60, from_zero=from_zero)
    ascent = ascend(oracle, np.zeros(6) if from_zero else np.full(6, start), settings=chosen)
    values = [oracle.value(visit.point) for visit in ascent.visits if visit.step is not None]
    assert all(after >= before - 1e-8 for before, after in itertools.pairwise(values))
    plain = [visit.plain for visit in ascent.visits]
    assert all(any(plain[i : i + PLAIN_EVERY]) for i in range(len(plain) - PLAIN_EVERY + 1))
    assert oracle.told == len(values)  # the step at a rejected point is never asked for
    assert oracle.compared == ascent.n_compared == plain.count(False)  # nor a bit that is known anyway
    assert len(oracle.asked) == len(ascent.visits)


@pytest.mark.parametrize("kind", KINDS)
def test_the_distance_from_the_maximum_shrinks_at_the_proved_rate(kind: str) -> None:
    oracle = logistic(kind, n=500, d=5)
    best = oracle.value(oracle.optimum())
    for memory in (0, 5):
        oracle.accepted = -np.inf
        chosen = Ascending(memory=memory, tolerance=1e-10, max_rounds=80, from_zero=True)
        ascent = ascend(oracle, np.zeros(5), settings=chosen)
        gaps = []
        at = -np.inf
        for visit in ascent.visits:
            at = max(at, oracle.value(visit.point)) if visit.step is not None else at
            gaps.append(best - at)
        # The level set of the start is within a ball; its least eigenvalue from points in it, the optimum included.
        points = [visit.point for visit in ascent.visits if visit.step is not None] + [oracle.optimum()]
        m = min(eigh(oracle.curvature(v), oracle.B, eigvals_only=True)[0] for v in points)
        for i in range(len(gaps) - PLAIN_EVERY):
            assert gaps[i + PLAIN_EVERY] <= (1 - m) * gaps[i] + 1e-7


def test_without_memory_it_is_the_documents_method() -> None:
    oracle = logistic("gaussian")
    ascent = ascend(oracle, np.zeros(20), settings=Ascending(memory=0, tolerance=1e-8, max_rounds=25))
    v = np.zeros(20)
    for visit in ascent.visits:
        assert visit.plain
        np.testing.assert_array_equal(visit.point, v)
        v = v + oracle.step(v)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", [0.0, 2.0])
def test_acceleration_never_costs_more_than_its_safeguard(kind: str, start: float) -> None:
    rounds = {}
    for memory in (0, 5):
        chosen = Ascending(memory=memory, tolerance=1e-6, max_rounds=5000, from_zero=not start)
        ascent = ascend(logistic(kind), np.full(20, start), settings=chosen)
        rounds[memory] = len(ascent.visits), ascent.n_rejected
    assert rounds[5][0] <= rounds[0][0] + rounds[5][1]


@pytest.mark.slow
@pytest.mark.parametrize(("d", "norm", "plain", "most"), [(100, 3.55, 59, 8), (200, 4.6, 105, 10)])
def test_the_documents_simulations_in_few_rounds(d: int, norm: float, plain: int, most: int) -> None:
    """SimuX100 and SimuX200: the document's stop (likelihood's relative change below 1e-6) after 59 and 105 rounds."""
    oracle = logistic("gaussian", n=20_000, d=d, norm=norm)
    v, before, taken = np.zeros(d), oracle.value(np.zeros(d)), 0
    while True:
        v, taken = v + oracle.step(v), taken + 1
        after = oracle.value(v)
        if abs(after - before) < 1e-6 * abs(before):
            break
        before = after
    assert abs(taken - plain) <= 8
    optimum = oracle.optimum()
    reached: list[float] = []
    chosen = Ascending(from_zero=True)
    ascend(
        oracle, np.zeros(d), settings=chosen, on_round=lambda ascent: reached.append(relative_error(ascent, optimum))
    )
    assert min(reached[:most]) <= 1e-4


def test_where_the_step_is_linear_and_every_direction_was_seen_the_optimum_is_next() -> None:
    rng = np.random.default_rng(1)
    A = np.diag([1.0, 0.6, 0.3, 0.1])
    optimum = rng.normal(size=4)
    points = np.cumsum(np.vstack([rng.normal(size=4), np.eye(4)]), axis=0)
    visited = [(point, A @ (optimum - point)) for point in points]
    np.testing.assert_allclose(extrapolate(visited), optimum, atol=1e-12)
    np.testing.assert_array_equal(extrapolate(visited[:1]), visited[0][0] + visited[0][1])
    # A difference nearly parallel to a newer one is left out, instead of blowing its rounding up.
    doubled = [(visited[0][0] - 1e-9, visited[0][1] + 1e-9 * np.array([1.0, 0.6, 0.3, 0.1])), *visited]
    np.testing.assert_allclose(extrapolate(doubled), optimum, atol=1e-12)


@pytest.mark.parametrize("norm", [0.1, 1.0, 2.0, 3.5])
def test_of_normal_rows_the_first_step_tells_about_where_the_optimum_is(norm: float) -> None:
    oracle = logistic("gaussian", n=50_000, d=4, norm=norm)
    np.testing.assert_allclose(normal_optimum(oracle.step(np.zeros(4))), oracle.optimum(), atol=0.1 * norm)


@pytest.mark.parametrize("kind", KINDS)
def test_what_normal_rows_would_do_saves_rounds_and_changes_no_optimum(kind: str) -> None:
    known, blind = (
        ascend(logistic(kind), np.zeros(20), settings=Ascending(tolerance=1e-8, from_zero=from_zero))
        for from_zero in (True, False)
    )
    np.testing.assert_allclose(known.point, blind.point, rtol=1e-6, atol=1e-6)
    assert len(known.visits) <= len(blind.visits)
    assert known.n_compared <= blind.n_compared


def test_a_first_step_longer_than_normal_rows_give_is_left_as_it_is() -> None:
    step = np.array([3.0, 4.0])
    np.testing.assert_array_equal(normal_optimum(step), step)
    np.testing.assert_array_equal(normal_optimum(np.zeros(2)), np.zeros(2))


def test_rounds_that_run_out_are_told() -> None:
    ascent = ascend(logistic("gaussian"), np.zeros(20), settings=Ascending(max_rounds=3))
    assert not ascent.converged
    assert len(ascent.visits) == 3
    assert ascent.error > 1e-6
