"""A parameter is taken apart into coefficients and intercepts, and put together again."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import SettingError
from tacit.models.parameter import coefficients, parameter


@pytest.mark.parametrize("shape", [(4,), (1, 4), (3, 4), (7, 3, 4)])
def test_the_scores_are_the_same(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    theta, x = rng.normal(size=shape), rng.normal(size=3)
    coef, intercept = coefficients(theta, 3, 0.5)
    np.testing.assert_allclose(coef @ x + intercept, np.atleast_2d(theta) @ [*x, 0.5], rtol=1e-12)
    bare, nothing = coefficients(theta[..., :3], 3, 0.0)
    np.testing.assert_array_equal(bare, coef)
    np.testing.assert_array_equal(nothing, np.zeros(coef.shape[:-1]))


def test_it_is_put_together_again() -> None:
    coef, intercept = np.arange(6.0).reshape(2, 3), np.array([1.0, -3.0])
    theta = parameter(coef, intercept, 4.0)
    np.testing.assert_array_equal(theta[:, -1], [0.25, -0.75])
    for there, back in zip(coefficients(theta, 3, 4.0), (coef, intercept), strict=True):
        np.testing.assert_array_equal(there, back)
    np.testing.assert_array_equal(parameter(coef, np.zeros(2), 0.0), coef)


def test_the_coefficients_are_a_copy() -> None:
    theta = np.ones(3)
    coefficients(theta, 2, 1.0)[0][:] = 9.0
    np.testing.assert_array_equal(theta, np.ones(3))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(SettingError, match="rows of 4 numbers; 4 features with constant = 1 have 5"):
        coefficients(np.zeros(4), 4, 1.0)
    with pytest.raises(SettingError, match="leaves no place for it"):
        parameter(np.zeros((1, 2)), np.ones(1), 0.0)
