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
import numpy.typing as npt

from tacit.errors import CenterError
from tacit.rand import Rng

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

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
    last = _extend(x)
    for seed in seeds:
        last = _subtract(last, _stretch(seed, x.size))
    parts: list[Part] = [*seeds, last]
    return [[parts[(p + i) % N_NODES] for i in range(PARTS_HELD)] for p in range(N_NODES)]


def expand(parts: Sequence[Part], size: int) -> Words:
    """The words of shape (parts, size, 2) that a node's parts stand for."""
    words = np.empty((len(parts), size, 2), dtype=np.uint64)
    for row, part in zip(words, parts, strict=True):
        row[:] = _stretch(part, size) if isinstance(part, bytes) else part
    return words


def add(a: Words, b: Words) -> Words:
    """a + b modulo 2^128, element by element."""
    total = np.empty_like(a)
    np.add(a[..., 0], b[..., 0], out=total[..., 0])
    np.add(a[..., 1], b[..., 1], out=total[..., 1])
    total[..., 1] += total[..., 0] < a[..., 0]  # the carry
    return total


def join_all(held: Sequence[Words]) -> Ints:
    """The numbers whose shares all nodes of a center hold, as signed 64-bit integers.

    Raises:
        CenterError: if any two nodes differ in a part that both hold, or a number needs more than 64 bits.
    """
    if len(held) != N_NODES:
        raise CenterError(f"a center has {N_NODES} nodes; shares of {len(held)} came")
    if any(words.shape != held[0].shape or len(words) != PARTS_HELD for words in held):
        raise CenterError("the nodes hold shares of different shapes")
    for p in range(N_NODES):
        _check_common(p, held[p], held[(p + 1) % N_NODES])
    return _narrow(add(add(held[0][0], held[1][0]), held[2][0]))


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


def _check_common(node: int, pair: Words, next_pair: Words) -> None:
    if pair.shape != next_pair.shape or not np.array_equal(pair[1], next_pair[0]):
        raise CenterError(f"nodes {node} and {(node + 1) % N_NODES} hold different values of the same share")


def _narrow(total: Words) -> Ints:
    low = np.ascontiguousarray(total[:, 0]).view(np.int64)
    if not np.array_equal(total, _extend(low)):
        raise OutOfRange("the sum does not fit the declared grid: a party sent shares of a number that is too large")
    return low


def _stretch(seed: bytes, size: int) -> Words:
    """`size` words modulo 2^128 from a seed: the ChaCha20 stream of libsodium's deterministic generator."""
    stream = nacl.utils.randombytes_deterministic(16 * size, seed)
    return np.frombuffer(stream, dtype="<u8").astype(np.uint64, copy=False).reshape(size, 2)


def _extend(x: Ints) -> Words:
    """Signed 64-bit integers as words modulo 2^128."""
    x = np.ascontiguousarray(x, dtype=np.int64)
    return np.stack([x.view(np.uint64), (x >> 63).view(np.uint64)], axis=-1)


def _subtract(a: Words, b: Words) -> Words:
    difference = np.empty_like(a)
    np.subtract(a[..., 0], b[..., 0], out=difference[..., 0])
    np.subtract(a[..., 1], b[..., 1], out=difference[..., 1])
    difference[..., 1] -= a[..., 0] < b[..., 0]  # the borrow
    return difference
