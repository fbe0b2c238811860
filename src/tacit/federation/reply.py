"""The four ways in which a value may leave a party, and nothing else.

A step returns exactly one of these. The party's guard charges its event, writes it down, and only then lets it go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.privacy.event import Event, Free, NotPrivate
from tacit.secure.envelope import OPEN
from tacit.wire import Value

Values = Mapping[str, Value]


@dataclass(frozen=True)
class Noised:
    """A differentially private value: anyone may see it once its event has been charged."""

    value: Values
    event: Event


@dataclass(frozen=True)
class Sealed:
    """Whole numbers on a public grid of which only the sum over parties will be opened.

    The guard splits them into shares and seals one envelope for each center node, so `addend` itself never leaves.
    `event` says what opening the sum costs, the party's share of the noise being inside `addend`.

    Attributes:
        addend: this party's vector.
        event: the cost of the opened sum.
        n_parties: how many parties the noise counts on; the center uses no sum over fewer.
        use: `OPEN`, or the name under which the center keeps the sum, unopened, for its programs; the event then says
            what those programs will open.
    """

    addend: npt.NDArray[np.int64]
    event: Event
    n_parties: int
    use: str = OPEN


@dataclass(frozen=True)
class Public:
    """A function of the study and of earlier public values only, never of a record."""

    value: Values

    @property
    def event(self) -> Event:
        """Nothing is learned."""
        return Free()


@dataclass(frozen=True)
class Disclosed:
    """Raw data or exact statistics, for baselines; refused unless the party's policy names the method."""

    value: Values
    why: str

    @property
    def event(self) -> Event:
        """No epsilon bounds it."""
        return NotPrivate(why=self.why)


Reply = Noised | Sealed | Public | Disclosed
