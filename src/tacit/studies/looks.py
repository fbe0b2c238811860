"""The looks of a study: what each costs, how its intervals stay valid, and when the study stops.

A study with [stop] plans looks 1 to K beforehand. Each is a run of its own, when so many records are enrolled. The
study stops at the first look at which every goal's interval is short enough, or at the last one.

*Privacy.* The promise (epsilon, delta) is that of all looks together.
1. (epsilon, delta) has one mu, that of the Gaussian noise which keeps it exactly (`privacy.gaussian`).
2. Look k gets the share s_k of mu^2, sum s_k = 1: its noise is that of mu_k = sqrt(s_k) mu.
3. Releases of mu_k-Gaussian privacy are together mu-Gaussian private, mu^2 = sum mu_k^2, although later ones are chosen
   after seeing earlier ones (Dong, Roth and Su 2022, Corollary 3.3). Which looks take place follows from what was
   opened.
4. A record that is in some of the looks only pays for those: the sum over fewer looks is smaller.
So whatever happens, no record pays more than the promise, unless a look loses a party and begins again.

*Intervals.* With alpha = 5 %, look k's intervals miss with probability s_k alpha at most, as one of confidence
1 - s_k alpha does. Let T be the look at which the study stops, by whatever rule, and I_k the interval of look k. Then

    P(truth outside I_T) = sum_k P(T = k, truth outside I_k) <= sum_k P(truth outside I_k) <= sum_k s_k alpha = alpha.

That is Bonferroni's inequality. It needs nothing of how looks depend on each other, nor of why the study stopped, and
it holds for every coefficient, not only for goals. p-values are divided by s_k, so that p < 0.05 still says that 0 is
outside. `benchmarks/stopping.py` measures how often intervals hold at the stopping look.

*AUC.* Where a study wants one, a third of each look's mu^2 goes to a histogram of scores of records that are kept
out of the fit (`newton.measuring`): the look costs what it would cost without. Its interval is one more I_k above.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tacit.data.part import ONE_IN
from tacit.data.schema import Schema
from tacit.errors import StudyError
from tacit.federation.agreement import Terms
from tacit.federation.group import SizesTold, SumGroup
from tacit.federation.look import PlannedLooks
from tacit.methods import Method
from tacit.methods.evaluation.auc import AucInterval
from tacit.methods.newton.method import PrivateNewton
from tacit.studies.run import method_of
from tacit.studies.stop import AUC, StopRequest
from tacit.studies.study import Study
from tacit.unit import Unit

CONFIDENCE = 0.95
"""Of an interval at the look at which a study stops, whichever that is."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """One planned look.

    Attributes:
        number: which it is, from 1.
        n_looks: how many are planned.
        n_records: how many records are enrolled at least.
        share: of the promise (of mu^2), and of the error of intervals.
        epsilon, delta: what the look alone promises.
    """

    number: int
    n_looks: int
    n_records: int
    share: float
    epsilon: float
    delta: float

    @property
    def is_last(self) -> bool:
        """Whether no look is planned after it."""
        return self.number == self.n_looks

    @property
    def words(self) -> str:
        """Its name for people."""
        return f"look {self.number} of {self.n_looks}"


@dataclass(frozen=True, kw_only=True)
class Reached:
    """How precise a goal's coefficient, or the AUC, was at a look; no half-width where it was not identified.

    `low` and `high` are told of the AUC alone: a coefficient's interval is in the table.
    """

    coefficient: str
    wanted: float
    half_width: float | None
    low: float | None = None
    high: float | None = None

    @property
    def is_enough(self) -> bool:
        """Whether the interval is as short as was wanted."""
        return self.half_width is not None and self.half_width <= self.wanted


@dataclass(frozen=True, kw_only=True)
class LookMethods:
    """A study's method as a party's guard knows it: the look that a run's group names decides its share."""

    methods: tuple[PrivateNewton, ...]

    @property
    def name(self) -> str:
        """As policies name it."""
        return self.methods[0].name

    @property
    def sizes_told(self) -> SizesTold:
        """What the parties of a run are told of their numbers of records."""
        return self.methods[0].sizes_told

    @property
    def weighted_unit(self) -> Unit:
        """Whose records weigh 1 together in a sum: sizes are numbers of these."""
        return self.methods[0].weighted_unit

    @property
    def needs_everybody(self) -> bool:
        """Whether a round cannot go on without a few parties."""
        return self.methods[0].needs_everybody

    def terms(self, schema: Schema, group: SumGroup) -> Terms:
        """The plan and the course of the look that the group names; the agreement has checked that it is planned."""
        return self.methods[group.look - 1].terms(schema, group)


def look_methods(study: Study) -> LookMethods:
    """The study's method once for each planned look, each with its share of the promise and of the error.

    Raises:
        StudyError: if the study plans no looks, or asks what no look can keep.
    """
    stop, whole = _stop_of(study), method_of(study)
    promise = whole.promise.settled(stop.looks[-1])  # one delta for all looks, from the study alone
    methods = []
    for share in _shares(stop):
        settings = whole.get_params() | {"delta": promise.delta}
        made = PrivateNewton(**settings).at_noise(1 / math.sqrt(share))
        made.error_share, made.measures = share, stop.auc is not None
        methods.append(made)
    return LookMethods(methods=tuple(methods))


def planned_looks(study: Study) -> tuple[Look, ...]:
    """The looks in order, with what each costs; none if the study plans none."""
    if study.stop is None:
        return ()
    shares = _shares(study.stop)
    methods = look_methods(study).methods
    return tuple(
        Look(
            number=number, n_looks=len(shares), n_records=n_records, share=share, epsilon=float(method.epsilon),
            delta=method.promise.settled_delta,
        )
        for number, (n_records, share, method) in enumerate(zip(study.stop.looks, shares, methods, strict=True), 1)
    )  # fmt: skip


def looks_agreed(study: Study) -> PlannedLooks | None:
    """What a guard holds a run's look against; None if the study plans no looks."""
    if study.stop is None:
        return None
    until = None if study.enrolment is None else study.enrolment.until
    return PlannedLooks(n_records=study.stop.looks, until=until)


def reached(stop: StopRequest | None, model: Method) -> tuple[Reached, ...]:
    """How precise each goal's coefficient, and the AUC if it is wanted, is in a model that was just fitted."""
    if stop is None:
        return ()
    widths: Mapping[str, float | None] = {row.label: row.half_width for row in model.facts_.coefficients}
    found = [
        Reached(coefficient=goal.coefficient, wanted=goal.half_width, half_width=widths.get(goal.coefficient))
        for goal in stop.goals
    ]
    if stop.auc is not None:
        auc: AucInterval | None = getattr(model, "auc_", None)
        told = {} if auc is None else {"low": auc.low, "high": auc.high}
        half_width = None if auc is None else auc.half_width
        found.append(Reached(coefficient=AUC, wanted=stop.auc, half_width=half_width, **told))
    return tuple(found)


def suffices(found: Sequence[Reached]) -> bool:
    """Whether a study stops with this: it has goals, and all are reached."""
    return bool(found) and all(one.is_enough for one in found)


def stop_words(look: Look, found: Sequence[Reached], *, is_over: bool = False) -> str:
    """Why a study stops at a look; empty if it goes on to the next."""
    if suffices(found):
        widths = "; ".join(f"{one.coefficient} to {one.half_width:.3g}, wanted {one.wanted:g}" for one in found)
        return f"It stopped at {look.words}: what was wanted is known ({widths})."
    missed = "; ".join(
        f"{one.coefficient} {'not identified' if one.half_width is None else f'to {one.half_width:.3g}'}, wanted "
        f"{one.wanted:g}"
        for one in found
        if not one.is_enough
    )
    why = f" What was wanted is not known: {missed}." if missed else ""
    if look.is_last:
        return f"It stopped at {look.words}, which is the last.{why}"
    return f"It stopped at {look.words}, since enrolment is over.{why}" if is_over else ""


def plan_words(study: Study) -> str:
    """When the study looks and when it stops, as an owner reads it before consenting; empty if it plans no looks."""
    looks = planned_looks(study)
    if study.stop is None:
        return ""
    sizes = ", ".join(f"{look.n_records:,}" for look in looks)
    costs = ", ".join(f"{look.epsilon:.3g}" for look in looks)
    words = [
        f"{len(looks)}, when {sizes} records are enrolled. They cost epsilon {costs}. You pay for the looks that you "
        f"are in, and for no others."
    ]
    goals = " and ".join(f"{goal.coefficient} is known to {goal.half_width:g}" for goal in study.stop.wanted)
    words.append(
        f"The study stops as soon as {goals}, or after the last look." if goals else "It stops after the last."
    )
    if study.stop.auc is not None:
        words.append(
            f"To measure the AUC, about one record in {ONE_IN} is kept out of the fit at each look, and counted by its "
            f"score. That is within the cost of the look."
        )
    until = None if study.enrolment is None else study.enrolment.until
    if until is not None:
        words.append(f"Parties may join until {until}; the next look after that day is the last.")
    return " ".join(words)


def look_notices(look: Look, why: str, auc: AucInterval | None = None) -> tuple[str, ...]:
    """What a reader of a look's report should know."""
    measured = () if auc is None else (_auc_words(auc),)
    if look.n_looks == 1:
        return (*((why,) if why else ()), *measured)
    error = 1 - CONFIDENCE
    kept = (
        f"Up to {look.n_looks} looks were planned. Each interval has confidence {1 - error * look.share:.2%}, so that "
        f"at whichever look the study stops it holds with {CONFIDENCE:.0%}. p-values are adjusted alike"
    )
    return (why or f"This is {look.words}; the study goes on.", *measured, kept)


def _auc_words(auc: AucInterval) -> str:
    return (
        f"AUC {auc.auc:.3f}, between {auc.low:.3f} and {auc.high:.3f}: measured on about one record in {ONE_IN}, which "
        f"the model was not fitted to. The interval is for this model on the population that the records come from"
    )


def _stop_of(study: Study) -> StopRequest:
    if study.stop is None:
        raise StudyError(f"study {study.name!r} plans no looks; give it a [stop] table")
    return study.stop


def _shares(stop: StopRequest) -> tuple[float, ...]:
    return stop.shares or (1 / len(stop.looks),) * len(stop.looks)
