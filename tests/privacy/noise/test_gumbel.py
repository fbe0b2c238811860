"""The private choice of the largest coordinates: its law, what it costs, and that it is exact."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.privacy.noise import gumbel
from tacit.privacy.noise.gumbel import signed_gumbel_top
from tacit.rand import Rng

SUMS = np.array([0, 50, -30, 10])


def ranking_chances(sums: np.ndarray, noise_scale: float, n: int) -> dict[frozenset[tuple[int, bool]], float]:
    """Exact chances of every outcome of n draws without return, by going through all orders."""
    weight = {(j, s): math.exp((-1) ** s * int(v) / noise_scale) for j, v in enumerate(sums) for s in (False, True)}
    chances: dict[frozenset[tuple[int, bool]], float] = defaultdict(float)
    for js in itertools.permutations(range(len(sums)), n):
        for signs in itertools.product((False, True), repeat=n):
            chance, left = 1.0, set(range(len(sums)))
            for j, s in zip(js, signs, strict=True):
                chance *= weight[j, s] / sum(weight[k, t] for k in left for t in (False, True))
                left.remove(j)
            chances[frozenset(zip(js, signs, strict=True))] += chance
    return chances


@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_signed_gumbel_choice_is_drawn_as_by_the_exponential_mechanism(n: int) -> None:
    rng, expected = Rng.seeded(4), ranking_chances(SUMS, 25.0, n)
    seen: Counter[frozenset[tuple[int, bool]]] = Counter()
    runs = 6000
    for _ in range(runs):
        chosen, negative = signed_gumbel_top(SUMS, 25.0, n, rng=rng)
        assert chosen.sum() == n
        seen[frozenset((int(j), bool(negative[j])) for j in np.flatnonzero(chosen))] += 1
    common = [outcome for outcome, chance in expected.items() if chance * runs > 5]
    rest = runs - sum(seen[o] for o in common)
    chances = np.array([expected[o] for o in common])
    observed, chances = np.array([*(seen[o] for o in common), rest]), np.append(chances, 1 - chances.sum())
    kept = chances > 1e-9
    assert np.all(observed[~kept] == 0)
    assert stats.chisquare(observed[kept], chances[kept] * runs).pvalue > 1e-3


@given(st.lists(st.integers(-40, 40), min_size=2, max_size=4), st.data())
@settings(max_examples=100, deadline=None)
def test_the_signed_gumbel_choice_costs_no_more_than_is_claimed(sums: list[int], data: st.DataObject) -> None:
    """One draw is of bounded range e, and n of them are n e**2 / 8 zero-concentrated private, from exact chances.

    The range of n draws together may exceed n e, since a later draw's range starts where the earlier ones say.
    """
    reach = 7
    moved = [v + data.draw(st.integers(-reach, reach)) for v in sums]
    n = data.draw(st.integers(1, 2))
    bounded_range = data.draw(st.sampled_from([0.1, 0.7, 3.0]))
    first, second = (ranking_chances(np.array(s), 2 * reach / bounded_range, n) for s in (sums, moved))
    outcomes = list(first)
    p, losses = np.array([first[o] for o in outcomes]), np.log([first[o] / second[o] for o in outcomes])
    if n == 1:
        assert losses.max() - losses.min() <= bounded_range + 1e-9
    for alpha in (1.01, 2.0, 8.0, 64.0):
        divergence = np.log(np.sum(p * np.exp((alpha - 1) * losses))) / (alpha - 1)
        assert divergence <= alpha * n * bounded_range**2 / 8 + 1e-9


def test_comparisons_in_doubt_are_made_anew_and_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = np.random.default_rng(0).integers(-50, 50, 120)
    fast = signed_gumbel_top(sums, 20.0, 30, rng=Rng.seeded(5))
    monkeypatch.setattr(gumbel, "_GUMBEL_ERROR", 1.0)
    np.testing.assert_array_equal(signed_gumbel_top(sums, 20.0, 30, rng=Rng.seeded(5)), fast)
