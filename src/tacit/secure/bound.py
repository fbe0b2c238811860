"""How long an addend may be: the blocks of numbers that a plan allows, and the terms of a proof that they are kept.

The letters are those of `secure.proof`, which has the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tacit.errors import SettingError, WireError
from tacit.secure.ring import Ints

SOUNDNESS_BITS = 80  # k
HIDING_BITS = 40  # H

_MOST_COEFFICIENT_BITS = 16
_ROOM_BITS = 126
_WORST_CHANCE = 0.75  # of passing one projection; more would need too many
_NORM_LIMIT = 1 << 63
_FLOAT_ERROR = 1e-9  # of a norm of up to 2^22 numbers, generously


@dataclass(frozen=True, kw_only=True)
class NormBound:
    """So many numbers of an addend in a row, and the most that their norm may be."""

    size: int
    norm: int

    def __post_init__(self) -> None:
        if self.size < 1 or not 1 <= self.norm < _NORM_LIMIT:
            raise WireError(f"a block of {self.size} numbers with norm {self.norm}: sizes and norms count from 1")


Bound = tuple[NormBound, ...]


@dataclass(frozen=True, kw_only=True)
class ProofTerms:
    """What follows from the blocks: the numbers of the docstring above.

    Attributes:
        bound: the blocks.
        part_bits: m.
        coefficient_bits: alpha; A is 2^alpha.
        n_projections: N.
        range_bits: how many digits a projection has.
        norm_bits: how many digits each block's v_b has; none where the bound is coarse.
    """

    bound: Bound
    part_bits: int
    coefficient_bits: int
    n_projections: int
    range_bits: int
    norm_bits: tuple[int, ...]

    @property
    def is_exact(self) -> bool:
        """Whether no block can be longer than its norm."""
        return bool(self.norm_bits)

    @cached_property
    def size(self) -> int:
        """How many numbers an addend has."""
        return sum(block.size for block in self.bound)

    @cached_property
    def n_digits(self) -> int:
        """How many digits are shared beside them."""
        return self.n_projections * self.range_bits + sum(self.norm_bits)

    @cached_property
    def n_words(self) -> int:
        """How many numbers a part has in all."""
        return self.size + self.n_digits

    @cached_property
    def offset(self) -> int:
        """(A - 1) s, which makes honest projections positive."""
        return ((1 << self.coefficient_bits) - 1) * _reach(self.bound)


@lru_cache(maxsize=256)
def terms_of(bound: Bound) -> ProofTerms:
    """The terms of a proof for these blocks: the fewest digits that keep the promises.

    Raises:
        SettingError: if the numbers are too large for the ring.
    """
    if not bound:
        raise SettingError("an addend has no bound, and so no proof; let the step state one")
    size, s = sum(block.size for block in bound), _reach(bound)
    part_bits = s.bit_length() + HIDING_BITS
    room = min(_ROOM_BITS - part_bits - 3 - size.bit_length(), _MOST_COEFFICIENT_BITS)
    if room < 1:
        raise SettingError(
            f"{size} numbers of norm up to {max(block.norm for block in bound)} are too many or too large to "
            f"be checked; choose a coarser grid"
        )
    norm_bits = tuple((block.norm**2).bit_length() for block in bound)
    found: list[tuple[int, ProofTerms]] = []
    for alpha in range(1, room + 1):
        range_bits = (2 * ((1 << alpha) - 1) * s).bit_length()
        chance = (2.0**range_bits * _root(size) / 2.0**63 + 1) / 2**alpha
        if chance <= _WORST_CHANCE:
            n = math.ceil(SOUNDNESS_BITS / -math.log2(chance))
            terms = ProofTerms(
                bound=bound, part_bits=part_bits, coefficient_bits=alpha, n_projections=n, range_bits=range_bits,
                norm_bits=norm_bits,
            )  # fmt: skip
            found.append((terms.n_digits, terms))
    if found:
        return min(found, key=lambda pair: pair[0])[1]
    return ProofTerms(
        bound=bound, part_bits=part_bits, coefficient_bits=1, n_projections=SOUNDNESS_BITS,
        range_bits=(2 * s).bit_length(), norm_bits=(),
    )  # fmt: skip


def within(addend: Ints, bound: Bound) -> bool:
    """Whether an addend keeps its bounds."""
    start = 0
    for block in bound:
        part = addend[start : start + block.size]
        start += block.size
        norm = float(np.linalg.norm(part.astype(np.float64)))
        is_close = abs(norm / block.norm - 1) < _FLOAT_ERROR
        if (norm > block.norm and not is_close) or (is_close and sum(int(x) ** 2 for x in part) > block.norm**2):
            return False
    return start == addend.size


def _reach(bound: Bound) -> int:
    """s: no addend within the bounds has a larger sum of sizes."""
    return sum(_root(block.size) * block.norm for block in bound)


def _root(n: int) -> int:
    return math.isqrt(n - 1) + 1
