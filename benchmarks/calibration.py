"""The noise of every calibrated release, and what it was with the looser bounds that these replaced.

Prints the tables of docs/noise.md. Nothing is drawn: the noise follows from public numbers alone. Five parties of 2,000
records each, 10 features, rows of norm 1 and an intercept, one party may collude.

    python benchmarks/calibration.py

"Before" is worked out from what stood there: concentrated privacy in place of the exact Gaussian profile; minimisers
bounded by J(w) <= J(0) and by the longest gradient; t and A of the functional mechanism with shares of epsilon that add
up to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import tacit
from tacit.methods.ensemble.label import LabelDesign, lengthened
from tacit.methods.ensemble.statistic import Ballot
from tacit.methods.evaluation.method import PrivateEvaluation
from tacit.methods.functional.statistic import MARGIN
from tacit.methods.functional.statistic import Plan as FunctionalPlan
from tacit.methods.transfer.statistic import Reference
from tacit.models.sensitivity import gradient_diameter, gradient_norm, minimiser_norm_bound
from tacit.privacy.accounting import mu_for, rho_for

N, D, DELTA = 10_000, 10, 1e-6
R = math.sqrt(2)  # of a row with its constant


class Release(NamedTuple):
    """A release: its noise now, and how many times as much it was by the two bounds that changed."""

    label: str
    noise_std: float
    by_profile: float = 1.0
    by_norm: float = 1.0


def concentrated_over_exact(epsilon: float, delta: float) -> float:
    """Noise by concentrated privacy over noise by the exact profile."""
    return mu_for(epsilon, delta) / math.sqrt(2 * rho_for(epsilon, delta)) if delta else 1.0


def earlier_norm_bound(l2_mean: float, radius: float) -> float:
    """B from J(w) <= J(0), and from stationarity with the longest gradient."""
    bound = math.sqrt(2 * math.log(2) / l2_mean)
    for _ in range(1000):
        bound = min(bound, gradient_norm(bound, radius, 2) / l2_mean)
    return bound


def longer(l2_mean: float, radius: float) -> float:
    """How much further a record moved a minimiser by that bound."""
    before, now = earlier_norm_bound(l2_mean, radius), minimiser_norm_bound(l2_mean, radius)
    return gradient_diameter(before, radius) / gradient_diameter(now, radius)


def earlier_pure_sums(plan: FunctionalPlan) -> tuple[float, float]:
    """Noise on t and on A under shares of epsilon that add up to it, as the cube roots of what they cost."""
    of_t = 2 * plan.spread * plan.cohort.row_norm**2 * (plan.n_linear + 1)
    of_A = (plan.curvature * MARGIN * plan.cohort.row_norm) ** 2 * (plan.n_square + 1)
    share, now = 1 / (1 + math.cbrt(of_A / of_t)), plan.linear_share * plan.epsilon_of_both
    rest = plan.epsilon_of_both - now
    t, A = plan.noise_stds
    return t * now / (share * plan.promise.epsilon), A * rest / ((1 - share) * plan.promise.epsilon)


def made_up() -> tuple[tacit.Federation, np.ndarray]:
    """Parties of the sizes above, and public rows."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, D))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    return tacit.Federation.split(X, (X[:, 0] > 0).astype(int), n_parties=5, norm_bound=1.0), X[:200]


def releases(parties: tacit.Federation, public: np.ndarray, epsilon: float, delta: float) -> Iterator[Release]:
    """Every release at this epsilon and delta."""
    asked, exact = {"epsilon": epsilon, "delta": delta}, concentrated_over_exact(epsilon, delta)
    for l2_mean in (1.0, 0.1, 0.01):
        norm = longer(l2_mean, R)
        plan = parties.terms(tacit.Averaging(l2=l2_mean * N, **asked)).plan
        yield Release(f"averaging, Lam = {l2_mean:g}", plan.grid.noise_std, exact, norm)
        plan = parties.terms(tacit.CuratorAveraging(l2=l2_mean * N, **asked)).plan
        yield Release(f"curator averaging, Lam = {l2_mean:g}", plan.lattice.noise_std(2000), 1.0, norm)
        plan = parties.terms(tacit.HypothesisTransfer(l2=l2_mean * 1000, public=public, **asked)).plan
        yield Release(f"transfer, model, Lam = {l2_mean:g}", plan.model_grid(1000).noise_std, exact, norm)
    described = plan.weights_grid(2000, Reference(rows=np.eye(D)[:5])).noise_std
    yield Release("transfer, mean along 5 directions", described, exact)
    settings = {"public": public, "weights": "discriminator", "weights_l2": 0.1, **asked}
    plan = parties.terms(tacit.HypothesisTransfer(**settings)).plan
    apart = 2 / gradient_diameter(minimiser_norm_bound(0.05, 1.0), 1.0)  # kappa = 2 R stood there
    yield Release(
        "transfer, discriminator, Lam = 0.1", plan.weights_grid(2000, Reference(rows=public)).noise_std, exact, apart
    )
    yield from functional(parties.terms(tacit.FunctionalMechanism(**asked)).plan, exact)
    if delta:
        plan = parties.terms(tacit.NoisyDescent(rounds=20, **asked)).plan
        yield Release("noisy descent, one of 20 rounds at 0", plan.grid(np.zeros(D + 1)).noise_std, exact)
    plan = parties.terms(tacit.Ensemble(public=public, **asked)).plan
    basis = LabelDesign(Z=lengthened(public, 1.0), n_classes=2, shaped=True).basis
    yield Release("ensemble", plan.opening(Ballot(rows=public, basis=basis)).grid.noise_std, exact)
    yield Release("evaluation, a cell", parties.terms(PrivateEvaluation(bins=50, **asked)).plan.noise_std, exact)


def functional(plan: FunctionalPlan, exact: float) -> Iterator[Release]:
    """t and A of the functional mechanism."""
    now, before = plan.noise_stds, (1.0, 1.0)
    if plan.promise.is_pure:
        t, A = earlier_pure_sums(plan)
        before = t / now[0], A / now[1]
    for name, noise_std, by_shares in zip(("t", "A"), now, before, strict=True):
        yield Release(f"functional mechanism, {name}", noise_std, exact, by_shares)


def table(parties: tacit.Federation, public: np.ndarray, delta: float) -> None:
    """One table, a row a release."""
    epsilons = (0.1, 1.0, 3.0)
    print("| release |" + "".join(f" epsilon {e:g}: before | now | less |" for e in epsilons))
    print("|---|" + "---|---|---|" * len(epsilons))
    for row in zip(*(releases(parties, public, e, delta) for e in epsilons), strict=True):
        cells = [f"| {row[0].label} |"]
        for one in row:
            times = one.by_profile * one.by_norm
            cells.append(f" {one.noise_std * times:.4g} | {one.noise_std:.4g} | {100 * (1 - 1 / times):.1f} % |")
        print("".join(cells))


def main() -> None:
    parties, public = made_up()
    print(f"With delta = {DELTA:g}:\n")
    table(parties, public, DELTA)
    print("\nPure, delta = 0:\n")
    table(parties, public, 0.0)
    print("\nHow far a record moves a minimiser, D over n Lam, rows of norm 1 without an intercept:\n")
    print("| Lam | B before | B now | D before | D now | less |\n|---|---|---|---|---|---|")
    for l2_mean in (1.0, 0.5, 0.1, 0.05, 0.01, 0.001):
        before, now = earlier_norm_bound(l2_mean, 1.0), minimiser_norm_bound(l2_mean, 1.0)
        D_before, D_now = gradient_diameter(before, 1.0), gradient_diameter(now, 1.0)
        less = 100 * (1 - D_now / D_before)
        print(f"| {l2_mean:g} | {before:.3f} | {now:.3f} | {D_before:.3f} | {D_now:.3f} | {less:.1f} % |")


if __name__ == "__main__":
    main()
