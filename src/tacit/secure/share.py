"""Shares: a whole number as the sum of random ones, modulo 2^128.

x = s_0 + s_1 + s_2 (mod 2^128), s_0 and s_1 uniform. Node p of three holds the pair (s_p, s_{p+1 mod 3}). One node's
pair is uniform whatever x is and so says nothing; any two nodes hold all three parts. Sums are taken part by part.
Modulus and parts are those of the engine (ABY3 over 128 bits), so that a sum can be opened, or go into a secure
computation as it is. A uniform part travels as the seed that it is stretched from.

A vector modulo 2^128 is an array of unsigned 64-bit words of shape (m, 2): low word, high word. What a node holds has
shape (parts, m, 2). A real number x stands for the whole number round(x * 2^40).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import nacl.utils
import numpy as np

from tacit.errors import CenterError
from tacit.rand import Rng
from tacit.secure.ring import Floats, Ints, Words, add, extend, subtract

N_NODES = 3
PARTS_HELD = 2  # of each number, by one node
FRACTION_BITS = 40
SEED_BYTES = 32

Part = bytes | Words  # a seed, or the words themselves


class OutOfRange(CenterError):
    """A number that needs more bits than were declared."""


@dataclass(frozen=True)
class Shared:
    """What one node holds of an array: words of shape (parts, m, 2), m the number of entries."""

    words: Words = field(repr=False)
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.words.ndim != 3 or self.words.shape[1:] != (math.prod(self.shape), 2):
            raise CenterError(f"shares of {self.words.shape[1:2]} numbers do not fill an array of shape {self.shape}")


def split(x: Ints, *, rng: Rng) -> list[list[Part]]:
    """The two parts of `x` that each node gets. All parts but the last are seeds.

    Guarantees:
        What one node gets is independent of `x`, and expands to words that nobody can tell from uniform ones.
    """
    seeds = [rng.bytes(SEED_BYTES) for _ in range(N_NODES - 1)]
    last = extend(x)
    for seed in seeds:
        last = subtract(last, stretch(seed, x.size))
    parts: list[Part] = [*seeds, last]
    return [[parts[(p + i) % N_NODES] for i in range(PARTS_HELD)] for p in range(N_NODES)]


def expand(parts: Sequence[Part], size: int) -> Words:
    """The words of shape (parts, size, 2) that a node's parts stand for."""
    words = np.empty((len(parts), size, 2), dtype=np.uint64)
    for row, part in zip(words, parts, strict=True):
        row[:] = stretch(part, size) if isinstance(part, bytes) else part
    return words


def join_all(held: Sequence[Words]) -> Ints:
    """The numbers whose shares all nodes of a center hold, as signed 64-bit integers.

    Raises:
        CenterError: if any two nodes differ in a part that both hold, naming them, or the one that differs from both
            others; or if a number needs more than 64 bits.
    """
    if len(held) != N_NODES:
        raise CenterError(f"a center has {N_NODES} nodes; shares of {len(held)} came")
    if any(words.shape != held[0].shape or len(words) != PARTS_HELD for words in held):
        raise CenterError("the nodes hold shares of different shapes")
    _check_common(held)
    return narrow(add(add(held[0][0], held[1][0]), held[2][0]))


def join_real(held: Sequence[Shared]) -> Floats:
    """The real numbers whose shares all nodes hold.

    Raises:
        CenterError: if the nodes disagree, or a number is not within 2^23: then a computation left its range.
    """
    shape = held[0].shape
    if any(shared.shape != shape for shared in held):
        raise CenterError("the nodes hold shares of different shapes")
    try:
        numbers = join_all([shared.words for shared in held]).reshape(shape)
    except OutOfRange as error:
        raise OutOfRange(
            "a result of the secure computation is not within 2**23: what the parties sealed, or a public argument, is "
            "larger than declared"
        ) from error
    return np.asarray(numbers / float(1 << FRACTION_BITS))


def _check_common(held: Sequence[Words]) -> None:
    """Every part is held by two nodes: one that alters what it holds differs from who holds it too."""
    differing = [p for p in range(N_NODES) if not np.array_equal(held[p][1], held[(p + 1) % N_NODES][0])]
    if not differing:
        return
    pairs = [{p, (p + 1) % N_NODES} for p in differing]
    both = set.intersection(*pairs)
    if len(pairs) > 1 and both:
        raise CenterError(f"node {both.pop()} holds other values than both other nodes: it altered its shares")
    first, second = sorted(pairs[0])
    raise CenterError(f"nodes {first} and {second} hold different values of the same share: one of them altered it")


def narrow(total: Words) -> Ints:
    """Numbers modulo 2^128 as signed 64-bit integers; an `OutOfRange` if one needs more bits."""
    low = np.ascontiguousarray(total[:, 0]).view(np.int64)
    if not np.array_equal(total, extend(low)):
        raise OutOfRange("the sum does not fit the declared grid: a party sent shares of a number that is too large")
    return low


def stretch(seed: bytes, size: int) -> Words:
    """`size` words modulo 2^128 from a seed: the ChaCha20 stream of libsodium's deterministic generator."""
    stream = nacl.utils.randombytes_deterministic(16 * size, seed)
    return np.frombuffer(stream, dtype="<u8").astype(np.uint64, copy=False).reshape(size, 2)
