"""What is promised: a guarantee in numbers, and the same in plain words."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Literal

from tacit.errors import SettingError
from tacit.unit import UNITS, Unit

__all__ = ["RELATIONS", "UNITS", "Guarantee", "Relation", "Unit", "check_delta", "check_epsilon"]

Relation = Literal["replace-one", "add-remove"]

RELATIONS: tuple[Relation, ...] = ("replace-one", "add-remove")
LARGEST_EPSILON = 1e6
"""More than this is no promise, and its noise cannot be worked out to the last digit."""

_WHOM = {"record": "one record", "person": "all records of one person", "party": "all records of one party"}


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """(epsilon, delta)-differential privacy of one unit under one neighbouring relation.

    Guarantees:
        For all tables D, D' that differ in one `unit` as `relation` says, and every set S of outcomes,
        P(outcome on D in S) <= exp(epsilon) P(outcome on D' in S) + delta.
        `epsilon` = infinity is the honest way to write "no promise".

    Example:
        >>> import tacit
        >>> guarantee = tacit.Guarantee(epsilon=1.0, delta=1e-6)
        >>> "by at most a factor of 2.72" in guarantee.plain_words()
        True
    """

    epsilon: float
    delta: float = 0.0
    unit: Unit = "record"
    relation: Relation = "replace-one"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if not 0 <= self.delta < 1:
            raise SettingError(f"delta = {self.delta} is not a probability below 1; a usual choice is 1e-6")
        if self.unit not in UNITS:
            raise SettingError(f"unit = {self.unit!r} is unknown; choose one of {', '.join(UNITS)}")
        if self.relation not in RELATIONS:
            raise SettingError(f"relation = {self.relation!r} is unknown; choose one of {', '.join(RELATIONS)}")

    @property
    def is_private(self) -> bool:
        """Whether anything is promised at all."""
        return math.isfinite(self.epsilon)

    def as_dict(self) -> dict[str, float | str | None]:
        """The fields as JSON would hold them; an infinite epsilon is null."""
        return asdict(self) | {"epsilon": self.epsilon if self.is_private else None}

    def plain_words(self) -> str:
        """A few sentences that a data owner's lawyer can read."""
        if not self.is_private:
            return "Nothing is promised about any single record: this result is NOT differentially private."
        whom = _WHOM[self.unit]
        which, them = ("The record", "it") if self.unit == "record" else ("These records", "them")
        how = (
            "added or removed"
            if self.relation == "add-remove"
            else f"replaced by any other{'' if self.unit == 'record' else 's'}"
        )
        factor = math.exp(min(self.epsilon, 700.0))
        odds = f"{factor:.3g}" if factor < 1e6 else "a million or more"
        words = (
            f"An attacker who knows everything but {whom} can raise the odds of any guess about {them} by at most a "
            f"factor of {odds} (epsilon = {self.epsilon:g})."
        )
        words += f" {which} may be {how}."
        if self.delta:
            words += f" The promise may fail with probability {self.delta:.2g} (delta)."
        return words


def check_epsilon(epsilon: float, name: str = "epsilon") -> None:
    """Refuse an epsilon that is zero, negative or not a number; infinity is allowed and promises nothing."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or math.isnan(epsilon) or epsilon <= 0:
        raise SettingError(
            f"{name} = {epsilon!r} must be a number above 0 (0.1 is strict, 1 is usual, 10 is weak; inf adds no noise)"
        )
    if LARGEST_EPSILON < epsilon < math.inf:
        raise SettingError(
            f"{name} = {epsilon:g} promises nothing; choose 10 or less, or inf to add no noise and say so"
        )


def check_delta(delta: float, name: str = "delta") -> None:
    """Refuse a delta outside (0, 1)."""
    if isinstance(delta, bool) or not isinstance(delta, int | float) or not 0 < delta < 1:
        raise SettingError(f"{name} = {delta!r} must lie strictly between 0 and 1; a usual choice is 1e-6")
