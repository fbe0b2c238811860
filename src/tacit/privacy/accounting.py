"""What events cost: the least epsilon for a delta, and the noise for both.

An event is first summed up into what composes exactly (`Costs`), then every proven bound that fits is tried and the
best is taken. Each holds for adaptive compositions. Numbers lean towards privacy: costs and noise are rounded up.

    pure       the epsilons add up; delta = 0 is enough
    Gaussian   mu**2 add up, exact profile; pure epsilon counts as `mu_of_pure` (Dong, Roth and Su 2022)
    zCDP       rho add up; a Gaussian is mu**2/2, pure is epsilon tanh(epsilon/2) (Bun and Steinke 2016; Steinke 2024)
    sampled    privacy loss distributions for add-remove (dp_accounting; Doroshenko et al. 2022)
    (e, d)     counts as pure e but for a chance of d, and these chances add up: any pair of (e, d)-private outcomes is
               a mixture, with weight d on the same coin, of an e-private pair and of anything (Kairouz, Oh
               and Viswanath 2017)

The noise multiplier of a Gaussian event is over the sensitivity *under the relation that is claimed*. Only inside
`PoissonSampled` it is over the norm bound of one record's term, which is what adding or removing a record changes.
Replacing a record is removing one and adding another, so (epsilon, delta) becomes (2 epsilon, (1 + exp(epsilon))
delta); or the sampling is ignored and the term changes by at most twice its bound. The replace-one mode of
dp_accounting is not used: it is reported to be too small (its issue 378).

Other events that are stated for add-remove alone (`Under`) are counted under replace-one in the same two steps, each
release by itself: epsilon becomes 2 epsilon, mu 2 mu (Dong, Roth and Su 2022, Theorem 2.14), rho 4 rho (Bun and
Steinke 2016, Proposition 1.9), (epsilon, delta) as above. What is stated for replace-one alone says nothing of
add-remove.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from tacit.bisection import bisect, geometric_mean
from tacit.errors import SettingError
from tacit.privacy.event import (
    Approximate,
    Composed,
    DiscreteGaussian,
    Event,
    Free,
    Gaussian,
    NotPrivate,
    PoissonSampled,
    Pure,
    Repeated,
    Under,
    Zcdp,
)
from tacit.privacy.gaussian import gaussian_mu, least_epsilon, log_gaussian_delta, mu_of_pure
from tacit.privacy.guarantee import RELATIONS, Guarantee, Relation, Unit, check_delta, check_epsilon

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

_UP = 1 + 1e-12  # more than the rounding of any sum of costs
_SPLITS = (0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0)  # between two parts whose promises are added up
_NEXT_TO_NOTHING = 1e-12  # a guarantee's epsilon must be above 0, even for public values


@lru_cache(maxsize=4096)
def epsilon_of(event: Event, delta: float, *, relation: Relation = "replace-one") -> float:
    """The least epsilon that is proved for `event` at `delta`, which may be 0; infinity if nothing is.

    Guarantees:
        The event is (epsilon, delta)-differentially private under `relation`.
    """
    if delta != 0:
        check_delta(delta)
    costs = sum_up(event, relation)
    return math.inf if costs.lost_delta > delta else epsilon_of_costs(costs, delta - costs.lost_delta, relation)


def epsilon_of_costs(costs: Costs, delta: float, relation: Relation) -> float:
    """The least epsilon that is proved at `delta`, but for the chance `lost_delta` that the costs hold no more."""
    return min(bound.epsilon(delta) for bound in _bounds(costs, relation))


def guarantee_of(event: Event, delta: float, unit: Unit, relation: Relation) -> Guarantee:
    """What may be promised after `event`, at `delta` or, if that is no worse, at delta = 0."""
    epsilon, pure = epsilon_of(event, delta, relation=relation), epsilon_of(event, 0.0, relation=relation)
    if pure <= epsilon:
        epsilon, delta = pure, 0.0
    return Guarantee(epsilon=max(epsilon, _NEXT_TO_NOTHING), delta=delta, unit=unit, relation=relation)


def noise_multiplier_for(epsilon: float, delta: float) -> float:
    """The least Gaussian noise over sensitivity that is (epsilon, delta)-private, rounded up."""
    return 1 / mu_for(epsilon, delta) * _UP


@lru_cache(maxsize=4096)
def mu_for(epsilon: float, delta: float) -> float:
    """The largest mu whose Gaussian privacy implies (epsilon, delta), rounded down.

    It is so much below that releases of mu_k with mu**2 = sum mu_k**2 cost no more than epsilon, rounding included.
    """
    check_epsilon(epsilon)
    check_delta(delta)
    return math.inf if math.isinf(epsilon) else gaussian_mu(epsilon, delta) / _UP**2


@lru_cache(maxsize=4096)
def rho_for(epsilon: float, delta: float) -> float:
    """The largest rho whose zero-concentrated privacy implies (epsilon, delta), rounded down."""
    check_epsilon(epsilon)
    check_delta(delta)
    if math.isinf(epsilon):
        return math.inf
    target = math.log(delta)

    def is_private(rho: float) -> bool:
        return _log_concentrated_delta(epsilon, rho) <= target

    low, high = 0.0, 1.0
    while is_private(high):
        low, high = high, 2 * high
    return bisect(is_private, yes=low, no=high, tolerance=1e-13) / _UP


def epsilon_for(rho: float, delta: float) -> float:
    """The least epsilon that rho-zero-concentrated privacy implies at `delta`, rounded up: the inverse of `rho_for`."""
    return epsilon_of(Zcdp(rho=rho), delta)


def least_noise(
    event_at: Callable[[float], Event],
    epsilon: float,
    delta: float,
    *,
    relation: Relation = "replace-one",
    tolerance: float = 1e-4,
) -> float:
    """The least x, to a relative `tolerance` and rounded up, at which `event_at(x)` costs no more than asked.

    Guarantees:
        epsilon_of(event_at(x), delta) <= epsilon. Right for every event whose cost falls as x grows, sampled ones too.
    """
    check_epsilon(epsilon)

    def is_enough(x: float) -> bool:
        return epsilon_of(event_at(x), delta, relation=relation) <= epsilon

    high = 1.0
    while not is_enough(high):
        high *= 2
        if high > 2.0**40:
            raise SettingError(
                f"no noise up to 2**40 gives epsilon = {epsilon} at delta = {delta}; allow more of either"
            )
    low = high / 2
    while is_enough(low) and low > 2.0**-20:
        low, high = low / 2, low
    return bisect(is_enough, yes=high, no=low, tolerance=tolerance, middle=geometric_mean)


@dataclass
class Costs:
    """An event summed up: one number for each kind that composes by addition."""

    pure_epsilon: float = 0.0
    pure_mu_squared: float = 0.0  # the pure part, as Gaussian privacy
    pure_rho: float = 0.0  # the pure part, as concentrated privacy
    mu_squared: float = 0.0
    rho: float = 0.0
    lost_delta: float = 0.0  # the chance that a part is not as private as the other numbers say
    sampled: Counter[PoissonSampled] = field(default_factory=Counter)  # how often
    is_private: bool = True


def sum_up(event: Event, relation: Relation) -> Costs:
    """The event as one number for each kind of cost, under `relation`."""
    if relation not in RELATIONS:
        raise SettingError(f"relation = {relation!r} is unknown; choose one of {', '.join(RELATIONS)}")
    costs = Costs()
    _add(costs, event, 1, relation)
    return costs


def _add(costs: Costs, event: Event, count: int, relation: Relation, steps: int = 1) -> None:
    """Add an event that happened so often, seen between tables that lie so many of its own steps apart."""
    match event:
        case Free():
            pass
        case Pure(epsilon=epsilon):
            epsilon *= steps
            costs.pure_epsilon += count * epsilon
            costs.pure_mu_squared += count * mu_of_pure(epsilon) ** 2
            costs.pure_rho += count * epsilon * math.tanh(epsilon / 2)
        case Approximate(epsilon=epsilon, delta=delta):
            _add(costs, Pure(epsilon=epsilon), count, relation, steps)
            costs.lost_delta += count * delta * sum(math.exp(min(i * epsilon, 700.0)) for i in range(steps))
        case Gaussian(noise_multiplier=noise):
            costs.mu_squared += count * (steps / noise) ** 2
        case DiscreteGaussian(noise_multiplier=noise):
            costs.rho += count * (steps / noise) ** 2 / 2
        case Zcdp(rho=rho):
            costs.rho += count * steps**2 * rho
        case PoissonSampled():
            costs.sampled[event] += count
        case Repeated(event=inner, count=times):
            _add(costs, inner, count * times, relation, steps)
        case Composed(events=events):
            for inner in events:
                _add(costs, inner, count, relation, steps)
        case Under(relations=relations, event=inner) if relation in relations:
            _add(costs, inner, count, relation)
        case Under(event=inner) if relation == "replace-one":
            _add(costs, inner, count, relation, steps=2)
        case NotPrivate() | Under():
            costs.is_private = False


class _Bound(Protocol):
    def epsilon(self, delta: float) -> float: ...


def _bounds(costs: Costs, relation: Relation) -> Iterator[_Bound]:
    """Every bound that is proven of these costs."""
    if not costs.is_private:
        yield _Pure(math.inf)
        return
    if not costs.sampled:
        yield from _plain_bounds(costs.pure_epsilon, costs.pure_mu_squared, costs.pure_rho, costs.mu_squared, costs.rho)
        return
    reach = 2 if relation == "replace-one" else 1  # how many norm bounds a record's term may move
    unsampled = sum(count * (reach / event.event.noise_multiplier) ** 2 for event, count in costs.sampled.items())
    pure, mu_squared = (costs.pure_epsilon, costs.pure_mu_squared, costs.pure_rho), costs.mu_squared
    sampled = frozenset(costs.sampled.items())
    yield from _plain_bounds(*pure, mu_squared + unsampled, costs.rho)
    if relation == "replace-one":
        losses: _Bound = _Group(_Losses(sampled, 0.0))
        rest = list(_plain_bounds(*pure, mu_squared, costs.rho))
    else:
        losses = _Losses(sampled, mu_squared)
        rest = list(_plain_bounds(*pure, 0.0, costs.rho))
        if costs.rho == 0 and costs.pure_epsilon > 0:
            yield _Losses(sampled, mu_squared + costs.pure_mu_squared)
    yield from (_Sum(losses, bound) for bound in rest)


def _plain_bounds(
    pure_epsilon: float, pure_mu_squared: float, pure_rho: float, mu_squared: float, rho: float
) -> Iterator[_Bound]:
    if mu_squared == rho == 0:
        yield _Pure(pure_epsilon * _UP)
    if rho == 0 and 0 < mu_squared + pure_mu_squared < math.inf:
        yield _Profile(math.sqrt(mu_squared + pure_mu_squared) * _UP)
    if rho + mu_squared + pure_rho > 0:
        yield _Concentrated((rho + mu_squared / 2 + pure_rho) * _UP)
    if pure_epsilon > 0 and mu_squared + rho > 0:
        for bound in _plain_bounds(0.0, 0.0, 0.0, mu_squared, rho):
            yield _Sum(_Pure(pure_epsilon * _UP), bound)


@dataclass(frozen=True)
class _Pure:
    value: float

    def epsilon(self, delta: float) -> float:
        return self.value


@dataclass(frozen=True)
class _Profile:
    """The exact profile of mu-Gaussian privacy."""

    mu: float

    def epsilon(self, delta: float) -> float:
        return least_epsilon(lambda epsilon: log_gaussian_delta(epsilon, self.mu), delta) if delta else math.inf


@dataclass(frozen=True)
class _Concentrated:
    rho: float

    def epsilon(self, delta: float) -> float:
        return least_epsilon(lambda epsilon: _log_concentrated_delta(epsilon, self.rho), delta) if delta else math.inf


def _log_concentrated_delta(epsilon: float, rho: float) -> float:
    """log of min over alpha > 1 of exp((alpha-1)(alpha rho - epsilon)) / (alpha-1) (1 - 1/alpha)**alpha.

    Canonne, Kamath and Steinke 2020, Corollary 13. Every alpha gives a valid bound, so the search need not be exact.
    """
    if math.isinf(epsilon):
        return -math.inf

    x = best_order(epsilon, rho) - 1
    alpha = 1 + x
    terms = (x * alpha * rho, -x * epsilon, -math.log(x), -alpha * math.log1p(1 / x))
    return min(0.0, sum(terms) + 1e-15 * sum(map(abs, terms)))


def best_order(epsilon: float, rho: float) -> float:
    """The alpha at which rho-zero-concentrated privacy implies epsilon at the least delta."""
    # The derivative (2 alpha - 1) rho - epsilon + log(1 - 1/alpha) is zero there. It grows with alpha, ever more
    # slowly, so Newton's steps from below never pass its zero. Here x = alpha - 1.
    x = max(1e-9, (epsilon / rho - 1) / 2)
    for _ in range(64):
        step = (epsilon + math.log1p(1 / x) - (1 + 2 * x) * rho) / (2 * rho + 1 / (x * (1 + x)))
        if step <= 1e-12 * x:
            break
        x += step
    return 1 + x


@dataclass(frozen=True)
class _Losses:
    """Sampled Gaussians, and one more Gaussian with this mu**2, under add-remove."""

    sampled: frozenset[tuple[PoissonSampled, int]]
    mu_squared: float

    def epsilon(self, delta: float) -> float:
        return float(_losses(self.sampled, self.mu_squared).get_epsilon_for_delta(delta)) * _UP if delta else math.inf

    def delta(self, epsilon: float) -> float:
        return float(_losses(self.sampled, self.mu_squared).get_delta_for_epsilon(epsilon)) * _UP


@lru_cache(maxsize=64)
def _losses(sampled: frozenset[tuple[PoissonSampled, int]], mu_squared: float) -> PrivacyLossDistribution:
    from dp_accounting.pld import privacy_loss_distribution as pld  # it takes most of a second to import

    strongest = max(1 / event.event.noise_multiplier for event, _ in sampled) + math.sqrt(mu_squared)
    # The loss reaches about mu**2/2 + 10 mu: keep the number of cells in hand when there is hardly any noise.
    interval = max(1e-4, (strongest**2 / 2 + 10 * strongest) / 1e6)
    total = pld.identity(value_discretization_interval=interval)
    for event, count in sorted(sampled, key=repr):
        one = pld.from_gaussian_mechanism(
            standard_deviation=event.event.noise_multiplier,
            sampling_prob=event.probability,
            value_discretization_interval=interval,
        )
        total = total.compose(one.self_compose(count))
    if mu_squared > 0:
        gaussian = pld.from_gaussian_mechanism(1 / math.sqrt(mu_squared), value_discretization_interval=interval)
        total = total.compose(gaussian)
    return total


@dataclass(frozen=True)
class _Group:
    """Twice the step of `losses`: (epsilon, delta) becomes (2 epsilon, (1 + exp(epsilon)) delta)."""

    losses: _Losses

    def epsilon(self, delta: float) -> float:
        return 2 * least_epsilon(self._log_delta, delta, tolerance=1e-6) if delta else math.inf

    def _log_delta(self, epsilon: float) -> float:
        delta = self.losses.delta(epsilon)
        return math.log(delta) + math.log1p(math.exp(-epsilon)) + epsilon if delta > 0 else -math.inf


@dataclass(frozen=True)
class _Sum:
    """Two parts one after the other: epsilons and deltas add up."""

    first: _Bound
    second: _Bound

    def epsilon(self, delta: float) -> float:
        shares = self._shares()
        return min(self.first.epsilon(f * delta) + self.second.epsilon((1 - f) * delta) for f in shares) * _UP

    def _shares(self) -> tuple[float, ...]:
        """What of delta the first part may get; what is pure has no use for any."""
        if isinstance(self.first, _Pure):
            return (0.0,)
        return (1.0,) if isinstance(self.second, _Pure) else _SPLITS
