"""The label statistic: all that a linear classifier needs to know of labels whose rows are public.

Z (N, k) are public rows, the constant feature included, and A_j (N, C) the one-hot votes of party j on them. Softmax
regression on the mean votes A = sum_j A_j / M depends on them through T = Z'A / N alone:

    (1/N) sum_i logsumexp(W z_i) - <W, T'> + (lambda/2) ||W||^2,

so T with noise is enough, and what is computed from it afterwards costs nothing more.

Coordinates. Z = Z Q Q' with orthonormal directions Q (k, r) of the rows' span, and each row of A sums to 1. So T is
known from V = B'Z'A E / N, of r (C-1) numbers, where B = Q / scale, and E (C, C-1) has orthonormal columns that sum to
0 (`simplex`): T = Q (scale V E' + Q'Z'11' / (N C)). `scale` is 1 for isotropic noise; for shaped noise it holds the
square roots of the eigenvalues of Z'Z/N, so that noise which is alike in all coordinates of V has in those of T the
covariance of the rows: much where rows are long, and little where they are short.

Sensitivity. Let party j's whole table be replaced by any other, and D = Z B be the rows of the coordinates in use. Its
votes change by delta (N, C), whose rows are 0 or e_a - e_b, of norm at most sqrt 2; E does not lengthen them. Its
addend V_j / M = D'A_j E / (N M) moves by at most sqrt(2)/M times the smaller of

    (1) sigma_max(D) / sqrt N,         since ||D'delta||_F <= sigma_max(D) ||delta||_F <= sigma_max(D) sqrt(2 N);
    (2) || mean_i |d_i| ||_2,          since ||sum_i D_ik delta_i|| <= sqrt 2 sum_i |D_ik| for each coordinate k.

(2) is never above the mean of ||d_i||, by the triangle inequality. For shaped noise (1) is 1 but for rounding. No bound
on private rows is needed: a party's data reach the statistic through its votes only. With `scale` and E any fixed
numbers the proof is the same, so a party need not trust whoever chose them. It checks that they are a basis of the rows
(`is_basis`), and computes (1) and (2) of the rows that it will use. In coordinates of one class (two classes, T_1
alone) the factor is 1 in place of sqrt 2.

Floats. An entry of a computed addend sums N terms, each of them +-D_ik times an entry of E or of E_c - E_0, and C more.
So an addend errs by less than 2.5 (N + C + 2) 2**-53 || sum_i |d_i| ||, over N M, and || sum_i |d_i| || / N is (2), or
at most sqrt(r) times (1). `_SLACK` covers that for two addends, and the error of the eigenvalue, while (N + C + 2) r
is below 2**30.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.bisection import bisect, geometric_mean
from tacit.errors import SettingError
from tacit.models.problem import Problem, Solution
from tacit.models.solver import fit

Floats = npt.NDArray[np.float64]

_SLACK = 1 + 2.0**-20
_RANK = 1e-9  # of the largest eigenvalue: shorter directions say nothing that floats could tell
_MOST_VALUES = 2**29
_BASIS_ERROR = 1e-4  # how far the coordinates may be from orthonormal: rounding, over the shortest direction kept


def simplex(n_classes: int) -> Floats:
    """E of shape (C, C-1): orthonormal columns that sum to 0, so that its rows are sqrt 2 apart."""
    E = np.zeros((n_classes, n_classes - 1))
    for c in range(1, n_classes):  # Helmert's contrasts: class c against the mean of those before it
        E[:c, c - 1] = -1.0
        E[c, c - 1] = c
        E[:, c - 1] /= math.sqrt(c * (c + 1))
    return E


def lengthened(X: Floats, constant: float) -> Floats:
    """The rows with their constant feature; 0 means none."""
    return np.column_stack([X, np.full(len(X), constant)]) if constant else np.ascontiguousarray(X)


def vote_sensitivity(D: Floats, n_parties: int) -> float:
    """How far the votes of one party move the statistic D'A E / N of the mean votes, in L2 norm.

    Guarantees:
        ||D'(A_j - A_j') E|| / (N M) <= the result for any two sets of votes, as computed in floats.
    """
    n_rows = len(D)
    if D.size >= _MOST_VALUES:
        raise SettingError(f"public: {n_rows} rows of {D.shape[1]} columns are too many to bound rounding; give fewer")
    spectral = math.sqrt(max(0.0, float(np.linalg.eigvalsh(D.T @ D / n_rows)[-1])))
    absolute = float(np.linalg.norm(np.abs(D).mean(axis=0)))
    return math.sqrt(2) / n_parties * min(spectral, absolute) * _SLACK


def is_basis(B: Floats, Z: Floats, *, shaped: bool) -> bool:
    """Whether B is a basis for the rows Z: its columns are orthonormal, or for shaped noise those of Z B / sqrt N."""
    if B.ndim != 2 or len(B) != Z.shape[1] or not 1 <= B.shape[1] <= len(B):
        return False
    with np.errstate(all="ignore"):
        D = Z @ B / math.sqrt(len(Z)) if shaped else B
        return bool(np.abs(D.T @ D - np.eye(B.shape[1])).max() <= _BASIS_ERROR)


@dataclass(frozen=True, kw_only=True)
class LabelDesign:
    """Public rows, and the coordinates in which the statistic of their labels is opened."""

    Z: Floats
    n_classes: int
    shaped: bool

    @cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        eigenvalues, directions = np.linalg.eigh(self.Z.T @ self.Z / len(self.Z))
        kept = eigenvalues > _RANK * eigenvalues[-1]
        if not kept.any() or not eigenvalues[-1] > 0:
            raise SettingError("public has nothing but zeros; give rows with values")
        return eigenvalues[kept], directions[:, kept]

    @property
    def directions(self) -> Floats:
        """Q, of shape (k, r)."""
        return self._spectrum[1]

    @cached_property
    def scale(self) -> Floats:
        """What the coordinates are divided by, of shape (r,)."""
        return np.sqrt(self._spectrum[0]) if self.shaped else np.ones(len(self._spectrum[0]))

    @property
    def basis(self) -> Floats:
        """B = Q / scale."""
        return self.directions / self.scale

    @cached_property
    def rows(self) -> Floats:
        """Z Q, of shape (N, r)."""
        return self.Z @ self.directions

    def statistic(self, V: Floats) -> Floats:
        """(T Q)' of shape (C, r) from the opened V, of shape (r, C-1)."""
        centre = self.rows.mean(axis=0) / self.n_classes
        moved: Floats = simplex(self.n_classes) @ (self.scale[:, None] * V).T + centre
        return moved

    def weights(self, theta: Floats) -> Floats:
        """A parameter of the rows Z Q as one of the rows Z, of shape (1 or C, k)."""
        return np.atleast_2d(theta) @ self.directions.T


def fit_labels(rows: Floats, T: Floats, l2_mean: float, start: Floats | None = None) -> Solution:
    """The minimiser of (1/N) sum_i logsumexp(W z_i) - <W, T> + (l2_mean/2) ||W||^2; for two classes of its binary form.

    T (C, r) sums to the mean row over the classes. The solver takes the objective in sum form, with every label 0 and
    what that leaves of the linear term: N (e_0 mean' - T), or -N T_1 for two classes.

    Guarantees:
        The solution's distance bound holds for the minimiser with this very T.
    """
    n_classes, n_rows = len(T), len(rows)
    linear = -n_rows * T
    linear[0] += rows.sum(axis=0)
    problem = Problem(
        n_features=rows.shape[1],
        n_classes=n_classes,
        l2=n_rows * l2_mean,
        intercept="none",
        linear=linear[1] if n_classes == 2 else linear,
        start=start,
        max_passes=500,
    )
    labels = np.zeros(n_rows, dtype=np.int64)
    return fit(lambda: [(rows, labels)], problem=problem)


def fit_statistic(design: LabelDesign, V: Floats, noise_std: float, l2_mean: float | None) -> tuple[Solution, float]:
    """The global classifier of an opened statistic with noise of so much in each coordinate, and its l2_mean.

    Without a given `l2_mean` it is the one that guards against all noise of norm rho: the least loss in the worst
    case, min_W max_{||Y|| <= rho} loss(W, T + Y) = min_W loss(W, T) + rho ||W||, is at the W with l2_mean ||W|| = rho.
    For rho we take the noise's root mean square in T and three standard deviations of its norm more. It is never below
    1/N, scikit-learn's default, nor above a tenth of the rows' mean eigenvalue, beyond which a penalty would turn the
    model more than it shrinks it: where noise drowns the statistic, directions are all that is left. V, the noise's
    size and the rows are public by then, so this costs nothing.
    """
    T = design.statistic(V)
    low = 1 / len(design.rows)
    if l2_mean is not None or noise_std == 0:
        given = low if l2_mean is None else l2_mean
        return fit_labels(design.rows, T, given), given
    in_statistic = noise_std * math.sqrt(design.n_classes - 1) * float(np.linalg.norm(design.scale))
    rho = (1 + 3 / math.sqrt(V.size)) * in_statistic
    per_class = math.sqrt(2) if design.n_classes == 2 else 1.0  # W of two classes is (-w, w) / 2, and T_0 mirrors T_1
    high = max(low, 0.1 * float(np.mean(design.rows**2)))
    best = fit_labels(design.rows, T, high)
    if per_class * high * float(np.linalg.norm(best.theta)) <= rho:
        return best, high

    def guards(l2_mean: float) -> bool:  # l2_mean ||W|| rises with l2_mean
        nonlocal best
        solution = fit_labels(design.rows, T, l2_mean, start=best.theta)
        enough = per_class * l2_mean * float(np.linalg.norm(solution.theta)) >= rho
        best = solution if enough else best
        return enough

    least = bisect(guards, yes=high, no=low, tolerance=1 / 6, middle=geometric_mean)
    return best, least
