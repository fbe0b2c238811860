"""Rehearsals: a study's own method, run in this process on records that are nobody's secret.

They are made-up ones of the schema's shape, or public ones drawn again and again to the parties' sizes. Guards, ledgers
and secure sums are those of a run; rounds and bytes are counted, not estimated; noise has the size that it will have.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tacit.data.synthetic import PublicGuess, synthetic_table
from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.methods import METHODS, Method
from tacit.rand import Rng
from tacit.studies.expectation import MeasuredRun, measure_run
from tacit.studies.run import method_of
from tacit.studies.study import Study

_TEST_RECORDS = 10_000  # made-up ones, beyond the parties'
_TEST_POSITIVES = 500  # at least so many of a rare class among them
_MOST_TEST_RECORDS = 100_000
_TEST_SHARE = 0.2  # of public records
_LEAST_PUBLIC = 50  # records


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """What is rehearsed, and on what.

    Attributes:
        study: what will be asked.
        sizes: the number of records of each party, or of persons where the study's promise is for these. Each then has
            one record: what several of one person tell beyond one depends on how alike they are.
        method: another method than the study's.
        public: public records of the study's columns; None makes records up.
        guess: what made-up records are like.
        repeats: how often; None takes 5, and up to 60 of small studies, which differ more by chance.
    """

    study: Study
    sizes: Mapping[str, int]
    method: str | None = None
    public: Table | None = None
    guess: PublicGuess = field(default_factory=PublicGuess)
    repeats: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be rehearsed."""
        if not isinstance(self.sizes, Mapping) or not all(isinstance(size, int) for size in self.sizes.values()):
            raise SettingError(
                f"sizes = {self.sizes!r} must be names with whole numbers of records, such as {{'north': 5000}}"
            )
        if not self.sizes or min(self.sizes.values()) < 1:
            raise SettingError(f"sizes = {dict(self.sizes)} must give each party at least one record")
        if self.repeats is not None and self.repeats < 2:
            raise SettingError(f"repeats = {self.repeats} gives no error bars; give at least 2")
        if self.public is None:
            self.guess.check(self.study.schema)
            return
        if self.guess != PublicGuess():
            raise SettingError("public records bring their own share and strength; leave the guesses out")
        if self.public.schema != self.study.schema:
            raise SettingError("the public records have other columns than the study; encode them with its schema")
        if self.public.n_complete < _LEAST_PUBLIC:
            raise SettingError(
                f"{self.public.n_complete} public records are too few to rehearse on; give {_LEAST_PUBLIC} or more, "
                f"or none"
            )

    @property
    def n_repeats(self) -> int:
        """The fewer records, the cheaper a rehearsal is, and the less it tells."""
        return min(max(20_000 // sum(self.sizes.values()), 5), 60) if self.repeats is None else self.repeats

    @property
    def source(self) -> str:
        """On what it is rehearsed, in words."""
        if self.public is None:
            return f"made-up records of the study's shape, {self.guess.words(self.study.schema)}"
        n = self.public.n_complete
        return f"{n:,} public records, drawn again and again, each time without a fifth to measure on"

    def method_at(self, epsilon: float | None) -> Method:
        """The method, not yet fitted, at the study's epsilon or another."""
        return method_of(self.study, method=self.method, epsilon=epsilon)

    def populations(self) -> Iterator[tuple[Federation, Table]]:
        """For each repeat: parties of the study's sizes, and other records to measure on."""
        policy = Policy(not_private=list(METHODS))
        for repeat in range(self.n_repeats):
            rng = Rng.seeded(repeat)
            tables, test = self._made_up(rng) if self.public is None else self._drawn(self.public, rng)
            dropouts = self.study.federation.dropouts_among(len(tables))
            # The noise is seeded too: nobody's records are in a rehearsal, and one study has one forecast.
            noise, name = rng.child("noise"), self.study.name
            yield Federation.from_tables(tables, policy=policy, study=name, rng=noise, dropouts=dropouts), test

    def _made_up(self, rng: Rng) -> tuple[dict[str, Table], Table]:
        """Made-up records for each party, and others to measure on."""
        n, share = sum(self.sizes.values()), self.guess.positive_share or 0.5
        n_test = min(max(_TEST_RECORDS, int(_TEST_POSITIVES / min(share, 1 - share))), _MOST_TEST_RECORDS)
        population = synthetic_table(self.study.schema, n + n_test, guess=self.guess, rng=rng)
        return self._cut(population, np.arange(n)), population.take(np.arange(n, n + n_test), "test records")

    def _drawn(self, public: Table, rng: Rng) -> tuple[dict[str, Table], Table]:
        """Public records for each party, drawn with replacement, and others to measure on."""
        order = rng.child("order").permutation(public.n_complete)
        kept = int((1 - _TEST_SHARE) * public.n_complete)
        draws = rng.child("draws").generator().integers(kept, size=sum(self.sizes.values()))
        return self._cut(public, order[draws]), public.take(order[kept:], "test records")

    def _cut(self, population: Table, rows: npt.NDArray[np.int64]) -> dict[str, Table]:
        parts = np.split(rows, np.cumsum(list(self.sizes.values()))[:-1])
        tables = {name: population.take(part, name) for name, part in zip(self.sizes, parts, strict=True)}
        return tables if self.study.person is None else {name: t.each_a_person() for name, t in tables.items()}


@dataclass(frozen=True, kw_only=True)
class RehearsedRun:
    """One rehearsed run: the model, its figures and how long it took."""

    model: Method
    measured: MeasuredRun
    seconds: float


def rehearse(model: Method, parties: Federation, test: Table) -> RehearsedRun:
    """Fit and measure."""
    started = time.perf_counter()
    try:
        model.fit(parties)
    except SettingError as error:
        raise SettingError(f"{model.name} cannot be rehearsed from a study file alone: {error}") from error
    seconds = time.perf_counter() - started
    return RehearsedRun(model=model, measured=measure_run(model, test), seconds=seconds)
