"""Made-up rows that stand in for the records: columns of the kinds that the schema names, with the moments opened.

A normal population says badly how a column responds that is 1 in one record of twenty, or that is near 0 with a few
large values. The schema says which columns are 0 or 1, and what bounds the others have. So rows are made up:

1. *Moments.* The opened M belongs to rows u = a g. In terms of z, B^-1 M B^-1 has the means and squares of records that
   count a^2 each.
2. *Columns.* One that is 0 or 1 has its mean as its chance. The columns of a category have at most one 1. A number
   between bounds has the beta law with its mean and variance: uniform, bell-shaped or piled up at a bound. A number
   without bounds is normal.
3. *Together.* All columns are made of normal numbers, correlated as the columns are. A correlation that noise could
   have made is drawn towards 0 (Wiener's rule).
4. *Weights.* Rows that were made up get their own weights a. Means, variances and correlations are corrected a few
   times, until those of the weighted rows are nearly as they were opened.

The normal numbers are the same in every run, so that what follows is a function of what was opened. Nothing is read but
the schema and opened sums: post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtr, ndtri

from tacit.data.encoding import clip_rows
from tacit.data.feature import Categorical, Numeric
from tacit.data.schema import Schema
from tacit.methods.newton.statistic import shaped
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]

_FLOOR = 0.4  # of the noise's spectral norm: no direction of rows is taken to vary less
_WORK = 400_000  # numbers of made-up rows
_LEAST_ROWS, _MOST_ROWS = 4_000, 20_000
_CORRECTIONS = 5
_MOST_CORRECTED = 3.0  # at once
_LEAST_CHANCE = 1e-4
_LEAST_VARIANCE = 1e-7  # of a column between 0 and 1
_LEVELS = ndtr(np.linspace(-4.5, 4.5, 181))


@dataclass(frozen=True)
class _Kinds:
    """Of each encoded column, what it can be."""

    bounded: npt.NDArray[np.bool_]  # a number in [-1, 1]
    free: npt.NDArray[np.bool_]  # a number without bounds; all others are 0 or 1
    groups: tuple[tuple[int, int], ...]  # the columns of each category, from and to

    @cached_property
    def extended(self) -> Floats:
        """Takes columns to all columns and, for each category, what its columns leave: minus their sum."""
        left = np.zeros((len(self.groups), len(self.free)))
        for row, (start, end) in zip(left, self.groups, strict=True):
            row[start:end] = -1.0
        return np.concatenate([np.eye(len(self.free)), left])

    def apart(self, correlation: Floats) -> Floats:
        """Correlations, none of them within a category."""
        told = correlation.copy()
        for extra, (start, end) in enumerate(self.groups, start=len(self.free)):
            own = [*range(start, end), extra]
            told[np.ix_(own, own)] = 0.0
        np.fill_diagonal(told, 1.0)
        return told

    @classmethod
    def of(cls, schema: Schema) -> _Kinds:
        bounded: list[bool] = []
        free: list[bool] = []
        groups = []
        for feature in schema.features:
            start, width = len(bounded), len(feature.columns(schema.coding))
            is_number = isinstance(feature, Numeric)
            has_bounds = math.isfinite(feature.largest_square)
            bounded += [is_number and has_bounds] + [False] * (width - 1)
            free += [is_number and not has_bounds] + [False] * (width - 1)
            if isinstance(feature, Categorical):
                groups.append((start, start + width))
        return cls(np.array(bounded), np.array(free), tuple(groups))


def made_up_rows(M: Floats, M_noise: float, B: Floats, constant: float, schema: Schema) -> Floats:
    """Rows z with their constant, for second moments M of rows in the shape B with such noise on their diagonal."""
    kinds, inverse = _Kinds.of(schema), np.linalg.inv(B)
    values, vectors = np.linalg.eigh(M)
    lifted = (vectors * np.maximum(values, _FLOOR * M_noise * math.sqrt(len(M)))) @ vectors.T
    squares = inverse @ lifted @ inverse
    counted = constant**2 / max(float(squares[-1, -1]), 1e-300)  # 1 / sum a^2
    mean = counted * squares[:-1, -1] / constant
    covariance = counted * squares[:-1, :-1] - np.outer(mean, mean)
    lengths = np.linalg.norm(kinds.extended @ inverse[:-1], axis=1)
    noise = counted * M_noise / math.sqrt(2) * np.outer(lengths, lengths)
    wanted = _Marginal.of(mean, np.diag(covariance), kinds)
    together = kinds.apart(_correlations(kinds.extended @ covariance @ kinds.extended.T, noise))
    normal = _normal_numbers(_n_rows(len(B)), len(together))
    given, latent = wanted, together
    for _ in range(_CORRECTIONS):
        Z = _rows(normal @ _root(latent).T, given, kinds, constant, schema)
        weights = shaped(Z, B).weights ** 2
        given = given.corrected(wanted, _Marginal.seen(Z[:, :-1], weights, kinds), kinds)
        spread = np.atleast_2d(np.cov(Z[:, :-1], rowvar=False, aweights=weights))  # of one column it is a number
        seen = kinds.extended @ spread @ kinds.extended.T
        latent = np.clip(latent + together - kinds.apart(_correlations(seen, 0.0 * noise)), -0.99, 0.99)
    return _rows(normal @ _root(latent).T, given, kinds, constant, schema)


@dataclass(frozen=True)
class _Marginal:
    """Mean and variance of each column, those of a number in [-1, 1] as of one in [0, 1]."""

    mean: Floats
    variance: Floats

    @classmethod
    def of(cls, mean: Floats, variance: Floats, kinds: _Kinds) -> _Marginal:
        mean, variance = np.where(kinds.bounded, (mean + 1) / 2, mean), np.where(kinds.bounded, variance / 4, variance)
        return cls(mean, variance).possible(kinds)

    @classmethod
    def seen(cls, X: Floats, weights: Floats, kinds: _Kinds) -> _Marginal:
        mean = weights @ X / weights.sum()
        return cls.of(mean, weights @ (X - mean) ** 2 / weights.sum(), kinds)

    def possible(self, kinds: _Kinds) -> _Marginal:
        """What such columns can have."""
        chance = np.clip(self.mean, _LEAST_CHANCE, 1 - _LEAST_CHANCE)
        mean = np.where(kinds.free, self.mean, chance)
        most = np.where(kinds.free, np.inf, 0.98 * chance * (1 - chance))
        return _Marginal(mean, np.clip(self.variance, _LEAST_VARIANCE, most))

    def corrected(self, wanted: _Marginal, seen: _Marginal, kinds: _Kinds) -> _Marginal:
        """Nearer to what gives what is wanted."""

        def factor(one: Floats, other: Floats) -> Floats:
            told: Floats = np.clip(one / np.maximum(other, 1e-300), 1 / _MOST_CORRECTED, _MOST_CORRECTED)
            return told

        moved = self.mean + wanted.mean - seen.mean
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = self.mean / (1 - self.mean)
            odds = odds * factor(wanted.mean, seen.mean) / factor(1 - wanted.mean, 1 - seen.mean)
        mean = np.where(kinds.free, moved, odds / (1 + odds))
        return _Marginal(mean, self.variance * factor(wanted.variance, seen.variance)).possible(kinds)


def _correlations(covariance: Floats, noise: Floats) -> Floats:
    """What noise of this standard deviation leaves of correlations."""
    deviation = np.sqrt(np.maximum(np.diag(covariance), math.sqrt(2) * np.diag(noise)) + 1e-300)
    kept = np.maximum(0.0, 1 - (noise / np.maximum(np.abs(covariance), 1e-300)) ** 2)
    told: Floats = np.clip(kept * covariance / np.outer(deviation, deviation), -0.99, 0.99)
    return told


def _root(correlation: Floats) -> Floats:
    """A root of the nearest correlations that there can be."""
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 1e-6))
    told: Floats = root / np.linalg.norm(root, axis=1, keepdims=True)
    return told


def _rows(latent: Floats, given: _Marginal, kinds: _Kinds, constant: float, schema: Schema) -> Floats:
    n_columns = len(given.mean)
    Z = np.empty((len(latent), n_columns + 1))
    Z[:, -1] = constant
    for j in range(n_columns):
        if kinds.bounded[j]:
            Z[:, j] = 2 * _beta(latent[:, j], given.mean[j], given.variance[j]) - 1
        elif kinds.free[j]:
            Z[:, j] = given.mean[j] + math.sqrt(given.variance[j]) * latent[:, j]
        else:
            Z[:, j] = latent[:, j] > -ndtri(given.mean[j])
    for extra, (start, end) in enumerate(kinds.groups, start=n_columns):
        Z[:, start:end] = _category(latent[:, [*range(start, end), extra]], given.mean[start:end])
    if schema.norm_bound is not None and schema.clips_rows:
        Z[:, :-1] = clip_rows(np.ascontiguousarray(Z[:, :-1]), schema.norm_bound)[0]
    return Z


def _beta(latent: Floats, mean: float, variance: float) -> Floats:
    """Numbers in [0, 1] of the beta law with this mean and variance."""
    total = mean * (1 - mean) / variance - 1
    quantiles = np.nan_to_num(betaincinv(mean * total, (1 - mean) * total, _LEVELS), nan=mean)
    told: Floats = np.interp(ndtr(latent), _LEVELS, quantiles)
    return told


def _category(latent: Floats, chances: Floats) -> Floats:
    """At most one 1 a row, in each column with its chance: the largest of log chance + Gumbel's number."""
    chances = chances * min(1.0, (1 - _LEAST_CHANCE) / chances.sum())
    logs = np.log(np.append(chances, 1 - chances.sum()))
    chosen = np.argmax(logs - np.log(-np.log(np.clip(ndtr(latent), 1e-15, 1 - 1e-15))), axis=1)
    told: Floats = (chosen[:, None] == np.arange(len(chances))).astype(np.float64)
    return told


def _n_rows(width: int) -> int:
    return min(max(_WORK // width, _LEAST_ROWS), _MOST_ROWS)


@lru_cache(maxsize=4)
def _normal_numbers(n: int, d: int) -> Floats:
    """The same every time."""
    return Rng.seeded(b"made-up rows").generator().standard_normal((n, d))
