"""Importance weights: how public rows must be weighed to look like somebody else's, and what mixture a third one is.

Rows p_1 .. p_N are public. Somebody's rows X are described by weights w(p) proportional to exp(beta.p) on them, and
beta is made in one of two ways:

    tilt            beta lies in the span of a few public directions B, and is the one of maximum entropy under which
                    the mean of B p is that of B x. It depends on X through that mean alone.
    discriminator   beta is a logistic regression that tells X from the public rows (Ji and Elkan 2013; Wang's DPIW),
                    without an intercept: mean loss on X + mean loss on the public rows + (l2_mean / 2) ||beta||^2.

Sensitivity. Let rows x, x' in R^d have norm at most R, and kappa = max ||a x - a' x'|| over 0 <= a, a' <= 1. In
general kappa = 2 R. For rows without negative entries x.x' >= 0 gives kappa <= sqrt 2 R, and entries between 0 and R
give kappa <= sqrt d R. Replacing one of n rows moves the mean of B x, ||B|| <= 1, by at most kappa / n; and the
discriminator by at most kappa / (n l2_mean): its objective is l2_mean-strongly convex, and at any beta the gradients on
neighbours differ by ||sigma(-beta.x) x - sigma(-beta.x') x'|| / n. That distance is also at most D(B, R), where no
discriminator is longer than B (`models.sensitivity`). Its objective is twice a mean loss with half the penalty, over
rows that weigh as much on either side, so B is that of l2_mean / 2.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, solve_triangular
from scipy.optimize import nnls
from scipy.special import logsumexp

from tacit.models.assured import FitBounds, assured_minimum
from tacit.models.loss import CHUNK_ROWS, Array, Blocks, FineArray, Labels, Loss, Sums
from tacit.models.problem import Problem, Solution
from tacit.models.sensitivity import gradient_diameter, minimiser_norm_bound
from tacit.models.solver import BlockRecords, Extent, minimise, settled
from tacit.models.wide import is_wide, wide_guess

Floats = npt.NDArray[np.float64]

_MOST_STEPS = 200
_LEAST_LOG_RATIO = math.log(1e-12)
_MIXTURE_GAP = 1e-9  # nats from the least divergence


def row_diameter(radius: float, n_features: int, *, nonnegative: bool) -> float:
    """kappa: how far apart two rows, each scaled by a factor between 0 and 1, can lie."""
    return radius * min(math.sqrt(2), math.sqrt(n_features)) if nonnegative else 2 * radius


def principal_directions(rows: Floats, most: int) -> Floats:
    """Orthonormal directions, one a row, along which public rows vary most: at most `most` of them."""
    centred = rows - rows.mean(axis=0)
    n, d = centred.shape
    most = min(most, n, d)
    # By the smaller of the two matrices of products, and a few of its directions: a whole decomposition is n d^2.
    gram = centred @ centred.T if n < d else centred.T @ centred
    vectors = eigh(gram, subset_by_index=(len(gram) - most, len(gram) - 1))[1][:, ::-1]
    spanning = centred.T @ vectors if n < d else vectors
    directions: Floats = np.linalg.qr(spanning)[0].T  # orthonormal, also where products have lost digits
    return np.ascontiguousarray(directions)


def mean_along(blocks: Blocks, directions: Floats, n_records: int) -> Floats:
    """The mean of B x over the rows of the blocks."""
    total = np.zeros(len(directions))
    for X, *_ in blocks():
        for start in range(0, len(X), CHUNK_ROWS):
            total += (X[start : start + CHUNK_ROWS] @ directions.T).sum(axis=0)
    return total / n_records


def mean_error(directions: Floats, n_table: int, radius: float) -> float:
    """A bound on the rounding error of `mean_along` over some of a table's `n_table` rows, in L2 norm.

    A sum of m terms errs by at most m 2^-52 times that of their sizes (Higham 2002, section 3.1), whatever its order.
    Here m counts the columns, the rows of a chunk, and the chunks, of which there are fewer than n_table / 1024 + 2;
    a term's size is at most the radius.
    """
    r, d = directions.shape
    return math.sqrt(r) * (d + CHUNK_ROWS + n_table / 1024 + 10) * 2.0**-52 * radius


def tilt(projected: Floats, mean: Floats, ridge: float) -> Floats:
    """Log weights log w_i + constant = beta.z_i of public rows z_i = B p_i whose weighted mean is near `mean`.

    beta minimises log mean_i exp(beta.z_i) - beta.mean + (ridge / 2) ||beta||^2: without a ridge the weights have the
    mean exactly and maximum entropy; with one they also exist for a mean that no weights have.

    Guarantees:
        the weights sum to 1, and their mean is `mean` - ridge beta.
    """
    Z = projected - mean  # the objective becomes log mean exp(beta.z) with gradient E z
    beta = np.zeros(Z.shape[1])
    here, weights = _tilted(Z, beta, ridge)
    for _ in range(_MOST_STEPS):
        centre = weights @ Z
        gradient = centre + ridge * beta
        spread = (Z * weights[:, None]).T @ Z - np.outer(centre, centre)
        step = np.linalg.solve(spread + ridge * np.eye(len(beta)), -gradient)
        slope = float(gradient @ step)
        if -slope <= 1e-24:
            break
        length = 1.0
        while length > 1e-10:
            there, tilted = _tilted(Z, beta + length * step, ridge)
            if there <= here + 1e-4 * length * slope or -slope < 1e-12:
                break
            length /= 2
        beta, here, weights = beta + length * step, there, tilted
    return log_weights(projected, beta)


def _tilted(Z: Floats, beta: Floats, ridge: float) -> tuple[float, Floats]:
    scores = Z @ beta
    total = float(logsumexp(scores))
    return total - math.log(len(Z)) + ridge / 2 * float(beta @ beta), np.exp(scores - total)


def discriminator_bounds(n_records: int, n_public: int, l2_mean: float, n_features: int, radius: float) -> FitBounds:
    """What is public about the fit of a discriminator; its rows and the public ones weigh the same."""
    return FitBounds(
        loss=Loss(n_features=n_features, constant=0.0),
        l2=n_records * l2_mean,
        weight=2 * n_records,
        n_rows=n_records + n_public,
        radius=radius,
        norm_bound=discriminator_norm_bound(l2_mean, radius),
    )


def discriminate(blocks: Blocks, n_records: int, public: Floats, l2_mean: float, tolerance: float = 1e-9) -> Solution:
    """Fit the discriminator between the rows of the blocks (whose labels are not read) and the public ones.

    Guarantees:
        as `solver.fit`; `theta` is within `distance_bound` of the exact discriminator.
    """
    problem = _discrimination(n_records, public, l2_mean, tolerance)
    return _Discrimination(blocks, n_records, public, problem).solve()


def assured_discriminator(
    blocks: Blocks, n_records: int, public: Floats, l2_mean: float, *, radius: float, distance: float
) -> Floats:
    """The same within `distance` of the exact one, whatever the rows are; no row is longer than `radius`."""
    tolerance = min(1e-9, 0.1 * distance / max(1.0, discriminator_norm_bound(l2_mean, radius)))
    problem = _discrimination(n_records, public, l2_mean, tolerance)
    bounds = discriminator_bounds(n_records, len(public), l2_mean, public.shape[1], radius)
    records = _Discrimination(blocks, n_records, public, problem)
    return assured_minimum(records, problem=problem, bounds=bounds, distance=distance, quick=records.solve)


def _discrimination(n_records: int, public: Floats, l2_mean: float, tolerance: float) -> Problem:
    """In the sum form, n times the mean form."""
    return Problem(n_features=public.shape[1], l2=n_records * l2_mean, intercept="none", tolerance=tolerance)


class _Discrimination:
    """The rows as class 1 and the public rows as class 0, which weigh as much as the rows all together."""

    def __init__(self, blocks: Blocks, n_records: int, public: Floats, problem: Problem) -> None:
        self.problem = problem
        self.own_rows: Blocks = lambda: ((X, np.ones(len(X), dtype=np.int64)) for X, *_ in blocks())
        self.own = BlockRecords(self.own_rows, problem)
        zeros: Labels = np.zeros(len(public), dtype=np.int64)
        self.public_rows = (public, zeros)
        self.public = BlockRecords(lambda: [self.public_rows], problem)
        self.n_records = n_records
        self.n_public = len(public)
        self.weight = n_records / len(public)

    def solve(self) -> Solution:
        """The discriminator; of few rows with many columns, by their products."""
        if is_wide(self.n_records + self.n_public, self.problem):
            self.extent()  # looks at every block before anything is computed from it
            X, y = self.public_rows
            rows = [*self.own_rows(), (X, y, np.full(len(y), self.weight))]
            solution = settled(self, wide_guess(rows, self.problem), problem=self.problem)
            if solution is not None:
                return solution
        return minimise(self, problem=self.problem)

    def sums(self, theta: Array, *, curvature: bool = True) -> Sums:
        own, public = (part.sums(theta, curvature=curvature) for part in (self.own, self.public))
        a, H = self.weight, None
        if own.curvature is not None and public.curvature is not None:
            H = own.curvature + a * public.curvature
        return Sums(
            loss=own.loss + a * public.loss,
            gradient=own.gradient + a * public.gradient,
            curvature=H,
            n_records=2 * self.n_records,  # the total weight
            residual=own.residual + a * public.residual,
            # More than the roundings of either sum and of the weight, even if the public rows are many more.
            n_chunks=own.n_chunks + public.n_chunks + CHUNK_ROWS + 4,
        )

    def fine_gradient(self, theta: Array) -> FineArray:
        public = self.public.fine_gradient(theta)
        return self.own.fine_gradient(theta) + np.longdouble(self.n_records) / self.n_public * public

    def extent(self) -> Extent:
        own, public = self.own.extent(), self.public.extent()
        return Extent(
            column_bound=np.maximum(own.column_bound, public.column_bound),
            class_counts=own.class_counts + public.class_counts,
        )


def discriminator_norm_bound(l2_mean: float, radius: float) -> float:
    """B: no discriminator is longer. Public rows may exceed the radius by rounding."""
    return minimiser_norm_bound(l2_mean / 2, radius * (1 + 1e-11))


def discriminator_move(n_rows: int, l2_mean: float, radius: float, n_features: int, *, nonnegative: bool) -> float:
    """How far one of so many rows moves the exact discriminator: min(kappa, D) / (n l2_mean)."""
    kappa = row_diameter(radius, n_features, nonnegative=nonnegative)
    diameter = gradient_diameter(discriminator_norm_bound(l2_mean, radius), radius)
    return min(kappa, diameter) / n_rows / l2_mean


def log_weights(public: Floats, beta: Floats) -> Floats:
    """Log weights of the public rows, w(p) proportional to exp(beta.p) (Wang, algorithm 5, step 4)."""
    scores = public @ beta
    return scores - float(logsumexp(scores))


def mixture_weights(target: Floats, sources: Floats) -> Floats:
    """w_H: the mixture of the sources' weights that is nearest to the target's in Kullback-Leibler divergence.

    Wang, (4.1): argmin over the simplex of KL(w^T, sum_k w(k) w^k). Each step takes the better of two: that of
    expectation maximisation, which multiplies w(k) by its gain, the target's mean of w^k over the mixture, and never
    raises the divergence; and a Newton step. The largest gain, less 1, bounds what is left, for KL is convex.

    Args:
        target: log weights of the public rows, of shape (N,).
        sources: the same for each source, of shape (K, N).

    Guarantees:
        not negative, and sums to 1.
    """
    w_target = np.exp(target - logsumexp(target))
    # A public row's own factor cancels; no source calls a row impossible that another one has.
    ratios = np.exp(np.maximum(sources - sources.max(axis=0), _LEAST_LOG_RATIO))
    weights = np.full(len(sources), 1 / len(sources))
    for _ in range(_MOST_STEPS):
        scaled = ratios / (weights @ ratios)
        gains = scaled @ w_target
        if gains.max() - 1 <= _MIXTURE_GAP:
            break
        candidates = [weights * gains, _newton_point(weights, gains, (scaled * w_target) @ scaled.T)]
        candidates = [candidate / candidate.sum() for candidate in candidates]
        weights = min(candidates, key=lambda w: -float(w_target @ np.log(w @ ratios)))
    return weights


def _newton_point(weights: Floats, gains: Floats, H: Floats) -> Floats:
    """Nearly the minimum over w >= 0 of the quadratic model of KL + sum_k w(k), whose minimum lies in the simplex.

    By non-negative least squares (Kim et al. 2020, "mix-SQP"); a step short of it, so that no weight becomes 0.
    """
    L = np.linalg.cholesky(H + 1e-10 * np.trace(H) * np.eye(len(H)))
    best, _ = nnls(L.T, solve_triangular(L, H @ weights + gains - 1, lower=True), maxiter=100 * len(H))
    point: Floats = weights + 0.999 * (best - weights)
    return point
