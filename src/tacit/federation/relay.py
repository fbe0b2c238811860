"""What a party keeps between the questions of a run in which parties write to each other.

Parties do not talk to each other: the coordinator carries letters that it cannot read, in questions and answers. So a
step that takes part in such a run must remember its side of it from one question to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from tacit.data.table import Table
from tacit.errors import WireError

T = TypeVar("T")

_MOST = 8  # runs that a party remembers at once; the oldest is dropped for a new one


class Sessions(Generic[T]):
    """What parties keep between the steps of a run, each for its own table.

    Guarantees:
        In memory alone: nothing of it reaches a disk, and it is gone when the run is closed, when the table is, or when
        the party's process ends. A run that was dropped cannot be taken up again.
    """

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[Table, dict[str, T]] = WeakKeyDictionary()

    def open(self, table: Table, session: str, kept: T) -> None:
        """Begin to remember a run."""
        runs = self._kept.setdefault(table, {})
        if session in runs:
            raise WireError(f"the run {session!r} has begun already; every run needs a name of its own")
        if len(runs) >= _MOST:
            del runs[next(iter(runs))]
        runs[session] = kept

    def get(self, table: Table, session: str) -> T:
        """What was kept of a run; a `WireError` if there is none, as after a restart."""
        try:
            return self._kept[table][session]
        except KeyError:
            raise WireError(
                f"nothing is known here of the run {session!r}: the party was restarted, or the run is over; start anew"
            ) from None

    def get_or_open(self, table: Table, session: str, make: Callable[[], T]) -> T:
        """What was kept under that name, or what `make` gives, kept from now on."""
        if session not in self._kept.get(table, {}):
            self.open(table, session, make())
        return self.get(table, session)

    def close(self, table: Table, session: str) -> None:
        """Forget a run."""
        self._kept.get(table, {}).pop(session, None)
