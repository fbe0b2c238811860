"""What was found wrong in a party's table, and the one error that tells the party all of it.

Findings are counts. No value of a record is kept in them, so none can reach a message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tacit.data.feature import Binary, Categorical, Feature, Numeric, Target
from tacit.errors import DataError

LEAST_VALUES = 10
"""So many values of a numeric column, all of them outside its bounds, are taken for another unit."""


@dataclass(frozen=True)
class ColumnFinding:
    """Counts of what is unusual in one column."""

    missing: int = 0
    unreadable: int = 0  # not a finite number, or a label that is not declared
    distinct: int = 0  # how many different labels are not declared
    outside: int = 0  # beyond the bounds: clipped; an error if it is every value there is
    n_records: int = 0  # that were looked at; 0 if nobody counted them

    @property
    def is_another_unit(self) -> bool:
        """Whether every value lies beyond the bounds, and there are enough of them."""
        known = self.n_records - self.missing - self.unreadable
        return known >= LEAST_VALUES and self.outside == known


def check_findings(
    features: Sequence[Feature],
    target: Target | None,
    findings: Mapping[str, ColumnFinding],
    where: str,
    hint: str = "",
) -> None:
    """Raise one DataError that names every column that does not fit, how often, and the ways out; last, a hint."""
    problems: list[str] = []
    for feature in features:
        problems += _feature_problems(feature, findings[feature.name])
    if target is not None:
        problems += _target_problems(target, findings[target.name])
    if problems:
        problems += [hint] if hint else []
        raise DataError(f"{where} does not fit the schema:\n" + "\n".join(f"- {problem}" for problem in problems))


def check_columns(needed: Sequence[str], ignored: Sequence[str], found: Sequence[str], where: str) -> None:
    """Raise a DataError that names every missing, surplus or doubled column."""
    doubled = sorted({name for name in found if list(found).count(name) > 1})
    missing = [name for name in needed if name not in found]
    extra = [name for name in found if name not in needed and name not in ignored]
    problems = []
    if missing:
        problems.append(f"columns {missing} are missing; the first line must name every column of the schema")
    if extra:
        problems.append(
            f"columns {extra} are not in the schema; leave them out: ignore = {extra} in [study], or "
            f"ignore={tuple(extra)!r} in Python"
        )
    if doubled:
        problems.append(f"columns {doubled} appear more than once; keep one of each")
    if problems:
        raise DataError(f"{where} does not fit the schema:\n" + "\n".join(f"- {problem}" for problem in problems))


def _feature_problems(feature: Feature, found: ColumnFinding) -> list[str]:
    problems = []
    if found.missing and feature.missing == "error":
        rules = (
            "'drop'" if isinstance(feature, Numeric) and feature.bounds is None else "'indicator', 'middle' or 'drop'"
        )
        problems.append(
            f"column {feature.name!r}: {found.missing} missing values; fill them in, or let the schema say "
            f"missing={rules} for {feature.name!r}"
        )
    if isinstance(feature, Numeric) and feature.bounds is not None and found.is_another_unit:
        low, high = feature.bounds
        problems.append(
            f"column {feature.name!r}: every value lies outside the declared {low:g} to {high:g}, so it is probably in "
            f"another unit; convert it, or let the schema give other bounds"
        )
    if found.unreadable and not isinstance(feature, Binary) and feature.date is not None:
        problems.append(
            f"column {feature.name!r}: {found.unreadable} values are no dates such as 2026-11-18; correct them, or "
            "leave them empty and choose a missing rule"
        )
    elif found.unreadable and isinstance(feature, Numeric):
        problems.append(
            f"column {feature.name!r}: {found.unreadable} values are not finite numbers; correct them, or leave them "
            "empty and choose a missing rule"
        )
    elif found.unreadable:
        bucket = ", or let the schema say unknown='bucket'" if isinstance(feature, Categorical) else ""
        declared = "categories" if isinstance(feature, Categorical) else "values"
        problems.append(
            f"column {feature.name!r}: {found.unreadable} values ({found.distinct} different ones) are not among its "
            f"declared {declared}; correct them, add them to the {declared}{bucket}"
        )
    return problems


def _target_problems(target: Target, found: ColumnFinding) -> list[str]:
    problems = []
    if found.missing:
        problems.append(f"target {target.name!r}: {found.missing} missing labels; remove those records or label them")
    if found.unreadable:
        problems.append(
            f"target {target.name!r}: {found.unreadable} labels ({found.distinct} different ones) are not among its "
            f"classes {list(target.classes)}; correct them or add them to the classes"
        )
    return problems
