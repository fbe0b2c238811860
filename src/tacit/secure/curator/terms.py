"""What all participants know before they begin, and what each party brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tacit.errors import SettingError
from tacit.secure.paillier.key import PublicKey
from tacit.secure.paillier.vector import MASK_BITS, Packing

CURATOR = "curator"


@dataclass(frozen=True, kw_only=True)
class CuratorTerms:
    """The public facts of one run.

    Attributes:
        session: the name of the run; letters of another one are refused.
        n_parties: K, at least 2.
        dimension: how many numbers a party's vector has.
        size_bits: sizes are below 2^size_bits.
        share_bits: vectors are shared modulo 2^share_bits; a multiple of 8.
        factor_bound: the largest factor that a party may bring.
        noise_bound: the largest size of a number in a party's noise.
        key_bits: the length of the Paillier keys.
        selects: "factor": the noise is the sum of all parties' noise, times the factor of the smallest party. "noise":
            it is the noise of the smallest party alone.
    """

    session: str
    n_parties: int
    dimension: int
    size_bits: int
    share_bits: int
    factor_bound: int
    noise_bound: int
    key_bits: int = 2048
    selects: Literal["factor", "noise"] = "factor"

    def __post_init__(self) -> None:
        """Refuse terms under which nothing can be kept secret or nothing fits."""
        if self.n_parties < 2:
            raise SettingError(f"n_parties = {self.n_parties}: a sum over fewer than two parties hides nothing")
        if self.dimension < 1 or self.size_bits < 1 or self.factor_bound < 1 or self.noise_bound < 1:
            raise SettingError("dimension, size_bits, factor_bound and noise_bound must be at least 1")
        if self.share_bits % 8 or self.n_parties * self.product_bound >> self.share_bits - 1:
            raise SettingError(f"share_bits = {self.share_bits} do not hold the noise; take more, in steps of 8")
        if self.selects not in ("factor", "noise"):
            raise SettingError(f"selects = {self.selects!r} is unknown; choose factor or noise")

    @cached_property
    def parties(self) -> tuple[str, ...]:
        """The parties' names in the protocol, the first one first."""
        return tuple(f"party{i}" for i in range(self.n_parties))

    @property
    def first(self) -> str:
        """The party that permutes the sizes and holds the key to their blinded shares."""
        return self.parties[0]

    @property
    def participants(self) -> tuple[str, ...]:
        """The parties, and the curator."""
        return (*self.parties, CURATOR)

    @property
    def tie_bits(self) -> int:
        """Random bits below a size, so that two parties are equal with a chance below 2^-40 in all."""
        return MASK_BITS + 2 * self.n_parties.bit_length()

    @property
    def order_bits(self) -> int:
        """l: a size and its tie breaker are a number below 2^l, shared modulo 2^(l+1)."""
        return self.size_bits + self.tie_bits

    @property
    def n_levels(self) -> int:
        """How many rounds a tournament for the smallest takes."""
        return (self.n_parties - 1).bit_length()

    @property
    def n_deliveries(self) -> int:
        """How many deliveries to parties there are at most, one after the other: two a level, and eight besides."""
        return 8 + 2 * self.n_levels

    @property
    def product_bound(self) -> int:
        """The largest size of a number in one party's part of the noise."""
        return self.noise_bound * (self.factor_bound if self.selects == "factor" else 1)

    @property
    def mask_bound(self) -> int:
        """Masks of the noise are below this: 64 bits more than the shares have."""
        return 1 << self.share_bits + 64

    def noise_packing(self, key: PublicKey) -> Packing:
        """How a party's noise lies in plaintexts under the curator's key; the sum over the parties fits."""
        return Packing.for_bound(key, self.n_parties * (self.product_bound + self.mask_bound))


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """What a party brings; never shown to anybody.

    Attributes:
        size: how many records it has.
        factor: what the noise is to be multiplied by if this party is the smallest.
        noise: its share of the noise, or its whole noise if the terms select noise.
        addend: its vector.
    """

    size: int
    factor: int
    noise: Sequence[int]
    addend: Sequence[int]

    def check(self, terms: CuratorTerms) -> None:
        """Refuse what does not keep to the terms; says which number, not its value."""
        fits = {
            "size": 0 <= self.size < 1 << terms.size_bits,
            "factor": 0 < self.factor <= terms.factor_bound,
            "noise": len(self.noise) == terms.dimension and max(map(abs, self.noise)) <= terms.noise_bound,
            "addend": len(self.addend) == terms.dimension and max(map(abs, self.addend)) < 1 << terms.share_bits - 1,
        }
        for name, fit in fits.items():
            if not fit:
                raise SettingError(f"this party's {name} does not keep to the terms of the run; state wider bounds")

    def __repr__(self) -> str:
        """Nothing of what it holds."""
        return f"Contribution(dimension={len(self.addend)})"
