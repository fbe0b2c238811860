"""What a party of an ensemble is asked: its votes on public rows, in one of three forms.

The rows come with the question, since only the coordinator has them. A party works out itself how far its votes can
move what is opened of them, and so the noise. The proof that this suffices is in `method` and `label`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.data.table import Table
from tacit.errors import PolicyRefusal, SettingError
from tacit.federation.reply import Disclosed, Sealed
from tacit.federation.step import step
from tacit.methods.cohort import Cohort, Promise, bound_of
from tacit.methods.ensemble.classifier import Votes, local_models, votes_of
from tacit.methods.ensemble.label import is_basis, lengthened, simplex, vote_sensitivity
from tacit.privacy.noise.grid import NoiseGrid
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]

DISCLOSED = "votes or models are disclosed to a trusted entity"
_BLOCK_VALUES = 2**22  # votes held, and turned into floats, at once: 32 MB
_LARGEST = 2.0**200  # of a public value: its square is a float
_COINS = 32  # bytes that a party gives to the entity's noise


@dataclass(frozen=True, kw_only=True)
class PublicRows:
    """The rows to vote on, without labels, of shape (N, d)."""

    rows: Floats


@dataclass(frozen=True, kw_only=True)
class Ballot:
    """The rows to vote on, and the coordinates in which the votes' statistic is opened.

    `basis` is B, of shape (k, r). It is a public function of the rows, but only up to a rotation, which differs between
    machines: so all take the coordinator's, and check it.
    """

    rows: Floats
    basis: Floats


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public facts of one run, as every party derives them.

    `shaped` says whether the noise is shaped like the public rows. `local` are the classifiers to choose from, and `l2`
    is the regularisation of logistic ones; None leaves it to each party's own size (`party_l2`).
    """

    cohort: Cohort
    promise: Promise
    shaped: bool
    local: tuple[str, ...]
    l2: float | None

    def check_rows(self, rows: Floats) -> None:
        """Refuse rows that are not of the study's columns."""
        if rows.ndim != 2 or rows.shape[1] != self.cohort.n_features or not len(rows):
            raise PolicyRefusal("the public rows of the question do not fit the study's columns")
        if not (np.abs(rows) <= _LARGEST).all():
            raise PolicyRefusal("the public rows of the question are not finite, or not of ordinary size")

    def opening(self, ballot: Ballot) -> Opening:
        """How the statistic of votes on this ballot is opened; a `PolicyRefusal` of a ballot that does not hold up."""
        self.check_rows(ballot.rows)
        Z = lengthened(ballot.rows, self.cohort.constant)
        if not is_basis(ballot.basis, Z, shaped=self.shaped):
            raise PolicyRefusal("the basis of the question is none of the public rows that it brings")
        opening = Opening(plan=self, D=Z @ ballot.basis)
        try:
            _ = opening.grid
        except SettingError as error:
            raise PolicyRefusal(f"no noise suits the public rows of the question: {error}") from error
        return opening


@dataclass(frozen=True, kw_only=True)
class Opening:
    """How the statistic of the votes on a ballot is opened: its sensitivity and its noise.

    D (N, r) are the public rows in the coordinates in which the statistic is opened.
    """

    plan: Plan
    D: Floats

    @cached_property
    def sensitivity(self) -> float:
        """S: how far one party's votes move the statistic."""
        return vote_sensitivity(self.D, self.plan.cohort.n_parties)

    @cached_property
    def grid(self) -> NoiseGrid:
        """Where the statistic is rounded to, and what noise each party adds to it."""
        cohort = self.plan.cohort
        total = cohort.total(
            dimension=self.D.shape[1] * (cohort.n_classes - 1),
            sensitivity=self.sensitivity,
            value_bound=self.sensitivity,  # |sum_i D_ik E_ic| / N is at most (1) and (2) of `label`
        )
        return self.plan.promise.grid(total)

    def addends(self, votes: Votes) -> Floats:
        """D'A_j E / (N M) of each party, of shape (parties, r (C-1)), from votes of shape (parties, N)."""
        cohort = self.plan.cohort
        E = simplex(cohort.n_classes)
        # Each row has one vote, so the sum over class 0 is the total less the others.
        V = np.repeat((self.D.sum(axis=0)[:, None] * E[0])[None], len(votes), axis=0)
        for c in range(1, cohort.n_classes):
            V += ((votes == c).astype(np.float64) @ self.D)[:, :, None] * (E[c] - E[0])
        addends: Floats = V.reshape(len(votes), -1) / (len(self.D) * cohort.n_parties)
        return addends


@step("ensemble/statistic", version=4, plan=Plan, values=Ballot, content={"rows": "public_rows"})
def vote_statistic(table: Table, plan: Plan, ballot: Ballot, *, rng: Rng) -> Sealed:
    """Vote on the public rows and seal the votes' statistic, noised."""
    return _sealed([table], plan, ballot, [rng])[0]


@vote_statistic.batched
def vote_statistics(tables: Sequence[Table], plan: Plan, ballot: Ballot, *, rngs: Sequence[Rng]) -> list[Sealed]:
    """The same for many parties at once."""
    return _sealed(tables, plan, ballot, rngs)


def _sealed(tables: Sequence[Table], plan: Plan, ballot: Ballot, rngs: Sequence[Rng]) -> list[Sealed]:
    opening = plan.opening(ballot)
    grid, event = opening.grid, plan.promise.event()
    several = max(1, _BLOCK_VALUES // len(ballot.rows))
    replies: list[Sealed] = []
    for start in range(0, len(tables), several):
        some = slice(start, start + several)
        votes = votes_of(tables[some], ballot.rows, names=plan.local, l2=plan.l2, rngs=rngs[some])
        # Parties of one process draw from one generator of it, which is many times faster than from each one's own.
        noised = grid.to_grid(opening.addends(votes), rng=rngs[start])
        replies += [
            Sealed(addend=addend, event=event, n_parties=grid.total.least, bound=bound_of(grid)) for addend in noised
        ]
    return replies


@step("ensemble/votes", version=3, plan=Plan, values=PublicRows, content={"rows": "public_rows"})
def party_votes(table: Table, plan: Plan, public: PublicRows, *, rng: Rng) -> Disclosed:
    """Vote on the public rows, for a trusted entity's eyes; with coins for its noise."""
    return _disclosed_votes([table], plan, public, [rng])[0]


@party_votes.batched
def many_votes(tables: Sequence[Table], plan: Plan, public: PublicRows, *, rngs: Sequence[Rng]) -> list[Disclosed]:
    """The same for many parties at once."""
    return _disclosed_votes(tables, plan, public, rngs)


def _disclosed_votes(tables: Sequence[Table], plan: Plan, public: PublicRows, rngs: Sequence[Rng]) -> list[Disclosed]:
    plan.check_rows(public.rows)
    votes = votes_of(tables, public.rows, names=plan.local, l2=plan.l2, rngs=rngs)
    return [
        Disclosed({"votes": own, "coins": rng.bytes(_COINS)}, DISCLOSED) for own, rng in zip(votes, rngs, strict=True)
    ]


@step("ensemble/model", version=2, plan=Plan)
def party_model(table: Table, plan: Plan, *, rng: Rng) -> Disclosed:
    """This party's logistic model, for a trusted entity's eyes; with coins for its noise."""
    return _disclosed_models([table], plan, [rng])[0]


@party_model.batched
def many_models(tables: Sequence[Table], plan: Plan, *, rngs: Sequence[Rng]) -> list[Disclosed]:
    """The same for many parties at once."""
    return _disclosed_models(tables, plan, rngs)


def _disclosed_models(tables: Sequence[Table], plan: Plan, rngs: Sequence[Rng]) -> list[Disclosed]:
    models = local_models(tables, l2=plan.l2, constant=plan.cohort.constant)
    return [
        Disclosed({"theta": theta, "coins": rng.bytes(_COINS)}, DISCLOSED)
        for theta, rng in zip(models, rngs, strict=True)
    ]
