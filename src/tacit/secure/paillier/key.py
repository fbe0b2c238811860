"""Paillier's encryption: whole numbers that can be added up, and multiplied by known ones, while nobody can read them.

With n = p q, a ciphertext of m in {0, ..., n - 1} is (1 + n)^m h^a modulo n^2 (Paillier 1999, scheme 1 with g = 1 + n).
The public key holds n and h, the n-th power of a random unit; a is a random number of 64 bits more than n has. The
product of two ciphertexts is one of the sum; the k-th power is one of k times the number.

Proof that m is hidden if n-th residues modulo n^2 cannot be told from other units (DCR). The order of h divides
lambda(n) < n, so h^a is within 2^-64 of uniform on the group that h generates, and a longer a, of twice the bits of n
and 64, is no different. Now let h be any random unit instead, which DCR says nobody notices: h = (1 + n)^u y with u a
unit modulo n (else n is factored) and the order of y prime to n. Then a modulo n and a modulo the order of y are
uniform and independent up to 2^-64, so (1 + n)^(m + u a) y^a says nothing about m. One random base for all
(Damgard, Jurik and Nielsen 2010 have the idea) lets its powers be tabled: that takes a quarter of the time of r^n.

Numbers live modulo n: a caller keeps them within public bounds, so that nothing wraps (`secure.paillier_vector` packs
several into one ciphertext and counts its bounds). Operations that must stay secret from those who saw their operands
end with `rerandomise`: products and powers of known ciphertexts are otherwise a function of known numbers.

Decryption is that of `phe`, with `gmpy2` below; all chance comes from `tacit.rand`. Running times are not constant.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any

from tacit.errors import SettingError, WireError
from tacit.rand import Rng

LEAST_BITS = 2048
"""No key below this size is made or accepted: its modulus could be factored."""

_WINDOW = 5  # bits of an exponent taken at once


@dataclass(frozen=True)
class PublicKey:
    """What anybody may encrypt with; made by `PrivateKey.generate` or read by `from_bytes`.

    A ciphertext is a whole number in {1, ..., n^2 - 1} that has no divisor in common with n.

    Attributes:
        n: the modulus.
        base: h, an n-th power modulo n^2, of which every randomiser is a power.
    """

    n: int
    base: int

    @property
    def bits(self) -> int:
        """The length of the modulus."""
        return self.n.bit_length()

    @property
    def ciphertext_bytes(self) -> int:
        """The length of one ciphertext on the wire."""
        return (2 * self.bits + 7) // 8

    def encrypt(self, number: int, *, rng: Rng) -> int:
        """A fresh ciphertext of `number`, taken modulo n; a negative one is read back by `PrivateKey.decrypt_signed`.

        Guarantees:
            Two ciphertexts of the same number are independent, given the number.
        """
        plain = 1 + self.n * (int(number) % self.n)  # (1 + n)^m modulo n^2
        return int(plain * self._randomiser(rng) % self._square)

    def add(self, first: int, second: int) -> int:
        """A ciphertext of the sum; not fresh."""
        return int(gmpy2().mpz(first) * second % self._square)

    def multiply(self, ciphertext: int, factor: int) -> int:
        """A ciphertext of `factor` times the number; not fresh, so whoever knows `ciphertext` could test factors."""
        return int(gmpy2().powmod(ciphertext, factor, self._square))

    def rerandomise(self, ciphertext: int, *, rng: Rng) -> int:
        """A ciphertext of the same number that cannot be linked to the old one without the private key."""
        return int(ciphertext * self._randomiser(rng) % self._square)

    def check(self, ciphertext: int) -> None:
        """Refuse what is no ciphertext under this key."""
        if not 0 < ciphertext < self._square or gmpy2().gcd(ciphertext, self.n) != 1:
            raise WireError("a number on the wire is no ciphertext under this key: out of range, or not a unit")

    def write(self, ciphertexts: Sequence[int]) -> bytes:
        """Ciphertexts as they travel: each in `ciphertext_bytes` bytes, one after the other."""
        return b"".join(int(c).to_bytes(self.ciphertext_bytes, "big") for c in ciphertexts)

    def read(self, message: bytes, count: int) -> list[int]:
        """The `count` ciphertexts that `write` wrote, each one checked; a `WireError` for anything else."""
        width = self.ciphertext_bytes
        if len(message) != count * width:
            raise WireError(f"{count} ciphertexts of {width} bytes were announced; the message has {len(message)}")
        ciphertexts = [int.from_bytes(message[i : i + width], "big") for i in range(0, len(message), width)]
        for ciphertext in ciphertexts:
            self.check(ciphertext)
        return ciphertexts

    def to_bytes(self) -> bytes:
        """The key as it travels: n and h, each as long as n says."""
        return self.n.to_bytes(self.bits // 8, "big") + self.base.to_bytes(self.bits // 4, "big")

    @classmethod
    def from_bytes(cls, message: bytes) -> PublicKey:
        """The key that `to_bytes` wrote; a `WireError` for a modulus that is too short, even, a prime or a square."""
        n_bytes = len(message) // 3
        n, base = int.from_bytes(message[:n_bytes], "big"), int.from_bytes(message[n_bytes:], "big")
        if len(message) % 3 or n.bit_length() != 8 * n_bytes or n.bit_length() < LEAST_BITS:
            raise WireError(f"a Paillier key of {n.bit_length()} bits was sent; {LEAST_BITS} is the least")
        if n % 2 == 0 or gmpy2().is_prime(n) or gmpy2().is_square(n):
            raise WireError("a Paillier key was sent whose modulus is not the product of two odd primes")
        key = cls(n, base)
        key.check(base)
        if base == 1:
            raise WireError("a Paillier key was sent whose randomisers are all 1")
        return key

    @cached_property
    def _square(self) -> Any:
        return gmpy2().mpz(self.n) ** 2

    def _randomiser(self, rng: Rng) -> Any:
        """h^a for a fresh a."""
        return _powers(self).power(self._exponent(rng))

    def _exponent(self, rng: Rng) -> int:
        """a: 64 bits more than n has."""
        return int.from_bytes(rng.bytes(self.bits // 8 + 8), "big")


class PrivateKey:
    """The factors of a modulus: who holds them reads every ciphertext. There is no way to write one out."""

    def __init__(self, p: int, q: int, base: int) -> None:
        """Use `PrivateKey.generate`."""
        self.public_key = PublicKey(p * q, base)
        self._halves = tuple(Powers(base % prime**2, prime**2, prime.bit_length()) for prime in (p, q))
        self._inverse = int(gmpy2().invert(p**2, q**2))
        self._phe = _phe().PaillierPrivateKey(_phe().PaillierPublicKey(p * q), p, q)

    @classmethod
    def generate(cls, bits: int = 2048, *, rng: Rng) -> PrivateKey:
        """A new key with a modulus of exactly `bits` bits."""
        if bits < LEAST_BITS or bits % 16:
            raise SettingError(f"bits = {bits} for a Paillier key must be a multiple of 16, at least {LEAST_BITS}")
        while True:
            p, q = _prime(bits // 2, rng), _prime(bits // 2, rng)
            # Primes of one length give gcd(n, (p-1)(q-1)) = 1; primes close to each other would be found by Fermat.
            if abs(p - q).bit_length() > bits // 2 - 100:
                n = p * q
                return cls(p, q, int(gmpy2().powmod(_unit(n, rng), n, n * n)))

    def encrypt(self, number: int, *, rng: Rng) -> int:
        """As `PublicKey.encrypt`, with the same draws, but four times as fast: h^a modulo p^2 and modulo q^2."""
        exponent = self.public_key._exponent(rng)
        p, q = (half.modulus for half in self._halves)
        # The order of h modulo p^2 divides p - 1, since h is an n-th power and n a multiple of p.
        low, high = (half.power(exponent % (half.root - 1)) for half in self._halves)
        randomiser = low + p * ((high - low) * self._inverse % q)
        n = self.public_key.n
        return int((1 + n * (int(number) % n)) * randomiser % (p * q))

    def decrypt(self, ciphertext: int) -> int:
        """The number, in {0, ..., n - 1}."""
        self.public_key.check(ciphertext)
        return int(self._phe.raw_decrypt(int(ciphertext)))

    def decrypt_signed(self, ciphertext: int) -> int:
        """The number of least size that is equal to it modulo n."""
        number = self.decrypt(ciphertext)
        return number if 2 * number < self.public_key.n else number - self.public_key.n

    def __repr__(self) -> str:
        """Its size, and nothing of the factors."""
        return f"PrivateKey({self.public_key.bits} bits)"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """A private key is not copied to other processes."""
        raise TypeError("a Paillier private key stays where it was made")


def uniform_below(bound: int, *, rng: Rng) -> int:
    """A whole number, exactly uniform on {0, ..., bound - 1}, of any size."""
    if bound < 1:
        raise SettingError(f"bound = {bound} must be at least 1 for a uniform draw below it")
    n_bits = (bound - 1).bit_length()
    n_bytes = (n_bits + 7) // 8
    while True:
        drawn = int.from_bytes(rng.bytes(n_bytes), "big") >> (8 * n_bytes - n_bits)
        if drawn < bound:
            return drawn


def _unit(n: int, rng: Rng) -> int:
    """A uniform unit modulo n; whoever draws another number has factored n."""
    while True:
        drawn = uniform_below(n, rng=rng)
        if gmpy2().gcd(drawn, n) == 1:
            return drawn


def _prime(bits: int, rng: Rng) -> int:
    """A uniform prime of that length with its two first bits set, so that the product of two has twice the length."""
    while True:
        candidate = int.from_bytes(rng.bytes(bits // 8), "big") | 3 << bits - 2 | 1
        if gmpy2().is_prime(candidate, 64):  # 64 rounds of Miller-Rabin after Baillie-PSW
            return candidate


class Powers:
    """Powers of one base: h^(k 2^(w i)) for every digit k < 2^w and every place i of an exponent, made when needed."""

    def __init__(self, base: int, modulus: int, n_bits: int) -> None:
        """For exponents of at most `n_bits` bits."""
        self.modulus = gmpy2().mpz(modulus)
        self._base = gmpy2().mpz(base)
        self._n_places = -(-n_bits // _WINDOW)

    @cached_property
    def root(self) -> Any:
        """The square root of the modulus."""
        return gmpy2().isqrt(self.modulus)

    @cached_property
    def _table(self) -> list[list[Any]]:
        table, power = [], self._base
        for _ in range(self._n_places):
            powers = [gmpy2().mpz(1)]
            while len(powers) < 1 << _WINDOW:
                powers.append(powers[-1] * power % self.modulus)
            table.append(powers)
            power = powers[-1] * power % self.modulus
        return table

    def power(self, exponent: int) -> Any:
        """The base to that power."""
        product = gmpy2().mpz(1)
        for i, powers in enumerate(self._table):
            product = product * powers[exponent >> _WINDOW * i & (1 << _WINDOW) - 1] % self.modulus
        return product


@lru_cache(maxsize=8)
def _powers(key: PublicKey) -> Powers:
    """The powers of a key's base; 7 MB at 2048 bits, so not one for every copy of the key."""
    return Powers(key.base, key.n**2, key.bits + 64)


def gmpy2() -> Any:
    """The arithmetic of whole numbers, loaded when first needed."""
    return _loaded("gmpy2")


def _phe() -> Any:
    return _loaded("phe.paillier")


@cache
def _loaded(module: str) -> Any:
    """Loaded when first needed: the rest of Tacit works without it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SettingError("Paillier encryption needs phe and gmpy2: pip install 'tacit[secure]'") from error
