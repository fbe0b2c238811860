"""Neighbours: two federations that differ in one unit, for audits of what a method gives away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tacit.data.table import Table
from tacit.federation.channel import Opened


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
        claimed: the epsilon that a document claims for one run under these settings, where it is not `epsilon`.
    """

    label: str
    first: Mapping[str, Table]
    second: Mapping[str, Table]
    settings: Mapping[str, object] = field(default_factory=dict)
    score: Callable[[Any, list[Opened]], float] | None = None
    claimed: float | None = None
