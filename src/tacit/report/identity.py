"""Which study a run was of, and what its columns are: the facts by which a report can be told from another."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.data.feature import Binary, Feature, Numeric
from tacit.data.schema import Schema
from tacit.report.number import short

NUMBERS, LEVELS = "number", "levels"
_MISSING = {
    "error": "an error",
    "indicator": "a level of its own",
    "middle": "no level",
    "value": "",  # of numbers, which say below what it is
    "drop": "a record left out",
}


@dataclass(frozen=True, kw_only=True)
class StudyFacts:
    """The study that a run was of: what its owner and its readers call it, and the digest that parties consented to."""

    name: str
    purpose: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class ColumnFacts:
    """One feature as the study declares it.

    Attributes:
        name: the feature.
        kind: "number" or "levels".
        low, high: the declared bounds of a number; None if there are none.
        levels: the declared values of a feature with levels, the first one first.
        reference: the level that the others are compared with; None if each level has a column.
        per: for how many units the table tells a number's coefficient.
        terms: the rows of the table that belong to it.
        missing: what an empty value is, in words.
    """

    name: str
    kind: str
    low: float | None = None
    high: float | None = None
    levels: tuple[str, ...] = ()
    reference: str | None = None
    per: float = 1.0
    terms: tuple[str, ...] = ()
    missing: str = "an error"

    @property
    def values(self) -> str:
        """What values it can have, in a few words."""
        if self.kind == LEVELS:
            return ", ".join(self.levels)
        return "any number" if self.low is None else f"{short(self.low)} to {short(self.high)}"

    @property
    def compared(self) -> str:
        """What its coefficients compare."""
        if self.kind == NUMBERS:
            return "1 unit more" if self.per == 1 else f"{short(self.per)} units more"
        return "each level by itself" if self.reference is None else f"against {self.reference}"


def column_facts(schema: Schema) -> tuple[ColumnFacts, ...]:
    """The features of a schema, in their order."""
    return tuple(_column(feature, schema) for feature in schema.features)


def _column(feature: Feature, schema: Schema) -> ColumnFacts:
    terms = feature.columns(schema.coding)
    missing = _MISSING[feature.missing]
    if isinstance(feature, Numeric) and feature.missing in ("value", "indicator", "middle"):
        missing = f"{short(feature.fill)}{', and a column says so' if feature.missing == 'indicator' else ''}"
    if isinstance(feature, Numeric):
        return ColumnFacts(
            name=feature.name,
            kind=NUMBERS,
            low=feature.low,
            high=feature.high,
            per=feature.per,
            terms=terms,
            missing=missing,
        )
    compares = isinstance(feature, Binary) or schema.coding == "reference"
    reference = feature.labels[0] if compares else None
    return ColumnFacts(
        name=feature.name, kind=LEVELS, levels=feature.labels, reference=reference, terms=terms, missing=missing
    )
