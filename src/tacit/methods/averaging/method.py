"""Averaging: each party fits its own classifier; all learn the average, with noise that nobody knows.

Parties   K parties with n_j records each; a center of three nodes that adds up; a coordinator that relays
Trust     coordinator, network and at most `colluders` parties may lie, and pool what they know; no two center nodes
          collude. Nobody is trusted with data, with a model or with the noise
Travels   Party -> center: its weighted model with its share of the noise, in three sealed envelopes. Center ->
          coordinator: the sum. A question says no more than its step: each party works out the plan itself
Revealed  the noisy average, to everybody; the numbers of records n_j, or of persons, which the replace-one relation
          leaves public, unless the unit is the party
Privacy   sound: Pure(epsilon), or Gaussian calibrated to (epsilon, delta); one record, person or party (`unit`),
          replace-one. paper: NotPrivate
Assumes   rows of norm at most the schema's radius, enforced where a table is encoded; the intercept is one more
          feature of fixed value, so that R^2 = radius^2 + 1
Cost      one round; a party sends 3 x 32 bytes a coefficient; one local fit
Paper     Pathak, Rane and Raj 2010. Sound departs from it in the noise. It is spherical (their Laplace noise needs an
          L1 bound, and the sensitivity that they quote is an L2 one). It is sized by the sensitivity of the average
          rather than of one model. It is the sum of shares of which any K - colluders suffice (theirs comes from one
          party, who can subtract it). Weights may follow the sizes. `calibration="paper"` has iid Laplace noise
          of scale 2 / (n_min epsilon lambda) with their lambda = l2 / (2 n) from the smallest party, and equal
          weights

Proof (sound). Party j minimises J(w) = mean loss + (Lam/2) ||w||^2, Lam = l2 / n, n = sum n_j. Replacing one record
of party j moves its minimiser by at most D / (n_j Lam), D = D(B(Lam), R) (`models.sensitivity`), and the computed
model is within tau of the minimiser, tau being part of the plan and certified by the solver. With weights a_j the
average moves by at most S = max_j a_j (D / (n_j Lam) + 2 tau_j). The grid adds noise for S (`privacy.noise.grid`).
With a_j = n_j / n, S = D / (n Lam), the sensitivity of a pooled fit; with a_j = 1 / K, S = D / (K n_min Lam). The same
holds of a unit all of whose records are replaced: it changes a gradient as one record does (`methods.cohort`).

The noise carries 1 / Lam: strong regularisation means little noise and a poor model. The default l2 is a public rule
that balances the two (`default_l2`), and no choice makes averaging competitive at small epsilon: see docs/limits.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.agreement import Ask
from tacit.federation.channel import Channel
from tacit.federation.group import SumGroup
from tacit.methods.averaging.statistic import Plan, local_model
from tacit.methods.cohort import Cohort
from tacit.methods.method import Learned, Method
from tacit.methods.neighbour import Neighbours
from tacit.methods.setting import check_choice, check_l2, check_unit
from tacit.models.parameter import coefficients
from tacit.privacy.accounting import noise_multiplier_for
from tacit.privacy.event import Event
from tacit.unit import Unit

Weights = Literal["size", "equal"]

_WIDE = 400  # columns of the neighbours that refute the printed noise


class Averaging(Method):
    """The average of locally trained classifiers, differentially private, with nobody to trust.

    Args:
        epsilon: the promise; infinity adds no noise and promises nothing.
        delta: its probability of failing (Gaussian noise); None takes the rule min(1e-6, 1 / n^2), and 0 asks for pure
            epsilon (spherical Laplace noise).
        l2: regularisation of the sum over all records, 1/C of scikit-learn; None takes a public rule (`default_l2`).
        weights: "size" weighs each party by its number of records, "equal" does not.
        colluders: how many parties may pool what they know; None means 1 (every party knows its own share of the
            noise), or 0 if there is one party.
        fit_intercept: whether to learn an intercept, as a penalised feature.
        calibration: "sound", or "paper" for the document's noise, which is NOT PRIVATE.
        unit: what is protected: one "record", all records of one "person" (tables tell whose a record is), or all of
            one "party". A unit's m records weigh 1/m each: the model is that of the fit with these weights.

    Example:
        >>> import tacit
        >>> hospitals = tacit.datasets.load("readmission").tables
        >>> parties = tacit.Federation.from_tables({name: hospitals[name] for name in ("north", "south", "west")})
        >>> model = tacit.Averaging(epsilon=1.0, delta=0).fit(parties)
        >>> model.guarantee_.delta  # pure epsilon
        0.0
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
        unit: Unit = "record",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.l2 = l2
        self.weights = weights
        self.colluders = colluders
        self.fit_intercept = fit_intercept
        self.calibration = calibration
        self.unit = unit

    def event(self) -> Event:
        """What one run costs each record; needs no data."""
        return self.promise.event()

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

    @classmethod
    def printed_neighbours(cls) -> list[Neighbours]:
        """A record of 400 equal columns turned about, beside a party with nothing to say.

        The printed noise is sized for an L2 norm and drawn coordinate by coordinate, so that the L1 norm counts. Hardly
        any run shows it: the loss is what 400 coordinates add up to. But it is known exactly (`_laplace_loss`).
        """
        schema = Schema.of_arrays(_WIDE, ["0", "1"], norm_bound=1.0)
        row = np.full((1, _WIDE), 1 / math.sqrt(_WIDE))
        first, second, quiet = (Table.from_arrays(x, [1], schema) for x in (row, -row, 0 * row))
        return [
            Neighbours(
                label=f"{_WIDE} columns turned about: an L1 norm where an L2 norm is bounded",
                first={"a": first, "b": quiet},
                second={"a": second, "b": quiet},
                settings={"l2": 20.0, "fit_intercept": False, "colluders": 0},
                loss=lambda method: _laplace_loss(method, first, second),
            )
        ]

    def plan(self, cohort: Cohort) -> Plan:
        """The public plan of a run with this cohort."""
        promise = self.promise.settled(cohort.n_units)
        weights = "equal" if promise.is_paper else self.weights
        plan = Plan(cohort=cohort, promise=promise, l2_mean=1.0, weights=weights)
        l2 = default_l2(plan) if self.l2 is None else self.l2
        plan = replace(plan, l2_mean=l2 / cohort.n_units)
        plan.check()
        return plan

    def course(self, plan: Plan) -> tuple[Ask, ...]:
        """One model of each party."""
        return (Ask(step=local_model, event=plan.promise.event()),)

    def _check_settings(self) -> None:
        self.promise.check()
        check_l2(self.l2, zero=False)
        check_choice("weights", self.weights, ("size", "equal"))
        check_unit(self.unit, is_paper=self.promise.is_paper)

    def _learn(self, channel: Channel, plan: Plan) -> Learned:
        opened = channel.sum(local_model)
        present = channel.coverage if plan.weights == "size" else len(channel.present) / plan.cohort.n_parties
        theta = plan.grid.from_grid(opened).reshape(plan.problem(1).loss.shape) / present
        coef, intercept = coefficients(theta, plan.cohort.n_features, plan.cohort.constant)
        return Learned(coef=coef, intercept=intercept)


def _laplace_loss(method: Averaging, first: Table, second: Table) -> float:
    """The largest logarithm of a ratio of densities under the printed noise: ||difference||_1 over its scale."""
    group = SumGroup.of({"a": first.n_records, "b": 1}, quorum=2)
    plan = method.plan(method.cohort(first.schema, group))
    moved = plan.weight(first.n_records) * (plan.local_fit(first) - plan.local_fit(second))
    return float(np.abs(moved).sum() / plan.paper_scale)


def default_l2(plan: Plan) -> float:
    """A regularisation that balances bias against noise: a rule of public numbers, so it costs nothing.

    To first order the noise costs trH E S^2 / 2 in mean loss and the penalty (Lam/2) ||w||^2, where E S^2 is the
    noise's variance in one coordinate: E = (d+1)/epsilon^2 for spherical Laplace noise, the squared noise
    multiplier for Gaussian noise. With trH <= R^2/4, S <= 2R / (N Lam), N = n (or K n_min for equal weights), and a
    model that gives rows of norm R a margin of 4, so that ||w|| = 4/R, the sum is least at Lam^3 = R^6 E / (8 N^2).
    Never below 1 in sum form, scikit-learn's default.
    """
    promise, cohort = plan.promise, plan.cohort
    if promise.is_exact:
        return 1.0
    if promise.is_pure or promise.is_paper:
        expected_square = (plan.dimension + 1) / promise.epsilon**2
    else:
        expected_square = noise_multiplier_for(promise.epsilon, promise.settled_delta) ** 2
    n_effective = cohort.n_units if plan.weights == "size" else cohort.n_parties * cohort.least_records
    l2_mean: float = (cohort.row_norm**6 * expected_square / (8 * n_effective**2)) ** (1 / 3)
    return max(1.0, cohort.n_units * l2_mean)
