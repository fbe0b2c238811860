"""Shares: a whole number as the sum of three random ones, modulo 2^128.

x = s_0 + s_1 + s_2 (mod 2^128), s_0 and s_1 uniform. Node p of three holds the pair (s_p, s_{p+1 mod 3}): one node's
pair is uniform whatever x is and so says nothing; any two nodes hold all three parts. Sums are taken part by part.
The modulus and the pairs are those of the three-node engine (ABY3 over 128 bits), so that a sum can be opened, or go
into a secure computation as it is.

A vector modulo 2^128 is an array of unsigned 64-bit words of shape (m, 2): low word, high word.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.errors import CenterError
from tacit.rand import Rng

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

N_NODES = 3


def split(x: Ints, *, rng: Rng) -> list[Words]:
    """The pairs of shares of `x`, one of shape (2, m, 2) for each node.

    Guarantees:
        Each pair alone is uniform and independent of `x`; `join` of any two pairs gives `x` back.
    """
    s0 = rng.words(2 * x.size).reshape(-1, 2)
    s1 = rng.words(2 * x.size).reshape(-1, 2)
    s2 = _subtract(_subtract(_extend(x), s0), s1)
    parts = (s0, s1, s2)
    return [np.stack([parts[p], parts[(p + 1) % N_NODES]]) for p in range(N_NODES)]


def add(a: Words, b: Words) -> Words:
    """a + b modulo 2^128, element by element."""
    total = np.empty_like(a)
    np.add(a[..., 0], b[..., 0], out=total[..., 0])
    np.add(a[..., 1], b[..., 1], out=total[..., 1])
    total[..., 1] += total[..., 0] < a[..., 0]  # the carry
    return total


def join(node: int, pair: Words, next_pair: Words) -> Ints:
    """The numbers whose shares node `node` and the next one hold, as signed 64-bit integers.

    Raises:
        CenterError: if the two nodes differ in the part that both hold, or a number needs more than 64 bits.
    """
    if pair.shape != next_pair.shape or not np.array_equal(pair[1], next_pair[0]):
        raise CenterError(f"nodes {node} and {(node + 1) % N_NODES} hold different values of the same share")
    total = add(add(pair[0], pair[1]), next_pair[1])
    low = total[:, 0].view(np.int64)
    if not np.array_equal(total, _extend(low)):
        raise CenterError("the sum does not fit the declared grid: a party sent shares of a number that is too large")
    return low.copy()


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
