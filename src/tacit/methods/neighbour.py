"""Neighbours: two federations that differ in one unit, for audits of what a method gives away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tacit.data.table import Table


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """Two sets of tables that differ in one record (or in one party, for a method that protects parties).

    Attributes:
        label: what is extreme about them.
        first: the parties' tables.
        second: the same with one unit replaced.
        settings: the settings under which the difference shows best; they win over those of the audited method.
    """

    label: str
    first: Mapping[str, Table]
    second: Mapping[str, Table]
    settings: Mapping[str, object] = field(default_factory=dict)
