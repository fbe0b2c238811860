"""Dates as features: which number a date stands for.

A study says `date = "year"`, `date = "month"` or `date = "days since 2020-01-01"`, and bounds of that number. A date is
written as 2026-11-18, with or without a time after it; of 3/4/26 nobody knows which is the month.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

from tacit.errors import SchemaError

PARTS = ("year", "month")
DATE_TEXT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?$"
_SINCE = re.compile(r"days since ([0-9]{4}-[0-9]{2}-[0-9]{2})")


@dataclass(frozen=True)
class DateRule:
    """A number of a date: its year, its month, or how many days it is after another date."""

    part: str  # year, month or days
    since: datetime.date | None = None

    @classmethod
    def read(cls, owner: str, text: object) -> DateRule:
        """The rule that a study's `date` says."""
        if text in PARTS:
            return cls(str(text))
        found = _SINCE.fullmatch(text) if isinstance(text, str) else None
        since = _day(found[1]) if found else None
        if since is None:
            raise SchemaError(f"{owner}: date={text!r} is not 'year', 'month' or 'days since 2020-01-01'")
        return cls("days", since)

    def __str__(self) -> str:
        """As a study says it."""
        return self.part if self.since is None else f"days since {self.since.isoformat()}"

    def number(self, text: str) -> float | None:
        """The number of a date as text; None if it is none."""
        day = _day(text[:10]) if re.fullmatch(DATE_TEXT, text) else None
        if day is None:
            return None
        if self.since is not None:
            return float((day - self.since).days)
        return float(day.year if self.part == "year" else day.month)


def _day(text: str) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return None
