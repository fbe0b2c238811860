"""The kept inverse, encrypted for the parties; and the sum of their products with it, opened.

Parties   node 0, which alone can decrypt; node 1, which alone gets the parties' products; the other node; the parties
Trust     honest but curious nodes of which no two collude, and node 0 colludes with nobody who sees the encrypted
          inverse: its key opens that
Travels   node 0 -> nodes: a Paillier key, new for this run; node p -> node 1: its part s_p of the inverse X, encrypted;
          node 1 -> parties: their sum. Party j -> node 1, sealed: X g_j, encrypted and fresh; node 1 -> node 0: their
          sum, masked. Between nodes everything goes over the engine's mutual TLS
Revealed  X g, g = sum_j g_j, with 40 fraction bits rounded at random, to node 0 and the coordinator
Privacy   none of its own: the event of the opened step
Assumes   |X g| < 2^(86 - f), f being g's fraction bits; each g_j in whole numbers of up to 63 bits
Cost      d^2 / 8 encryptions a node, once; d^2 / 8 powers with 63-bit exponents a party a round
Paper     Wang, chapter 5, PrivLogit-Local. Departures: products are re-randomised by the parties, or whoever knows the
          encrypted inverse could search for g_j; they are added by a node that cannot decrypt, and masked

The parts add up to X 2^40 plus a multiple of 2^128, so a product is X g 2^(40 + f) plus a multiple of 2^128, f being
g's fraction bits. Node 1 adds a random multiple of 2^128, which hides that one up to a statistical distance of 2^-40,
and a random number below 2^f, so that no digit is told beyond the 40th.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from tacit.errors import CenterError, SettingError, WireError
from tacit.rand import Rng
from tacit.secure.center.engine import SecureEngine
from tacit.secure.paillier.key import PrivateKey, PublicKey, uniform_below
from tacit.secure.paillier.vector import EncryptedMatrix, EncryptedVector, Packing, product_packing
from tacit.secure.share import FRACTION_BITS, N_NODES, Ints, Shared
from tacit.wire import Value

USE = "product"  # what parties seal their products for
DECRYPTS, ADDS = 0, 1  # the nodes that do

_FACTOR_BOUND = 1 << 63
_MODULUS_BITS = 128
_MOST_FRACTION_BITS = 80
_RNG = Rng.system()


@dataclass(frozen=True, kw_only=True)
class ProductTerms:
    """What is public about a product: from it everybody derives the same packing and bounds."""

    n_features: int
    n_parties: int

    def __post_init__(self) -> None:
        if min(self.n_features, self.n_parties) < 1:
            raise SettingError(f"{self} must count at least one feature and one party")

    @property
    def entry_bound(self) -> int:
        """Of an entry of the encrypted inverse: a sum of the nodes' parts, each below 2^128."""
        return N_NODES << _MODULUS_BITS

    @property
    def product_bound(self) -> int:
        """Of one party's product."""
        return self.n_features * self.entry_bound * _FACTOR_BOUND

    def packing(self, key: PublicKey) -> Packing:
        """How numbers lie in a ciphertext, with room for the sum over the parties, the mask and the rounding."""
        return product_packing(
            key,
            n_columns=self.n_features,
            n_parties=self.n_parties + 1,  # one more: the random digits below the 40th
            entry_bound=self.entry_bound,
            factor_bound=_FACTOR_BOUND,
        )


@dataclass(frozen=True, kw_only=True)
class EncryptedInverse:
    """The inverse under node 0's key: what a party multiplies its own vector with. It travels in questions."""

    key: bytes = field(repr=False)
    matrix: bytes = field(repr=False)
    terms: ProductTerms

    def times(self, vectors: Ints, *, rng: Rng) -> bytes:
        """The product with whole numbers of shape (d,) or (d, m), encrypted and fresh, to be sealed to node 1.

        Guarantees:
            Nobody but node 0 learns anything about `vectors`; node 0 only if it gets this very message.
        """
        columns = np.asarray(vectors, dtype=np.int64).reshape(self.terms.n_features, -1).T
        matrix = _read_matrix(self.key, self.matrix, self.terms)
        return b"".join(
            matrix.times([int(x) for x in column], bound=_FACTOR_BOUND, rng=rng).to_bytes() for column in columns
        )


@dataclass(frozen=True, kw_only=True)
class Form:
    """How many vectors a product has, and in what unit 2^-fraction_bits the parties' numbers are."""

    n_vectors: int
    fraction_bits: int

    def __post_init__(self) -> None:
        if self.n_vectors < 1 or not 0 <= self.fraction_bits <= _MOST_FRACTION_BITS:
            raise SettingError(f"{self} must have at least one vector and 0 to {_MOST_FRACTION_BITS} fraction bits")


class ProductNode:
    """One node's side of it, for one run."""

    def __init__(self, engine: SecureEngine, terms: ProductTerms, inverse: Shared) -> None:
        self._engine = engine
        self._terms = terms
        self._rows = _numbers(inverse, terms.n_features)
        self._private: PrivateKey | None = None
        self._key: PublicKey | None = None

    def encrypt(self) -> dict[str, Value]:
        """Encrypt this node's part under node 0's key; node 0 returns that key, node 1 the sum of all parts."""
        rank, others = self._engine.rank, [r for r in range(N_NODES) if r != self._engine.rank]
        # 1. Node 0's key, to all.
        if rank == DECRYPTS:
            self._private = PrivateKey.generate(rng=_RNG)
            key = self._key = self._private.public_key
            for other in others:
                self._engine.send(other, key.to_bytes())
        else:
            key = self._key = PublicKey.from_bytes(self._engine.receive(DECRYPTS))
        # 2. Each node's own part s_p, encrypted, to node 1.
        d, packing, bound = self._terms.n_features, self._terms.packing(key), 1 << _MODULUS_BITS
        total = EncryptedMatrix.encrypt(self._rows, key, packing, bound=bound, rng=_RNG)
        if rank != ADDS:
            self._engine.send(ADDS, total.to_bytes())
            return {"key": key.to_bytes(), "n_features": d} if rank == DECRYPTS else {}
        # 3. Node 1 adds them up; a sum with a fresh term is fresh.
        for other in others:
            message = self._engine.receive(other)
            total = total.add(EncryptedMatrix.from_bytes(message, key, packing, shape=(d, d), bound=bound))
        return {"matrix": total.to_bytes()}

    def masked_sum(self, products: Mapping[str, bytes], form: Form) -> bytes:
        """The sum of the parties' products with a random multiple of 2^128 and random digits below the 40th.

        Raises:
            CenterError: if more parties sent products than were agreed on.
            WireError: if what a party sent is not its product.
        """
        if not 0 < len(products) <= self._terms.n_parties:
            raise CenterError(f"{len(products)} products cannot be added; up to {self._terms.n_parties} were agreed on")
        key = self._known_key()
        packing, below = self._terms.packing(key), 1 << form.fraction_bits
        totals = []
        for _ in range(form.n_vectors):
            digits = [uniform_below(below, rng=_RNG) for _ in range(self._terms.n_features)]
            totals.append(EncryptedVector.encrypt(digits, key, packing, bound=below, rng=_RNG))
        for message in products.values():
            vectors = _read_vectors(message, key, self._terms, form.n_vectors, self._terms.product_bound)
            totals = [total.add(own) for total, own in zip(totals, vectors, strict=True)]
        return b"".join(total.mask_multiples(rng=_RNG).to_bytes() for total in totals)

    def open(self, masked: bytes | None, form: Form) -> dict[str, Value]:
        """Node 1 gives the masked sum to node 0, which returns the step, one row for each feature."""
        if masked is not None:
            self._engine.send(DECRYPTS, masked)
        if self._private is None:
            return {}
        key, unit = self._known_key(), 1 << FRACTION_BITS + form.fraction_bits
        largest = self._terms.packing(key).largest
        vectors = _read_vectors(self._engine.receive(ADDS), key, self._terms, form.n_vectors, largest)
        columns = [[_centre(number) / unit for number in vector.decrypt(self._private)] for vector in vectors]
        return {"step": np.array(columns, dtype=np.float64).T}

    def _known_key(self) -> PublicKey:
        if self._key is None:
            raise CenterError("the run has no encrypted inverse; ask for it first")
        return self._key


def _read_vectors(
    message: bytes, key: PublicKey, terms: ProductTerms, n_vectors: int, bound: int
) -> list[EncryptedVector]:
    packing = terms.packing(key)
    width = packing.n_blocks(terms.n_features) * key.ciphertext_bytes
    if n_vectors < 1 or len(message) != n_vectors * width:
        raise WireError(f"{n_vectors} encrypted vectors have {n_vectors * width} bytes; the message has {len(message)}")
    parts = [message[i * width : (i + 1) * width] for i in range(n_vectors)]
    return [EncryptedVector.from_bytes(p, key, packing, size=terms.n_features, bound=bound) for p in parts]


@lru_cache(maxsize=4)
def _read_matrix(key: bytes, matrix: bytes, terms: ProductTerms) -> EncryptedMatrix:
    """Kept between rounds, with its tables of powers."""
    public = PublicKey.from_bytes(key)
    shape = (terms.n_features, terms.n_features)
    return EncryptedMatrix.from_bytes(matrix, public, terms.packing(public), shape=shape, bound=terms.entry_bound)


def _numbers(shared: Shared, d: int) -> Sequence[Sequence[int]]:
    """The first parts that a node holds of a d x d matrix, as whole numbers below 2^128."""
    if shared.shape != (d, d):
        raise CenterError(f"the kept inverse has shape {shared.shape}, not {(d, d)}")
    low, high = shared.words[0, :, 0].tolist(), shared.words[0, :, 1].tolist()
    flat = [a | b << 64 for a, b in zip(low, high, strict=True)]
    return [flat[i * d : (i + 1) * d] for i in range(d)]


def _centre(number: int) -> int:
    """The number of least size that is equal to it modulo 2^128."""
    half = 1 << _MODULUS_BITS - 1
    return (number + half) % (1 << _MODULUS_BITS) - half
