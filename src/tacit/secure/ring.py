"""Whole numbers modulo 2^128: the arithmetic of shares.

A vector modulo 2^128 is an array of unsigned 64-bit words of shape (..., m, 2): low word, high word. Products and long
sums are taken digit by digit, of 32 or 16 bits, so that no intermediate number leaves 64 bits, or the 53 of a float.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MODULUS_BITS = 128

_DIGIT = np.uint64(32)
_DIGITS = 4
_MASK = np.uint64(0xFFFFFFFF)
_SHORT = np.uint64(16)
_SHORTS = 8
_SHORT_MASK = np.uint64(0xFFFF)


def extend(x: Ints) -> Words:
    """Signed 64-bit integers modulo 2^128."""
    x = np.ascontiguousarray(x, dtype=np.int64)
    return np.stack([x.view(np.uint64), (x >> 63).view(np.uint64)], axis=-1)


def whole(numbers: list[int]) -> Words:
    """Whole numbers of any size modulo 2^128."""
    low = (1 << 64) - 1
    return np.array([[n & low, n >> 64 & low] for n in numbers], dtype=np.uint64).reshape(-1, 2)


def add(a: Words, b: Words) -> Words:
    """a + b, element by element."""
    total = np.empty_like(a)
    np.add(a[..., 0], b[..., 0], out=total[..., 0])
    np.add(a[..., 1], b[..., 1], out=total[..., 1])
    total[..., 1] += total[..., 0] < a[..., 0]  # the carry
    return total


def subtract(a: Words, b: Words) -> Words:
    """a - b, element by element."""
    difference = np.empty_like(a)
    np.subtract(a[..., 0], b[..., 0], out=difference[..., 0])
    np.subtract(a[..., 1], b[..., 1], out=difference[..., 1])
    difference[..., 1] -= a[..., 0] < b[..., 0]  # the borrow
    return difference


def multiply(a: Words, b: Words) -> Words:
    """a b, element by element."""
    x, y = _digits(a), _digits(np.broadcast_to(b, a.shape))
    sums = np.zeros((_DIGITS, *x.shape[1:]), dtype=np.uint64)
    for i in range(_DIGITS):
        products = x[i] * y[: _DIGITS - i]
        sums[i:] += products & _MASK
        sums[i + 1 :] += products[:-1] >> _DIGIT
    return _carried(sums)


def total(a: Words) -> Words:
    """The sums over the last axis but one, of fewer than 2^32 numbers."""
    return _carried(_digits(a).sum(axis=-1, dtype=np.uint64))


def combine(coefficients: npt.NDArray[np.uint16] | npt.NDArray[np.uint8], a: Words) -> Words:
    """Matrices of coefficients times vectors, for fewer than 2^21 columns."""
    return _joined((coefficients.astype(np.float64) @ _shorts(a)).astype(np.uint64))


def dot(a: Words, b: Words) -> Words:
    """The sums of a b over the last axis but one, of fewer than 2^21 numbers."""
    products = (np.swapaxes(_shorts(a), -1, -2) @ _shorts(b)).astype(np.uint64)
    sums = np.zeros((*products.shape[:-2], _SHORTS), dtype=np.uint64)
    for i in range(_SHORTS):
        sums[..., i:] += products[..., i, : _SHORTS - i]
    return _joined(sums)


def bits(a: Words, count: int) -> npt.NDArray[np.int64]:
    """The lowest `count` bits of each number, the least first."""
    found = np.unpackbits(np.ascontiguousarray(a).view(np.uint8).reshape(*a.shape[:-1], 16), axis=-1, bitorder="little")
    return found[..., :count].astype(np.int64)


def _shorts(a: Words) -> Floats:
    """Eight digits of 16 bits, the least first; products of two, added up over 2^21 numbers, are below 2^53."""
    return np.ascontiguousarray(a).view("<u2").astype(np.float64)


def _joined(sums: Words) -> Words:
    """The words of eight sums of digits of 16 bits, each below 2^63."""
    for k in range(_SHORTS - 1):
        sums[..., k + 1] += sums[..., k] >> _SHORT
    sums &= _SHORT_MASK
    return np.ascontiguousarray(sums.astype("<u2")).view("<u8").astype(np.uint64, copy=False)


def _digits(a: Words) -> Words:
    """Four digits of 32 bits, the least first, along a new first axis."""
    halves = np.ascontiguousarray(a).view("<u4")
    digits = np.empty((_DIGITS, *halves.shape[:-1]), dtype=np.uint64)
    for k in range(_DIGITS):
        digits[k] = halves[..., k]
    return digits


def _carried(sums: Words) -> Words:
    """The words of four sums of digits, each below 2^63."""
    for k in range(_DIGITS - 1):
        sums[k + 1] += sums[k] >> _DIGIT
    sums &= _MASK
    words = np.empty((*sums.shape[1:], 2), dtype=np.uint64)
    words[..., 0] = sums[0] | sums[1] << _DIGIT
    words[..., 1] = sums[2] | sums[3] << _DIGIT
    return words
