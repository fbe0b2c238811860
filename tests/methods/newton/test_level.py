"""Where noise drowns nearly all: the level of a model, the mean row, and the noise that both have in common."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from tacit import Federation, Rng
from tacit.methods.newton.method import PrivateNewton
from tacit.methods.newton.moments import mean_along, with_mean
from tacit.methods.newton.solver import Equation

WEIGHTS = (8, 4, 2, 1, 1)


def test_of_the_mean_row_is_kept_what_noise_does_not_explain() -> None:
    rng = np.random.default_rng(1)
    k, noise = 40, 30.0
    rows = 0.3 + 0.1 * rng.normal(size=(2000, k))
    rows[:, -1] = 1.0
    M, q = rows.T @ rows, np.eye(k)[-1]
    E = rng.normal(size=(k, k)) * noise / 2
    opened = M + E + E.T
    opened[-1, -1] = M[-1, -1]
    squares = M + 0.0
    squares[-1, :-1] += 20.0  # squares that are off by little, and by much
    squares[:-1, -1] += 20.0
    near, kept = mean_along(opened, q, noise, squares)
    far, more = mean_along(opened, q, noise, squares + 400.0 * (squares != squares[-1, -1]))
    assert kept < 0.7 < more <= 1
    assert np.linalg.norm(near - M @ q) < 0.9 * np.linalg.norm(opened @ q - M @ q)
    assert np.linalg.norm(far - M @ q) < 1.2 * np.linalg.norm(opened @ q - M @ q)
    exact, all_of_it = mean_along(M, q, 0.0, squares)
    assert np.array_equal(exact, M @ q)
    assert all_of_it == 1.0
    changed = with_mean(M, q, near)
    assert np.allclose(changed @ q, near)
    assert np.linalg.eigvalsh(changed)[0] > 0


def test_single_runs_do_not_end_astray_where_a_class_is_rare_among_few_records() -> None:
    rng = np.random.default_rng(0)
    groups = [np.eye(8)[rng.choice(8, p=np.r_[0.65, np.full(7, 0.05)], size=5_000)] for _ in range(10)]
    X = np.concatenate(groups, axis=1) / math.sqrt(10)
    y = (rng.random(5_000) < 0.06).astype(int)
    p = float(y.mean())
    excess = []
    for seed in range(8):
        parties = Federation.split(X, y, weights=WEIGHTS, norm_bound=1.0, rng=Rng.seeded(seed))
        method = PrivateNewton(epsilon=0.02, delta=1e-7, relation="add-remove")
        scores = method.fit(parties).decision_function(X)
        loss = np.mean(np.logaddexp(0, np.where(y == 1, -scores, scores)))
        excess.append(loss + p * math.log(p) + (1 - p) * math.log(1 - p))
    assert np.mean(excess) < 0.04  # 0.032; 0.049 before (`level`, 2 and 3; `moments`, 5)


@pytest.mark.parametrize(("contradicted", "width"), [(1.0, 0.5), (0.0, 3.0)])
def test_a_step_is_short_where_rounds_contradict_the_normal_population(contradicted: float, width: float) -> None:
    asked = [SimpleNamespace(model=np.array([[x, 0.0, 0.0]])) for x in (0.0, 2.0)]
    equation = SimpleNamespace(_contradicted=contradicted, observations=asked, _spread=np.diag([1.0, 4.0, 0.0]))
    found = Equation._near(equation, np.array([[2.0, 1.5, 7.0]]))  # type: ignore[arg-type]
    change = found - asked[1].model  # the nearest
    assert math.sqrt(float(np.sum((change @ equation._spread) * change))) == pytest.approx(width)
    close = np.array([[0.1, 0.1, 0.0]])
    np.testing.assert_array_equal(Equation._near(equation, close), close)  # type: ignore[arg-type]
