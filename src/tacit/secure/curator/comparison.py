"""Which of two numbers is smaller, where each is the sum of two shares in different hands.

m = x + y modulo 2^(l+1) is the difference of two numbers below 2^l; the first is the smaller one if and only if the top
bit of m is set. The holder of x has a Paillier key; the asker has y. With x = x_top 2^l + x_low and so for y,

    top bit of m = x_top xor y_top xor carry,    carry = [x_low + y_low >= 2^l] = [2 x_low > 2 (2^l - 1 - y_low) + 1].

The carry is found as Damgard, Geisler and Kroigaard (2007) compare: with X = 2 x_low and Y the right side, which differ
in their lowest bit, put c_i = s + X_i - Y_i + 3 sum_{k>i} (X_k xor Y_k). With s = -1 one c_i is zero if and only if
X > Y; with s = +1, if and only if X < Y; never two. The asker tosses s, so that what the holder finds out is a fair
coin, and the holder returns it xor x_top, a fair coin to the asker but for the top bit of m: the carry itself, which
would tell about the size of the difference, stays unknown to both.

The c_i reach the holder as c_i r_i + p t_i, in a random order: p a prime above every c_i, r_i uniform on
{1, ..., p - 1}, t_i a mask of 40 bits more than the rest. Modulo p each is 0, or uniform on {1, ..., p - 1}; and all
else is hidden to within 2^-40.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tacit.errors import WireError
from tacit.rand import Rng
from tacit.secure.paillier.key import PrivateKey, PublicKey, gmpy2, uniform_below
from tacit.secure.paillier.vector import MASK_BITS, EncryptedVector, Packing
from tacit.wire import Value


@dataclass(frozen=True)
class SecureComparison:
    """The public side of comparisons under one key.

    Attributes:
        n_bits: l.
        key: that of the holder of x.
    """

    n_bits: int
    key: PublicKey

    @cached_property
    def _prime(self) -> int:
        return int(gmpy2().next_prime(3 * self.n_bits + 5))

    @cached_property
    def _mask_span(self) -> int:
        return (2 * self._prime + 1) << MASK_BITS  # |c_i r_i / p| is at most p

    @cached_property
    def _bound(self) -> int:
        return self._prime * (self._prime + self._mask_span)

    @cached_property
    def _packing(self) -> Packing:
        return Packing.for_bound(self.key, self._bound)

    @property
    def request_bytes(self) -> int:
        """The length of a request for one comparison."""
        return self.n_bits * self.key.ciphertext_bytes

    @property
    def test_bytes(self) -> int:
        """The length of a test for one comparison."""
        return self._packing.n_blocks(self.n_bits + 1) * self.key.ciphertext_bytes

    def request(self, private_key: PrivateKey, x: int, *, rng: Rng) -> bytes:
        """The holder's first message: the bits of x_low, encrypted one by one, the lowest first."""
        return self.key.write([private_key.encrypt(x >> i & 1, rng=rng) for i in range(self.n_bits)])

    def test(self, request: bytes, y: int, flip: int, *, rng: Rng) -> bytes:
        """The asker's message: the masked c_i, with s = -1 if `flip` is 0 and s = +1 if it is 1."""
        bits = [1, *self.key.read(request, self.n_bits)]  # X = 2 x_low; 1 is a ciphertext of 0
        y_low = y & (1 << self.n_bits) - 1
        Y = 2 * ((1 << self.n_bits) - 1 - y_low) + 1
        found = self._differences(bits, Y, 1 if flip else -1)
        order = rng.permutation(len(found)).tolist()
        masked = [self.key.multiply(found[i], 1 + int(rng.below(self._prime - 1, 1)[0])) for i in order]
        masks = [self._prime * uniform_below(self._mask_span, rng=rng) for _ in masked]
        bound = self._prime * self._mask_span
        fresh = EncryptedVector.encrypt(masks, self.key, self._packing, bound=bound, rng=rng)
        return self._packed(masked, self._prime**2).add(fresh).to_bytes()

    def outcome(self, private_key: PrivateKey, test: bytes, x: int) -> int:
        """The holder's last message: whether it found a zero, xor the top bit of x."""
        found = any(number % self._prime == 0 for number in self._read(test).decrypt(private_key))
        return int(found) ^ (x >> self.n_bits & 1)

    def is_smaller(self, outcome: int, y: int, flip: int) -> bool:
        """What the asker learns: the top bit of x + y."""
        return bool(outcome ^ flip ^ (y >> self.n_bits & 1))

    def _read(self, test: bytes) -> EncryptedVector:
        return EncryptedVector.from_bytes(test, self.key, self._packing, size=self.n_bits + 1, bound=self._bound)

    def _differences(self, bits: Sequence[int], Y: int, s: int) -> list[int]:
        """Ciphertexts of the c_i; not fresh."""
        n = self.key.n
        square = gmpy2().mpz(n) ** 2
        found, higher = [], gmpy2().mpz(1)  # of the sum over k > i
        for i in reversed(range(len(bits))):
            X_i, Y_i = gmpy2().mpz(bits[i]), Y >> i & 1
            constant = 1 + n * ((s - Y_i) % n)  # a ciphertext of s - Y_i
            found.append(int(constant * X_i * gmpy2().powmod(higher, 3, square) % square))
            different = (1 + n) * gmpy2().invert(X_i, square) if Y_i else X_i  # X_k xor Y_k
            higher = higher * different % square
        return found

    def _packed(self, ciphertexts: Sequence[int], bound: int) -> EncryptedVector:
        """Ciphertexts of one number each, put into slots: sum_i c_i 2^(w i), from the highest down."""
        shift = 1 << self._packing.slot_bits
        blocks = []
        for start in range(0, len(ciphertexts), self._packing.n_slots):
            block = 1
            for ciphertext in reversed(ciphertexts[start : start + self._packing.n_slots]):
                block = self.key.add(self.key.multiply(block, shift), ciphertext)
            blocks.append(block)
        return EncryptedVector(
            key=self.key, packing=self._packing, size=len(ciphertexts), bound=bound, ciphertexts=tuple(blocks)
        )


def read_pairs(message: Value, n: int) -> list[tuple[int, int]]:
    """Pairs of places below n off the wire, in one list; no place twice."""
    match message:
        case list(places) if places and len(places) % 2 == 0 and len(set(map(str, places))) == len(places):
            numbers = [place for place in places if type(place) is int and 0 <= place < n]
            if len(numbers) == len(places):
                return list(zip(numbers[::2], numbers[1::2], strict=True))
    raise WireError(f"a message is not a list of pairs of {n} places")


def cut(message: bytes, n_bytes: int, count: int) -> list[bytes]:
    """A message of `count` parts of one length."""
    if len(message) != count * n_bytes:
        raise WireError(f"{count} parts of {n_bytes} bytes are due; the message has {len(message)}")
    return [message[i : i + n_bytes] for i in range(0, len(message), n_bytes)]
