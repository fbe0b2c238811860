"""Whether one more run fits a budget, when each run is chosen after seeing what the earlier ones told.

A *run* is fixed when it begins: its releases are known. A *filter* bounds all runs together, and the next run may
depend on every outcome so far. The bounds of `accounting` hold for events that are fixed beforehand. They are used
within one run only. Taking the least of several bounds anew on each path would promise too little: see (4).

A run has costs in three currencies. Each filter has one of them, and a cap that limit and delta fix beforehand:

    sums      epsilon_i and delta_i of each run add up; caps limit and delta
    gaussian  mu**2 adds up; cap mu(limit, delta)**2; not for discrete noise
    renyi     the divergence of one order adds up; limit and delta fix order and cap

An (e, d) release counts as pure e in all of them, but for a chance of d. These chances add up to `delta` at most.
A run is accepted if the chances do, and if at least one of the three filters still holds with it.

Guarantees: whatever was accepted is (limit, 4 delta)-differentially private under the budget's relation.

Proof. Let D, D' be neighbours, and let P, Q be the laws of the whole transcript on D and on D'.

(1) *One filter.* In each currency this holds: if a first run costs x, and whatever its outcome the rest is y-private,
    then both together are (x + y)-private. For sums that is basic composition (Dwork and Roth 2014, Theorem 3.16). For
    mu**2 it is Corollary 3.3 of Dong, Roth and Su 2022. For a fixed order it is Proposition 1 of Mironov 2017. Claim: a
    mechanism whose runs never cost more than a cap c, on any path, is c-private. By induction on the number of
    runs. The first run is fixed, so its cost x is no random number. After each outcome the rest never costs more than
    c - x, so it is (c - x)-private, and both together are c-private. (Rogers, Roth, Ullman and Vadhan 2016 for sums;
    Smith and Thakurta 2022 and Koskela, Tobaben and Honkela 2023 for mu; Feldman and Zrnic 2021 for an order.)
(2) The caps are such that c-privacy is (limit, delta)-privacy: at once for sums; for mu by its exact profile; for an
    order by Proposition 12 of Canonne, Kamath and Steinke 2020.
(3) *Runs that overlap.* A run is interactive, and questions of several runs may alternate. Every filter for releases
    in (epsilon, delta), in trade-off functions or in one Rényi order is a filter for interactive runs, too (Haney,
    Shoemate, Tian, Vadhan, Vyrros, Xu and Zhang 2023).
(4) *Three filters.* Costs are never negative, so a filter that holds at the end of a path held all along it. On each
    path one holds at the end, since the last run was accepted. Let A_k be the transcripts on which filter k holds at
    the end. Every transcript is in some A_k. Cut a set S of transcripts into S_k within A_k. Stop the mechanism before
    the first run that would break filter k: that is (limit, delta)-private by (1), and on A_k its transcripts have the
    same probabilities. So P(S_k) <= exp(limit) Q(S_k) + delta, and P(S) <= exp(limit) Q(S) + 3 delta. The least of
    several bounds would claim delta once instead of three times.
(5) *Chances.* An (e, d) release is a mixture: with a coin of weight d, the same on D and D', anything; else a pair that
    is e-close (Kairouz, Oh and Viswanath 2017). Let "clean" mean that no coin fell. On each path the d add up to delta
    at most, so P(not clean) <= delta. Let P', Q' be the laws with e-close pairs throughout, and w(t) the product of all
    1 - d along transcript t, which is the same for both. Then P(S, clean) is the integral over S of w dP'. By (4), for
    functions between 0 and 1 instead of sets, it is at most exp(limit) times that of w dQ', plus 3 delta. The latter is
    Q(S, clean) <= Q(S). Together P(S) <= exp(limit) Q(S) + 4 delta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from tacit.bisection import bisect, geometric_mean
from tacit.privacy.accounting import (
    Costs,
    best_order,
    epsilon_for,
    epsilon_of_costs,
    rho_for,
    sum_up,
)
from tacit.privacy.event import Composed, Event, Free, NotPrivate, PoissonSampled, Repeated, Under
from tacit.privacy.gaussian import gaussian_epsilon, gaussian_mu
from tacit.privacy.guarantee import Relation

SHARES = 4
"""How many times delta the whole promise has: three filters, and the releases' own chances."""

_ROUNDING = 1 + 1e-9  # the accountant rounds up by less than this; a budget can be spent to its end
_LARGEST_ORDER = 4096.0


@dataclass(frozen=True, kw_only=True)
class Charge:
    """Runs of one kind: the event of each, the delta at which it counts in the sums, and how many there are."""

    event: Event
    delta: float
    count: int = 1


def fits(charges: Sequence[Charge], limit: float, delta: float, relation: Relation) -> bool:
    """Whether runs that cost this fit a limit; the guarantee and its proof stand on top."""
    if math.isinf(limit):
        return True
    spent = _spending(tuple(charges), delta, relation)
    limit *= _ROUNDING
    if spent.lost_delta > delta * _ROUNDING:
        return False
    return spent.fits_gaussian(limit) or spent.fits_renyi(limit) or spent.fits_sums(limit)


def least_limit(charges: Sequence[Charge], delta: float, relation: Relation) -> float:
    """The least limit that such runs fit; infinity if they fit none.

    It tells an owner how full a budget is. What is promised is the limit that was fixed beforehand.
    """
    return _least_limit(tuple(charges), delta, relation)


@lru_cache(maxsize=4096)
def _least_limit(charges: tuple[Charge, ...], delta: float, relation: Relation) -> float:
    if not charges:
        return 0.0
    spent = _spending(charges, delta, relation)
    if spent.lost_delta > delta * _ROUNDING:
        return math.inf
    least = min(spent.sums(math.inf), spent.gaussian())
    if not spent.costs.sampled and not spent.costs.pure_epsilon and math.isfinite(spent.costs.rho):
        total = spent.costs.rho + spent.costs.mu_squared / 2
        return min(least, epsilon_for(total, delta)) if total > 0 else least
    high = least if math.isfinite(least) else 1e6
    if not spent.fits_renyi(high):
        return least
    return bisect(spent.fits_renyi, yes=high, no=min(1e-9, high / 2), tolerance=1e-7, middle=geometric_mean)


def is_stated_for(event: Event, relation: Relation) -> bool:
    """Whether a ledger under this relation can tell what the event costs."""
    match event:
        case Free() | NotPrivate() | PoissonSampled():
            return True
        case Composed(events=events):
            return all(is_stated_for(inner, relation) for inner in events)
        case Repeated(event=inner):
            return is_stated_for(inner, relation)
        case Under(relations=relations):
            return relation == "replace-one" or relation in relations
        case _:
            return relation == "replace-one"


@dataclass(frozen=True)
class _Spending:
    """What all runs cost; `costs` holds the totals."""

    charges: tuple[Charge, ...]
    delta: float
    relation: Relation
    costs: Costs

    @property
    def lost_delta(self) -> float:
        """The chance that some release is not as private as its numbers say."""
        return self.costs.lost_delta

    # --- sums --------------------------------------------------------------------------------------------------------

    def fits_sums(self, limit: float) -> bool:
        """The first filter."""
        return self.sums(limit) <= limit

    def sums(self, limit: float) -> float:
        """The sum of the epsilons, each at its own delta; infinite if the deltas add up to too much.

        It stops adding above the limit.
        """
        deltas = [0.0 if _is_pure(self._of(one)) else min(one.delta, self.delta) for one in self.charges]
        if sum(one.count * own for one, own in zip(self.charges, deltas, strict=True)) > self.delta * _ROUNDING:
            return math.inf
        total = 0.0
        for one, own in zip(self.charges, deltas, strict=True):
            total += one.count * _epsilon(one.event, own, self.relation)
            if total > limit:
                break
        return total

    # --- gaussian ----------------------------------------------------------------------------------------------------

    def fits_gaussian(self, limit: float) -> bool:
        """The second filter."""
        return self._mu_squared <= _mu_cap(limit, self.delta) ** 2

    def gaussian(self) -> float:
        """The least limit of the second filter."""
        if self._mu_squared == 0:
            return 0.0
        mu = math.sqrt(self._mu_squared)
        return gaussian_epsilon(self.delta, mu) if mu <= _LARGEST_ORDER else math.inf

    @property
    def _mu_squared(self) -> float:
        """Of all runs; sampled rounds count as if all records were in them. Infinite where rho alone is known."""
        if self.costs.rho > 0:
            return math.inf
        reach = 2 if self.relation == "replace-one" else 1
        sampled = sum(n * (reach / event.event.noise_multiplier) ** 2 for event, n in self.costs.sampled.items())
        return self.costs.mu_squared + self.costs.pure_mu_squared + sampled

    # --- renyi -------------------------------------------------------------------------------------------------------

    def fits_renyi(self, limit: float) -> bool:
        """The third filter, at the order that is best for Gaussian noise with this limit."""
        order = _order(limit, self.delta)
        x = order - 1
        # B at this order is epsilon at delta = exp(x (B - epsilon)) / x (1 - 1/order)**order.
        cap = limit + (math.log(self.delta) + math.log(x) + order * math.log1p(1 / x)) / x
        return self._divergence(order) <= cap

    def _divergence(self, order: float) -> float:
        pure = sum(
            one.count * min(c.pure_epsilon, order * c.pure_rho) for one in self.charges for c in (self._of(one),)
        )
        sampled = sum(n * _sampled_divergence(event, order, self.relation) for event, n in self.costs.sampled.items())
        return pure + order * (self.costs.rho + self.costs.mu_squared / 2) + sampled

    def _of(self, charge: Charge) -> Costs:
        return _costs(charge.event, self.relation)


def _spending(charges: tuple[Charge, ...], delta: float, relation: Relation) -> _Spending:
    total = Costs()
    for charge in charges:
        one, n = _costs(charge.event, relation), charge.count
        total.pure_epsilon += n * one.pure_epsilon
        total.pure_mu_squared += n * one.pure_mu_squared
        total.mu_squared += n * one.mu_squared
        total.rho += n * one.rho
        total.lost_delta += n * one.lost_delta
        for event, times in one.sampled.items():
            total.sampled[event] += n * times
        if not one.is_private:
            total.lost_delta = math.inf
    return _Spending(charges, delta, relation, total)


def _is_pure(costs: Costs) -> bool:
    return costs.mu_squared == costs.rho == 0 and not costs.sampled


@lru_cache(maxsize=4096)
def _costs(event: Event, relation: Relation) -> Costs:
    return sum_up(event, relation) if is_stated_for(event, relation) else Costs(is_private=False)


@lru_cache(maxsize=4096)
def _epsilon(event: Event, delta: float, relation: Relation) -> float:
    """What one run costs by the best of all bounds: its releases are fixed when it begins."""
    return epsilon_of_costs(_costs(event, relation), delta, relation)


@lru_cache(maxsize=4096)
def _mu_cap(limit: float, delta: float) -> float:
    return gaussian_mu(limit, delta)


@lru_cache(maxsize=4096)
def _order(limit: float, delta: float) -> float:
    return min(best_order(limit, rho_for(limit, delta)), _LARGEST_ORDER)


@lru_cache(maxsize=65536)
def _sampled_divergence(event: PoissonSampled, order: float, relation: Relation) -> float:
    """The Rényi divergence of a sampled Gaussian, which grows with its order: that of the next whole order bounds it.

    Between neighbours under replace-one lies the table without the record. With R for the outcome on that,
    D_a(P, Q) <= (a - 1/2) / (a - 1) D_2a(P, R) + D_(2a-1)(R, Q) (Mironov 2017, Proposition 11). Or the sampling is
    ignored, and the mean moves by at most twice the bound.
    """
    q, noise = event.probability, event.event.noise_multiplier
    whole = max(2, math.ceil(order))
    if relation == "add-remove":
        return min(_mixture_divergence(q, noise, whole), order / (2 * noise**2))
    first = _mixture_divergence(q, noise, 2 * whole)
    second = _mixture_divergence(q, noise, 2 * whole - 1)
    return min((whole - 0.5) / (whole - 1) * first + second, 2 * order / noise**2)


@lru_cache(maxsize=65536)
def _mixture_divergence(q: float, noise: float, order: int) -> float:
    """D_a of (1-q) N(0) + q N(1) from N(0): log sum_k C(a, k) (1-q)**(a-k) q**k exp(k (k-1) / (2 noise**2)) / (a-1).

    Mironov, Talwar and Zhang 2019, Section 3.3; by their Theorem 5 it bounds the other direction, too.
    """
    if q == 1:
        return order / (2 * noise**2)
    k = np.arange(order + 1)
    log_choose = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    terms = log_choose + (order - k) * math.log1p(-q) + k * math.log(q) + k * (k - 1) / (2 * noise**2)
    rounding = 1e-14 * (1 + float(gammaln(order + 1)))  # more than that of the terms
    largest = float(terms.max())
    total = largest + math.log(float(np.exp(terms - largest).sum()))
    return (max(0.0, total) + rounding) / (order - 1)
