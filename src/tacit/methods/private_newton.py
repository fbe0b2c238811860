"""Private Newton: squares, moments and responses to a few models, each summed with noise that nobody knows.

Parties   K parties with n_j records each; a center of three nodes that adds up; a coordinator that solves
Trust     honest but curious; no two center nodes collude, and at most `colluders` parties pool what they know with
          the coordinator or with each other. Nobody is trusted with data, with a statistic or with the noise
Travels   coordinator -> party: the plan (noise, sizes, bounds), then a shape B, and in each later round a model. Party
          -> center: its squares A, then its moments (t, M) in that shape, and in each later round its responses to that
          model, with its share of the noise, in three sealed envelopes. Center -> coordinator: the sum
Revealed  the noisy squares and moments, the noisy responses of every round, hence the shape, every iterate and the
          model, to everybody; the numbers of records n_j, if the relation is replace-one; the public start
Privacy   one Gaussian release of the squares, one of the moments and T of responses, together calibrated to (epsilon,
          delta); one record, replace-one or add-remove
Assumes   rows of norm at most the schema's radius r, enforced where a table is encoded; the intercept is one more
          feature of fixed value c, 0.3 r as a rule, so that R^2 = r^2 + c^2. The start is made from public data
Cost      2 + T rounds, T = 3 to 10 by rule; k = d + 1 features: a party sends 3 x 32 bytes for each of k (k+1)/2
          numbers twice and of k numbers 1 + T times (C k with C > 2 classes), gets k (k+1)/2 numbers 1 + T times, and
          makes one pass over its records in each; the coordinator decomposes a k x k matrix and solves systems of that
          size
Paper     ours; after PrivLogit (Wang's dissertation, chapter 5), which opens exact iterates and promises nothing. There
          is no calibration of a document

Proof. Given what was opened before, each question is fixed. One record moves the squares, the moments in a given shape
and the responses to a given model by no more than `newton_sum` says, rounding included; with the noise there each
release is mu_k-Gaussian private, and all of them mu-Gaussian private, mu^2 = sum mu_k^2, which is (epsilon, delta) by
the exact profile. How mu^2 is split, and every other choice, is a public rule (`newton_rule`). Everything else (shape,
denoising, weights, penalties, solutions, intervals, notices) is computed from what was opened, from the plan and, under
replace-one, from the sizes.

Why a shape. Noise that is alike in all directions of the rows drowns those in which they vary little. A seventh of the
budget is spent on squares that tell which these are; then rows are stretched until all directions count alike, and long
ones count less (`newton_shape`); `benchmarks/newton_rules.py` measures what that is worth.

Why responses and not gradients. The gradient is S(w) - t. A record moves t by 1 and S by about 0.7 to 0.9, and a
gradient by 1.5 to 1.9: opening both parts costs no more than opening the gradient. But t is needed once and comes
with M at 6 % more noise, so that nothing is spent on curvature alone; S is near 0 for a model near 0; and what is known
of S from M makes its noise count less (`newton_solve`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema
from tacit.errors import SettingError
from tacit.federation.federation import Federation
from tacit.methods.method import Learned, Method
from tacit.methods.neighbour import Neighbours
from tacit.methods.newton_interval import interval
from tacit.methods.newton_neighbour import worst_pair
from tacit.methods.newton_rule import Outlook, Rules, default_rules, outlook
from tacit.methods.newton_shape import opened_shape
from tacit.methods.newton_solve import (
    Equation,
    Solved,
    constant_row,
    exact_solution,
    raised,
    with_constant,
)
from tacit.methods.newton_sum import (
    MOST_RECORDS,
    Plan,
    party_moments,
    party_responses,
    party_squares,
    release_event,
    upper,
)
from tacit.methods.noisy_gradient import Plan as GradientPlan
from tacit.methods.public_model import linear_model
from tacit.methods.setting import check_choice, check_colluders, check_l2, check_privacy, required_radius
from tacit.methods.start_check import Evidence, start_notices
from tacit.privacy.accounting import epsilon_of, guarantee_of
from tacit.privacy.event import Event, Gaussian
from tacit.privacy.gaussian import gaussian_mu
from tacit.privacy.guarantee import RELATIONS, Guarantee, Relation
from tacit.report.facts import RunFacts

Floats = npt.NDArray[np.float64]

LARGEST_DELTA = 1e-6
"""Of the rule for delta: no run has a larger one, however few its records."""
_LEAST_WEIGHT = 0.1  # of a record, on average, whatever the noise says
_UP = 1 + 4e-12  # more than the accountant's own rounding
_INTERVALS = (
    "Standard errors and intervals count the sampling error and the noise that was added for privacy. Intervals are "
    "about the unpenalised solution of the same noisy equation; the coefficients themselves are drawn towards the start"
)


class PrivateNewton(Method):
    """A classifier from a few noisy sums, (epsilon, delta)-private, with nobody to trust.

    Nothing need be set but epsilon: all else follows from public rules.

    Args:
        epsilon: the promise; infinity adds no noise and promises nothing.
        delta: its probability of failing; None takes 1/n^2, n the number of all records, but no more than 1e-6. Where
            records are added or removed n is not public, and None is 1e-6.
        rounds: how many models the parties are asked about after squares and moments; None takes a public rule.
        l2: regularisation of the sum over all records, towards the start; None takes a public rule (`default_l2`).
        start: a public model to start from: a fitted model, what `pretrain` gives, or a pair (coef, intercept).
        colluders: how many parties t may pool what they know; needs t + 2 parties, so that two honest ones are left.
            None means 1; with two parties each then adds all the noise itself.
        fit_intercept: whether to learn an intercept, which is not penalised.
        relation: "replace-one", where the numbers of records are public, or "add-remove".
    """

    name = "private-newton"

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        rounds: int | None = None,
        l2: float | None = None,
        start: object | None = None,
        colluders: int | None = None,
        fit_intercept: bool = True,
        relation: Relation = "replace-one",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rounds = rounds
        self.l2 = l2
        self.start = start
        self.colluders = colluders
        self.fit_intercept = fit_intercept
        self.relation = relation

    # --- what it costs -----------------------------------------------------------------------------------------------

    def event(self) -> Event:
        """What one run costs each record; needs no data. One release with all of mu costs what they do together.

        Where delta follows from the number of records, that of a fitted model is what it spent. Before, it is the most
        that any run spends: with more records delta, and with it mu, only gets smaller.
        """
        return release_event(self._mu(self._known_delta))

    @property
    def guarantee(self) -> Guarantee:
        """What one run promises; needs no data (but see `event`)."""
        self._check_settings()
        delta = 0.0 if math.isinf(self.epsilon) else self._known_delta
        promised = guarantee_of(self.event(), delta, self.unit, self.relation)
        return dataclasses.replace(promised, epsilon=self._as_asked(promised.epsilon), delta=delta)

    def at_noise(self, factor: float) -> Self:
        """The same method with `factor` times the noise in each release."""
        delta = self._known_delta
        epsilon = epsilon_of(Gaussian(noise_multiplier=factor / self._mu(delta)), delta)
        return type(self)(**self.get_params() | {"epsilon": epsilon, "delta": delta})

    def _mu(self, delta: float) -> float:
        return math.inf if math.isinf(self.epsilon) else _largest_mu(self.epsilon, delta)

    @property
    def _known_delta(self) -> float:
        """The delta that was asked for, or that of the last fit, or the largest that any fit can have."""
        if self.delta is not None:
            return self.delta
        return float(getattr(self, "delta_", LARGEST_DELTA))

    def _delta_for(self, parties: Federation) -> float:
        if self.delta is not None:
            return self.delta
        if self.relation == "add-remove":
            return LARGEST_DELTA
        return min(LARGEST_DELTA, 1 / sum(parties.sizes.values()) ** 2)

    # --- what is agreed beforehand -----------------------------------------------------------------------------------

    def _rules(self, n_records: int, n_parties: int, delta: float) -> Rules:
        """The public rules, with what the settings say in their place."""
        unit_noise = self._unit_noise(n_parties, delta)
        rules = default_rules(unit_noise, None if self.relation == "add-remove" else n_records)
        if self.rounds is None:
            return rules
        return dataclasses.replace(
            rules, rounds=self.rounds, moments=rules.moments if self.rounds else 1 - rules.squares
        )

    def _unit_noise(self, n_parties: int, delta: float) -> float:
        """The noise on a unit of sensitivity, the shares of possible colluders on top."""
        return math.sqrt(n_parties / (n_parties - self._colluders_among(n_parties))) / self._mu(delta)

    def plan(self, parties: Federation) -> Plan:
        """The public plan of a run with these parties."""
        radius = required_radius(parties.schema, type(self).__name__, 0.0)
        delta, sizes = self._delta_for(parties), parties.sizes.values()
        rules, mu = self._rules(sum(sizes), len(sizes), delta), self._mu(delta)
        of_rounds = 1 - rules.squares - rules.moments
        return Plan(
            mu_squares=mu * math.sqrt(rules.squares),
            mu_moments=mu * math.sqrt(rules.moments),
            mu_response=mu * math.sqrt(of_rounds / rules.rounds) if rules.rounds else mu,
            rounds=rules.rounds,
            relation=self.relation,
            n_largest=MOST_RECORDS if self.relation == "add-remove" else max(sizes),
            n_parties=len(sizes),
            colluders=self._colluders_among(len(sizes)),
            n_features=parties.schema.n_columns,
            n_classes=parties.schema.n_classes,
            radius=radius,
            constant=rules.constant * radius,
        )

    def _colluders_among(self, n_parties: int) -> int:
        if self.colluders is None:
            return min(1, n_parties - 1)
        if isinstance(self.colluders, int) and self.colluders >= 0 and n_parties < self.colluders + 2:
            raise SettingError(
                f"colluders = {self.colluders} among {n_parties} parties leaves fewer than two honest ones; "
                f"{self.colluders + 2} parties are needed, or choose fewer colluders"
            )
        check_colluders(self.colluders, n_parties)
        return self.colluders

    def outlook(self, schema: Schema, n_records: int, n_parties: int) -> Outlook:
        """What can be hoped for with so many records, before anything is spent; reads no data."""
        self._check_settings()
        delta = min(LARGEST_DELTA, 1 / n_records**2) if self.delta is None else self.delta
        moments = self._rules(n_records, n_parties, delta).moments
        n_scores = 1 if schema.n_classes == 2 else schema.n_classes
        noise = self._unit_noise(n_parties, delta) / math.sqrt(moments)
        return outlook(n_scores * (schema.n_columns + 1), n_records, noise)

    def _start_theta(self, plan: Plan, schema: Schema) -> Floats:
        """The public start in the shape (n_scores, k); zeros if there is none."""
        theta = np.zeros((plan.n_scores, plan.width))
        if self.start is None:
            return theta
        model = linear_model(self.start, schema, "start")
        if not self.fit_intercept and np.any(model.intercept_ != 0):
            raise SettingError("start has an intercept and fit_intercept = False; allow one, or leave it out")
        theta[:, :-1], theta[:, -1] = model.coef_, model.intercept_ / plan.constant
        if plan.n_classes > 2:
            theta -= theta.mean(axis=0)  # changes no probability
        return theta

    # --- learning ----------------------------------------------------------------------------------------------------

    def _check_settings(self) -> None:
        check_privacy(self.epsilon, self.delta)
        check_choice("relation", self.relation, RELATIONS)
        check_l2(self.l2, zero=True)
        if self.rounds is not None and (
            isinstance(self.rounds, bool) or not isinstance(self.rounds, int) or self.rounds < 0
        ):
            raise SettingError(
                f"rounds = {self.rounds!r} must be a whole number, 0 for the moments alone, or None for a rule"
            )

    def _learn(self, parties: Federation) -> Learned:
        plan = self.plan(parties)
        start = self._start_theta(plan, parties.schema)
        self.delta_ = self._delta_for(parties)
        is_exact = math.isinf(self.epsilon)
        n_records = float(sum(parties.sizes.values()))
        B = np.eye(plan.width) / plan.reach
        if not is_exact:
            squares = parties.sum(party_squares, **asdict(plan))
            B, n_records = opened_shape(plan, squares, None if self.relation == "add-remove" else n_records)
        equation = self._open_moments(parties, plan, B, n_records, start)
        if is_exact:
            l2 = 1.0 if self.l2 is None else float(self.l2)
            model = exact_solution(lambda model, turn: self._ask(parties, equation, model, turn)[0], equation, l2)
            inference, notices = None, tuple[str, ...]()
        else:
            solved = self._descend(parties, equation)
            model = solved.model
            inference = interval(equation, solved, parties.schema, round(n_records))
            notices = self._notices(parties, equation, inference is not None)
        theta = model @ B / equation.rho
        return Learned(coef=theta[:, :-1], intercept=theta[:, -1] * plan.constant, inference=inference, notices=notices)

    def _notices(self, parties: Federation, equation: Equation, has_intervals: bool) -> tuple[str, ...]:
        plan = equation.plan
        notices = [_INTERVALS] if has_intervals else []
        hope = self.outlook(parties.schema, max(1, round(equation.n_records)), parties.n_parties)
        if hope.is_hopeless:
            notices.append(
                f"The noise is too large for a model that does better than the class frequencies: about "
                f"{hope.least_records:,} records are needed at this epsilon and delta, or fewer columns"
            )
        if plan.n_parties == plan.colluders + 1 > 1:
            notices.append("With two parties each adds all the noise itself, since the other one knows its own")
        if self.start is not None and equation.observations:
            first = equation.observations[0]
            gradient, start = (first.response - equation.t) / equation.n_records, equation.start
            evidence = Evidence(
                gradient=gradient[0] if plan.n_classes == 2 else gradient,
                noise_std=math.hypot(first.noise_std, equation.t_noise) / equation.n_records,
                n_records=round(equation.n_records),
                level=equation.constant_row / plan.constant,
            )
            notices += start_notices(start[0] if plan.n_classes == 2 else start, [evidence], _gradient_plan(plan))
        return tuple(notices)

    def _open_moments(self, parties: Federation, plan: Plan, B: Floats, n_records: float, start: Floats) -> Equation:
        t, M, weight = plan.unpack(parties.sum(party_moments, shape=upper(B), **asdict(plan)), B)
        t_noise, M_noise = plan.moments_noise(B)
        q, c = constant_row(B), plan.constant
        weight = min(max(weight, _LEAST_WEIGHT * n_records), n_records)
        squared = min(max(float(q @ M @ q) / c**2, weight**2 / n_records), weight)  # the sum of squared weights
        M = with_constant(M, q, squared * c**2)
        return Equation(
            plan=plan,
            B=B,
            rho=weight / squared,
            n_records=n_records,
            t=t,
            opened=M,
            M=raised(M, M_noise),
            t_noise=t_noise,
            M_noise=M_noise,
            start=np.linalg.solve(B, start.T).T * (weight / squared),
            l2=self.l2,
            has_intercept=self.fit_intercept,
        )

    def _descend(self, parties: Federation, equation: Equation) -> Solved:
        """Ask about the best model so far, a few times; about a public start first."""
        solved = equation.solve(equation.start, 12)
        for turn in range(equation.plan.rounds):
            model = equation.start if turn == 0 and self.start is not None else solved.model
            response, noise_std = self._ask(parties, equation, model, turn)
            equation.observe(model, response, noise_std)
            solved = equation.solve(solved.model, 5)
        return solved

    def _ask(self, parties: Federation, equation: Equation, model: Floats, turn: int) -> tuple[Floats, float]:
        """S(model) over all parties, and the standard deviation of its noise."""
        plan, B, over_g = equation.plan, equation.B, model / equation.rho
        grid = plan.response_grid(B, over_g)
        opened = parties.sum(party_responses, shape=upper(B), model=over_g, turn=turn, **asdict(plan))
        return grid.from_grid(opened).reshape(model.shape), grid.noise_std

    @classmethod
    def worst_neighbours(cls) -> list[Neighbours]:
        """A record on either side of a confident start, which moves every release nearly as far as is claimed."""
        return [worst_pair()]

    # --- scikit-learn's conventions, with a model among the settings -------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings; those of the start are its own affair."""
        params: dict[str, Any] = super().get_params(deep=False)
        return params

    def __sklearn_clone__(self) -> Self:
        """The same settings with the same start, which a clone of it would have unlearned."""
        return type(self)(**self.get_params())

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        return super()._state() | {"delta": np.array(self.delta_)}

    def _restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        super()._restore(state)
        self.delta_ = float(state["delta"])

    def _facts(self, run: Federation, learned: Learned, sizes: Mapping[str, int], seconds: float) -> RunFacts:
        facts = dataclasses.replace(super()._facts(run, learned, sizes, seconds), fit=None)  # no likelihood was opened
        if self.start is None:
            return facts
        model = linear_model(self.start, run.schema, "start")
        plain = {"coef": model.coef_.tolist(), "intercept": model.intercept_.tolist()}
        return dataclasses.replace(facts, settings={**facts.settings, "start": plain})


@lru_cache(maxsize=64)
def _largest_mu(epsilon: float, delta: float) -> float:
    return gaussian_mu(epsilon, delta) / _UP


def _gradient_plan(plan: Plan) -> GradientPlan:
    """The same public facts, as the check of a start knows them."""
    return GradientPlan(
        rho=plan.mu_response**2 / 2,
        probability=1.0,
        clip=math.inf,
        paper_std=0.0,
        n_largest=plan.n_largest,
        n_parties=plan.n_parties,
        colluders=plan.colluders,
        n_features=plan.n_features,
        n_classes=plan.n_classes,
        radius=1.0,  # of weighted rows
        constant=plan.constant,
    )
