"""Forecasts: what a study's run will cost, how good its model will be and how much it will tell, before it is spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from tacit.data.synthetic import PublicGuess
from tacit.data.table import Table
from tacit.data.typical import TypicalValue
from tacit.methods import METHODS
from tacit.report.curve import CurvePoint
from tacit.studies.expectation import Expectation, expectation, measure_run, median_widths
from tacit.studies.rehearsal import Rehearsal, RehearsedRun, rehearse
from tacit.studies.study import Study

_ALTERNATIVE_REPEATS = 5


@dataclass(frozen=True, kw_only=True)
class Forecast(Expectation):
    """What one run will be like: how good its model is, how wide its intervals are, and what it takes.

    Attributes:
        method: the method's name.
        epsilon: what it promises, infinite if nothing.
        loss_of_accuracy: how far the accuracy is below that of the exact fit of the same records.
        rounds: questions to every party.
        n_bytes: what travels in one run, in both directions.
        seconds: one run on this machine, all parties together.
    """

    method: str
    epsilon: float
    loss_of_accuracy: float
    rounds: int
    n_bytes: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """Forecasts at several epsilons, and the marks to compare with: the exact fit, and the class frequencies.

    `alternative` are the same forecasts on made-up records of another shape: numbers of which nobody said how far they
    spread keep to a thirtieth of their bounds, and columns go together. So the two are a range. It is empty for public
    records, and for methods that give no intervals.
    """

    forecasts: tuple[Forecast, ...]
    exact: Expectation
    majority_rate: float
    base_log_loss: float
    rehearsed_on: str
    alternative: tuple[Forecast, ...] = ()

    @property
    def exact_accuracy(self) -> float:
        """What the exact fit of the same records reaches."""
        return self.exact.accuracy.mean

    @property
    def exact_widths(self) -> dict[str, float]:
        """The half-widths of the exact fit's intervals."""
        return {width.term: width.half_width for width in self.exact.widths}

    def curve(self, quantity: str = "accuracy") -> list[CurvePoint]:
        """A quantity against epsilon, where there is one: "accuracy", "auc", "log_loss", "widening", ..."""
        points = [getattr(found, quantity) for found in self.forecasts if math.isfinite(found.epsilon)]
        return [point for point in points if point is not None and math.isfinite(point.mean)]

    def width_curve(self, term: str) -> list[CurvePoint]:
        """The half-width of one coefficient's interval, as a multiple of the exact fit's, where it is identified."""
        exact = self.exact_widths.get(term, math.nan)
        points = []
        for found in self.forecasts:
            half_width = next((width.half_width for width in found.widths if width.term == term), math.inf)
            if math.isfinite(found.epsilon) and math.isfinite(half_width / exact):
                points.append(CurvePoint(found.epsilon, half_width / exact, 0.0))
        return points


def forecast(
    study: Study,
    sizes: Mapping[str, int],
    *,
    method: str | None = None,
    epsilons: Sequence[float] = (),
    public: Table | None = None,
    plain_accuracy: float | None = None,
    plain_auc: float | None = None,
    positive_share: float | None = None,
    typical: Sequence[TypicalValue] = (),
    repeats: int | None = None,
    on_run: Callable[[int, int, str], None] | None = None,
) -> Outlook:
    """Rehearse the study's method at its own epsilon and at `epsilons`.

    Args:
        study: what will be asked.
        sizes: the number of records of each party.
        method: another method than the study's.
        epsilons: further epsilons.
        public: public records of the study's columns to rehearse on; None makes records up.
        plain_accuracy: for made-up records, what the best model of them reaches.
        plain_auc: the same as an AUC, which is the better guess where a class is rare.
        positive_share: for made-up records, the share of the last of two classes; None is a half.
        typical: for made-up records, what is known in public of single features, such as a mean and a deviation.
        repeats: rehearsals at each epsilon; None takes 5, and up to 60 of small studies, which differ more by chance.
        on_run: told before each rehearsal: how many are done, of how many, and what runs.
    """
    guess = PublicGuess(positive_share=positive_share, accuracy=plain_accuracy, auc=plain_auc, typical=tuple(typical))
    plan = Rehearsal(study=study, sizes=sizes, method=method, public=public, guess=guess, repeats=repeats)
    return outlook_of(plan, epsilons, on_run)


def outlook_of(
    plan: Rehearsal, epsilons: Sequence[float], on_run: Callable[[int, int, str], None] | None = None
) -> Outlook:
    """The forecasts of a rehearsal at the study's own epsilon and at `epsilons`, and their range."""
    found = _outlook(plan, epsilons, on_run)
    has_widths = any(one.widths for one in found.forecasts)
    if plan.public is not None or not has_widths:
        return found
    other = replace(plan, guess=plan.guess.alternative(), repeats=min(plan.n_repeats, _ALTERNATIVE_REPEATS))
    return replace(found, alternative=_outlook(other, epsilons, on_run).forecasts)


def _outlook(plan: Rehearsal, epsilons: Sequence[float], on_run: Callable[[int, int, str], None] | None) -> Outlook:
    levels = _levels(plan, epsilons)
    for epsilon in levels:  # refuses what is wrong before anything runs
        plan.method_at(epsilon).guarantee  # noqa: B018
    exact = []
    runs: list[list[RehearsedRun]] = [[] for _ in levels]
    for repeat, (parties, test) in enumerate(plan.populations()):
        exact.append(measure_run(METHODS["pooled"](l2=1.0).fit(parties), test))
        for k, epsilon in enumerate(levels):
            if on_run is not None:
                words = "" if epsilon is None else f"epsilon {epsilon:g}"
                on_run(repeat * len(levels) + k, len(levels) * plan.n_repeats, words)
            runs[k].append(rehearse(plan.method_at(epsilon), parties, test))
    widths = median_widths(exact)
    marks = expectation(math.inf, exact, widths)
    return Outlook(
        forecasts=tuple(_summary(each, marks.accuracy.mean, widths) for each in runs),
        exact=marks,
        majority_rate=float(np.mean([one.metrics.majority_rate for one in exact])),
        base_log_loss=float(np.mean([one.metrics.base_log_loss for one in exact])),
        rehearsed_on=plan.source,
    )


def _summary(runs: Sequence[RehearsedRun], exact_accuracy: float, widths: Mapping[str, float]) -> Forecast:
    model = runs[0].model
    epsilon = model.guarantee_.epsilon if model.guarantee_.is_private else math.inf
    traffic = model.facts_.traffic
    found = expectation(epsilon, [run.measured for run in runs], widths)
    return Forecast(
        **{field.name: getattr(found, field.name) for field in fields(found)},
        method=model.name,
        epsilon=epsilon,
        loss_of_accuracy=exact_accuracy - found.accuracy.mean,
        rounds=traffic.rounds,
        n_bytes=traffic.bytes_total,
        seconds=float(np.median([run.seconds for run in runs])),
    )


def _levels(plan: Rehearsal, epsilons: Sequence[float]) -> list[float | None]:
    """The study's own epsilon (None if the method has none) and the others, in order and each once."""
    own = [] if plan.study.privacy is None else [plan.study.privacy.epsilon]
    first = plan.method_at(None if own or not plan.method else next(iter(epsilons), None))
    if "epsilon" not in first.get_params():
        return [None]
    return [*sorted({*own, *epsilons})] or [None]
