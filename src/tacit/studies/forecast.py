"""Forecasts: what a study's run will cost, and how good its model will be, before anything is spent.

A forecast is a rehearsal. The study's own method runs in this process, through guards, ledgers and secure sums, on
records that are nobody's secret: made-up ones of the schema's shape, or public ones drawn again and again to the
parties' sizes. Rounds and bytes are counted, not estimated; noise has the size that it will have.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.data.synthetic import synthetic_table
from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.methods import METHODS, Method
from tacit.rand import Rng
from tacit.report.curve import CurvePoint
from tacit.studies.run import method_of
from tacit.studies.study import Study

_TEST_RECORDS = 10_000  # made-up ones, beyond the parties'
_TEST_SHARE = 0.2  # of public records
_LEAST_PUBLIC = 50  # records


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What one run will be like.

    Attributes:
        method: the method's name.
        epsilon: what it promises, infinite if nothing.
        accuracy: the mean over rehearsals, and its standard error.
        loss_of_accuracy: how far that is below the exact fit of the same records.
        rounds: questions to every party.
        n_bytes: what travels in one run, in both directions.
        seconds: one run on this machine, all parties together.
        is_useful: whether the model is better than always answering the commonest class, by two standard errors.
    """

    method: str
    epsilon: float
    accuracy: CurvePoint
    loss_of_accuracy: float
    rounds: int
    n_bytes: int
    seconds: float
    is_useful: bool


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """Forecasts at several epsilons, and the marks to compare with."""

    forecasts: tuple[Forecast, ...]
    exact_accuracy: float
    majority_rate: float
    rehearsed_on: str

    def curve(self) -> list[CurvePoint]:
        """Accuracy against epsilon, where there is one."""
        return [f.accuracy for f in self.forecasts if math.isfinite(f.epsilon)]


def forecast(
    study: Study,
    sizes: Mapping[str, int],
    *,
    method: str | None = None,
    epsilons: Sequence[float] = (),
    public: Table | None = None,
    plain_accuracy: float = 0.8,
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
        repeats: rehearsals at each epsilon; None takes 5, and up to 60 of small studies, which differ more by chance.
        on_run: told before each rehearsal: how many are done, of how many, and what runs.
    """
    _check_sizes(sizes)
    repeats = _repeats(sum(sizes.values())) if repeats is None else repeats
    if repeats < 2:
        raise SettingError(f"repeats = {repeats} gives no error bars; give at least 2")
    if public is not None:
        _check_public(study, public)
    levels = _levels(study, method, epsilons)
    for epsilon in levels:  # refuses what is wrong before anything runs
        method_of(study, method=method, epsilon=epsilon).guarantee  # noqa: B018
    policy = Policy(not_private=list(METHODS))
    exact, majority = [], []
    runs: list[list[_Run]] = [[] for _ in levels]
    for repeat in range(repeats):
        rng = Rng.seeded(repeat)
        if public is None:
            tables, test = _made_up(study, sizes, plain_accuracy, rng)
        else:
            tables, test = _drawn(public, sizes, rng)
        dropouts = study.federation.dropouts_among(len(tables))
        # The noise is seeded too: nobody's records are in a rehearsal, and one study has one forecast.
        noise = rng.child("noise")
        parties = Federation.from_tables(tables, policy=policy, study=study.name, rng=noise, dropouts=dropouts)
        exact.append(METHODS["pooled"](l2=1.0).fit(parties).score(test))
        majority.append(test.class_counts.max() / test.n_complete)
        for k, epsilon in enumerate(levels):
            if on_run is not None:
                words = "" if epsilon is None else f"epsilon {epsilon:g}"
                on_run(repeat * len(levels) + k, len(levels) * repeats, words)
            runs[k].append(_rehearse(method_of(study, method=method, epsilon=epsilon), parties, test))
    exact_accuracy, majority_rate = float(np.mean(exact)), float(np.mean(majority))
    return Outlook(
        forecasts=tuple(_summary(each, exact_accuracy, majority_rate) for each in runs),
        exact_accuracy=exact_accuracy,
        majority_rate=majority_rate,
        rehearsed_on=_source(public, plain_accuracy),
    )


@dataclass(frozen=True, kw_only=True)
class _Run:
    model: Method
    accuracy: float
    seconds: float


def _rehearse(model: Method, parties: Federation, test: Table) -> _Run:
    started = time.perf_counter()
    try:
        model.fit(parties)
    except SettingError as error:
        raise SettingError(f"{model.name} cannot be rehearsed from a study file alone: {error}") from error
    seconds = time.perf_counter() - started
    return _Run(model=model, accuracy=model.score(test), seconds=seconds)


def _summary(runs: Sequence[_Run], exact: float, majority: float) -> Forecast:
    accuracies = np.array([run.accuracy for run in runs])
    error = float(accuracies.std(ddof=1) / math.sqrt(len(runs)))
    model = runs[0].model
    epsilon = model.guarantee_.epsilon if model.guarantee_.is_private else math.inf
    traffic = model.facts_.traffic
    mean = float(accuracies.mean())
    return Forecast(
        method=model.name,
        epsilon=epsilon,
        accuracy=CurvePoint(epsilon, mean, error),
        loss_of_accuracy=exact - mean,
        rounds=traffic.rounds,
        n_bytes=traffic.bytes_total,
        seconds=float(np.median([run.seconds for run in runs])),
        is_useful=mean - 2 * error > majority,
    )


def _levels(study: Study, method: str | None, epsilons: Sequence[float]) -> list[float | None]:
    """The study's own epsilon (None if the method has none) and the others, in order and each once."""
    own = [] if study.privacy is None else [study.privacy.epsilon]
    first = method_of(study, method=method, epsilon=None if own or not method else next(iter(epsilons), None))
    if "epsilon" not in first.get_params():
        return [None]
    return [*sorted({*own, *epsilons})] or [None]


def _made_up(study: Study, sizes: Mapping[str, int], plain_accuracy: float, rng: Rng) -> tuple[dict[str, Table], Table]:
    """Made-up records for each party, and others to measure on."""
    n = sum(sizes.values())
    population = synthetic_table(study.schema, n + _TEST_RECORDS, accuracy=plain_accuracy, rng=rng)
    return _cut(population, np.arange(n), sizes), population.take(np.arange(n, n + _TEST_RECORDS), "test records")


def _drawn(public: Table, sizes: Mapping[str, int], rng: Rng) -> tuple[dict[str, Table], Table]:
    """Public records for each party, drawn with replacement, and others to measure on."""
    order = rng.child("order").permutation(public.n_complete)
    kept = int((1 - _TEST_SHARE) * public.n_complete)
    draws = rng.child("draws").generator().integers(kept, size=sum(sizes.values()))
    return _cut(public, order[draws], sizes), public.take(order[kept:], "test records")


def _cut(population: Table, rows: npt.NDArray[np.int64], sizes: Mapping[str, int]) -> dict[str, Table]:
    parts = np.split(rows, np.cumsum(list(sizes.values()))[:-1])
    return {name: population.take(part, name) for name, part in zip(sizes, parts, strict=True)}


def _source(public: Table | None, plain_accuracy: float) -> str:
    if public is None:
        return f"made-up records of the study's shape, of which the best model predicts {plain_accuracy:.0%}"
    return f"{public.n_complete:,} public records, drawn again and again, each time without a fifth to measure on"


def _repeats(n_records: int) -> int:
    """Rehearsals by rule: the fewer records, the cheaper a rehearsal is, and the less it tells."""
    return min(max(20_000 // n_records, 5), 60)


def _check_sizes(sizes: Mapping[str, int]) -> None:
    if not sizes or min(sizes.values()) < 1:
        raise SettingError(f"sizes = {dict(sizes)} must give each party at least one record")


def _check_public(study: Study, public: Table) -> None:
    if public.schema != study.schema:
        raise SettingError("the public records have other columns than the study; encode them with its schema")
    if public.n_complete < _LEAST_PUBLIC:
        raise SettingError(
            f"{public.n_complete} public records are too few to rehearse on; give {_LEAST_PUBLIC} or more, or none"
        )
