"""What a party of a private evaluation is asked: how many of its records fall into each cell, with noise.

The proof that the noise suffices is in `method`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from tacit.data.block import Block
from tacit.data.table import Table
from tacit.errors import PolicyRefusal
from tacit.federation.reply import Sealed
from tacit.federation.step import step
from tacit.methods.cohort import Cohort, Promise, bound_of
from tacit.privacy.noise.discrete import discrete_laplace
from tacit.privacy.noise.grid import NoiseGrid, VectorSum
from tacit.privacy.noise.norm import laplace_norm
from tacit.rand import Rng
from tacit.secure.bound import Bound, NormBound

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class LinearModel:
    """The public model that is measured: of shapes (1, d) and (1,) for two classes, (C, d) and (C,) for more."""

    coef: Floats
    intercept: Floats


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public facts of one evaluation, as every party derives them."""

    cohort: Cohort
    promise: Promise
    bins: int

    @property
    def n_cells(self) -> int:
        """Two classes: bins of the score for each label. More: wrong and right."""
        return 2 * self.bins if self.cohort.n_classes == 2 else 2

    @property
    def total(self) -> VectorSum:
        """The public facts about the sum of histograms."""
        return self.cohort.total(
            dimension=self.n_cells,
            sensitivity=math.sqrt(2),
            value_bound=float(self.cohort.n_largest),
            norm_bound=float(self.cohort.n_largest),
        )

    @cached_property
    def grid(self) -> NoiseGrid:
        """Where counts are rounded to and what noise is added, if it is not each party's own discrete Laplace noise."""
        return self.promise.grid(self.total)

    @cached_property
    def laplace_scale(self) -> float | None:
        """The scale of every party's own discrete Laplace noise; None where a grid's shares are less."""
        epsilon = self.promise.epsilon
        if not self.promise.is_pure or self.promise.is_exact:
            return None
        scale = 2 / epsilon * (1 + 2.0**-50)
        own_std = scale * math.sqrt(2 * self.cohort.n_parties)
        # 2 (d + 1) / epsilon^2 is the variance of spherical noise; only then a grid is worth looking at.
        if own_std**2 <= 2 * (self.n_cells + 1) / epsilon**2 or own_std <= self.grid.noise_std:
            return scale
        return None

    @property
    def noise_std(self) -> float:
        """The standard deviation of each opened cell."""
        scale = self.laplace_scale
        if scale is None:
            return self.grid.noise_std
        a = math.exp(-1 / scale)
        return math.sqrt(2 * a * self.cohort.n_parties) / -math.expm1(-1 / scale)  # var = 2 a / (1 - a)^2

    def noised(self, counts: Ints, *, rng: Rng) -> Ints:
        """A party's histogram with its noise inside, on the grid."""
        scale = self.laplace_scale
        if scale is None:
            return self.grid.to_grid(counts.astype(np.float64), rng=rng)
        return counts + discrete_laplace(scale, counts.shape, rng=rng)

    @property
    def bound(self) -> Bound:
        """How long a party's noised histogram is at most."""
        if self.laplace_scale is None:
            return bound_of(self.grid)
        noise = laplace_norm(self.laplace_scale, self.n_cells)
        return (NormBound(size=self.n_cells, norm=math.ceil(self.cohort.n_largest + noise)),)

    def counts(self, opened: Ints) -> Floats:
        """The opened sum as numbers of records."""
        return opened.astype(np.float64) if self.laplace_scale is not None else self.grid.from_grid(opened)


@step("private-evaluation/histogram", version=3, plan=Plan, values=LinearModel)
def party_histogram(table: Table, plan: Plan, model: LinearModel, *, rng: Rng) -> Sealed:
    """Seal how many of this party's records fall into each cell, with its share of the noise."""
    check_model(plan.cohort, model)
    counts = table.stream().total(partial(histogram, model=model, bins=plan.bins, n_cells=plan.n_cells))
    addend = plan.noised(counts, rng=rng)
    return Sealed(addend=addend, event=plan.promise.event(), n_parties=plan.total.least, bound=plan.bound)


def check_model(cohort: Cohort, model: LinearModel) -> None:
    """Refuse a model that is not of the study's columns and classes."""
    n_scores = 1 if cohort.n_classes == 2 else cohort.n_classes
    is_fitting = model.coef.shape == (n_scores, cohort.n_features) and model.intercept.shape == (n_scores,)
    if not is_fitting or not (np.isfinite(model.coef).all() and np.isfinite(model.intercept).all()):
        raise PolicyRefusal("the model to measure does not fit the study's columns and classes, or is not finite")


def histogram(blocks: Iterable[Block], *, model: LinearModel, bins: int, n_cells: int) -> Ints:
    """How many records fall into each cell."""
    counts = np.zeros(n_cells, dtype=np.int64)
    for X, y in blocks:
        counts += np.bincount(cells(scores_of(X, model), y, bins), minlength=n_cells)
    return counts


def scores_of(X: Floats, model: LinearModel) -> Floats:
    """The scores of each row, of shape (n, n_scores): a column at a time, never as a product of matrices.

    Guarantees:
        A row's scores depend on that row and on the model, to the last bit, and on no other row.

    Proof.
    1. A product of matrices adds a row's terms in an order that depends on where the row stands: the last few rows of
       a block take another way through the library than the others.
    2. So the last bits of a row's score would depend on how many rows there are. At a model that puts rows exactly
       between two cells, one record more or less would move others.
    3. Here each score is the same chain of multiplications and additions of single numbers, which IEEE 754 rounds in
       one way. What a row's neighbours are does not enter it.
    """
    scores = np.tile(model.intercept, (len(X), 1))
    with np.errstate(over="ignore", invalid="ignore"):  # a huge coefficient is no reason to tell anything
        for column, weights in zip(X.T, model.coef.T, strict=True):
            scores += column[:, None] * weights
    return scores


def cells(scores: Floats, y: Ints, bins: int) -> Ints:
    """The cell of each record. Two classes, one score: bin + bins * label; bin k holds k/bins < p <= (k+1)/bins.

    More classes: 1 if the largest score is that of the label, 0 otherwise.
    """
    if scores.shape[1] > 1:
        right: Ints = (np.argmax(scores, axis=1) == y).astype(np.int64)
        return right
    p = np.nan_to_num(expit(scores[:, 0]), nan=0.5)
    # Closed above, so that p = 1/2 lies below it: a tie is predicted as the first class.
    k: Ints = np.clip(np.ceil(p * bins).astype(np.int64) - 1, 0, bins - 1)
    return k + bins * y
