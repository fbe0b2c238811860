"""Standard errors and intervals of a fit that solves its equation with noise of known size.

The fit solves g(theta) + e = 0, g the gradient of the loss summed over the records, e the noise that was added for
privacy, of covariance v I. With H the curvature at the solution, theta - theta* = -H^-1 (g(theta*) + e) to first order.
At the parameter theta* of the population g has covariance H if the model is right, and e is independent of it:

    Cov theta = H^-1 + v H^-2:   the sampling error, and what was added.

In directions in which H is 0 (all scores of a softmax moved alike) nothing changes and the covariance is 0.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.errors import SettingError
from tacit.models.inference import Inference, wald
from tacit.models.loss import Array


def noisy_covariance(H: Array, noise_variance: float) -> Array:
    """H^-1 + v H^-2, over the directions in which H is positive.

    Guarantees:
        Symmetric and positive semidefinite; with v = 0 it is the inverse curvature.
    """
    values, vectors = np.linalg.eigh(H)
    known = values > 1e-9 * values[-1]
    h, V = values[known], vectors[:, known]
    covariance: Array = (V * (1 / h + noise_variance / h**2)) @ V.T
    return covariance


def noisy_inference(
    estimate: Array, covariance: Array, units: Array, *, n_records: int, confidence: float = 0.95
) -> Inference:
    """Wald inference for `units` @ estimate, with a covariance that counts the noise; no likelihood is known.

    Guarantees:
        low <= units @ estimate <= high.
    """
    if not 0 < confidence < 1:
        raise SettingError(f"confidence = {confidence} must lie between 0 and 1, for example 0.95")
    if units.shape[1:] != estimate.shape or covariance.shape != (len(estimate), len(estimate)):
        raise SettingError(
            f"units of shape {units.shape} and a covariance of shape {covariance.shape} do not fit {len(estimate)} "
            f"parameters; give one column for each"
        )
    told, spread = units @ estimate, units @ covariance @ units.T
    return wald(
        told,
        spread,
        n_parameters=len(estimate),
        log_likelihood=math.nan,
        n_records=n_records,
        confidence=confidence,
    )
