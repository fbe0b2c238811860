"""A linear model's parameter theta, and the coefficients and intercepts that it stands for.

A row of theta holds the coefficients of one class and, if there is an intercept, one number more: the coefficient of a
feature whose value is `constant` for every record. `constant` 0 means no intercept.

    >>> coef, intercept = coefficients(np.array([3.0, 4.0, 0.5]), n_features=2, constant=2.0)
    >>> coef, intercept
    (array([[3., 4.]]), array([1.]))
    >>> parameter(coef, intercept, constant=2.0)
    array([[3. , 4. , 0.5]])
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.errors import SettingError

Array = npt.NDArray[np.float64]


def coefficients(theta: Array, n_features: int, constant: float) -> tuple[Array, Array]:
    """The coefficients and intercepts of a parameter, in scikit-learn's shapes.

    Theta of shape (k,), two classes, gives (1, d) and (1,). Theta of shape (..., k) gives (..., d) and (...).
    """
    theta = np.atleast_2d(theta)
    width = n_features + (constant != 0)
    if theta.shape[-1] != width:
        raise SettingError(
            f"theta has rows of {theta.shape[-1]} numbers; {n_features} features with constant = {constant:g} have "
            f"{width}"
        )
    intercept = theta[..., -1] * constant if constant else np.zeros(theta.shape[:-1])
    return theta[..., :n_features].copy(), intercept


def parameter(coef: Array, intercept: Array, constant: float) -> Array:
    """The parameter of shape (C, k), or (1, k) for two classes, that `coefficients` takes apart.

    Raises:
        SettingError: if there is an intercept, and `constant` = 0 leaves no place for it.
    """
    if constant:
        return np.column_stack([coef, intercept / constant])
    if np.any(intercept != 0):
        raise SettingError("the model has an intercept and constant = 0 leaves no place for it; allow an intercept")
    return np.array(coef)
