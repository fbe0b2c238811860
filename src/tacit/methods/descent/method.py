"""Noisy descent: gradients of all parties' records, summed with noise that nobody knows; best from a public start.

Parties   K parties with n_j records each; a center of three nodes that adds up; a coordinator that descends
Trust     coordinator, network and at most `colluders` parties may lie, and pool what they know; no two center nodes
          collude. Nobody is trusted with data, with a gradient or with the noise
Travels   in each round, coordinator -> party: the iterate. Party -> center: the sum of its records' gradients with its
          share of the noise, in three sealed envelopes. Center -> coordinator: the sum. How many rounds there are,
          and with how much noise, each party works out itself
Revealed  the noisy gradient of every round, hence every iterate and the model, to everybody; the numbers of records
          n_j, or of persons, which the replace-one relation leaves public, unless the unit is the party; the start
Privacy   sound: T Gaussian releases, or T of Poisson samples, together calibrated to (epsilon, delta); one record,
          person or party (`unit`), replace-one. paper: NotPrivate
Assumes   rows of norm at most the schema's radius, enforced where a table is encoded; the intercept is one more
          feature of fixed value, so that R^2 = radius^2 + 1. The start is made from public data
Cost      T rounds (10 to 100 by the default rule); a party sends 3 x 32 bytes a coefficient and makes one pass over
          its records in each
Paper     Hoseinpour, Hoseinpour and Aghagolzadeh 2023. Sound departs from it in the noise. Clipping the *whole*
          gradient bounds what a record does by 2 C and not by 2 C / n, so we bound (or clip) each record's gradient;
          all rounds are counted, and not one; pre-training stays, for it costs nothing. `calibration="paper"` clips
          the whole gradient of the summed loss to C and adds noise of 2 C / (n epsilon) sqrt(2 ln(1.25 / delta)) a
          round; the epsilon is that of one round; the coordinator plays the document's one owner

Proof (sound). Given what was opened before, theta_k is fixed. Replacing one record moves the sum of gradients there by
at most S_k = min(D(||theta_k||), 2 C), rounding included (`statistic`). The grid adds discrete Gaussian noise that
makes the opened sum (mu / sqrt T)-Gaussian private for S_k (`privacy.noise.continuous`). The squares add up over rounds
that depend on earlier outcomes: mu in all, which is (epsilon, delta) by the exact profile (`mu_for`). At theta = 0, S
is R and not 2 R. Steps, momentum, the penalty towards the start, averages and notices are
computed from opened sums and public numbers. With `batch` the cost of T sampled rounds is that of the accountant's
`PoissonSampled` (`statistic` has the proof that discrete noise does as well), under replace-one.

Descent. The objective is the mean loss + (l2 / 2 n) ||theta - start||^2. One round: v <- 0.9 v + gradient, theta <-
theta - learning_rate v. The model is the mean of the later half of the iterates: T noisy gradients of mu / sqrt T each
are worth one of mu, if they are averaged.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.federation.agreement import Ask
from tacit.federation.channel import Channel
from tacit.methods.cohort import Cohort, Promise
from tacit.methods.descent.solver import Descent, Schedule, default_schedule
from tacit.methods.descent.statistic import Plan, party_gradient, party_gradient_and_noise, round_event
from tacit.methods.method import Learned, Method
from tacit.methods.neighbour import Neighbours
from tacit.methods.public_model import linear_model
from tacit.methods.setting import check_l2, check_unit, check_whole
from tacit.methods.start_check import start_notices
from tacit.models.parameter import coefficients, parameter
from tacit.privacy.accounting import epsilon_of, least_noise
from tacit.privacy.event import Event, Gaussian, PoissonSampled, Repeated
from tacit.report.facts import RunFacts
from tacit.unit import Unit

Floats = npt.NDArray[np.float64]

_SAMPLED_ROUNDS = 100  # the rule for batches: the accountant must know the number before any size is known
_PAPER_ROUNDS = 100
_PAPER_CLIP = 1.0
_PAPER_LEARNING_RATE = 0.1


class NoisyDescent(Method):
    """Gradient descent on all parties' records with (epsilon, delta) privacy, with nobody to trust.

    Args:
        epsilon: the promise; infinity adds no noise and promises nothing.
        delta: its probability of failing; None takes the rule min(1e-6, 1 / n^2). There is no pure form.
        rounds: how many gradients are asked for; None takes a public rule (`default_schedule`).
        learning_rate: of the mean loss, before momentum; None takes a public rule.
        l2: regularisation of the sum over all records, towards the start; None takes a public rule.
        batch: None for every record in every round, or the probability with which a record enters a round. It saves
            work, not noise; and finding the noise takes the accountant some seconds, minutes if epsilon is large.
        clip: the norm to which each record's gradient is scaled down; None for the bound that its row implies.
        start: a public model to start from: a fitted model, what `pretrain` gives, or a pair (coef, intercept).
        colluders: how many parties may pool what they know; None means 1 (every party knows its own share of the
            noise), or 0 if there is one party.
        fit_intercept: whether to learn an intercept, as a penalised feature.
        calibration: "sound", or "paper" for the document's noise, which is NOT PRIVATE. There epsilon is that of one
            round, `clip` (None: 1) that of the whole gradient and `learning_rate` (None: 0.1) that of the summed loss.
        unit: what is protected: one "record", all records of one "person" (tables tell whose a record is), or all of
            one "party". A unit's m records weigh 1/m each: the model is that of the fit with these weights.

    Example:
        >>> import tacit
        >>> hospitals = tacit.datasets.load("readmission").tables
        >>> parties = tacit.Federation.from_tables({name: hospitals[name] for name in ("north", "south", "west")})
        >>> model = tacit.NoisyDescent(epsilon=1.0, rounds=20).fit(parties)
        >>> model.coef_.shape
        (1, 4)
    """

    name = "noisy-descent"
    needs_everybody = False

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        rounds: int | None = None,
        learning_rate: float | None = None,
        l2: float | None = None,
        batch: float | None = None,
        clip: float | None = None,
        start: object | None = None,
        colluders: int | None = None,
        fit_intercept: bool = True,
        calibration: Literal["sound", "paper"] = "sound",
        unit: Unit = "record",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rounds = rounds
        self.learning_rate = learning_rate
        self.l2 = l2
        self.batch = batch
        self.clip = clip
        self.start = start
        self.colluders = colluders
        self.fit_intercept = fit_intercept
        self.calibration = calibration
        self.unit = unit

    @property
    def takes_offers(self) -> bool:  # type: ignore[override]
        """Whether a party may offer less epsilon than is asked: where all noise is Gaussian."""
        return self.promise.not_private is None and self.batch is None

    # --- what it costs -----------------------------------------------------------------------------------------------

    def event(self) -> Event:
        """What one run costs each record; needs no data.

        Where a rule chooses the number of rounds, this is one release with all of mu: it costs what they do.
        """
        if (nothing := self.promise.not_private) is not None:
            return nothing
        rounds = self._rounds_of_event()
        mu = self._mu_of_round(self.promise, rounds)
        return Repeated(event=round_event(mu, self._probability), count=rounds)

    def at_noise(self, factor: float) -> Self:
        """The same method with `factor` times the noise in each round."""
        if self.batch is None:
            return super().at_noise(factor)
        rounds, delta = self._rounds_of_event(), self.promise.settled_delta
        mu = self._mu_of_round(self.promise, rounds) / factor
        event = Repeated(event=round_event(mu, self._probability), count=rounds)
        return type(self)(**self.get_params() | {"epsilon": epsilon_of(event, delta)})

    def _as_asked(self, epsilon: float) -> float:
        """As asked, too, where the search for a sampled round's noise has left a little of epsilon unused."""
        if self.batch is not None and 0.99 * self.epsilon <= epsilon <= self.epsilon:
            return float(self.epsilon)
        return super()._as_asked(epsilon)

    @property
    def _probability(self) -> float:
        return 1.0 if self.batch is None else float(self.batch)

    def _rounds_of_event(self) -> int:
        if self.rounds is not None:
            return self.rounds
        return 1 if self.batch is None else _SAMPLED_ROUNDS

    def _mu_of_round(self, promise: Promise, rounds: int) -> float:
        """mu of one of so many rounds, sensitivity over noise; infinite if there is no noise that counts."""
        if self.batch is None or promise.not_private is not None:
            return promise.mu / math.sqrt(rounds)
        return 1 / _sampled_noise(float(promise.epsilon), promise.settled_delta, self._probability, rounds)

    # --- what is agreed beforehand -----------------------------------------------------------------------------------

    def schedule(self, cohort: Cohort) -> Schedule:
        """How many rounds, and how long the steps are: public rules where the settings leave it open."""
        n, promise = max(1, round(cohort.n_weighted)), self.promise.settled(cohort.n_units)
        if promise.is_paper:
            rate = _PAPER_LEARNING_RATE if self.learning_rate is None else self.learning_rate
            l2 = 0.0 if self.l2 is None else self.l2
            return Schedule(rounds=self.rounds or _PAPER_ROUNDS, learning_rate=rate, l2_mean=l2 / n)
        mu, rounds = promise.mu, self.rounds
        if self.batch is not None and not promise.is_exact:
            # A sampled round has noise G / mu_1 on a gradient of q n records: as much as T rounds with this.
            rounds = self._rounds_of_event()
            mu = math.sqrt(2 * rounds) * self._mu_of_round(promise, rounds) * self.batch
        rule = default_schedule(cohort.loss, cohort.row_norm, n, mu, rounds=rounds, is_warm=self.start is not None)
        return Schedule(
            rounds=rule.rounds,
            learning_rate=rule.learning_rate if self.learning_rate is None else self.learning_rate,
            l2_mean=rule.l2_mean if self.l2 is None else self.l2 / n,
        )

    def plan(self, cohort: Cohort) -> Plan:
        """The public plan of a run with this cohort."""
        promise, rounds = self.promise.settled(cohort.n_units), self.schedule(cohort).rounds
        is_paper = promise.is_paper
        plan = Plan(
            cohort=cohort,
            promise=promise,
            rounds=rounds,
            mu=self._mu_of_round(promise, rounds),
            probability=self._probability,
            clip=math.inf if self.clip is None or is_paper else float(self.clip),
            paper_std=paper_noise(self._paper_clip, cohort.n_records, promise) if is_paper else 0.0,
        )
        plan.grid(np.zeros(plan.loss.shape))  # a missing bound, or one too coarse, is found before a party is asked
        return plan

    def course(self, plan: Plan) -> tuple[Ask, ...]:
        """One gradient of each party in each round, as the calibration asks for it."""
        step = party_gradient_and_noise if plan.promise.is_paper else party_gradient
        return (Ask(step=step, times=plan.rounds, event=plan.event(), own=plan.cohort.costs(plan.event())),)

    @property
    def _paper_clip(self) -> float:
        return _PAPER_CLIP if self.clip is None else float(self.clip)

    def _start(self, plan: Plan, schema: Schema) -> Floats:
        """The public start in the shape of a parameter; zeros if there is none."""
        if self.start is None:
            return np.zeros(plan.loss.shape)
        model = linear_model(self.start, schema, "start")
        if not self.fit_intercept and np.any(model.intercept_ != 0):
            raise SettingError("start has an intercept and fit_intercept = False; allow one, or leave it out")
        return parameter(model.coef_, model.intercept_, plan.cohort.constant).reshape(plan.loss.shape)

    # --- learning ----------------------------------------------------------------------------------------------------

    def _check_settings(self) -> None:
        self.promise.check()
        if self.promise.is_pure:
            raise SettingError("delta = 0: NoisyDescent has no pure form; give a probability, or None for the rule")
        if self.rounds is not None:
            check_whole("rounds", self.rounds)
        check_l2(self.l2, zero=True)
        _check_positive("learning_rate", self.learning_rate)
        _check_positive("clip", self.clip)
        _check_positive("batch", self.batch)
        if self.batch is not None and not self.batch < 1:
            raise SettingError(f"batch = {self.batch!r} must be a probability below 1; None takes every record")
        if self.batch is not None and self.calibration == "paper":
            raise SettingError(f"batch = {self.batch!r}: the document has no batches; leave it out")
        check_unit(self.unit, is_paper=self.promise.is_paper)
        if self.batch is not None and self.unit != "record":
            raise SettingError(
                f"batch = {self.batch!r} samples records one by one, which hides no {self.unit}; leave one out"
            )

    def _learn(self, channel: Channel, plan: Plan) -> Learned:
        start = self._start(plan, channel.schema)
        descent = Descent(plan, self.schedule(plan.cohort), start)
        theta = descent.paper(channel, self._paper_clip) if plan.promise.is_paper else descent.sound(channel)
        self.iterates_ = np.array([start, *descent.iterates])  # opened, all of them
        notices: tuple[str, ...] = ()
        if self.start is not None:
            notices = start_notices(
                start, descent.evidence, n_classes=plan.cohort.n_classes, row_norm=plan.cohort.row_norm
            )
        coef, intercept = coefficients(theta, plan.cohort.n_features, plan.cohort.constant)
        return Learned(coef=coef, intercept=intercept, notices=notices)

    @classmethod
    def worst_neighbours(cls) -> list[Neighbours]:
        """A record turned about at the zero model, or about the direction of a confident start, in a single round."""
        one, two = (Schema.of_arrays(d, ["0", "1"], norm_bound=1.0) for d in (1, 2))

        def party(row: list[float], label: int) -> Table:
            return Table.from_arrays(np.array([row]), np.array([label]), one if len(row) == 1 else two)

        settings = {"rounds": 1, "learning_rate": 1.0, "l2": 0.0, "fit_intercept": False, "colluders": 0}
        b, a = 3.0, 2.0553  # the angle that makes 2 sin(a) sigma(-b cos a) largest
        pairs = {
            "an extreme label": (party([1.0], 0), party([1.0], 1), party([0.0], 1), None),
            "opposed features": (party([1.0], 1), party([-1.0], 1), party([0.0], 1), None),
            "either side of a confident start": (
                party([math.cos(a), math.sin(a)], 1),
                party([math.cos(a), -math.sin(a)], 1),
                party([0.0, 0.0], 1),
                {"coef": [[b, 0.0]], "intercept": [0.0]},
            ),
        }
        return [
            Neighbours(
                label=label,
                first={"a": first, "b": quiet},
                second={"a": second, "b": quiet},
                settings=settings | {"start": start},
            )
            for label, (first, second, quiet, start) in pairs.items()
        ]

    # --- scikit-learn's conventions, with a model among the settings -------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings; those of the start are its own affair."""
        params: dict[str, Any] = super().get_params(deep=False)
        return params

    def __sklearn_clone__(self) -> Self:
        """The same settings with the same start, which a clone of it would have unlearned."""
        return type(self)(**self.get_params())

    def _facts(self, run: Channel, learned: Learned, sizes: Mapping[str, int | None], seconds: float) -> RunFacts:
        facts = super()._facts(run, learned, sizes, seconds)
        if self.start is None:
            return facts
        model = linear_model(self.start, run.schema, "start")
        plain = {"coef": model.coef_.tolist(), "intercept": model.intercept_.tolist()}
        return dataclasses.replace(facts, settings={**facts.settings, "start": plain})


def paper_noise(clip: float, n_records: int, promise: Promise) -> float:
    """The document's sigma = 2 C / (n epsilon') sqrt(2 ln(1.25 / delta')), for one round; none if epsilon is infinite.

    Its sensitivity 2 C / n holds for the mean of n clipped gradients; for the clipped whole it is 2 C, whatever n.
    """
    if promise.is_exact:
        return 0.0
    return 2 * clip / (n_records * promise.epsilon) * math.sqrt(2 * math.log(1.25 / promise.settled_delta))


@cache
def _sampled_noise(epsilon: float, delta: float, probability: float, rounds: int) -> float:
    """The noise, over a record's norm bound, with which so many sampled rounds are (epsilon, delta)-private."""

    def event_at(noise: float) -> Event:
        one = PoissonSampled(probability=probability, event=Gaussian(noise_multiplier=noise))
        return Repeated(event=one, count=rounds)

    return least_noise(event_at, epsilon, delta, tolerance=1e-3)


def _check_positive(name: str, value: float | None) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise SettingError(f"{name} = {value!r} must be a finite number above 0, or None for the rule")
