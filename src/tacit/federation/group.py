"""The sum group: those who take part in one run together, as every one of them is told.

A plan follows from the study and from this. So a group is fixed when a run begins, each party checks it then, and
every question of the run names it by its digest. Between organisations each size carries its owner's signature: the
coordinator can leave a party out, but it cannot make up how many records one has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from tacit import wire
from tacit.errors import NotAgreed, WireError
from tacit.record import from_value, to_value
from tacit.wire import Value

_DOMAIN = "tacit size 1"

_MOST_LISTED = 2**16  # names of a group that travel as they are
_MOST_PACKS = 2**6  # of as many names

SizesTold = Literal["each", "total", "none"]
"""What the parties of a run are told of their numbers of records."""


@dataclass(frozen=True, kw_only=True)
class SumGroup:
    """Who takes part in a run.

    Attributes:
        names: the parties, in a fixed order.
        n_records: how many records they have together; 0 where that is not told.
        sizes: how many each has, in the order of the names; empty where that is not told.
        quorum: a round goes on with no fewer of them.
        signatures: each party's signature of its own size and offer (`size_statement`); empty in a simulation.
        look: which planned look of its study the run is, from 1; 0 where the study plans none.
        offers: the epsilon of the parties that offer less than the study asks, by name.
    """

    names: tuple[str, ...]
    n_records: int
    quorum: int
    sizes: tuple[int, ...] = ()
    signatures: Mapping[str, bytes] = field(default_factory=dict)
    look: int = 0
    offers: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        is_sound = (
            0 < self.quorum <= len(self.names) == len(set(self.names))
            and (not self.sizes or (len(self.sizes) == len(self.names) and sum(self.sizes) == self.n_records))
            and all(size > 0 for size in self.sizes)
            and self.n_records >= 0
            and self.look >= 0
            and all(name in self.names and 0 < offer < math.inf for name, offer in self.offers.items())
        )
        if not is_sound:
            raise WireError("a sum group's names, sizes and quorum do not fit each other")

    @classmethod
    def of(
        cls,
        sizes: Mapping[str, int],
        *,
        quorum: int,
        told: SizesTold = "each",
        signatures: Mapping[str, bytes] | None = None,
        look: int = 0,
        offers: Mapping[str, float] | None = None,
    ) -> SumGroup:
        """The group of parties with these numbers of records."""
        return cls(
            names=tuple(sizes),
            n_records=0 if told == "none" else sum(sizes.values()),
            sizes=tuple(sizes.values()) if told == "each" else (),
            quorum=quorum,
            signatures=dict(signatures or {}) if told == "each" or offers else {},
            offers=dict(offers or {}),
            look=look,
        )

    @property
    def told(self) -> SizesTold:
        """What this group tells of sizes."""
        return "each" if self.sizes else "total" if self.n_records else "none"

    @property
    def n_parties(self) -> int:
        """How many parties there are."""
        return len(self.names)

    def encode(self) -> bytes:
        """The group as it travels, once a run."""
        return self._body

    @cached_property
    def _body(self) -> bytes:
        return wire.encode(self._form)  # once for all parties of a simulation

    @cached_property
    def _form(self) -> dict[str, Value]:
        """Plain values. Omit `look` when 0 and `offers` when there are none, so that older groups keep their digest.

        The names and sizes of a crowd are packed: a message has a limit of values.
        """
        form = {key: value for key, value in to_value(self).items() if value or key not in ("look", "offers")}
        if self.n_parties > _MOST_LISTED:
            names = [self.names[i : i + _MOST_LISTED] for i in range(0, self.n_parties, _MOST_LISTED)]
            form |= {"names": [wire.encode(some) for some in names], "sizes": np.array(self.sizes, dtype=np.int64)}
        return form

    @staticmethod
    def decode(message: bytes) -> SumGroup:
        """The group in `message`; a `WireError` if it is none."""
        value = wire.decode(message)
        if not isinstance(value, Mapping):
            return from_value(SumGroup, value)
        return from_value(SumGroup, {"look": 0, "offers": {}, **value, **_unpacked(value)})

    @cached_property
    def digest(self) -> str:
        """The name by which questions speak of this group."""
        return wire.digest(self._form)

    def check_member(self, party: str, n_records: int, offer: float | None = None) -> None:
        """Refuse a group that does not hold this party as it is."""
        if party not in self._positions:
            raise NotAgreed(f"the run is of a group that party {party!r} is not in")
        if self.sizes and self.sizes[self._positions[party]] != n_records:
            raise NotAgreed(f"the run counts on another number of records than party {party!r} has")
        if self.offers.get(party) != offer:
            raise NotAgreed(f"the run counts on another epsilon than party {party!r} offers; gather anew")

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.names)}


def _unpacked(form: Mapping[str, Value]) -> dict[str, Value]:
    """The names and sizes of a group that are packed."""
    unpacked: dict[str, Value] = {}
    names, sizes = form.get("names"), form.get("sizes")
    if isinstance(names, list) and any(isinstance(one, bytes) for one in names):
        if len(names) > _MOST_PACKS:
            raise WireError(f"a sum group of more than {_MOST_PACKS * _MOST_LISTED:,} parties is over the limit")
        unpacked["names"] = [name for one in names for name in _pack(one)]
    if isinstance(sizes, np.ndarray) and sizes.dtype == np.int64 and sizes.ndim == 1:
        unpacked["sizes"] = sizes.tolist()
    return unpacked


def _pack(value: Value) -> list[Value]:
    names = wire.decode(value) if isinstance(value, bytes) else None
    if not isinstance(names, list):
        raise WireError("the names of a sum group are packed otherwise than they should be")
    return names


def size_statement(study: str, party: str, n_records: int, offer: float | None = None) -> bytes:
    """What a party signs to announce its size, and its offer if it has one, in the study with this digest."""
    return wire.encode([_DOMAIN, study, party, n_records, *([] if offer is None else [offer])])
