"""The ways in which a value may leave a party, and nothing else.

A step returns exactly one of these. The party's guard charges its event, writes it down, and only then lets it go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tacit.privacy.event import Event, NotPrivate
from tacit.secure.bound import Bound
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
        n_parties: how many parties the noise counts on; the center opens no sum over fewer.
        bound: how long the addend is at most, noise included, as it follows from the plan: the same for all parties.
            The nodes refuse a longer one. An honest one is longer with a chance below 2^-40, and is then replaced by
            zeros.
        exact: whether the addend is an exact statistic of the records that adding up alone hides; a party with fewer
            than its policy's `min_records_exact` does not give it.
    """

    addend: npt.NDArray[np.int64]
    event: Event
    n_parties: int
    bound: Bound
    exact: bool = False


@dataclass(frozen=True)
class Kept:
    """Whole numbers, in fixed point, whose sums over parties the center keeps, unopened, for its programs.

    They leave as a sealed addend does, and are exact statistics of the records. `event` says what the programs that
    read these names will open.

    Attributes:
        addends: this party's arrays, by the names under which the center keeps their sums.
        event: the cost of what will be opened.
        n_parties: the center keeps no sum over fewer parties.
        bounds: as of `Sealed`, by the same names.
        contrasts: of which contrasts `variances` may be opened (`program.contrasts_digest`); empty: of none.
    """

    addends: Mapping[str, npt.NDArray[np.int64]]
    event: Event
    n_parties: int
    bounds: Mapping[str, Bound]
    contrasts: str = ""
    exact: ClassVar[bool] = True


@dataclass(frozen=True)
class Encrypted:
    """A product with the center's encrypted inverse, still encrypted; beside it, addends that the center keeps.

    The product is sealed to the one node that adds such products up and cannot decrypt them: only their sum is opened.

    Attributes:
        product: ciphertexts, made fresh by this party.
        addends: as of `Kept`.
        event: the cost of what will be opened.
        n_parties: the center opens no sum over fewer parties.
        bounds: of the addends; nobody can check how long a product is.
    """

    product: bytes
    addends: Mapping[str, npt.NDArray[np.int64]]
    event: Event
    n_parties: int
    bounds: Mapping[str, Bound]
    exact: ClassVar[bool] = True


@dataclass(frozen=True)
class Relayed:
    """Letters to others in a protocol between parties, each sealed for its reader: the coordinator carries them.

    Attributes:
        value: the letters, and public keys to seal answers to.
        event: what all that the protocol opens costs, with its first letters; `Free` with the later ones.
        exact: whether the protocol opens an exact statistic; see `Sealed`.
        counts_on: what the event counts on besides; a party's policy must accept it by the method's name. Empty: on
            nothing that a coordinator could break.
    """

    value: Values
    event: Event
    exact: bool = False
    counts_on: str = ""


@dataclass(frozen=True)
class Disclosed:
    """Raw data or exact statistics, for baselines; refused unless the party's policy names the method."""

    value: Values
    why: str

    @property
    def event(self) -> Event:
        """No epsilon bounds it."""
        return NotPrivate(why=self.why)


Reply = Noised | Sealed | Kept | Encrypted | Relayed | Disclosed
