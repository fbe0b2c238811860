"""Newton's method with double noise: Algorithm 3 of Ganesh, Haghifam, Steinke and Thakurta (NeurIPS 2023).

The paper is arXiv 2305.13209, "Faster Differentially Private Convex Optimization via Second-Order Methods".

Each of 15 iterations opens three things, and mu**2 of them add up (exact Gaussian, where the paper counts in zCDP):

1. the sum of gradients g, which moves by `steps`;
2. the trace of the curvature H, which moves by h <= 1/4: it sets the penalty L that is added to H;
3. the direction (H + L)^-1 g. Given g, a record u of curvature h moves it by at most h ||g|| / (L^2 + h L).

Proof of 3. By Sherman and Morrison the change is h (A^-1 u) (u' A^-1 g) / (1 + h q), A = H + L, q = u' A^-1 u. Both
||A^-1 u||^2 <= q / L and q <= 1 / L hold, so its norm is at most ||g|| h q / (L (1 + h q)), which rises with q. Two
records, one taken out and one put in, move it by at most twice as much.

H is that of the quadratic upper bound of the loss, for which the paper proves convergence (its QU, DN-UB in its code).
Shares of the budget, the rule for L and the number of iterations are those of the authors' code (tensorflow/privacy,
research/dp_newton, run_privacy_utility): 0.7 for gradients, a tenth of the rest for the trace, coefficient 0.5.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from peers.task import Task

Floats = npt.NDArray[np.float64]

ITERATIONS, GRADIENT, TRACE, COEFFICIENT = 15, 0.7, 0.1, 0.5
CURVATURE = 0.25  # of one record, at most


def double_noise_scores(task: Task, *, iterations: int = ITERATIONS) -> Floats:
    """Log odds on the test rows."""
    U = task.rows
    theta = np.zeros(U.shape[1])
    squared = task.mu**2 / iterations
    mu_gradient = math.sqrt(GRADIENT * squared)
    mu_trace, mu_direction = (math.sqrt(share * (1 - GRADIENT) * squared) for share in (TRACE, 1 - TRACE))
    for _ in range(iterations):
        s = U @ theta
        g = U.T @ (expit(s) - task.y) + task.noise(mu_gradient, len(theta))
        H = (U * upper_bound(s)[:, None]).T @ U
        trace = max(np.trace(H) + task.rng.normal(scale=CURVATURE / mu_trace), 0.0)
        # The authors' rule for L / n: the root of trace / (n^2 rho), or 1 / n; rho = (mu / steps)^2 / 2.
        L = max((COEFFICIENT * trace * 2 * (task.steps / mu_direction) ** 2) ** (1 / 3), 1.0)
        moves = CURVATURE * float(np.linalg.norm(g)) / (L**2 + CURVATURE * L)
        H[np.diag_indices_from(H)] += L
        theta = theta - np.linalg.solve(H, g) + moves * task.noise(mu_direction, len(theta))
    return task.scores(theta)


def upper_bound(s: Floats) -> Floats:
    """tanh(s/2) / (2 s): the quadratic with this curvature touches the loss at s and lies above it elsewhere."""
    near = np.abs(s) < 1e-6
    return np.where(near, CURVATURE, np.tanh(s / 2) / (2 * np.where(near, 1.0, s)))
