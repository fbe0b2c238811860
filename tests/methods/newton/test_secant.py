"""Curvature that the rounds show."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.methods.newton.secant import Rise, as_shown


def test_rounds_without_noise_show_the_curvature_along_their_ways() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    truth, H = root @ root.T + np.eye(6), 0.1 * np.eye(6)
    ways = rng.normal(size=(6, 6))
    shown = as_shown(H, [Rise(way=d, seen=truth @ d, expected=H @ d, variance=0.0) for d in ways])
    np.testing.assert_allclose(shown @ ways[-1], truth @ ways[-1], rtol=1e-9)
    assert np.linalg.norm(shown - truth) < np.linalg.norm(H - truth)
    assert np.linalg.eigvalsh(shown)[0] > 0
    np.testing.assert_allclose(shown, shown.T, atol=1e-12)


def test_noise_shows_nothing() -> None:
    rng = np.random.default_rng(1)
    H, ways = np.diag(np.arange(1.0, 9.0)), rng.normal(size=(50, 8))
    changes = [Rise(way=d, seen=H @ d + rng.normal(scale=0.1, size=8), expected=H @ d, variance=0.1**2) for d in ways]
    np.testing.assert_array_equal(as_shown(H, changes), H)


@pytest.mark.parametrize("factor", [-2.0, 0.0, 1e-9])
def test_responses_that_do_not_rise_change_nothing(factor: float) -> None:
    H, d = np.eye(3), np.array([1.0, 2.0, 0.0])
    shown = as_shown(H, [Rise(way=d, seen=factor * d, expected=d, variance=0.0)])
    assert np.linalg.eigvalsh(shown)[0] > 0
    np.testing.assert_array_equal(shown, H)
