"""The only source of chance.

`Rng.system()` reads the operating system's cryptographic generator and is the only one that protects anybody. Each draw
goes to the system anew, and nothing drawn is kept for later. So a snapshot of the machine's memory, run twice, holds no
noise of a release that is still to come. (What the kernel itself does after a snapshot is the kernel's affair: Linux
reseeds its generator when the hypervisor tells of it, by VMGENID.)

A pool would save little: small draws cost no more without one, and large ones only somewhat more.

`Rng.seeded(seed)` repeats itself, for tests and simulations; a report of a run that used it says NOT PRIVATE (seeded).
`public_choices(seed)` is for choices that are public anyway, such as a split of public data.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tacit.errors import SettingError

_BLOCK = 1 << 16  # bytes of a seeded stream that are computed at once


class Rng:
    """A stream of independent uniform bits, and exact uniform draws made from it.

    Guarantees:
        A system source hands no bit out twice: not to two threads, not on both sides of a fork, not to a copy of it or
        of the whole process. It has no state.
        `below` and `permutation` are exactly uniform if the bits are.

    Example:
        >>> import tacit
        >>> first, second = (tacit.Rng.seeded(7).generator().integers(100, size=4) for _ in range(2))
        >>> bool((first == second).all())
        True
    """

    def __init__(self, key: builtins.bytes | None) -> None:
        """Use `Rng.system()` or `Rng.seeded(seed)`."""
        self._key = key
        self._pid = 0
        self._lock = threading.Lock()
        self._buffer = b""  # this and what follows: of a seeded stream only
        self._used = 0  # bytes of the buffer that are gone
        self._position = 0  # bytes handed out so far
        self._next_block = 0
        self._start_afresh(position=0)

    @classmethod
    def system(cls) -> Rng:
        """The operating system's cryptographic generator."""
        return cls(None)

    @classmethod
    def seeded(cls, seed: int | builtins.bytes) -> Rng:
        """A deterministic stream, SHAKE-256 in counter mode: NOT PRIVATE, since whoever knows the seed knows the noise.

        Guarantees:
            The stream depends on the seed alone, not on the sizes of the requests, the machine or the version of numpy.
        """
        if isinstance(seed, bool) or not isinstance(seed, int | builtins.bytes):
            raise SettingError(f"a seed is an integer or bytes, not {type(seed).__name__}")
        return cls(_digest(b"seed", repr(seed).encode()))

    @property
    def is_private(self) -> bool:
        """Whether the draws are unknown to everybody: true of the system's generator only."""
        return self._key is None

    def child(self, label: str) -> Rng:
        """Another stream, independent of this one and of children with other labels; the same each time if seeded.

        A system source has no state, so it is its own child.
        """
        return self if self._key is None else Rng(_digest(b"child", self._key, label.encode()))

    def bytes(self, n: int) -> builtins.bytes:
        """The next `n` bytes."""
        if self._key is None:
            return os.urandom(n)
        if os.getpid() != self._pid:  # a forked copy may hold a lock that nobody will release
            self._start_afresh(position=self._position)
        with self._lock:
            self._position += n
            while len(self._buffer) - self._used < n:
                missing = n - (len(self._buffer) - self._used)
                self._buffer = self._buffer[self._used :] + self._fetch(self._key, missing)
                self._used = 0
            taken = self._buffer[self._used : self._used + n]
            self._used += n
        return taken

    def words(self, size: int) -> NDArray[np.uint64]:
        """`size` independent uniform 64-bit words."""
        return np.frombuffer(self.bytes(8 * size), dtype="<u8").astype(np.uint64, copy=False)

    def bits(self, size: int) -> NDArray[np.bool_]:
        """`size` independent fair bits."""
        packed = np.frombuffer(self.bytes((size + 7) // 8), dtype=np.uint8)
        return np.unpackbits(packed, count=size).astype(np.bool_)

    def below(self, n: int, size: int) -> NDArray[np.int64]:
        """`size` independent integers, exactly uniform on 0, ..., n - 1, for n up to 2**63."""
        if not 1 <= n <= 2**63:
            raise SettingError(f"n = {n} must lie between 1 and 2**63 for a uniform draw below it")
        # Words below the largest multiple of n; among them every remainder is equally frequent.
        largest = np.uint64(2**64 // n * n - 1)
        kept = np.empty(0, dtype=np.uint64)
        while kept.size < size:
            words = self.words(size - kept.size)
            kept = np.concatenate([kept, words[words <= largest]])
        return (kept % np.uint64(n)).astype(np.int64)

    def permutation(self, n: int) -> NDArray[np.int64]:
        """An exactly uniform order of 0, ..., n - 1."""
        while True:
            keys = self.words(n)
            order = np.argsort(keys)
            ranked = keys[order]
            # Given that all keys differ, every order of them is equally likely.
            if not np.any(ranked[1:] == ranked[:-1]):
                return order.astype(np.int64)

    def generator(self) -> np.random.Generator:
        """A numpy generator seeded from 256 bits of this: for simulation and splitting data, never for a release."""
        return np.random.Generator(np.random.PCG64DXSM(int.from_bytes(self.bytes(32), "big")))

    def __repr__(self) -> str:
        """Whether it is private, and nothing that tells a draw."""
        return "Rng.system()" if self.is_private else "Rng.seeded(...)  # NOT PRIVATE (seeded)"

    def __reduce__(self) -> tuple[Callable[..., Rng], tuple[object, ...]]:
        """A copy of a system source is a new one; a copy of a seeded source goes on from the same place."""
        return (Rng.system, ()) if self._key is None else (_resume, (self._key, self._position))

    def _start_afresh(self, position: int) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._buffer = b""
        self._used = 0
        self._position = position
        self._next_block = position // _BLOCK
        if self._key is not None and position % _BLOCK:
            self._buffer = self._fetch(self._key, 1)[position % _BLOCK :]

    def _fetch(self, key: builtins.bytes, n: int) -> builtins.bytes:
        """At least `n` further bytes of the seeded stream."""
        first, self._next_block = self._next_block, self._next_block + -(-n // _BLOCK)
        blocks = range(first, self._next_block)
        return b"".join(hashlib.shake_256(key + i.to_bytes(8, "big")).digest(_BLOCK) for i in blocks)


def public_choices(*seed: int) -> np.random.Generator:
    """A numpy generator for choices that everybody may know: splits of public data, made-up rows. Never for noise."""
    return np.random.default_rng(seed[0] if len(seed) == 1 else seed)


def _resume(key: bytes, position: int) -> Rng:
    rng = Rng(key)
    rng._start_afresh(position)
    return rng


def _digest(*parts: bytes) -> bytes:
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in (b"tacit.rand", *parts))
    return hashlib.sha3_256(framed).digest()
