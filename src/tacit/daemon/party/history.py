"""What left a party, and when: every release with its size and study, and what the runs have cost over time."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from tacit.privacy.event import from_json, why_not_private
from tacit.privacy.filter import Charge, least_limit
from tacit.privacy.ledger import Budget, Ledger

_MOST_POINTS = 80  # of the plot: each is a composition of all runs before it


@dataclass(frozen=True, kw_only=True)
class ReleaseFact:
    """One answer that left: when, in which study and run, to which step, with how many bytes."""

    time: float
    study: str
    run: str
    step: str
    n_bytes: int


@dataclass(frozen=True, kw_only=True)
class RunFact:
    """One run that the party agreed to.

    Attributes:
        time, study, run: when it began, and which it is.
        epsilon: what it may cost a record at most; infinity if no epsilon bounds it.
        n_answers, n_bytes: what has left in it.
    """

    time: float
    study: str
    run: str
    epsilon: float
    n_answers: int
    n_bytes: int


def releases(ledger: Ledger, account: str, *, most: int = 500) -> list[ReleaseFact]:
    """What left, the last first."""
    rows = ledger.database.execute(
        "SELECT time, study, run, step, length(answer) FROM release WHERE party = ? ORDER BY time DESC LIMIT ?",
        (account, most),
    )
    return [ReleaseFact(time=t, study=study, run=run, step=step, n_bytes=n) for t, study, run, step, n in rows]


def runs(ledger: Ledger, account: str, budget: Budget) -> list[RunFact]:
    """The runs that count, oldest first."""
    rows = ledger.database.execute(
        "SELECT run.time, run.study, run.run, run.event, run.delta, COUNT(release.question), "
        "COALESCE(SUM(length(release.answer)), 0) FROM run LEFT JOIN release "
        "ON release.party = run.party AND release.run = run.run WHERE run.party = ? GROUP BY run.run ORDER BY run.time",
        (account,),
    ).fetchall()
    return [
        RunFact(
            time=time,
            study=study,
            run=run,
            epsilon=_epsilon([_charge(event, delta)], budget),
            n_answers=n,
            n_bytes=size,
        )
        for time, study, run, event, delta, n, size in rows
    ]


def spent_over_time(ledger: Ledger, account: str, budget: Budget) -> list[tuple[float, float]]:
    """After each run: when it began, and what all runs so far have cost, without those that no epsilon bounds."""
    rows = ledger.database.execute(
        "SELECT time, event, delta FROM run WHERE party = ? ORDER BY time", (account,)
    ).fetchall()
    charges = [(time, _charge(event, delta)) for time, event, delta in rows]
    bounded = [(time, charge) for time, charge in charges if not why_not_private(charge.event)]
    every = max(1, math.ceil(len(bounded) / _MOST_POINTS))
    chosen = sorted({*range(every - 1, len(bounded), every), len(bounded) - 1} - {-1})
    return [(bounded[k][0], _epsilon([charge for _, charge in bounded[: k + 1]], budget)) for k in chosen]


def _charge(event: str, delta: float) -> Charge:
    return Charge(event=from_json(json.loads(event)), delta=float(delta), count=1)


def _epsilon(charges: list[Charge], budget: Budget) -> float:
    if any(why_not_private(charge.event) for charge in charges):
        return math.inf
    return least_limit(tuple(charges), budget.delta, budget.relation)
