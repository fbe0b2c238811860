"""From a noisy sum of gradients to two bits a coordinate: the choice of the largest, and packing.

    largest              the n largest of a noisy vector
    report_noisy_top_n   Wang's Algorithm 3, which is NOT PRIVATE as printed
    pack, unpack         a choice of coordinates, with signs or values, as bytes

The private choice of the n largest is `privacy.noise.gumbel`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import WireError
from tacit.privacy.noise.discrete import discrete_laplace
from tacit.rand import Rng
from tacit.wire import Value

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def largest(noisy: Floats | Ints, n: int) -> Bools:
    """The n entries that are largest in size; zeros are never chosen."""
    size = np.abs(noisy)
    chosen = np.zeros(len(noisy), dtype=bool)
    chosen[np.argpartition(-size, n - 1)[:n]] = True
    return chosen & (size > 0)


def report_noisy_top_n(values: Ints, noise_scale: float, n: int, *, rng: Rng) -> tuple[Ints, Ints]:
    """Wang's Algorithm 3 as printed: the indices of the n largest noisy values, and these values.

    NOT PRIVATE for the 2 n epsilon that is claimed: the values tell about every coordinate that was not chosen.
    """
    noisy = values + discrete_laplace(noise_scale, len(values), rng=rng)
    indices = np.argpartition(-noisy, n - 1)[:n].astype(np.int64)
    return indices, noisy[indices]


def pack(chosen: Bools, *, negative: Bools | None = None, values: Floats | Ints | None = None) -> dict[str, Value]:
    """A choice of coordinates as one bit each, and for the chosen ones a bit for the sign, or a number."""
    packed: dict[str, Value] = {"chosen": np.packbits(chosen)}
    if negative is not None:
        packed["negative"] = np.packbits(negative[chosen])
    if values is not None:
        packed["values"] = values[chosen]
    return packed


def unpack(packed: Mapping[str, Value], size: int) -> Floats:
    """The vector that `pack` made: signs or values of the chosen coordinates, 0 elsewhere."""
    match packed:
        case {"chosen": np.ndarray() as bits, **rest} if _is_packed(bits, size):
            chosen = np.unpackbits(bits.astype(np.uint8), count=size).astype(bool)
        case _:
            raise WireError(f"a choice among {size} coordinates was expected and something else came")
    n = int(chosen.sum())
    vector = np.zeros(size)
    match rest:
        case {"negative": np.ndarray() as bits} if _is_packed(bits, n):
            vector[chosen] = 1.0 - 2.0 * np.unpackbits(bits.astype(np.uint8), count=n)
        case {"values": np.ndarray() as values} if values.shape == (n,) and values.dtype.kind in "if":
            vector[chosen] = values
        case _:
            raise WireError(f"{n} signs or values were expected and something else came")
    return vector


def _is_packed(bits: npt.NDArray[Any], size: int) -> bool:
    return bits.dtype == np.uint8 and bits.shape == ((size + 7) // 8,)
