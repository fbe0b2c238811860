"""Vectors and matrices under Paillier's encryption, several whole numbers to a ciphertext, with their bounds counted.

A plaintext holds numbers v_0, v_1, ... as sum_i v_i 2^(w i): slots of a public width w. Slots are signed: a negative
number borrows from the slot above, and `Packing.unpack` pays it back, so that sums and products with known factors
come out right as long as no number reaches 2^(w-1) in size. Every vector carries a public bound on its numbers; each
operation computes the bound of its result and refuses, before it computes anything, a result that a slot cannot hold.

`EncryptedMatrix.times` is a party's part of PrivLogit-Local: rows of one column share a ciphertext, so that the
product with a vector x is, for each block of rows, prod_j C_j^(x_j). The powers of one block are taken together
(Straus 1964): all factors share the squarings, and tables of small powers are made once for all products with the
same matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tacit.errors import CenterError, SettingError, WireError
from tacit.rand import Rng
from tacit.secure.paillier.key import PrivateKey, PublicKey, gmpy2, uniform_below

SHARE_BITS = 128  # of the center's shares: whole numbers modulo 2^128
MASK_BITS = 40  # a mask leaves a statistical distance of at most 2^-40 a slot
_TABLE_BYTES = 1 << 26  # the most that tables of small powers may take
_WIDEST_WINDOW = 5  # bits of a factor taken at once


@dataclass(frozen=True, kw_only=True)
class Packing:
    """How numbers lie in a plaintext; public. Make one with `Packing.for_bound`."""

    slot_bits: int
    n_slots: int

    @classmethod
    def for_bound(cls, key: PublicKey, bound: int) -> Packing:
        """As many slots as the key holds, each wide enough for numbers of size up to `bound`."""
        slot_bits = bound.bit_length() + 1
        n_slots = (key.bits - 1) // slot_bits  # then |sum_i v_i 2^(w i)| < 2^(bits - 2) <= n / 2
        if bound < 1 or n_slots < 1:
            raise SettingError(
                f"numbers of {bound.bit_length()} bits do not fit a key of {key.bits}: take a longer key"
            )
        return cls(slot_bits=slot_bits, n_slots=n_slots)

    @property
    def largest(self) -> int:
        """The largest size of a number that a slot holds."""
        return (1 << self.slot_bits - 1) - 1

    def n_blocks(self, size: int) -> int:
        """How many plaintexts hold `size` numbers."""
        return -(-size // self.n_slots)

    def pack(self, numbers: Sequence[int]) -> list[int]:
        """The plaintexts that hold the numbers in order; they may be negative."""
        if any(abs(number) > self.largest for number in numbers):
            raise SettingError(f"a number is too large for a slot of {self.slot_bits} bits; declare a larger bound")
        return [
            sum(int(number) << self.slot_bits * i for i, number in enumerate(numbers[start : start + self.n_slots]))
            for start in range(0, len(numbers), self.n_slots)
        ]

    def unpack(self, plaintexts: Sequence[int], size: int) -> list[int]:
        """The `size` numbers that signed plaintexts hold.

        Raises:
            CenterError: if there is more in them than the slots in use can hold.
        """
        if len(plaintexts) != self.n_blocks(size):
            raise CenterError(f"{size} numbers lie in {self.n_blocks(size)} plaintexts; there are {len(plaintexts)}")
        numbers: list[int] = []
        for plaintext in plaintexts:
            rest = plaintext
            for _ in range(min(self.n_slots, size - len(numbers))):
                low = rest & (1 << self.slot_bits) - 1
                number = low - (1 << self.slot_bits) if low > self.largest else low
                numbers.append(number)
                rest = (rest - number) >> self.slot_bits
            if rest:
                raise CenterError("a decrypted number is larger than was declared")
        return numbers


@dataclass(frozen=True, kw_only=True)
class EncryptedVector:
    """Numbers that nobody can read without the private key, none larger in size than the public `bound`."""

    key: PublicKey
    packing: Packing
    size: int
    bound: int
    ciphertexts: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_bound(self.bound, self.packing)
        if len(self.ciphertexts) != self.packing.n_blocks(self.size):
            raise WireError(f"{self.size} numbers lie in {self.packing.n_blocks(self.size)} ciphertexts")

    @classmethod
    def encrypt(
        cls, numbers: Sequence[int], key: PublicKey, packing: Packing, *, bound: int, rng: Rng
    ) -> EncryptedVector:
        """A fresh encryption of numbers of size up to `bound`."""
        _check_sizes(numbers, bound)
        _check_bound(bound, packing)
        ciphertexts = tuple(key.encrypt(plaintext, rng=rng) for plaintext in packing.pack(numbers))
        return cls(key=key, packing=packing, size=len(numbers), bound=bound, ciphertexts=ciphertexts)

    def add(self, other: EncryptedVector) -> EncryptedVector:
        """The sum of the two; not fresh."""
        if (self.key, self.packing, self.size) != (other.key, other.packing, other.size):
            raise WireError("two encrypted vectors differ in key, packing or size and cannot be added")
        bound = self.bound + other.bound
        _check_bound(bound, self.packing)
        pairs = zip(self.ciphertexts, other.ciphertexts, strict=True)
        return replace(self, bound=bound, ciphertexts=tuple(self.key.add(a, b) for a, b in pairs))

    def multiply(self, factor: int, *, bound: int) -> EncryptedVector:
        """`factor` times the vector, `bound` being what is public about the factor's size; not fresh."""
        _check_sizes([factor], bound)
        _check_bound(self.bound * bound, self.packing)
        powers = tuple(self.key.multiply(c, factor) for c in self.ciphertexts)
        return replace(self, bound=self.bound * bound, ciphertexts=powers)

    def rerandomise(self, *, rng: Rng) -> EncryptedVector:
        """The same numbers in fresh ciphertexts."""
        return replace(self, ciphertexts=tuple(self.key.rerandomise(c, rng=rng) for c in self.ciphertexts))

    def mask_multiples(
        self, *, modulus_bits: int = SHARE_BITS, mask_bits: int = MASK_BITS, rng: Rng
    ) -> EncryptedVector:
        """The same numbers modulo 2^modulus_bits, in fresh ciphertexts, and nothing else about them.

        Adds r 2^modulus_bits to each number v = u + h 2^modulus_bits, r uniform below 2^mask_bits (2 H + 1), |h| <= H.

        Guarantees:
            Given u, what is decrypted is within statistical distance 2^-mask_bits a number of what any other h gives.
        """
        span = _mask_span(self.bound, modulus_bits, mask_bits)
        bound = self.bound + (span << modulus_bits)
        _check_bound(bound, self.packing)
        masks = [uniform_below(span, rng=rng) << modulus_bits for _ in range(self.size)]
        mask = EncryptedVector.encrypt(masks, self.key, self.packing, bound=span << modulus_bits, rng=rng)
        return self.add(mask)

    def decrypt(self, key: PrivateKey) -> list[int]:
        """The numbers, for the key's owner.

        Raises:
            CenterError: if one is larger than the declared bound: somebody sent another thing than was agreed.
        """
        if key.public_key != self.key:
            raise CenterError("an encrypted vector is not under this key")
        numbers = self.packing.unpack([key.decrypt_signed(c) for c in self.ciphertexts], self.size)
        if any(abs(number) > self.bound for number in numbers):
            raise CenterError("a decrypted number is larger than was declared")
        return numbers

    def to_bytes(self) -> bytes:
        """The ciphertexts as they travel; key, packing, size and bound are public and known to the reader."""
        return self.key.write(self.ciphertexts)

    @classmethod
    def from_bytes(cls, message: bytes, key: PublicKey, packing: Packing, *, size: int, bound: int) -> EncryptedVector:
        """What `to_bytes` wrote; a `WireError` for anything that is not as many ciphertexts under this key."""
        ciphertexts = tuple(key.read(message, packing.n_blocks(size)))
        return cls(key=key, packing=packing, size=size, bound=bound, ciphertexts=ciphertexts)


@dataclass(frozen=True)
class EncryptedMatrix:
    """A matrix under encryption, column by column."""

    columns: tuple[EncryptedVector, ...]

    def __post_init__(self) -> None:
        kinds = {(c.key, c.packing, c.size, c.bound) for c in self.columns}
        if len(kinds) != 1:
            raise WireError(
                "the columns of an encrypted matrix differ in key, packing, size or bound, or there are none"
            )

    @classmethod
    def encrypt(
        cls, rows: Sequence[Sequence[int]], key: PublicKey, packing: Packing, *, bound: int, rng: Rng
    ) -> EncryptedMatrix:
        """A fresh encryption of a matrix, given as rows of numbers of size up to `bound`."""
        columns = zip(*rows, strict=True)
        return cls(tuple(EncryptedVector.encrypt(c, key, packing, bound=bound, rng=rng) for c in columns))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, columns."""
        return self.columns[0].size, len(self.columns)

    def add(self, other: EncryptedMatrix) -> EncryptedMatrix:
        """The sum of the two; as fresh as the fresher one."""
        if self.shape != other.shape:
            raise WireError(f"encrypted matrices of shapes {self.shape} and {other.shape} cannot be added")
        return EncryptedMatrix(tuple(a.add(b) for a, b in zip(self.columns, other.columns, strict=True)))

    def times(self, vector: Sequence[int], *, bound: int, rng: Rng) -> EncryptedVector:
        """The product with a vector of known numbers of size up to the public `bound`, in fresh ciphertexts.

        Guarantees:
            Whoever knows this matrix's ciphertexts learns nothing about `vector` without the private key.
        """
        n_columns = len(self.columns)
        if len(vector) != n_columns:
            raise SettingError(f"a vector of {len(vector)} numbers does not fit a matrix of {n_columns} columns")
        _check_sizes(vector, bound)
        first = self.columns[0]
        product_bound = n_columns * first.bound * bound
        _check_bound(product_bound, first.packing)
        factors = [int(x) for x in vector]
        blocks = tuple(self._power_product(tables, factors) for tables in self._tables)
        return replace(first, bound=product_bound, ciphertexts=blocks).rerandomise(rng=rng)

    def to_bytes(self) -> bytes:
        """The ciphertexts as they travel, column by column."""
        return b"".join(column.to_bytes() for column in self.columns)

    @classmethod
    def from_bytes(
        cls, message: bytes, key: PublicKey, packing: Packing, *, shape: tuple[int, int], bound: int
    ) -> EncryptedMatrix:
        """What `to_bytes` wrote; a `WireError` for anything else."""
        n_rows, n_columns = shape
        width = packing.n_blocks(n_rows) * key.ciphertext_bytes
        if n_rows < 1 or n_columns < 1 or len(message) != n_columns * width:
            raise WireError(f"an encrypted matrix of shape {shape} was announced; the message has {len(message)} bytes")
        parts = [message[i * width : (i + 1) * width] for i in range(n_columns)]
        return cls(tuple(EncryptedVector.from_bytes(p, key, packing, size=n_rows, bound=bound) for p in parts))

    @cached_property
    def _window(self) -> int:
        first = self.columns[0]
        n_bytes = len(self.columns) * len(first.ciphertexts) * first.key.ciphertext_bytes
        return max(w for w in range(1, _WIDEST_WINDOW + 1) if w == 1 or n_bytes << w <= _TABLE_BYTES)

    @cached_property
    def _tables(self) -> list[list[list[Any]]]:
        """For each block of rows and each column, the ciphertext's powers 0, 1, ..., 2^window - 1."""
        mpz = gmpy2().mpz
        square = mpz(self.columns[0].key.n) ** 2

        def powers(ciphertext: int) -> list[Any]:
            table = [mpz(1), mpz(ciphertext)]
            while len(table) < 1 << self._window:
                table.append(table[-1] * table[1] % square)
            return table

        blocks = zip(*(column.ciphertexts for column in self.columns), strict=True)
        return [[powers(ciphertext) for ciphertext in block] for block in blocks]

    def _power_product(self, tables: Sequence[Sequence[Any]], factors: Sequence[int]) -> int:
        """prod_j C_j^(x_j): factors of either sign are gathered apart, so that one inversion serves all."""
        square = gmpy2().mpz(self.columns[0].key.n) ** 2
        window = self._window
        mask = (1 << window) - 1
        highest = max(1, *(abs(x).bit_length() for x in factors))
        gathered = []
        for sign in (1, -1):
            signed = [(table, abs(x)) for table, x in zip(tables, factors, strict=True) if x * sign > 0]
            product = gmpy2().mpz(1)
            for position in range((highest - 1) // window * window, -1, -window):
                product = gmpy2().powmod(product, 1 << window, square)
                for table, x in signed:
                    if digit := x >> position & mask:
                        product = product * table[digit] % square
            gathered.append(product)
        return int(gathered[0] * gmpy2().invert(gathered[1], square) % square)


def product_packing(
    key: PublicKey, *, n_columns: int, n_parties: int, entry_bound: int = 3 << SHARE_BITS, factor_bound: int = 1 << 63
) -> Packing:
    """Slots for the sum over parties of matrix times vector, masked by `mask_multiples`.

    The default entries are sums of three center nodes' shares modulo 2^128, each taken as a number below 2^128.
    """
    bound = n_parties * n_columns * entry_bound * factor_bound
    return Packing.for_bound(key, bound + (_mask_span(bound, SHARE_BITS, MASK_BITS) << SHARE_BITS))


def _mask_span(bound: int, modulus_bits: int, mask_bits: int) -> int:
    """How many masks there are to draw from: 2^mask_bits for each multiple that the mask must hide."""
    multiples = (bound >> modulus_bits) + 1  # H: |floor(v / 2^modulus_bits)| is no larger
    return (2 * multiples + 1) << mask_bits


def _check_sizes(numbers: Sequence[int], bound: int) -> None:
    if any(abs(int(number)) > bound for number in numbers):
        raise SettingError(f"a number is larger in size than the declared bound of {bound.bit_length()} bits")


def _check_bound(bound: int, packing: Packing) -> None:
    if not 0 <= bound <= packing.largest:
        raise SettingError(
            f"numbers of up to {bound.bit_length()} bits do not fit slots of {packing.slot_bits}; "
            f"make the packing for the largest sum that will be taken"
        )
