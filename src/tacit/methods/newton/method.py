"""Private Newton: squares, moments and responses to a few models, each summed with noise that nobody knows.

Parties   K parties with n_j records each; a center of three nodes that adds up; a coordinator that solves
Trust     coordinator, network and at most `colluders` parties may lie, and pool what they know; no two center nodes
          collude. Nobody is trusted with data, with a statistic or with the noise
Travels   coordinator -> party: a shape B, and in each later round a model. Party -> center: its squares A, then its
          moments (t, M) in that shape, and in each later round its responses to that model; each with its share of the
          noise, in three sealed envelopes; with `robust`, at the end, the middle C of the sandwich (`middle`); where
          a study wants an AUC, a histogram of scores (`measuring`). Center -> coordinator: the sum
Revealed  the noisy squares and moments, the noisy responses of every round and, if asked, middle and histogram; hence
          the shape, every iterate and the model, to everybody; the numbers of records n_j, or of persons, if the
          relation is replace-one and the unit no party; the public start
Privacy   one Gaussian release of the squares, one of the moments, T of responses and, if asked, one of the middle and
          one of the histogram, together calibrated to (epsilon, delta); one record, person or party (`unit`),
          replace-one or add-remove
Assumes   rows of norm at most the schema's radius r, enforced where a table is encoded; the intercept is one more
          feature of fixed value c, 0.3 r as a rule, so that R^2 = r^2 + c^2. The start is made from public data
Cost      2 + T rounds, T = 0 or 3 to 10 by rule, and one each with `robust` and for an AUC; k = d + 1; a party sends
          3 x 32 bytes for each of k (k+1)/2 numbers twice, of k numbers 1 + T times, and with `robust` of k (k+1)/2
          more; of C > 2 classes k is C k in the last two; a party gets k (k+1)/2 numbers 1 + T times, and makes one
          pass over its records in each; the coordinator decomposes a k x k matrix and solves systems of that size
Paper     ours; after PrivLogit (Wang's dissertation, chapter 5), which opens exact iterates and promises nothing. There
          is no calibration of a document

Proof. Given what was opened before, each question is fixed. One record moves the squares, the moments in a given shape
and the responses to a given model by no more than `statistic` says, the middle by no more than `middle` says and the
histogram by no more than `measuring` says, rounding included. With the noise there each release is mu_k-Gaussian
private, and all of them mu-Gaussian private, mu^2 = sum mu_k^2, which is (epsilon, delta) by the exact profile. How
mu^2 is split, and every other choice, is a public rule (`rule`). Everything else (shape, denoising, weights, penalties,
solutions, intervals, notices) is computed from what was opened, from the plan and, under replace-one, from the sizes.

Why a shape. Noise that is alike in all directions of the rows drowns those in which they vary little. A tenth of the
budget is spent on squares that tell which these are; then rows are stretched until all directions count alike, and long
ones count less (`shape`); `benchmarks/newton_rules.py` measures what that is worth.

Why responses and not gradients. The gradient is S(w) - t. A record moves t by 1 and S by about 0.7 to 0.9, and a
gradient by 1.5 to 1.9: opening both parts costs no more than opening the gradient. But t is needed once and comes
with M at 6 % more noise, so that nothing is spent on curvature alone; S is near 0 for a model near 0; and what is known
of S from M makes its noise count less (`solver`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema
from tacit.errors import SettingError
from tacit.federation.agreement import Ask
from tacit.federation.channel import Channel
from tacit.federation.step import Step
from tacit.methods.cohort import Cohort, Promise
from tacit.methods.evaluation.auc import AucInterval
from tacit.methods.method import Learned, Method
from tacit.methods.neighbour import Neighbours
from tacit.methods.newton.exact_solution import MOST_EXACT_ROUNDS, exact_solution
from tacit.methods.newton.interval import interval, interval_notices
from tacit.methods.newton.measuring import SHARE as MEASURING
from tacit.methods.newton.measuring import ask_measuring, check_measuring, party_measuring
from tacit.methods.newton.middle import ask_middle, party_middle
from tacit.methods.newton.neighbour import worst_pair
from tacit.methods.newton.opening import open_moments
from tacit.methods.newton.rule import MIDDLE, NewtonOutlook, Rules, default_rules, outlook
from tacit.methods.newton.safeguard import Safeguard
from tacit.methods.newton.shape import Outline, opened_shape
from tacit.methods.newton.shrinkage import SEEN
from tacit.methods.newton.solver import Equation
from tacit.methods.newton.statistic import Plan, Trial, party_moments, party_responses, party_squares, release_event
from tacit.methods.newton.tangent import Solved
from tacit.methods.newton.triangle import upper
from tacit.methods.public_model import linear_model
from tacit.methods.setting import check_l2, check_unit
from tacit.methods.start_check import Evidence, start_notices
from tacit.models.inference import Inference
from tacit.models.parameter import coefficients, parameter
from tacit.privacy.accounting import epsilon_of
from tacit.privacy.event import Event, Gaussian
from tacit.privacy.guarantee import Relation
from tacit.report.facts import RunFacts
from tacit.unit import Unit

Floats = npt.NDArray[np.float64]

_NOTHING = "At this epsilon the model cannot be told from {}: what was opened is as likely if no column matters{}"


class PrivateNewton(Method):
    """A classifier from a few noisy sums, (epsilon, delta)-private, with nobody to trust.

    Nothing need be set but epsilon: all else follows from public rules.

    Args:
        epsilon: the promise; infinity adds no noise and promises nothing.
        delta: its probability of failing; None takes 1/n^2, n the number of all records, but no more than 1e-6. Where
            records are added or removed n is not public, and None is 1e-6.
        rounds: how many models the parties are asked about after squares and moments; None takes a public rule.
        l2: regularisation of the sum over all records, towards the start. None draws the model there as far as what was
            opened says (`shrinkage`). Where epsilon is infinite it is 1.0.
        start: a public model to start from: a fitted model, what `pretrain` gives, or a pair (coef, intercept).
        colluders: how many parties t may pool what they know; needs t + 2 parties, so that two honest ones are left.
            None means 1; with two parties each then adds all the noise itself.
        fit_intercept: whether to learn an intercept, which is not penalised.
        relation: "replace-one", where the numbers of records are public, or "add-remove".
        unit: what is protected: one "record", all records of one "person" (tables tell whose a record is), or all of
            one "party". A unit's m records weigh 1/m each: the model is that of the fit with these weights.
        robust: whether to measure how much records vary about the model. Where no logistic model is right, intervals
            are then for the one that is best for the weighted records: long rows count less in it. That takes a tenth
            of the budget (`middle`), so that all other noise grows by a twentieth.

    Example:
        >>> import tacit
        >>> hospitals = tacit.datasets.load("readmission").tables
        >>> parties = tacit.Federation.from_tables({name: hospitals[name] for name in ("north", "south", "west")})
        >>> model = tacit.PrivateNewton(epsilon=1.0).fit(parties)
        >>> list(model.table()["term"])
        ['(intercept)', 'age', 'days_in_hospital', 'earlier_admissions', 'emergency']
    """

    name = "private-newton"
    error_share = 1.0  # of the 5 % in which intervals may miss; less in a look of a study, so that all looks share them
    measures = False  # whether an AUC is measured on records kept out of the fit: where a study's looks want one
    auc_: AucInterval | None = None

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
        unit: Unit = "record",
        robust: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rounds = rounds
        self.l2 = l2
        self.start = start
        self.colluders = colluders
        self.fit_intercept = fit_intercept
        self.relation = relation
        self.unit = unit
        self.robust = robust

    @property
    def takes_offers(self) -> bool:  # type: ignore[override]
        """Whether a party may offer less epsilon than is asked: where all noise is Gaussian."""
        return self.promise.not_private is None

    # --- what it costs -----------------------------------------------------------------------------------------------

    def event(self) -> Event:
        """What one run costs each record; needs no data. One release with all of mu costs what they do together.

        Where delta follows from the number of records, this is the most that any run spends: with more records delta,
        and with it mu, only gets smaller.
        """
        return release_event(self.promise.settled().mu, self.relation)

    def at_noise(self, factor: float) -> Self:
        """The same method with `factor` times the noise in each release."""
        promise = self.promise.settled()
        epsilon = epsilon_of(Gaussian(noise_multiplier=factor / promise.mu), promise.settled_delta)
        return type(self)(**self.get_params() | {"epsilon": epsilon, "delta": promise.delta})

    # --- what is agreed beforehand -----------------------------------------------------------------------------------

    def plan(self, cohort: Cohort) -> Plan:
        """The public plan of a run with this cohort."""
        self._check_honest(cohort)
        if self.measures:
            check_measuring(cohort, self.unit, self.relation, is_private=self.guarantee.is_private)
        promise = self.promise.settled(cohort.n_units)
        of_middle, of_measuring = self._of_middle, self._of_measuring
        mu = promise.mu * math.sqrt(1 - of_middle - of_measuring)  # of all other releases
        rules = self._rules(max(1, round(cohort.n_weighted)), _unit_noise(promise, cohort.n_parties, cohort.colluders))
        of_rounds = 1 - rules.squares - rules.moments
        return Plan(
            cohort=cohort.with_constant(rules.constant * cohort.radius),
            mu_squares=mu * math.sqrt(rules.squares),
            mu_moments=mu * math.sqrt(rules.moments),
            mu_response=mu * math.sqrt(of_rounds / rules.rounds) if rules.rounds else mu,
            rounds=MOST_EXACT_ROUNDS if promise.is_exact else rules.rounds,
            relation=self.relation,
            mu_middle=promise.mu * math.sqrt(of_middle) if of_middle else 0.0,
            mu_measuring=promise.mu * math.sqrt(of_measuring) if of_measuring else 0.0,
        )

    def course(self, plan: Plan) -> tuple[Ask, ...]:
        """Squares, moments in the shape that follows from them, responses to a few models, and the middle if wanted."""
        asks = [_ask_of(plan, party_squares, plan.mu_squares), _ask_of(plan, party_moments, plan.mu_moments)]
        if plan.rounds:
            asks.append(_ask_of(plan, party_responses, plan.mu_response, plan.rounds))
        if plan.mu_middle:
            asks.append(_ask_of(plan, party_middle, plan.mu_middle))
        if plan.mu_measuring:
            asks.append(_ask_of(plan, party_measuring, plan.mu_measuring))
        return tuple(asks)

    @property
    def _of_middle(self) -> float:
        """The share of mu^2 for the middle of the sandwich: none, unless it is wanted."""
        return MIDDLE if self.robust and not self.promise.is_exact else 0.0

    @property
    def _of_measuring(self) -> float:
        """The share of mu^2 for the AUC: none, unless it is wanted."""
        return MEASURING if self.measures else 0.0

    def _rules(self, n_records: int, unit_noise: float) -> Rules:
        """The public rules, with what the settings say in their place."""
        return default_rules(unit_noise, None if self.relation == "add-remove" else n_records, self.rounds)

    def _check_honest(self, cohort: Cohort) -> None:
        """Refuse colluders that are asked for and leave fewer than two honest parties."""
        if self.colluders is not None and cohort.n_parties < cohort.colluders + 2:
            raise SettingError(
                f"colluders = {self.colluders} among {cohort.n_parties} parties leaves fewer than two honest ones; "
                f"{cohort.colluders + 2} parties are needed, or choose fewer colluders"
            )

    def outlook(self, schema: Schema, n_records: int, n_parties: int) -> NewtonOutlook:
        """What can be hoped for with so many records, before anything is spent; reads no data."""
        self._check_settings()
        n_records = n_parties if self.unit == "party" else n_records
        colluders = min(1, n_parties - 1) if self.colluders is None else self.colluders
        unit_noise = _unit_noise(self.promise.settled(n_records), n_parties, colluders)
        moments = self._rules(n_records, unit_noise).moments * (1 - self._of_middle - self._of_measuring)
        n_scores = 1 if schema.n_classes == 2 else schema.n_classes
        return outlook(n_scores * (schema.n_columns + 1), n_records, unit_noise / math.sqrt(moments))

    def _start_theta(self, plan: Plan, schema: Schema) -> Floats:
        """The public start in the shape (n_scores, k); zeros if there is none."""
        if self.start is None:
            return np.zeros((plan.n_scores, plan.width))
        model = linear_model(self.start, schema, "start")
        if not self.fit_intercept and np.any(model.intercept_ != 0):
            raise SettingError("start has an intercept and fit_intercept = False; allow one, or leave it out")
        theta = parameter(model.coef_, model.intercept_, plan.cohort.constant)
        if plan.cohort.n_classes > 2:
            theta -= theta.mean(axis=0)  # changes no probability
        return theta

    # --- learning ----------------------------------------------------------------------------------------------------

    def _check_settings(self) -> None:
        self.promise.check()
        if self.promise.is_pure:
            raise SettingError("delta = 0: PrivateNewton has no pure form; leave delta out, or choose 1e-6")
        check_l2(self.l2, zero=True)
        if self.l2 == 0 and self.promise.is_exact:
            raise SettingError("l2 = 0 with epsilon = inf: no model may be best; choose l2 > 0, or method 'pooled'")
        check_unit(self.unit, is_paper=False)
        if not isinstance(self.robust, bool):
            raise SettingError(f"robust = {self.robust!r} must be True or False")
        if self.rounds is not None and (
            isinstance(self.rounds, bool) or not isinstance(self.rounds, int) or self.rounds < 0
        ):
            raise SettingError(
                f"rounds = {self.rounds!r} must be a whole number, 0 for the moments alone, or None for a rule"
            )

    def _learn(self, channel: Channel, plan: Plan) -> Learned:
        start = self._start_theta(plan, channel.schema)
        is_exact = math.isinf(self.epsilon)
        n_records = plan.n_fitted
        if is_exact:
            plain = np.eye(plan.width)
            outline = Outline(B=plain / plan.reach, n_records=n_records, expected=plain)
        else:
            squares = channel.sum(party_squares)
            outline = opened_shape(plan, squares, None if self.relation == "add-remove" else n_records)
        B, n_records = outline.B, outline.n_records
        equation = open_moments(channel, plan, outline, start, l2=self.l2, has_intercept=self.fit_intercept)
        if is_exact:
            l2 = 1.0 if self.l2 is None else float(self.l2)
            model = exact_solution(lambda model: self._ask(channel, equation, model)[0], equation, l2)
            inference, notices, verdict = None, tuple[str, ...](), None
        else:
            solved = self._descend(channel, equation)
            model = solved.model
            if plan.mu_middle:
                equation.middle = ask_middle(channel, plan, equation.B, model / equation.rho)
            inference = self._inference(equation, solved, channel.schema, round(n_records))
            notices = self._notices(channel, equation, inference)
            verdict = self._verdict(equation, solved)
        theta = model @ B / equation.rho
        if plan.mu_measuring:
            self.auc_ = ask_measuring(channel, plan, outline, theta, confidence=1 - 0.05 * self.error_share)
        coef, intercept = coefficients(theta, plan.cohort.n_features, plan.cohort.constant)
        return Learned(coef=coef, intercept=intercept, inference=inference, notices=notices, verdict=verdict)

    def _inference(self, equation: Equation, solved: Solved, schema: Schema, n_records: int) -> Inference | None:
        """Intervals that miss in 5 % of the cases, or in this look's share of that; p-values to match."""
        found = interval(equation, solved, schema, n_records, confidence=1 - 0.05 * self.error_share)
        if found is None or self.error_share == 1:
            return found
        return dataclasses.replace(found, p=np.minimum(1.0, found.p / self.error_share))

    def _verdict(self, equation: Equation, solved: Solved) -> str | None:
        """A sentence where noise could have made all that is seen, near the model and near its start."""
        if solved.evidence is None or max(solved.evidence, equation.evidence_at_start()) >= SEEN:
            return None
        return (
            _NOTHING.format("its start", " beyond it")
            if self.start is not None
            else _NOTHING.format("the class frequencies alone", "")
        )

    def _notices(self, channel: Channel, equation: Equation, inference: Inference | None) -> tuple[str, ...]:
        plan = equation.plan
        notices = interval_notices(inference, robust=plan.mu_middle > 0, is_set=self.l2 is not None)
        hope = self.outlook(channel.schema, max(1, round(equation.n_records)), channel.n_parties)
        if hope.is_hopeless:
            notices.append(
                f"The noise is too large for a model that does better than the class frequencies: about "
                f"{hope.least_records:,} records are needed at this epsilon and delta, or fewer columns"
            )
        if plan.cohort.n_parties == plan.cohort.colluders + 1 > 1:
            notices.append("With two parties each adds all the noise itself, since the other one knows its own")
        if self.start is not None and equation.observations:
            first = equation.observations[0]
            gradient, start = (first.response - equation.t) / equation.n_records, equation.start
            evidence = Evidence(
                gradient=gradient[0] if plan.cohort.n_classes == 2 else gradient,
                noise_std=math.hypot(first.noise_std, equation.t_noise) / equation.n_records,
                n_records=round(equation.n_records),
                level=equation.constant_row / plan.cohort.constant,
            )
            own = start[0] if plan.cohort.n_classes == 2 else start
            notices += start_notices(own, [evidence], n_classes=plan.cohort.n_classes, row_norm=1.0)  # weighted rows
        return tuple(notices)

    def _descend(self, channel: Channel, equation: Equation) -> Solved:
        """Ask about the best model so far, a few times; about a public start first."""
        solved, safeguard = equation.solve(equation.start, 12), Safeguard(equation=equation)
        for turn in range(equation.plan.rounds):
            model = equation.start if turn == 0 and self.start is not None else solved.model
            response, noise_std = self._ask(channel, equation, model)
            equation.observe(model, response, noise_std)
            safeguard.take()
            found = equation.solve(solved.model, 5)
            solved = dataclasses.replace(found, model=safeguard.step(found))
        return solved

    def _ask(self, channel: Channel, equation: Equation, model: Floats) -> tuple[Floats, float]:
        """S(model) over all parties, and the standard deviation of its noise."""
        plan, B, over_g = equation.plan, equation.B, model / equation.rho
        grid = plan.response_grid(B, over_g)
        opened = channel.sum(party_responses, Trial(shape=upper(B), model=over_g))
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

    def _facts(self, run: Channel, learned: Learned, sizes: Mapping[str, int | None], seconds: float) -> RunFacts:
        facts = dataclasses.replace(super()._facts(run, learned, sizes, seconds), fit=None)  # no likelihood was opened
        if self.start is None:
            return facts
        model = linear_model(self.start, run.schema, "start")
        plain = {"coef": model.coef_.tolist(), "intercept": model.intercept_.tolist()}
        return dataclasses.replace(facts, settings={**facts.settings, "start": plain})


def _ask_of(plan: Plan, step: Step, mu: float, times: int = 1) -> Ask:
    event = plan.event(mu)
    return Ask(step=step, times=times, event=event, own=plan.cohort.costs(event))


def _unit_noise(promise: Promise, n_parties: int, colluders: int) -> float:
    """The noise on a unit of sensitivity, the shares of possible colluders on top."""
    return math.sqrt(n_parties / (n_parties - colluders)) / promise.mu
