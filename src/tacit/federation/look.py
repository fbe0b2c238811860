"""Looks: the runs that a study plans beforehand, each when so many records are enrolled.

A run's sum group says which look it is, by a number from 1. A party holds that against the study that its owner agreed
to: there are so many looks and no more, each has its number of records, and a look is never followed by an earlier one.
What a look may cost follows from the study too, so the number decides nothing that the study has not said.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime

from tacit.errors import NotAgreed
from tacit.federation.group import SumGroup


def today() -> date:
    """The date in UTC, by this machine's clock."""
    return datetime.fromtimestamp(time.time(), UTC).date()


@dataclass(frozen=True, kw_only=True)
class PlannedLooks:
    """When a study looks.

    Attributes:
        n_records: how many records are in each look at least, in order.
        until: the last day on which parties may join; afterwards a look may have fewer records, and is the last.
    """

    n_records: tuple[int, ...]
    until: date | None = None

    @property
    def is_over(self) -> bool:
        """Whether the last day is over, by this machine's clock."""
        return self.until is not None and today() > self.until

    def check(self, group: SumGroup) -> None:
        """Refuse a look that the study does not plan, or for which too few records are enrolled."""
        if not 1 <= group.look <= len(self.n_records):
            raise NotAgreed(f"the study plans {len(self.n_records)} looks, and the run is of look {group.look}")
        least = self.n_records[group.look - 1]
        if group.n_records < least and not self.is_over:
            raise NotAgreed(
                f"look {group.look} of the study has {least:,} records or more, and the run has {group.n_records:,}"
            )


def late(until: date, decided: float) -> bool:
    """Whether a consent, given at this time, came after the last day on which parties may join."""
    return datetime.fromtimestamp(decided, UTC).date() > until
