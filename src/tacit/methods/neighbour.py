"""Neighbours: two federations that differ in one unit, for audits of what a method gives away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from tacit.data.table import Table
from tacit.federation.channel import Opened

Score = Callable[[Any, list[Opened]], float]


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """Two sets of tables that differ in one record (or in one party, for a method that protects parties).

    Attributes:
        label: what is extreme about them.
        first: the parties' tables.
        second: the same with one unit replaced.
        settings: the settings under which the difference shows best; they win over those of the audited method.
        score: what an attacker, who knows the method and its settings, would compute from all that was opened in a
            run, where a linear function of it is not what tells the two apart; None leaves it to the audit to find one.
        score_of: makes the score of the party "a" in either, and of the party "b" that is the same in both; None where
            there is no score.
        loss: the largest logarithm of a ratio of probabilities, where that is known exactly for the prepared method: no
            run is then needed, and events that are too rare to be seen count.
        claimed: the epsilon that a document claims for one run under these settings, where it is not `epsilon`.
    """

    label: str
    first: Mapping[str, Table]
    second: Mapping[str, Table]
    settings: Mapping[str, object] = field(default_factory=dict)
    score: Score | None = None
    score_of: Callable[[Table, Table, Table], Score] | None = None
    loss: Callable[[Any], float] | None = None
    claimed: float | None = None

    def of_persons(self, copies: int) -> Self:
        """The same with so many copies of every record of the party "a", all of one person, or party, for each.

        The others' records are persons of their own.
        """
        first = {name: _copied(table, copies if name == "a" else 1) for name, table in self.first.items()}
        second = {name: _copied(table, copies if name == "a" else 1) for name, table in self.second.items()}
        score = None if self.score_of is None else self.score_of(first["a"], second["a"], first["b"])
        return replace(self, label=f"{self.label}, {copies} times", first=first, second=second, score=score)


def _copied(table: Table, copies: int) -> Table:
    n = table.n_complete
    return table.take(np.repeat(np.arange(n), copies), table.name, persons=np.repeat(np.arange(n), copies))
