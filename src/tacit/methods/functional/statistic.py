"""The quadratic that stands for the loss: two sums over all records, and the noise that they are released with.

The loss ln(1 + e^-m), m = w.u, u = y x, is replaced by ln 2 - m/2 + h m^2/2, and the sum of losses by h w'Aw/2 - t.w,
t = sum u/2, A = sum x x' (softmax, at equal scores: t_c = sum (1[y=c] - 1/C) x and curvature 4 h / C). h = 0.153 is
the least-squares slope of sigma(m) - 1/2 on [-4, 4], probabilities from 2 % to 98 %; the h = 1/4 of a Taylor
expansion, as in the document, is right near m = 0 only.

Proof. Let a = ||x||^2, b = ||x'||^2 and p = u.u' for a record and its replacement, and q = 1/2. Then
    ||dt||^2 = (q/2) (a + b - 2p),    ||dA||_F^2 = a^2 + b^2 - 2p^2.
Softmax: ||dt||^2 = (1 - 1/C)(a + b) - 2 x.x' (1[y=y'] - 1/C), which is at most the same with q = 2 (1 - 1/C) and
p = x.x' if y = y', p = -|x.x'| if not. For every p both grow with a and b, so that a = b = R^2, p = R^2 cos is worst:
    ||dt||^2 <= q R^2 (1 - cos),      ||dA||_F^2 <= 2 R^4 (1 - cos^2).
A is sent as its upper triangle, off the diagonal times sqrt 2, whose L2 norm is the Frobenius norm.
Pure: t and A have spherical Laplace noises of their own, calibrated together.
1. Let cos = cos 2x, 0 <= x <= pi/2. Then ||dt|| <= sqrt(2q) R sin x and ||dA|| <= sqrt 2 R^2 sin 2x. A record that
   moves t most, at x = pi/2, leaves A where it is.
2. The noise of t is that of epsilon_t for sqrt(2q) R, and that of A is that of epsilon_A for sqrt 2 R^2. The grids take
   1/128 of either for their dithers, and the rest, c = 127/128, for the ideal sums. For these the logarithms of the
   ratios of densities add up: at most c (epsilon_t sin x + epsilon_A sin 2x).
3. Let epsilon_t = f E and epsilon_A = (1 - f) E. The sum is at most c E F, F = max over x of f sin x + (1 - f) sin 2x,
   which is where f cos x + 2 (1 - f) cos 2x = 0, that is, cos x = 4 (1 - f) / (f + sqrt(f^2 + 32 (1 - f)^2)).
4. Given the ideal sums, the dithers cost E / 128 whatever the data. All in all that is E (c F + 1/128), and E is chosen
   so that this is epsilon. F is 0.88 for f = 1/2: noise is 12 % less than for E = epsilon.
5. Float errors add at most r to ||dt|| and ||dA|| over their bounds, r as below, so that F + r takes the place of F.
Gaussian: (t, A sqrt(q/2) / R) is released as one vector. Its difference squared is at most q R^2 (1 - cos + 1 - cos^2),
which is largest at cos = -1/2, so that its sensitivity is 3/2 sqrt(q) R. For t alone it would be sqrt 2 sqrt(q) R: a
record cannot move both most at once, and A comes at 6 % more noise.
Units: where a person or a party is the unit, its m records weigh 1/m each. What is bounded above is a norm of (dt, dA),
or a sum of two, so it is no larger for the mean of a unit's terms (`methods.cohort`, steps 1 to 4).
Floats: summing m terms errs by at most gamma_m times the sum of the terms' norms (Higham 2002, section 3.1); that is
added to the sensitivity twice, and is a share r of it at most. The grid's noise is for the sum of both
(`privacy.noise.grid`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from tacit.data.block import BLOCK_ROWS, WeightedBlock
from tacit.data.table import Table
from tacit.federation.reply import Noised, Sealed
from tacit.federation.seat import Seat
from tacit.federation.step import step
from tacit.methods.cohort import Cohort, Promise, bound_of
from tacit.privacy.noise.discrete import discrete_laplace
from tacit.privacy.noise.grid import DITHER_SHARE, NoiseGrid, VectorSum
from tacit.rand import Rng
from tacit.unit import Unit

Floats = npt.NDArray[np.float64]

SLOPE = 0.1532041248239362
"""h: the integral of m (sigma(m) - 1/2) over that of m^2, both on [-4, 4]."""

MARGIN = 4.0
"""The margin of a row of norm R in a model as one expects it, ||w|| = 4/R."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public facts of one run, as every party derives them.

    `l2` is the regularisation of the sum over all records; as the document prints it, of each party's own sum.
    `rounds` is 1, but for the document's calibration.
    """

    cohort: Cohort
    promise: Promise
    l2: float
    rounds: int

    @property
    def width(self) -> int:
        """k, the features with the constant."""
        return self.cohort.n_features + (self.cohort.constant != 0)

    @property
    def n_linear(self) -> int:
        """How many numbers t has."""
        return self.width if self.cohort.n_classes == 2 else self.width * self.cohort.n_classes

    @property
    def n_square(self) -> int:
        """How many numbers A has."""
        return self.width * (self.width + 1) // 2

    @property
    def curvature(self) -> float:
        """What A is multiplied by in the quadratic: h, or 4 h / C."""
        return SLOPE if self.cohort.n_classes == 2 else 4 * SLOPE / self.cohort.n_classes

    @property
    def spread(self) -> float:
        """q of the proof."""
        return 0.5 if self.cohort.n_classes == 2 else 2 * (1 - 1 / self.cohort.n_classes)

    @property
    def _rounding(self) -> float:
        """How far float sums may be off, relative to the sum of the terms' norms, for both neighbours together."""
        n, n_parties = self.cohort.n_units, self.cohort.n_parties
        return 2 * (BLOCK_ROWS + self.cohort.most_rows / BLOCK_ROWS + n_parties + 24) * 2.0**-52 * n

    @property
    def square_unit(self) -> float:
        """What A is divided by before its noise is drawn: R sqrt(2/q) where it shares one noise with t."""
        return 1.0 if self.promise.is_pure else self.cohort.row_norm * math.sqrt(2 / self.spread)

    @cached_property
    def linear_share(self) -> float:
        """f: the share of E that t has, in thousandths.

        The noise of t has variance Delta_t^2 (n_t + 1) / epsilon_t^2 a coordinate; that of A enters the model's
        equation curvature A w = t with ||w|| = 4/R, as (curvature ||w||)^2 / 2 of its own. f makes the sum least.
        """
        of_t = 2 * self.spread * self.cohort.row_norm**2 * (self.n_linear + 1)
        of_A = (self.curvature * MARGIN * self.cohort.row_norm) ** 2 * (self.n_square + 1)
        shares = np.arange(1, 1000) / 1000
        variances = [(of_t / f**2 + of_A / (1 - f) ** 2) * joint_reach(f) ** 2 for f in shares.tolist()]
        return float(shares[np.argmin(variances)])

    @property
    def epsilon_of_both(self) -> float:
        """E: what t and A have together. It is above epsilon, since no record moves both most."""
        reach = joint_reach(self.linear_share) + self._rounding
        return self.promise.epsilon / ((1 - DITHER_SHARE) * reach + DITHER_SHARE)

    @cached_property
    def grids(self) -> tuple[NoiseGrid, ...]:
        """Where the sums are rounded to, and what noise each party adds: of t and A, or of both in one."""
        R, q = self.cohort.row_norm, self.spread
        if not self.promise.is_pure:
            joint = self._sum(self.n_linear + self.n_square, 1.5 * math.sqrt(q) * R, R * max(1.0, R / self.square_unit))
            return (self.cohort.check_rounding(self.promise.grid(joint)),)
        totals = self._sum(self.n_linear, math.sqrt(2 * q) * R, R), self._sum(self.n_square, math.sqrt(2) * R**2, R**2)
        shares = self.linear_share, 1 - self.linear_share
        return tuple(
            replace(self.promise, epsilon=share * self.epsilon_of_both).grid(total)
            for total, share in zip(totals, shares, strict=True)
        )

    def _sum(self, dimension: int, sensitivity: float, term: float) -> VectorSum:
        """`term` bounds the norm of one record's contribution."""
        return self.cohort.total(
            dimension=dimension,
            sensitivity=sensitivity * (1 + 1e-12) + self._rounding * term,
            value_bound=1.01 * self.cohort.n_units * term,
            norm_bound=1.5 * self.cohort.n_largest * term,  # of t and A together: sqrt(2) for each record, and rounding
        )

    @property
    def noise_stds(self) -> tuple[float, float]:
        """The standard deviation of the noise on an entry of t, and on one on the diagonal of A."""
        return self.grids[0].noise_std, self.grids[-1].noise_std * self.square_unit

    def pack(self, t: Floats, A: Floats) -> Floats:
        """t, and the upper triangle of A in its unit, off the diagonal times sqrt 2."""
        rows, columns = np.triu_indices(self.width)
        return np.concatenate(
            [t.ravel(), A[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2)) / self.square_unit]
        )

    def unpack(self, opened: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
        """t of shape (1, k) or (C, k) and A from the opened integers: the inverse of `pack` and rounding."""
        parts, start = [], 0
        for grid in self.grids:
            parts.append(grid.from_grid(opened[start : start + grid.total.dimension]))
            start += grid.total.dimension
        flat = np.concatenate(parts)
        rows, columns = np.triu_indices(self.width)
        A = np.zeros((self.width, self.width))
        A[rows, columns] = flat[self.n_linear :] * np.where(rows == columns, 1.0, math.sqrt(0.5)) * self.square_unit
        return flat[: self.n_linear].reshape(-1, self.width), np.triu(A) + np.triu(A, 1).T


def joint_reach(share: float) -> float:
    """F: the most that a record moves t and A together, each over its own bound, with the weights f and 1 - f."""
    cos = 4 * (1 - share) / (share + math.sqrt(share**2 + 32 * (1 - share) ** 2))
    sin = math.sqrt(1 - cos**2)
    return (share * sin + (1 - share) * 2 * sin * cos) * (1 + 1e-12)


@step("functional-mechanism/sums", version=3, plan=Plan, seated=True)
def noisy_sums(table: Table, plan: Plan, *, rng: Rng, seat: Seat | None = None) -> Sealed:
    """This party's t and A, noised and sealed."""
    party = seat.party if seat is not None else None
    share = plan.cohort.share(party)
    vector = share * plan.pack(*statistics(table, plan.cohort.constant, plan.cohort.unit))
    addends, start = [], 0
    for grid in plan.grids:
        addends.append(grid.to_grid(vector[start : start + grid.total.dimension], rng=rng))
        start += grid.total.dimension
    return Sealed(
        addend=np.concatenate(addends),
        event=plan.cohort.cost(plan.promise.event(), party),
        n_parties=plan.grids[0].total.least,
        bound=bound_of(*plan.grids),
    )


@step("functional-mechanism/paper", version=2, plan=Plan)
def paper_model(table: Table, plan: Plan, *, rng: Rng) -> Noised:
    """The document's local step: perturb this party's own quadratic, and tell where its gradient is zero."""
    scales = None if plan.promise.is_exact else paper_scales(table.n_columns, plan.promise.epsilon)
    theta = paper_minimum(*statistics(table, plan.cohort.constant), scales, plan.l2, rng=rng)
    return Noised({"theta": theta}, replace(plan.promise, calibration="paper").event())


def paper_minimum(t: Floats, A: Floats, scales: tuple[float, float] | None, l2: float, *, rng: Rng) -> Floats:
    """Where the gradient of the document's quadratic is zero, with Laplace noise of these scales on degrees 1 and 2."""
    # l_1''(0) / 2! = 1/8 in (34); softmax at equal scores has 1 / (2 C). A monomial w_i w_j, i < j, has the factor 2.
    M = A / (8 if t.ndim == 1 else 2 * len(t)) * (2 - np.eye(len(A)))
    rows, columns = np.triu_indices(len(A))
    if scales is not None:
        first, second = scales
        t = t + laplace(first, t.shape, rng=rng)
        if second:
            M[rows, columns] += laplace(second, rows.shape, rng=rng)
    Q = np.triu(M) + np.triu(M).T + l2 * np.eye(len(A))
    theta: Floats = np.linalg.lstsq(Q, np.atleast_2d(t).T, rcond=None)[0].T
    return theta


def paper_scales(n_features: int, epsilon: float) -> tuple[float, float]:
    """The scales of the document's noise on degree 1, (35), and on degree 2 by its rule 2 (J + 1) max ||.||_1 [R]."""
    return 9 * n_features / (2 * epsilon), 6 * n_features**2 / 8 / epsilon


def laplace(scale: float, shape: tuple[int, ...], *, rng: Rng) -> Floats:
    """Laplace noise, for the document's calibration only: its floats are not fit for a private release."""
    return discrete_laplace(2.0**30, shape, rng=rng) * (scale * 2.0**-30)


def statistics(table: Table, constant: float, unit: Unit = "record") -> tuple[Floats, Floats]:
    """t and A of a party's records, in one pass: t of shape (k,), or (C, k) for more than two classes.

    The records of a `unit` weigh 1 together.
    """
    k = table.n_columns + (constant != 0)
    return table.stream(unit).total(partial(_statistics, constant=constant, k=k, C=table.n_classes))


def _statistics(blocks: Iterable[WeightedBlock], *, constant: float, k: int, C: int) -> tuple[Floats, Floats]:
    t, A = np.zeros(k if C == 2 else (C, k)), np.zeros((k, k))
    for X, y, weights in blocks:
        root = np.sqrt(weights)
        rows = (np.column_stack([X, np.full(len(X), constant)]) if constant else X) * root[:, None]
        labels = y - 0.5 if C == 2 else (np.eye(C)[y] - 1 / C).T
        t += (labels * root) @ rows
        A += rows.T @ rows
    return t, A
