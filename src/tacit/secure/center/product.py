"""The kept inverse, encrypted for the parties; and the sum of their products with it, opened.

Parties   node 0, which alone can decrypt; node 1, which alone gets the parties' products; the other node; the parties
Trust     honest but curious nodes of which no two collude, and node 0 colludes with nobody who sees the encrypted
          inverse: its key opens that
Travels   node 0 -> nodes: a Paillier key, new for this run; node p -> node 1: its part s_p of the inverse X, encrypted;
          node 1 -> parties: their sum. Key and sum are signed by nodes 0 and 1. Party j -> node 1, sealed: X g_j,
          encrypted and fresh; node 1 -> node 0: their sum, masked. Between nodes everything goes through the tunnel,
          and is signed
Revealed  X g, g = sum_j g_j, with 40 fraction bits rounded at random, to node 0 and the coordinator
Privacy   none of its own: the event of the opened step
Assumes   |X g| < 2^(86 - f), f being g's fraction bits; each g_j in whole numbers of up to 63 bits
Cost      d^2 / 8 encryptions a node, once; d^2 / 8 powers with 63-bit exponents a party a round
Paper     Wang, chapter 5, PrivLogit-Local. Departures: products are re-randomised by the parties, or whoever knows the
          encrypted inverse could search for g_j; they are added by a node that cannot decrypt, and masked

The parts add up to X 2^40 plus a multiple of 2^128, so a product is X g 2^(40 + f) plus a multiple of 2^128, f being
g's fraction bits. Node 1 adds a random multiple of 2^128, which hides that one up to a statistical distance of 2^-40,
and a random number below 2^f, so that no digit is told beyond the 40th.

Who vouches for what a party multiplies with. The coordinator carries key and matrix, and is malicious. One node is
curious: it does and signs what it should, and may tell the coordinator all that it sees.
1. The statement names the question whose answers were inverted. Its digest stands for study, run, group, plan and step.
   A node learns it from the parties' envelopes, and a party works it out itself. So no key or matrix of another run,
   group or study is taken.
2. Node 0 signs the key. So a party's product is under a key whose secret node 0 alone has. Node 1 may tell products to
   the coordinator, who then has ciphertexts and no key.
3. Node 1 signs key and matrix, the key being the one that it got from node 0 over the engine's link. So the matrix is
   the sum of the nodes' parts, and the opened sum is X g and not, say, g itself.
4. If node 0 is the curious one, the coordinator can read X from its key, which `Trust` says. Products are sealed to
   node 1 and so stay unread.
5. A node that signs what is false is not covered. Node 1 could vouch for another matrix, and the sum of its products
   would be opened. Node 0 could give its key away, which is case 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from tacit import wire
from tacit.errors import AddendRefused, CenterError, NotAgreed, SettingError, WireError
from tacit.rand import Rng
from tacit.secure.center.engine import SecureEngine
from tacit.secure.paillier.key import PrivateKey, PublicKey, uniform_below
from tacit.secure.paillier.vector import EncryptedMatrix, EncryptedVector, Packing, product_packing
from tacit.secure.ring import Ints
from tacit.secure.share import FRACTION_BITS, N_NODES, Shared
from tacit.secure.signature import Sign, is_signed
from tacit.wire import Value

USE = "product"  # what parties seal their products for
DECRYPTS, ADDS = 0, 1  # the nodes that do

_DOMAIN = "tacit encrypted inverse 1"
_FACTOR_BOUND = 1 << 63
_MODULUS_BITS = 128
_MOST_FRACTION_BITS = 80
_MOST_VECTORS = 10_000
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


def key_statement(context: str, terms: ProductTerms, key: bytes) -> bytes:
    """What node 0 signs: that it alone has the secret of this key, made for the inverse of what answers `context`."""
    return wire.encode([_DOMAIN, "key", context, terms.n_features, terms.n_parties, key])


def matrix_statement(context: str, terms: ProductTerms, key: bytes, matrix: bytes) -> bytes:
    """What node 1 signs: that this is the sum of the nodes' parts of that inverse, under that key."""
    return wire.encode([_DOMAIN, "matrix", context, terms.n_features, terms.n_parties, key, matrix])


@dataclass(frozen=True, kw_only=True)
class EncryptedInverse:
    """The inverse under node 0's key: what a party multiplies its own vector with. It travels in questions.

    Attributes:
        key: the public key.
        matrix: the encrypted inverse.
        terms: what is public about products with it.
        key_signature: node 0's of `key_statement`; empty in a simulation, where nobody signs.
        matrix_signature: node 1's of `matrix_statement`.
    """

    key: bytes = field(repr=False)
    matrix: bytes = field(repr=False)
    terms: ProductTerms
    key_signature: bytes = field(default=b"", repr=False)
    matrix_signature: bytes = field(default=b"", repr=False)

    def check(self, context: str, nodes: Sequence[bytes]) -> None:
        """Refuse what the nodes with these pinned keys did not make of the answers to the question `context`."""
        if len(nodes) != N_NODES:
            raise NotAgreed(f"{len(nodes)} center nodes are pinned where {N_NODES} are due; join again")
        vouched = is_signed(
            key_statement(context, self.terms, self.key), self.key_signature, nodes[DECRYPTS]
        ) and is_signed(
            matrix_statement(context, self.terms, self.key, self.matrix), self.matrix_signature, nodes[ADDS]
        )
        if not vouched:
            raise NotAgreed(
                "the encrypted inverse is not one that the center's nodes signed for this run; its key may be anybody's"
            )

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
        if not 1 <= self.n_vectors <= _MOST_VECTORS or not 0 <= self.fraction_bits <= _MOST_FRACTION_BITS:
            raise SettingError(
                f"{self} must have 1 to {_MOST_VECTORS} vectors and 0 to {_MOST_FRACTION_BITS} fraction bits"
            )


class ProductNode:
    """One node's side of it, for one run."""

    def __init__(
        self, engine: SecureEngine, terms: ProductTerms, inverse: Shared, context: str, sign: Sign | None = None
    ) -> None:
        """One node's side, for the inverse of what answers the question `context`; `sign` signs as the node."""
        self._engine = engine
        self._terms = terms
        self._context = context
        self._sign = sign
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
            return self._signed_key(key.to_bytes()) if rank == DECRYPTS else {}
        # 3. Node 1 adds them up; a sum with a fresh term is fresh.
        for other in others:
            message = self._engine.receive(other)
            total = total.add(EncryptedMatrix.from_bytes(message, key, packing, shape=(d, d), bound=bound))
        return self._signed_matrix(key.to_bytes(), total.to_bytes())

    def _signed_key(self, key: bytes) -> dict[str, Value]:
        statement = key_statement(self._context, self._terms, key)
        signature = b"" if self._sign is None else self._sign(statement)
        return {"key": key, "n_features": self._terms.n_features, "key_signature": signature}

    def _signed_matrix(self, key: bytes, matrix: bytes) -> dict[str, Value]:
        statement = matrix_statement(self._context, self._terms, key, matrix)
        return {"matrix": matrix, "matrix_signature": b"" if self._sign is None else self._sign(statement)}

    def masked_sum(self, products: Mapping[str, bytes], form: Form) -> bytes:
        """The sum of the parties' products with a random multiple of 2^128 and random digits below the 40th.

        Raises:
            CenterError: if more parties sent products than were agreed on.
            AddendRefused: naming a party that sent something else than its product.
        """
        if not 0 < len(products) <= self._terms.n_parties:
            raise CenterError(f"{len(products)} products cannot be added; up to {self._terms.n_parties} were agreed on")
        key = self._known_key()
        packing, below = self._terms.packing(key), 1 << form.fraction_bits
        totals = []
        for _ in range(form.n_vectors):
            digits = [uniform_below(below, rng=_RNG) for _ in range(self._terms.n_features)]
            totals.append(EncryptedVector.encrypt(digits, key, packing, bound=below, rng=_RNG))
        for party, message in products.items():
            try:
                vectors = _read_vectors(message, key, self._terms, form.n_vectors, self._terms.product_bound)
            except WireError as error:
                raise AddendRefused({party: f"its product cannot be read: {error}"}) from error
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
