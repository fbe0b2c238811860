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

from tacit.data.synthetic import synthetic_table
from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.methods import METHODS, Method
from tacit.rand import Rng
from tacit.report.curve import Point
from tacit.studies.run import method_of
from tacit.studies.study import Study

_TEST_RECORDS = 10_000  # made-up ones, beyond the parties'
_LEAST_PUBLIC = 50  # records, of which half are measured on


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
    accuracy: Point
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

    def curve(self) -> list[Point]:
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
    repeats: int = 5,
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
        repeats: rehearsals at each epsilon.
        on_run: told before each rehearsal: how many are done, of how many, and what runs.
    """
    _check(sizes, repeats)
    tables, test, source = _records(study, sizes, public, plain_accuracy)
    levels = _levels(study, method, epsilons)
    for epsilon in levels:  # refuses what is wrong before anything runs
        method_of(study, method=method, epsilon=epsilon).guarantee  # noqa: B018
    policy = Policy(not_private=list(METHODS))
    exact = METHODS["pooled"](l2=1.0).fit(Federation.from_tables(tables, policy=policy)).score(test)
    majority = float(test.class_counts.max() / test.n_records)
    forecasts = []
    for k, epsilon in enumerate(levels):
        runs = []
        for repeat in range(repeats):
            if on_run is not None:
                on_run(k * repeats + repeat, len(levels) * repeats, "" if epsilon is None else f"epsilon {epsilon:g}")
            model = method_of(study, method=method, epsilon=epsilon)
            runs.append(_rehearse(model, Federation.from_tables(tables, policy=policy, study=study.name), test))
        forecasts.append(_summary(runs, exact, majority))
    return Outlook(forecasts=tuple(forecasts), exact_accuracy=exact, majority_rate=majority, rehearsed_on=source)


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
        accuracy=Point(epsilon, mean, error),
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


def _records(
    study: Study, sizes: Mapping[str, int], public: Table | None, plain_accuracy: float
) -> tuple[dict[str, Table], Table, str]:
    """Records for each party, others to measure on, and where they come from."""
    rng = Rng.seeded(0)
    n = sum(sizes.values())
    if public is None:
        population = synthetic_table(study.schema, n + _TEST_RECORDS, accuracy=plain_accuracy, rng=rng.child("made up"))
        rows, test = np.arange(n), population.take(np.arange(n, n + _TEST_RECORDS), "made-up test records")
        source = f"made-up records of the study's shape, of which the best model predicts {plain_accuracy:.0%}"
    else:
        _check_public(study, public)
        order = rng.child("halves").permutation(public.n_records)
        half = public.n_records // 2
        population, test = public, public.take(order[half:], "public test records")
        rows = order[:half][rng.child("draws").generator().integers(half, size=n)]
        source = f"{half:,} public records drawn again and again, measured on {public.n_records - half:,} others"
    cuts = np.cumsum(list(sizes.values()))[:-1]
    tables = {name: population.take(part, name) for name, part in zip(sizes, np.split(rows, cuts), strict=True)}
    return tables, test, source


def _check(sizes: Mapping[str, int], repeats: int) -> None:
    if not sizes or min(sizes.values()) < 1:
        raise SettingError(f"sizes = {dict(sizes)} must give each party at least one record")
    if repeats < 2:
        raise SettingError(f"repeats = {repeats} gives no error bars; give at least 2")


def _check_public(study: Study, public: Table) -> None:
    if public.schema != study.schema:
        raise SettingError("the public records have other columns than the study; encode them with its schema")
    if public.n_records < _LEAST_PUBLIC:
        raise SettingError(
            f"{public.n_records} public records are too few to rehearse on; give {_LEAST_PUBLIC} or more, or none"
        )
