"""Averaging: each party fits its own classifier; all learn the average, with noise that nobody knows.

Parties   K parties with n_j records each; a center of three nodes that adds up; a coordinator that relays
Trust     honest but curious; no two center nodes collude, and at most `colluders` parties pool what they know with
          the coordinator or with each other. Nobody is trusted with data, with a model or with the noise
Travels   coordinator -> party: the plan (regularisation, weights, sizes, epsilon). Party -> center: its weighted
          model with its share of the noise, in three sealed envelopes. Center -> coordinator: the sum
Revealed  the noisy average, to everybody; the numbers of records n_j, which the replace-one relation leaves public
Privacy   sound: Pure(epsilon), or DiscreteGaussian calibrated to (epsilon, delta); one record, replace-one. paper:
          NotPrivate
Assumes   rows of norm at most the schema's radius, enforced where a table is encoded; the intercept is one more
          feature of fixed value, so that R^2 = radius^2 + 1
Cost      one round; a party sends 3 x 32 bytes a coefficient; one local fit
Paper     Pathak, Rane and Raj 2010. Sound departs from it in the noise: it is spherical (their Laplace noise needs an
          L1 bound, and the sensitivity that they quote is an L2 one), it is sized by the sensitivity of the average
          rather than of one model, it is the sum of shares of which any K - colluders suffice (theirs comes from one
          party, who can subtract it), and weights may follow the sizes. `calibration="paper"` has iid Laplace noise
          of scale 2 / (n_min epsilon lambda) with their lambda = l2 / (2 n) from the smallest party, and equal
          weights

Proof (sound). Party j minimises J(w) = mean loss + (Lam/2) ||w||^2, Lam = l2 / n, n = sum n_j. Replacing one record
of party j moves its minimiser by at most D / (n_j Lam), D = D(B(Lam), R) (`models.sensitivity`), and the computed
model is within tau of the minimiser, tau being part of the plan and certified by the solver. With weights a_j the
average moves by at most S = max_j a_j (D / (n_j Lam) + 2 tau_j). The grid adds noise for S (`privacy.grid`). With a_j
= n_j / n, S = D / (n Lam), the sensitivity of a pooled fit; with a_j = 1 / K, S = D / (K n_min Lam).

The noise carries 1 / Lam: strong regularisation means little noise and a poor model. The default l2 is a public rule
that balances the two (`default_l2`), and no choice makes averaging competitive at small epsilon: see docs/limits.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import NotConverged, PolicyRefusal
from tacit.federation.federation import Federation
from tacit.federation.reply import Sealed
from tacit.federation.step import step
from tacit.methods.method import Learned, Method
from tacit.methods.neighbour import Neighbours
from tacit.methods.setting import check_choice, check_colluders, check_l2, check_privacy, required_radius
from tacit.models.batch import fit_many
from tacit.models.problem import Problem
from tacit.models.sensitivity import minimiser_norm_bound, minimiser_sensitivity
from tacit.models.solver import fit
from tacit.privacy.accounting import noise_multiplier_for, rho_for
from tacit.privacy.event import Event, NotPrivate, Pure
from tacit.privacy.grid import NoiseGrid, VectorSum, concentrated_event, exact_grid, gaussian_grid, pure_grid
from tacit.privacy.noise import discrete_laplace
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]
Weights = Literal["size", "equal"]

_CONSTANT = 1.0  # the value of the intercept's feature
SLACK = 1e-3  # the solver's distance from the minimiser, as a share of the minimiser's sensitivity


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public arguments of one run: all that a party needs, and enough to check what its answer will cost.

    `l2_mean` is Lam. `colluders` is how many parties may pool what they know, `quorum` how many the opened sum holds at
    least (None: all). `constant` 0 means no intercept.
    """

    epsilon: float
    delta: float | None
    l2_mean: float
    weights: str
    paper: bool
    n_total: int
    n_smallest: int
    n_parties: int
    colluders: int
    n_features: int
    n_classes: int
    radius: float
    constant: float
    quorum: int | None = None

    @property
    def dimension(self) -> int:
        """How many numbers are averaged."""
        return math.prod(self.problem(1).loss.shape)

    def problem(self, n_records: int) -> Problem:
        """The fit of a party with so many records; its l2 is of the sum form, n_j Lam."""
        sensitivity = minimiser_sensitivity(n_records, self.l2_mean, self.radius, self.n_classes)
        return Problem(
            n_features=self.n_features,
            n_classes=self.n_classes,
            l2=n_records * self.l2_mean,
            intercept="feature" if self.constant else "none",
            constant=self.constant or 1.0,
            tolerance=min(1e-9, 0.1 * SLACK * sensitivity / max(1.0, self.norm_bound)),
        )

    @property
    def norm_bound(self) -> float:
        """B(Lam): no minimiser is longer."""
        return minimiser_norm_bound(self.l2_mean, self.radius, self.n_classes)

    def weight(self, n_records: int) -> float:
        """a_j, the weight of a party with so many records."""
        return n_records / self.n_total if self.weights == "size" else 1 / self.n_parties

    @property
    def sensitivity(self) -> float:
        """S: how far one record can move the average, the solver's slack included."""
        n_worst = self.n_total if self.weights == "size" else self.n_smallest
        share = 1.0 if self.weights == "size" else 1 / self.n_parties
        # For weights by size a_j / n_j = 1/n for every j; for equal ones the smallest party counts.
        moved = share * minimiser_sensitivity(n_worst, self.l2_mean, self.radius, self.n_classes)
        return (1 + 2 * SLACK) * moved

    @property
    def paper_scale(self) -> float:
        """Pathak et al., stage 2: eta_i iid Laplace(2 / (n_min epsilon lambda)), lambda = Lam / 2."""
        return 4 / (self.n_smallest * self.epsilon * self.l2_mean)

    @cached_property
    def grid(self) -> NoiseGrid:
        """Where the average is rounded to, and what noise each party adds to it."""
        total = VectorSum(
            dimension=self.dimension,
            sensitivity=self.sensitivity,
            value_bound=2 * self.norm_bound + (100 * self.paper_scale if self.paper else 0.0),
            n_parties=self.n_parties,
            colluders=self.colluders,
            quorum=self.quorum,
        )
        if self.paper:
            return exact_grid(total)
        if self.delta is None:
            return pure_grid(total, epsilon=self.epsilon)
        return gaussian_grid(total, epsilon=self.epsilon, delta=self.delta)

    def event(self) -> Event:
        """What the opened average costs one record."""
        if self.paper:
            return NotPrivate(why="Averaging as the paper prints it")
        return self.grid.event()

    def seal(self, theta: Floats, distance_bound: float, n_records: int, *, rng: Rng) -> Sealed:
        """A party's reply: its weighted model with its noise, on the grid."""
        allowed = SLACK * minimiser_sensitivity(n_records, self.l2_mean, self.radius, self.n_classes)
        if not distance_bound <= allowed:
            raise NotConverged(f"the local fit is not certified to within {allowed:.3g}; choose a larger l2")
        addend = self.grid.to_grid(self.weight(n_records) * theta.ravel(), rng=rng)
        if self.paper and n_records == self.n_smallest and math.isfinite(self.epsilon):
            coarse = 2.0 ** math.ceil(math.log2(self.paper_scale / self.grid.step) - 30)  # steps at a time
            drawn = discrete_laplace(self.paper_scale / self.grid.step / coarse, addend.size, rng=rng)
            addend = addend + int(coarse) * drawn
        return Sealed(addend=addend, event=self.event(), n_parties=self.grid.total.least)

    def check(self, table: Table) -> None:
        """Refuse a plan that is not true of this party's table: the noise would be sized for another one."""
        radius = table.schema.radius
        facts_hold = (
            radius is not None
            and math.hypot(radius, self.constant) <= self.radius * (1 + 1e-12)
            and self.n_smallest <= table.n_records <= self.n_total
            and (self.n_features, self.n_classes) == (table.n_columns, table.n_classes)
            and 0 <= self.colluders < self.n_parties
        )
        if not facts_hold:
            raise PolicyRefusal("the plan's sizes, columns or bounds do not fit this party's table")


@step("averaging/model", version=1)
def local_model(table: Table, *, rng: Rng, **arguments: Any) -> Sealed:
    """Fit this party's classifier and seal it, weighted and noised."""
    plan = Plan(**arguments)
    plan.check(table)
    solution = fit(table.blocks, problem=plan.problem(table.n_records))
    return plan.seal(solution.theta, solution.distance_bound, table.n_records, rng=rng)


@local_model.batched
def local_models(tables: Sequence[Table], *, rngs: Sequence[Rng], **arguments: Any) -> list[Sealed]:
    """The same for many parties at once."""
    plan = Plan(**arguments)
    for table in tables:
        plan.check(table)
    sizes = np.array([table.n_records for table in tables])
    rows = [table.arrays() for table in tables]
    solutions = fit_many(
        np.concatenate([X for X, _ in rows]),
        np.concatenate([y for _, y in rows]),
        np.concatenate([[0], np.cumsum(sizes)]),
        problem=plan.problem(int(sizes.max())),  # the largest party's sensitivity is the least: the strictest tolerance
        l2=plan.l2_mean * sizes,
    )
    return [
        plan.seal(theta, float(bound), table.n_records, rng=rng)
        for table, theta, bound, rng in zip(tables, solutions.theta, solutions.distance_bound, rngs, strict=True)
    ]


class Averaging(Method):
    """The average of locally trained classifiers, differentially private, with nobody to trust.

    Args:
        epsilon: the promise; infinity adds no noise and promises nothing.
        delta: None for pure epsilon-differential privacy (spherical Laplace noise), or a probability (Gaussian noise).
        l2: regularisation of the sum over all records, 1/C of scikit-learn; None takes a public rule (`default_l2`).
        weights: "size" weighs each party by its number of records, "equal" does not.
        colluders: how many parties may pool what they know; None means 1 (every party knows its own share of the
            noise), or 0 if there is one party.
        fit_intercept: whether to learn an intercept, as a penalised feature.
        calibration: "sound", or "paper" for the document's noise, which is NOT PRIVATE.
    """

    name = "averaging"
    needs_everybody = False

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        l2: float | None = None,
        weights: Weights = "size",
        colluders: int | None = None,
        fit_intercept: bool = True,
        calibration: Literal["sound", "paper"] = "sound",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.l2 = l2
        self.weights = weights
        self.colluders = colluders
        self.fit_intercept = fit_intercept
        self.calibration = calibration

    def event(self) -> Event:
        """What one run costs each record; needs no data."""
        if self.calibration == "paper":
            return NotPrivate(why="Averaging as the paper prints it")
        if math.isinf(self.epsilon):
            return NotPrivate(why="epsilon is infinite: no noise is added")
        if self.delta is None:
            return Pure(epsilon=self.epsilon)
        return concentrated_event(rho_for(self.epsilon, self.delta))

    @classmethod
    def worst_neighbours(cls) -> list[Neighbours]:
        """A lone record turned about, beside a party with nothing to say; strong regularisation reaches the bound.

        Without colluders the opened sum holds no more noise than is claimed.
        """
        schema = Schema.of_arrays(1, ["0", "1"], norm_bound=1.0)

        def party(x: float, label: int) -> Table:
            return Table.from_arrays(np.array([[x]]), np.array([label]), schema)

        quiet = party(0.0, 1)
        pairs = {
            "an extreme label": (party(1.0, 0), party(1.0, 1)),
            "opposed features": (party(1.0, 1), party(-1.0, 1)),
        }
        settings = {"l2": 20.0, "fit_intercept": False, "colluders": 0}
        return [
            Neighbours(label=label, first={"a": a, "b": quiet}, second={"a": b, "b": quiet}, settings=settings)
            for label, (a, b) in pairs.items()
        ]

    def plan(self, parties: Federation) -> Plan:
        """The public plan of a run with these parties."""
        sizes = list(parties.sizes.values())
        constant = _CONSTANT if self.fit_intercept else 0.0
        plan = Plan(
            epsilon=float(self.epsilon),
            delta=None if self.calibration == "paper" else self.delta,
            l2_mean=1.0,
            weights="equal" if self.calibration == "paper" else self.weights,
            paper=self.calibration == "paper",
            n_total=sum(sizes),
            n_smallest=min(sizes),
            n_parties=len(sizes),
            colluders=min(1, len(sizes) - 1) if self.colluders is None else self.colluders,
            n_features=parties.schema.n_columns,
            n_classes=parties.schema.n_classes,
            radius=required_radius(parties.schema, "Averaging", constant),
            constant=constant,
            quorum=parties.quorum,
        )
        check_colluders(plan.colluders, parties.quorum)
        l2 = default_l2(plan) if self.l2 is None else self.l2
        return replace(plan, l2_mean=l2 / plan.n_total)

    def _check_settings(self) -> None:
        check_privacy(self.epsilon, self.delta)
        check_l2(self.l2, zero=False)
        check_choice("weights", self.weights, ("size", "equal"))
        check_choice("calibration", self.calibration, ("sound", "paper"))

    def _learn(self, parties: Federation) -> Learned:
        plan = self.plan(parties)
        opened = parties.sum(local_model, **asdict(plan))
        present = parties.coverage if plan.weights == "size" else len(parties.present) / plan.n_parties
        theta = plan.grid.from_grid(opened).reshape(plan.problem(1).loss.shape) / present
        theta = np.atleast_2d(theta)
        d = plan.n_features
        intercept = theta[:, d] * plan.constant if plan.constant else np.zeros(len(theta))
        return Learned(coef=theta[:, :d], intercept=intercept)


def default_l2(plan: Plan) -> float:
    """A regularisation that balances bias against noise: a rule of public numbers, so it costs nothing.

    To first order the noise costs trH E S^2 / 2 in mean loss and the penalty (Lam/2) ||w||^2, where E S^2 is the
    noise's variance in one coordinate: E = (d+1)/epsilon^2 for spherical Laplace noise, the squared noise
    multiplier for Gaussian noise. With trH <= R^2/4, S <= 2R / (N Lam), N = n (or K n_min for equal weights), and a
    model that gives rows of norm R a margin of 4, so that ||w|| = 4/R, the sum is least at Lam^3 = R^6 E / (8 N^2).
    Never below 1 in sum form, scikit-learn's default.
    """
    if math.isinf(plan.epsilon):
        return 1.0
    if plan.delta is None:
        expected_square = (plan.dimension + 1) / plan.epsilon**2
    else:
        expected_square = noise_multiplier_for(plan.epsilon, plan.delta, kind="discrete-gaussian") ** 2
    n_effective = plan.n_total if plan.weights == "size" else plan.n_parties * plan.n_smallest
    l2_mean: float = (plan.radius**6 * expected_square / (8 * n_effective**2)) ** (1 / 3)
    return max(1.0, plan.n_total * l2_mean)
