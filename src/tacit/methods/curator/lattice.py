"""The whole numbers of `CuratorAveraging`: a party's model, noise and factor, on a lattice for noise of a secret scale.

The noise is to have the scale s(n_min) that the smallest party needs, a falling function of its size, which nobody is
told. So each party j makes a share Z_j of noise of *unit* scale, in whole numbers z_j of 2^-36, and a whole factor f_j
with f_j 2^36 step >= s(n_j); the protocol multiplies the sum of the z_j by the smallest party's factor. The step is
so fine that rounding a factor up adds at most 2^-20 of noise.

Multiples of an unknown factor are a coarse lattice, and would leave the models' low digits bare. So every party adds a
dither to its model, D_j = U_j + q L_j: U_j uniform on q neighbouring whole numbers, q a public power of two, and L_j
discrete Laplace of scale d (2 b / q + 1) / epsilon_3, epsilon_3 being 1/128 of epsilon.

Proof. (1) The ideal M = sum of v_j + f step 2^36 Z_j over the honest parties, in real numbers, is private: pure
epsilon_1 = epsilon - epsilon_3 for shares of spherical Laplace noise (`privacy.noise.spherical`), or that of a Gaussian
with the noise multiplier stated; the factor depends on sizes alone, which replace-one leaves as they are. (2) The
lattice vector T = sum of round(v_j / step) + f z_j is within b of M / step in every coordinate, whatever the data:
b = K (1/2 + f_max e), where e bounds |z_j - 2^36 Z_j|. That is 1/2 for Gaussian shares, whose rounding is exact
(`methods.ternary.choice.rounded_gaussian`), and 1/2 + 2^36 `share_error` for the others. (3) So given M, T may still
depend on the data, but any two of its possible values differ by at most 2 b in each of d coordinates. For one honest
dither, (T + U) mod q is uniform whatever T is, and given that, the quotient moves by at most 2 b / q + 1 in each
coordinate; L makes it epsilon_3-private. The other dithers are independent. (4) M, then the sum given M, compose. All
this while the samplers' coupling holds, which fails with probability below 2^-100 a coordinate, whatever the data.

f_max is the factor of the smallest size that the plan allows, the cohort's `least_records`: a public number, not the
true minimum.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from tacit.errors import SettingError
from tacit.methods.averaging.statistic import Plan
from tacit.methods.cohort import Promise
from tacit.privacy.event import Composed, Event, Gaussian, Pure
from tacit.privacy.gaussian import gaussian_epsilon, gaussian_mu, mu_of_pure
from tacit.privacy.noise.discrete import discrete_laplace
from tacit.privacy.noise.rounded import rounded_gaussian
from tacit.privacy.noise.spherical import noise_bound, share_error, spherical_laplace_share
from tacit.rand import Rng
from tacit.secure.curator.terms import Contribution, CuratorTerms

Floats = npt.NDArray[np.float64]

_UNIT_BITS = 36  # fraction bits of a share of noise of unit scale
_FACTOR_BITS = 20  # a factor is good to one part in 2^20
_DITHER_SHARE = 1 / 128  # of epsilon
_UP = 1 + 2.0**-45


@dataclass(frozen=True)
class Lattice(ABC):
    """Whole numbers of a public step, and the noise that a party brings to them."""

    plan: Plan

    @property
    @abstractmethod
    def step(self) -> float:
        """The lattice's step in data units, a power of two."""

    @property
    def selects(self) -> Literal["factor", "noise"]:
        """What the protocol takes from the smallest party."""
        return "factor"

    @property
    def factor_bound(self) -> int:
        """The largest factor that the plan allows."""
        return 1

    @property
    def noise_bound(self) -> int:
        """The largest size of a number in a party's noise."""
        return 1

    @property
    def dither_bound(self) -> int:
        """What no dither exceeds, but for a chance below 2^-100."""
        return 0

    def factor(self, n_records: int) -> int:
        """What the noise is multiplied by if a party of this size is the smallest."""
        return 1

    def noise(self, n_records: int, *, rng: Rng) -> list[int]:
        """A party's noise: its share, or all of it if the protocol selects noise."""
        return [0] * self.plan.dimension

    def dither(self, *, rng: Rng) -> list[int]:
        """What a party adds to its rounded model."""
        return [0] * self.plan.dimension

    @property
    def value_bound(self) -> float:
        """No coordinate of a party's weighted model is larger."""
        return 2 * self.plan.norm_bound

    def contribution(self, theta: Floats, n_records: int, *, rng: Rng) -> Contribution:
        """What a party of so many records brings to the protocol."""
        bound = self.value_bound
        weighted = np.clip(self.plan.weight(n_records) * theta.ravel(), -bound, bound)
        rounded = [round(x) for x in (weighted / self.step).tolist()]  # the division is exact, the step a power of two
        dithered = [x + y for x, y in zip(rounded, self.dither(rng=rng), strict=True)]
        noise = [max(-self.noise_bound, min(self.noise_bound, z)) for z in self.noise(n_records, rng=rng)]
        return Contribution(size=n_records, factor=self.factor(n_records), noise=noise, addend=dithered)

    def terms(self, session: str, key_bits: int) -> CuratorTerms:
        """The terms of a run of the protocol on this lattice."""
        product = self.noise_bound * self.factor_bound
        n_parties = self.plan.cohort.n_parties
        largest = n_parties * (math.ceil(self.value_bound / self.step) + 1 + product + self.dither_bound)
        return CuratorTerms(
            session=session,
            n_parties=n_parties,
            dimension=self.plan.dimension,
            size_bits=self.plan.cohort.n_records.bit_length(),
            share_bits=-(-(largest.bit_length() + 2) // 8) * 8,
            factor_bound=self.factor_bound,
            noise_bound=self.noise_bound,
            key_bits=key_bits,
            selects=self.selects,
        )

    def to_floats(self, opened: list[int]) -> Floats:
        """The opened sum in data units."""
        return np.array([float(x) for x in opened]) * self.step


class QuietLattice(Lattice):
    """No noise: NOT PRIVATE."""

    @cached_property
    def step(self) -> float:
        """So fine that rounding is of no account."""
        return 2.0 ** (math.ceil(math.log2(self.value_bound)) - 60)


class PrintedLattice(Lattice):
    """Pathak et al., stage 2: eta_i iid Laplace(2 / (n_j epsilon lambda)), lambda = Lam / 2; NOT PRIVATE."""

    @property
    def selects(self) -> Literal["factor", "noise"]:
        """The smallest party's own noise, which it knows."""
        return "noise"

    @cached_property
    def _scale_of_one(self) -> float:
        """The scale of a party with one record."""
        return self.plan.paper_scale * self.plan.cohort.least_records

    @cached_property
    def step(self) -> float:
        """So that no scale is above 2^40 steps."""
        return 2.0 ** (math.ceil(math.log2(self._scale_of_one)) - 40)

    @property
    def noise_bound(self) -> int:
        """100 times the largest scale: exceeded with a chance below 2^-140."""
        return math.ceil(100 * self._scale_of_one / self.plan.cohort.least_records / self.step)

    def noise(self, n_records: int, *, rng: Rng) -> list[int]:
        """iid Laplace noise for a party of this size."""
        scale = self._scale_of_one / n_records / self.step
        drawn: list[int] = discrete_laplace(scale, self.plan.dimension, rng=rng).tolist()
        return drawn


@dataclass(frozen=True)
class ScaledLattice(Lattice):
    """Noise shares of unit scale, a factor for each size, and a dither: private as the module's proof says."""

    def __post_init__(self) -> None:
        """Refuse plans for which the dither would drown the noise."""
        cohort = self.plan.cohort
        average = max(1, cohort.n_records // cohort.n_parties)
        if self._dither_std > 0.5 * self._share_std(average):
            raise SettingError(
                f"no lattice is fine enough for epsilon = {self._promise.epsilon}, n_parties = {cohort.n_parties}, "
                f"dimension = {self.plan.dimension} and parties of {cohort.least_records} records or more: "
                f"allow a larger epsilon, or let fewer parties or coordinates take part"
            )

    @property
    def _promise(self) -> Promise:
        return self.plan.promise

    def _scale(self, n_records: int) -> float:
        """s(n): the noise scale, or standard deviation, that is needed if the smallest party has so many records."""
        return for_smallest(self.plan, n_records).sensitivity * _multiplier(self._promise) * _UP

    @cached_property
    def step(self) -> float:
        """So fine that the least factor, which a party with all records would have, is above 2^20."""
        return 2.0 ** (math.floor(math.log2(self._scale(self.plan.cohort.n_records))) - _FACTOR_BITS - _UNIT_BITS)

    @cached_property
    def factor_bound(self) -> int:
        """That of the smallest size allowed."""
        return self.factor(self.plan.cohort.least_records)

    def factor(self, n_records: int) -> int:
        """f_j: the least whole number with f_j 2^36 step >= s(n_j)."""
        return math.ceil(self._scale(n_records) / self.step / 2.0**_UNIT_BITS)

    @property
    def _honest(self) -> int:
        return self.plan.cohort.n_parties - self.plan.cohort.colluders

    @cached_property
    def noise_bound(self) -> int:
        """Shares beyond this are cut off; the chance is below 2^-100."""
        if self._promise.is_pure:
            return math.ceil(noise_bound(1.0, self.plan.dimension, self._honest) * 2.0**_UNIT_BITS)
        return math.ceil(16 * self._share_parameter)

    @property
    def _share_parameter(self) -> float:
        return 2.0**_UNIT_BITS / math.sqrt(self._honest) * _UP

    def noise(self, n_records: int, *, rng: Rng) -> list[int]:
        """A share of unit noise: the sum of the honest parties' is spherical Laplace, or Gaussian."""
        d = self.plan.dimension
        if self._promise.is_pure:
            share = spherical_laplace_share(1.0, d, self._honest, rng=rng)
            return [round(x) for x in (share * 2.0**_UNIT_BITS).tolist()]
        drawn: list[int] = rounded_gaussian(self._share_parameter, d, rng=rng).tolist()
        return drawn

    @cached_property
    def _distance(self) -> float:
        """b: how far the lattice vector is from the ideal, in steps a coordinate."""
        error = 0.5
        if self._promise.is_pure:
            error += 2.0**_UNIT_BITS * share_error(1.0, self.plan.dimension, self._honest)
        return self.plan.cohort.n_parties * (0.5 + self.factor_bound * error) * _UP

    @cached_property
    def _coarse_bits(self) -> int:
        """q = 2^this, next above 2 b."""
        return math.ceil(math.log2(2 * self._distance))

    @cached_property
    def _dither_scale(self) -> float:
        moved = 2 * self._distance / 2.0**self._coarse_bits + 1
        return self.plan.dimension * moved / (_DITHER_SHARE * self._promise.epsilon) * _UP

    @property
    def dither_bound(self) -> int:
        """100 times its scale: exceeded with a chance below 2^-140."""
        return math.ceil(100 * self._dither_scale + 1) << self._coarse_bits

    def dither(self, *, rng: Rng) -> list[int]:
        """U + q L."""
        q, d = 1 << self._coarse_bits, self.plan.dimension
        coarse = discrete_laplace(self._dither_scale, d, rng=rng).tolist()
        fine = rng.below(q, d).tolist()
        return [u - q // 2 + q * x for u, x in zip(fine, coarse, strict=True)]

    def noise_std(self, n_smallest: int) -> float:
        """The standard deviation of each coordinate of the result if the smallest party has so many records."""
        return math.hypot(self._share_std(n_smallest), self._dither_std)

    def noise_scale(self, n_smallest: int) -> float:
        """The scale of the noise that the honest parties make together, without the dither."""
        return self.factor(n_smallest) * self.step * 2.0**_UNIT_BITS

    def _share_std(self, n_smallest: int) -> float:
        spread = self.plan.dimension + 1 if self._promise.is_pure else 1
        return self.noise_scale(n_smallest) * math.sqrt(spread * self.plan.cohort.n_parties / self._honest)

    @property
    def _dither_std(self) -> float:
        q = 2.0**self._coarse_bits
        return math.sqrt(self.plan.cohort.n_parties * (2 * self._dither_scale**2 + 1 / 12)) * q * self.step


def for_smallest(plan: Plan, n_records: int) -> Plan:
    """The same plan if no party had fewer than so many records."""
    return replace(plan, cohort=replace(plan.cohort, least_records=n_records))


def lattice_for(plan: Plan) -> Lattice:
    """The lattice on which a plan is carried out."""
    if plan.promise.is_exact:
        return QuietLattice(plan)
    return PrintedLattice(plan) if plan.promise.is_paper else ScaledLattice(plan)


def event_for(promise: Promise) -> Event:
    """What one run costs a record; needs no data."""
    if promise.not_private is not None or promise.is_pure:
        return promise.event()
    dither = Pure(epsilon=_DITHER_SHARE * promise.epsilon)
    return Composed(events=(Gaussian(noise_multiplier=_multiplier(promise)), dither))


def noise_epsilon(promise: Promise, factor: float) -> float:
    """The epsilon for which `factor` times the noise for the promise would be right."""
    if promise.is_pure:
        return promise.epsilon / factor
    mu = 1 / (factor * _multiplier(promise))
    found = promise.epsilon
    for _ in range(60):  # the dither's part of epsilon is small: this contracts fast
        found = gaussian_epsilon(promise.settled_delta, math.hypot(mu, mu_of_pure(_DITHER_SHARE * found)))
    return found


def _multiplier(promise: Promise) -> float:
    """Noise scale over sensitivity, such that the dither's part of epsilon is left over."""
    epsilon, delta = promise.epsilon, promise.settled_delta
    if promise.is_pure:
        return 1 / ((1 - _DITHER_SHARE) * epsilon)
    whole, dither = gaussian_mu(epsilon, delta), mu_of_pure(_DITHER_SHARE * epsilon)
    # Gaussian privacy composes in squares, and pure privacy implies it (`privacy.gaussian`).
    if whole <= 2 * dither:
        raise SettingError(f"delta = {delta} is too small for epsilon = {epsilon}; allow more of either")
    return 1 / math.sqrt(whole**2 - dither**2) * _UP
