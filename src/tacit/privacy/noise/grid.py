"""Noise that parties make together: each adds a share to its own vector, on a public grid, and only the sum is opened.

A *grid* turns a party's float vector into integers, noise inside (`to_grid`), and the opened sum of them back into
floats (`from_grid`). The integers of all parties are added exactly, by a secure sum; what opening the sum costs is
`event()`. Of the parties in the sum, `colluders` may pool what they know: the noise of the others suffices. Where a sum
may be opened without some parties, `quorum` says how many are in it at least.

    pure_grid           spherical Laplace shares and a dither          Pure(epsilon)
    gaussian_grid       discrete Gaussian shares for (epsilon, delta)  Gaussian(noise_multiplier), exactly
    mu_grid             the same for a given mu                        Gaussian(noise_multiplier = 1 / mu)
    exact_grid          no noise                                       NotPrivate
    calibrated_grid     one of these, as epsilon and delta say         as `calibrated_event` tells beforehand

Bounds are public and declared, never read from data: a coordinate beyond `value_bound` is clipped to it (which brings
vectors no further apart) and one that is not a number counts as 0. No call fails or takes another path because of a
value. Steps are powers of two, so that dividing by one is exact, and sums stay below 2**62 but for a chance of 2**-100.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import SettingError
from tacit.privacy.accounting import mu_for
from tacit.privacy.event import Event, Gaussian, NotPrivate, Pure
from tacit.privacy.guarantee import check_epsilon
from tacit.privacy.noise.continuous import LEAST_PARAMETER, share_parameter
from tacit.privacy.noise.discrete import LARGEST_SCALE, discrete_gaussian, discrete_laplace
from tacit.privacy.noise.norm import gaussian_norm, laplace_norm, spherical_norm
from tacit.privacy.noise.spherical import noise_bound, share_error, spherical_laplace_shares
from tacit.rand import Rng

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DITHER_SHARE = 1 / 128
"""Of a pure epsilon: for what rounding and floats may tell."""

_FINE, _CHECKED = 2.0**50, 2.0**57  # of a sum without noise; of its norm times the number of coordinates
_HALF_RANGE = 2.0**61  # for the values and their main noise; as much again is left for dither and tails
_DITHERING = 70  # honest parties expected to add a dither, if there are as many: exp(-70) < 2**-100


@dataclass(frozen=True, kw_only=True)
class VectorSum:
    """The public facts about a sum of one vector from each party."""

    dimension: int
    sensitivity: float  # how far one unit of privacy moves one party's vector, as computed, in L2 norm
    value_bound: float  # no coordinate of a party's vector is larger in size
    n_parties: int = 1
    colluders: int = 0  # how many parties may pool what they know
    quorum: int | None = None  # how many parties are in the sum at least; None: all
    norm_bound: float | None = None  # no party's vector is longer in L2 norm; None: what value_bound implies

    def __post_init__(self) -> None:
        """Refuse what no grid could honour."""
        if self.dimension < 1:
            raise SettingError(f"dimension = {self.dimension} must be at least 1")
        for name in ("sensitivity", "value_bound"):
            value = getattr(self, name)
            if not 2.0**-400 <= value <= 2.0**400:
                raise SettingError(f"{name} = {value!r} must be positive, finite and of ordinary size; declare a bound")
        if self.quorum is not None and not 1 <= self.quorum <= self.n_parties:
            raise SettingError(f"quorum = {self.quorum} must be at least 1 and at most n_parties = {self.n_parties}")
        if self.honest < 1 or self.colluders < 0:
            raise SettingError(
                f"colluders = {self.colluders} of the {self.least} parties in a sum: at least one party must be honest"
            )

    @property
    def longest(self) -> float:
        """No party's vector is longer."""
        return min(math.sqrt(self.dimension) * self.value_bound, self.norm_bound or math.inf)

    @property
    def least(self) -> int:
        """How many parties are in the sum at least."""
        return self.n_parties if self.quorum is None else self.quorum

    @property
    def honest(self) -> int:
        """How many parties add noise that the others don't know, at least."""
        return self.least - self.colluders


@dataclass(frozen=True, kw_only=True)
class NoiseGrid(ABC):
    """Integers of a public step, with a party's noise inside."""

    total: VectorSum

    @property
    @abstractmethod
    def step(self) -> float:
        """The grid's step, a power of two."""

    @property
    @abstractmethod
    def noise_std(self) -> float:
        """The standard deviation of each coordinate of the opened sum, in data units, if every party adds its share."""

    @property
    def norm_bound(self) -> int:
        """No party's integers are longer, noise included, but for a chance below 2**-44."""
        rounding = 0.5 * math.sqrt(self.total.dimension)
        return math.ceil((self.total.longest / self.step + rounding + self._noise_norm) * (1 + 2.0**-30)) + 1

    @property
    def _noise_norm(self) -> float:
        """How long a party's noise is at most, in steps, but for a chance below 2**-44; there may be none."""
        return 0.0

    @abstractmethod
    def event(self) -> Event:
        """What opening the sum of all parties' integers costs."""

    @abstractmethod
    def _noised(self, values: Floats, rng: Rng) -> Ints:
        """Integers for clipped values, a party a row."""

    def to_grid(self, value: ArrayLike, *, rng: Rng) -> Ints:
        """A party's vector as noised integers; or, for simulations, one party a row.

        Guarantees:
            The sum over the parties costs `event()` to open; one party's integers by themselves are not for anybody's
            eyes. Depends on nothing but the value and `rng`, and never fails because of a value.
        """
        values = np.asarray(value, dtype=np.float64)
        if values.ndim not in (1, 2) or values.shape[-1] != self.total.dimension:
            raise SettingError(
                f"a vector of {self.total.dimension} numbers was declared; this has shape {values.shape}"
            )
        bound = self.total.value_bound
        clipped = np.clip(np.nan_to_num(values, nan=0.0, posinf=bound, neginf=-bound), -bound, bound)
        return self._noised(np.atleast_2d(clipped), rng).reshape(values.shape)

    def from_grid(self, opened: ArrayLike) -> Floats:
        """The opened sum in data units."""
        return np.asarray(opened).astype(np.float64) * self.step


@dataclass(frozen=True, kw_only=True)
class ExactGrid(NoiseGrid):
    """No noise: rounding to a grid as fine as floats are, if an addend's bound can then still be checked."""

    @cached_property
    def step(self) -> float:
        """About 2**-50 of the largest sum; coarser in many dimensions, for `secure.bound` to be exact."""
        t = self.total
        return _power_of_two_above(max(t.n_parties * t.value_bound / _FINE, t.dimension * t.longest / _CHECKED))

    @property
    def noise_std(self) -> float:
        """None."""
        return 0.0

    def event(self) -> NotPrivate:
        """Nothing is promised."""
        return NotPrivate(why="opened exactly: no noise was asked for")

    def _noised(self, values: Floats, rng: Rng) -> Ints:
        return _round(values, self.step)


@dataclass(frozen=True, kw_only=True)
class SphericalGrid(NoiseGrid):
    """Pure epsilon: party j sends y_j = round((v_j + X_j) / step) + D_j.

    X_j is a share of spherical Laplace noise of scale s = sensitivity / epsilon_1; the dither D_j is discrete Laplace,
    or 0 with a chance of 1 - 70/n if there are n > 70 honest parties; epsilon is split into epsilon_1 + epsilon_3, the
    latter 1/128 of it.

    Proof. (1) The ideal, real M = sum of v_j + X_j over the honest parties is epsilon_1-private: it holds spherical
    Laplace noise of scale s, and perhaps more that is independent. What colluders send is known to them. (2) Every
    coordinate of the honest sum of the rounded, computed values is within b = K (1/2 + error / step) of M / step,
    whatever the data, K parties in all; `error` bounds the float errors of a share and of adding it. (3) Given M, the
    honest sum of roundings is an integer vector that may depend on the data, but any two of its possible values are
    within 2 b d in L1 norm. One honest dither of scale 2 b d / epsilon_3 makes that epsilon_3-private, given M; the
    others are independent. (4) M, and then the sum given M, compose to epsilon_1 + epsilon_3; M itself is not even
    released. All this while the samplers' coupling holds and some honest party dithers, which fails with probability
    below 2**-100 a coordinate and (1 - 70/n)**n < 2**-100 a sum, whatever the data.
    """

    epsilon: float

    def __post_init__(self) -> None:
        """Refuse bounds for which no step will do."""
        check_epsilon(self.epsilon)
        if math.isinf(self.epsilon):
            raise SettingError("epsilon = inf adds no noise: use exact_grid")
        if self.dither_scale > LARGEST_SCALE or self._dither_std > 0.5 * self._share_std:
            raise SettingError(
                f"no grid is fine enough for epsilon = {self.epsilon}, value_bound = {self.total.value_bound}, "
                f"n_parties = {self.total.n_parties} and dimension = {self.total.dimension}: clip to less, let fewer "
                f"parties or coordinates take part, or allow a larger epsilon"
            )

    @property
    def noise_scale(self) -> float:
        """The scale s of the spherical Laplace noise, in data units."""
        return self.total.sensitivity / ((1 - DITHER_SHARE) * self.epsilon) * (1 + 2.0**-50)

    @cached_property
    def step(self) -> float:
        """So fine that the dither's scale is below s / 2**10, if sums then fit and floats are that good."""
        t = self.total
        wanted = self.noise_scale / 2.0**10 * DITHER_SHARE * self.epsilon / (2 * t.n_parties * t.dimension)
        fits = t.n_parties * (t.value_bound + self._share_bound) / _HALF_RANGE
        return max(_power_of_two_below(wanted), _power_of_two_above(max(fits, 2 * self._float_error)))

    @cached_property
    def dither_scale(self) -> float:
        """The scale 2 b d / epsilon_3 of the discrete Laplace noise, in steps."""
        b = self.total.n_parties * (0.5 + self._float_error / self.step)
        return 2 * b * self.total.dimension / (DITHER_SHARE * self.epsilon) * (1 + 2.0**-50)

    @property
    def noise_std(self) -> float:
        """Of shares, dither and rounding together."""
        return math.hypot(self._share_std, self._dither_std, math.sqrt(self.total.n_parties / 12) * self.step)

    def event(self) -> Pure:
        """Pure epsilon."""
        return Pure(epsilon=self.epsilon)

    def _noised(self, values: Floats, rng: Rng) -> Ints:
        shares = spherical_laplace_shares(
            self.noise_scale, self.total.dimension, self.total.honest, len(values), rng=rng
        )
        shares = np.clip(shares, -self._share_bound, self._share_bound)  # part of the coupling's rare event
        integers = _round(values + shares, self.step)
        dithers = rng.below(self.total.honest, len(values)) < _DITHERING  # all, if there are no more than that
        integers[dithers] += discrete_laplace(self.dither_scale, integers[dithers].shape, rng=rng)
        return integers

    @property
    def _noise_norm(self) -> float:
        d, honest = self.total.dimension, self.total.honest
        return spherical_norm(self.noise_scale / self.step, d, honest) + laplace_norm(self.dither_scale, d)

    @property
    def _share_std(self) -> float:
        """E ||X||**2 = d (d+1) s**2 for the sum of `honest` shares."""
        t = self.total
        return self.noise_scale * math.sqrt((t.dimension + 1) * t.n_parties / t.honest)

    @property
    def _dither_std(self) -> float:
        dithering = self.total.n_parties * min(1, _DITHERING / self.total.honest)
        return math.sqrt(2 * dithering) * self.dither_scale * self.step

    @cached_property
    def _share_bound(self) -> float:
        return noise_bound(self.noise_scale, self.total.dimension, self.total.honest)

    @cached_property
    def _float_error(self) -> float:
        adding = 2.0**-52 * (self.total.value_bound + self._share_bound)
        return share_error(self.noise_scale, self.total.dimension, self.total.honest) + adding


@dataclass(frozen=True, kw_only=True)
class GaussianGrid(NoiseGrid):
    """mu-Gaussian privacy: party j sends round(v_j / step) plus discrete Gaussian noise; the honest ones' suffices.

    Rounding moves the difference of two vectors by at most 1 a coordinate, so the sensitivity in steps is at most
    D = sensitivity / step + sqrt(d). The shares do as well as continuous noise of D / mu steps, so that the exact
    profile of Gaussian noise may be charged: `privacy.noise.continuous` has the proof and its conditions.
    """

    mu: float

    def __post_init__(self) -> None:
        """Refuse bounds for which no step will do."""
        if not 1e-30 < self.mu < math.inf:
            raise SettingError(f"mu = {self.mu} must be above 1e-30 and finite; use exact_grid for no noise")
        fine = LEAST_PARAMETER < self.share_parameter <= LARGEST_SCALE
        if not fine or self.step * self._root_d > self.total.sensitivity:
            raise SettingError(
                f"no grid is fine enough for value_bound = {self.total.value_bound}, sensitivity = "
                f"{self.total.sensitivity}, n_parties = {self.total.n_parties} and dimension = {self.total.dimension}: "
                f"clip to less, or let fewer parties or coordinates take part"
            )

    @cached_property
    def step(self) -> float:
        """So fine that rounding adds less than 2**-20 to the sensitivity, if sums then fit."""
        t = self.total
        share_std = t.sensitivity / (self.mu * math.sqrt(t.honest))
        wanted = min(t.sensitivity * 2.0**-20 / self._root_d, share_std * 2.0**-10)
        # A discrete Gaussian exceeds 14 times its parameter with probability below 2**-140.
        fits = t.n_parties * (t.value_bound + 16 * share_std) / _HALF_RANGE
        return max(_power_of_two_below(wanted), _power_of_two_above(max(fits, share_std * 2.0**-39)))

    @cached_property
    def share_parameter(self) -> float:
        """sigma of each party's discrete Gaussian, in steps."""
        return share_parameter((self.total.sensitivity / self.step + self._root_d) / self.mu, self.total.honest)

    @property
    def noise_std(self) -> float:
        """Of the shares and the rounding together."""
        return math.sqrt(self.total.n_parties * (self.share_parameter**2 + 1 / 12)) * self.step

    def event(self) -> Gaussian:
        """That of mu, which the honest parties' noise keeps with rounding and the adding up of shares included."""
        return mu_event(self.mu)

    @property
    def _noise_norm(self) -> float:
        return gaussian_norm(self.share_parameter, self.total.dimension)

    def _noised(self, values: Floats, rng: Rng) -> Ints:
        return _round(values, self.step) + discrete_gaussian(self.share_parameter, values.shape, rng=rng)

    @property
    def _root_d(self) -> float:
        return math.sqrt(self.total.dimension)


def mu_event(mu: float) -> Gaussian:
    """The event of a release that is mu-Gaussian private."""
    return Gaussian(noise_multiplier=1 / mu)


def calibrated_grid(total: VectorSum, *, epsilon: float, delta: float) -> NoiseGrid:
    """The grid whose opened sum keeps (epsilon, delta).

    An infinite epsilon asks for no noise. `delta` = 0 asks for pure epsilon, and so for spherical Laplace noise; any
    other delta for discrete Gaussian noise.
    """
    return pure_grid(total, epsilon=epsilon) if delta == 0 else gaussian_grid(total, epsilon=epsilon, delta=delta)


def calibrated_event(epsilon: float, delta: float) -> Event:
    """What opening the sum of a `calibrated_grid` costs, whatever is summed."""
    check_epsilon(epsilon)
    if math.isinf(epsilon):
        return NotPrivate(why="epsilon is infinite: no noise is added")
    return Pure(epsilon=epsilon) if delta == 0 else mu_event(mu_for(epsilon, delta))


def pure_grid(total: VectorSum, *, epsilon: float) -> NoiseGrid:
    """Noise for pure epsilon-differential privacy of the opened sum; none if epsilon is infinite."""
    check_epsilon(epsilon)
    return exact_grid(total) if math.isinf(epsilon) else SphericalGrid(total=total, epsilon=epsilon)


def gaussian_grid(total: VectorSum, *, epsilon: float, delta: float) -> NoiseGrid:
    """Noise for (epsilon, delta)-differential privacy of the opened sum; none if epsilon is infinite."""
    check_epsilon(epsilon)
    return exact_grid(total) if math.isinf(epsilon) else mu_grid(total, mu=mu_for(epsilon, delta))


def mu_grid(total: VectorSum, *, mu: float) -> GaussianGrid:
    """Noise for mu-Gaussian privacy of the opened sum; mu is the sensitivity over the noise."""
    return GaussianGrid(total=total, mu=mu)


def exact_grid(total: VectorSum) -> ExactGrid:
    """No noise: NOT PRIVATE."""
    return ExactGrid(total=total)


def _round(values: Floats, step: float) -> Ints:
    rounded: Ints = np.rint(values / step).astype(np.int64)
    return rounded


def _power_of_two_below(x: float) -> float:
    """The largest power of two that is at most x."""
    return math.ldexp(1.0, math.frexp(x)[1] - 1)


def _power_of_two_above(x: float) -> float:
    """The smallest power of two that is above x."""
    return math.ldexp(1.0, math.frexp(x)[1])
