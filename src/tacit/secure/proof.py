"""A proof that an addend is short: a party seals it with its shares, and the three nodes check it on theirs.

An addend x in Z^d comes in blocks, each with a public bound on its norm that follows from the plan. The party shares,
beside x, the binary digits of a few public functions of x. The nodes check that these are digits and that they fit.
What they tell each other is uniform, but for one bit: whether all of it adds up to zero.

Terms (`secure.bound`): H = 40, k = 80, and s = sum over blocks of sqrt(size) norm, so that ||x||_1 <= s.

    parts      s_0 and s_1 are stretched from seeds to m = log2(s) + H bits an entry, s_2 = x - s_0 - s_1
    a_ji       for j < N and i < d: public, uniform below A = 2^alpha, hashed from the commitments to the parts of x
    y_j        sum_i a_ji x_i + (A - 1) s, which the party shares as `range_bits` binary digits
    v_b        norm_b^2 - (sum of squares of block b), which it shares as binary digits too
    r          k public 0/1 vectors, hashed from the commitments to all parts, digits included

The relations, modulo 2^128: each digit b has b (b - 1) = 0, and each y_j and v_b is the sum of its digits. Products of
shared numbers are local: node p adds u_p w_p + u_p w_{p+1} + u_{p+1} w_p. So each node has an additive share of every
relation, combines them with the k vectors, adds a mask that cancels in the sum of the nodes, and tells the others.

Complete: an addend within its bounds is always accepted.
  1. |sum_i a_ji x_i| <= (A - 1) s. So y_j has its digits, and v_b >= 0 has its own; all relations are zero.

Sound: let an addend be accepted by three honest nodes, with parts chosen in any way. Each try of the hash passes
though 2-5 fail with a chance below 2^-78; there is no other way, with the hash as a random function.
  2. Nodes refuse an s_2 of more than m + 2 bits, and stretch the others themselves. So with x the whole number
     s_0 + s_1 + s_2, |x_i| < 2^(m+3): no pattern wraps around, such as two entries of 2^127 that cancel. The terms
     keep d A 2^(m+3) below 2^126, so that no projection wraps around either.
  3. If one relation is not zero, a 0/1 vector leaves its sum zero with a chance of at most 1/2: given its other
     entries, not both values of the entry there do. So all k do with a chance of at most 2^-k.
  4. b (b - 1) = 0 modulo 2^128 has the solutions 0 and 1 alone, since one factor is odd. So y_j lies in an interval
     of 2^range_bits whole numbers, whatever the party chose.
  5. Let |x_i| > L for one i. Given the other coefficients, at most 2^range_bits / L + 1 values of a_ji leave y_j in
     the interval. So all N projections pass with a chance of at most q^N <= 2^-k, q = (2^range_bits / L + 1) / A.
  6. With L = 2^63 / sqrt(d) a sum of squares is below 2^126, and so is norm_b^2: v_b is a whole number, not only one
     modulo 2^128. It is a sum of digits, hence not negative: ||block b|| <= norm_b, exactly.
  7. Where s is so large that 5 needs too many projections, there are no v_b. A is then 2 and L is 2^range_bits, at
     most 4 s: the bound on each entry is coarse, but there is one. `is_exact` tells.

Hiding: one node learns nothing of an honest party's x, also if it deviates.
  8. Its own parts: seeds are independent of x. s_2 is, given one seed, within a distance of ||x||_1 / 2^m <= 2^-H of
     a vector that is independent of x; digits' parts are uniform modulo 2^128.
  9. Commitments hash s_2 with a salt of 256 bits that whoever does not hold s_2 does not hold either.
 10. What two nodes tell a third is masked by a key that only these two share. Only the sum of the two is not uniform,
     and it is minus the third's own share, which it knows.

Paper: PINE (Rothblum, Omri, Chen and Talwar 2024; draft-chen-cfrg-vdaf-pine-02) checks a norm in this way over a field;
joint randomness by hashing is Prio3's (RFC draft irtf-cfrg-vdaf). Ours is over Z/2^128 and replicated shares, where 2
takes the place of most of their projections, and local products that of their polynomials.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.errors import CenterError, WireError
from tacit.rand import Rng
from tacit.secure.bound import SOUNDNESS_BITS, Bound, ProofTerms, terms_of
from tacit.secure.ring import (
    MODULUS_BITS,
    Ints,
    Words,
    add,
    bits,
    combine,
    dot,
    extend,
    multiply,
    subtract,
    total,
    whole,
)
from tacit.secure.share import N_NODES, PARTS_HELD, SEED_BYTES, Part, stretch

SALT_BYTES = 32
DIGEST_BYTES = 32

_LAST = N_NODES - 1  # the part that travels in full
_COLUMNS = 4096  # of coefficients at a time
_MOST_AT_ONCE = 1 << 20  # numbers whose products are added up


# --- the party -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Commitment:
    """What all nodes must have been told alike: a digest of each part of x, and one of the last part's digits."""

    digests: bytes

    def __post_init__(self) -> None:
        if len(self.digests) != (N_NODES + 1) * DIGEST_BYTES:
            raise WireError("a commitment is not a digest for each part and one for the digits")

    @property
    def parts(self) -> tuple[bytes, ...]:
        """The digests of the parts of x."""
        return tuple(self.digests[i * DIGEST_BYTES : (i + 1) * DIGEST_BYTES] for i in range(N_NODES))

    @property
    def digits(self) -> bytes:
        """The digest of the last part's digits."""
        return self.digests[-DIGEST_BYTES:]


@dataclass(frozen=True, kw_only=True)
class Dealt:
    """An addend's three parts with its proof, and what was committed to."""

    parts: tuple[Part, ...]
    commitment: Commitment
    salt: bytes


def deal(x: Words, bound: Bound, statement: bytes, *, rng: Rng) -> Dealt:
    """Split x, and prove that it keeps its bounds; of one that does not, the proof fails.

    Args:
        x: the numbers.
        bound: their blocks.
        statement: what the party says of them, which the proof is bound to.
        rng: whence seeds and salt come.
    """
    terms = terms_of(bound)
    seeds = [rng.bytes(SEED_BYTES) for _ in range(_LAST)]
    salt = rng.bytes(SALT_BYTES)
    stretched = [_stretched(seed, terms) for seed in seeds]
    last = np.empty((terms.n_words, 2), dtype=np.uint64)
    last[: terms.size] = _less(x, [words[: terms.size] for words in stretched])
    parts = (*(_digest(b"seed", seed) for seed in seeds), _digest(b"last", salt, last[: terms.size].tobytes()))
    digits = _binary_digits(x, terms, _first_challenge(statement, parts))
    last[terms.size :] = _less(extend(digits), [words[terms.size :] for words in stretched])
    commitment = Commitment(b"".join(parts) + _digest(b"digits", salt, last[terms.size :].tobytes()))
    return Dealt(parts=(*seeds, last), commitment=commitment, salt=salt)


def _binary_digits(x: Words, terms: ProofTerms, challenge: bytes) -> Ints:
    """The digits of all y_j, then of each v_b."""
    y = add(_project(x[None], terms, [challenge])[0], whole([terms.offset] * terms.n_projections))
    digits = [bits(y, terms.range_bits).ravel()]
    if terms.is_exact:
        sums = _block_products(x, x, terms)
        v = subtract(whole([block.norm**2 for block in terms.bound]), sums)
        digits += [bits(one, count) for one, count in zip(v, terms.norm_bits, strict=True)]
    return np.concatenate(digits)


# --- the nodes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CheckShare:
    """What one node tells the others of one party's proof: what was hashed, and its masked share of the relations."""

    challenge: bytes
    words: Words


def open_parts(node: int, parts: tuple[Part, ...], commitment: Commitment, salt: bytes, bound: Bound) -> Words:
    """The words of shape (2, n_words) that a node's parts stand for, if they are what was committed to.

    Raises:
        CenterError: if a part is of another form, too large, or not the one in the commitment.
    """
    terms = terms_of(bound)
    if len(parts) != PARTS_HELD:
        raise CenterError(f"it holds {len(parts)} parts of each number where {PARTS_HELD} are due")
    words = np.empty((PARTS_HELD, terms.n_words, 2), dtype=np.uint64)
    for row, part, index in zip(words, parts, held_by(node), strict=True):
        if isinstance(part, bytes) == (index == _LAST):
            raise CenterError("a part that is due as a seed came in full, or the reverse")
        if isinstance(part, bytes):
            is_same = len(part) == SEED_BYTES and _digest(b"seed", part) == commitment.parts[index]
        else:
            is_same = part.shape == (terms.n_words, 2) and _is_last(part, salt, commitment, terms)
        if not is_same:
            raise CenterError("a part is not the one that the party committed to, or is too large")
        row[:] = stretch(part, terms.n_words) if isinstance(part, bytes) else part
        if isinstance(part, bytes):
            row[: terms.size] &= _masks(terms.part_bits)[0]
    return words


def held_by(node: int) -> tuple[int, int]:
    """Which parts a node holds."""
    return node, (node + 1) % N_NODES


def check_shares(node: int, words: Words, bound: Bound, stated: list[tuple[bytes, Commitment]]) -> list[CheckShare]:
    """A node's shares of the combined relations of several parties, not masked yet.

    Args:
        node: which node this is.
        words: what it holds, of shape (parties, 2, n_words, 2).
        bound: the blocks of each.
        stated: what each party says, and its commitment.
    """
    terms = terms_of(bound)
    firsts = [_first_challenge(statement, commitment.parts) for statement, commitment in stated]
    challenges = [
        _digest(b"combinations", first, commitment.digits)
        for first, (_, commitment) in zip(firsts, stated, strict=True)
    ]
    relations = _relations(node, words, terms, firsts)
    count = SOUNDNESS_BITS * relations.shape[1]
    vectors = np.empty((len(stated), count), dtype=np.uint8)
    for row, challenge in zip(vectors, challenges, strict=True):
        stream = stretch(_digest(b"vectors", challenge), -(-count // MODULUS_BITS))
        row[:] = np.unpackbits(stream.view(np.uint8).ravel(), count=count)
    combined = combine(vectors.reshape(len(stated), SOUNDNESS_BITS, -1), relations)
    return [CheckShare(challenge=one, words=own) for one, own in zip(challenges, combined, strict=True)]


def is_zero(shares: list[CheckShare]) -> bool:
    """Whether three nodes' masked shares are of one commitment, and its relations hold."""
    if len(shares) != N_NODES or any(one.challenge != shares[0].challenge for one in shares):
        return False
    if any(one.words.shape != (SOUNDNESS_BITS, 2) for one in shares):
        return False
    return not add(add(shares[0].words, shares[1].words), shares[2].words).any()


def masked(share: CheckShare, pairs: list[tuple[bytes, bool]]) -> CheckShare:
    """The share with a mask for each other node: a key shared with it, and whether this node adds or subtracts."""
    words = share.words
    for key, adds in pairs:
        mask = stretch(_digest(b"mask", key, share.challenge), SOUNDNESS_BITS)
        words = add(words, mask) if adds else subtract(words, mask)
    return CheckShare(challenge=share.challenge, words=words)


def _relations(node: int, words: Words, terms: ProofTerms, challenges: list[bytes]) -> Words:
    """This node's additive shares of what must be zero: digits, projections, sums of squares; a party a row."""
    own, following = words[:, 0], words[:, 1]
    # u_p (u_p + 2 u_{p+1}) adds up to u^2 over the nodes; with - 1 in the bracket, to u^2 - u.
    other = add(own, add(following, following))
    digits = own[:, terms.size :]
    squares = multiply(digits, subtract(other[:, terms.size :], whole([1])))
    powers = multiply(digits, _powers(terms))
    n_ranges = terms.n_projections * terms.range_bits
    values = total(powers[:, :n_ranges].reshape(len(words), terms.n_projections, terms.range_bits, 2))
    projections = subtract(_project(own[:, : terms.size], terms, challenges), values)
    norms = np.zeros((len(words), 0, 2), dtype=np.uint64)
    if terms.is_exact:
        sums = _pieces(powers[:, n_ranges:], terms.norm_bits)
        norms = add(_block_products(own[:, : terms.size], other[:, : terms.size], terms), sums)
    if node == 0:  # constants are the first node's
        projections = add(projections, whole([terms.offset] * terms.n_projections))
        norms = subtract(norms, whole([block.norm**2 for block in terms.bound])) if terms.is_exact else norms
    return np.concatenate([squares, projections, norms], axis=1)


# --- of both ---------------------------------------------------------------------------------------------------------


def _digest(kind: bytes, *messages: bytes) -> bytes:
    found = hashlib.blake2b(digest_size=DIGEST_BYTES, person=kind)
    for message in messages:
        found.update(len(message).to_bytes(8, "little") + message)
    return found.digest()


def _first_challenge(statement: bytes, parts: tuple[bytes, ...]) -> bytes:
    return _digest(b"projections", statement, *parts)


def _stretched(seed: bytes, terms: ProofTerms) -> Words:
    """A seed's words: of part_bits for the numbers, of all bits for the digits."""
    words = stretch(seed, terms.n_words).copy()
    words[: terms.size] &= _masks(terms.part_bits)[0]
    return words


@lru_cache(maxsize=64)
def _masks(part_bits: int) -> Words:
    """The lowest part_bits; half the range of a signed number of two bits more; and all bits above that range."""
    return whole([(1 << part_bits) - 1, 1 << part_bits + 2, (1 << MODULUS_BITS) - (1 << part_bits + 3)])


def _is_last(part: Words, salt: bytes, commitment: Commitment, terms: ProofTerms) -> bool:
    x, digits = part[: terms.size], part[terms.size :]
    _, half, too_high = _masks(terms.part_bits)
    moved = add(x, np.broadcast_to(half, x.shape))  # has no bits above its range, if x is within it
    return (
        len(salt) == SALT_BYTES
        and not (moved & too_high).any()
        and _digest(b"last", salt, x.tobytes()) == commitment.parts[_LAST]
        and _digest(b"digits", salt, digits.tobytes()) == commitment.digits
    )


def _less(x: Words, others: list[Words]) -> Words:
    for other in others:
        x = subtract(x, other)
    return x


def _project(x: Words, terms: ProofTerms, challenges: list[bytes]) -> Words:
    """sum_i a_ji x_i for each j; a party a row."""
    sums = np.zeros((len(x), terms.n_projections, 2), dtype=np.uint64)
    mask = np.uint16((1 << terms.coefficient_bits) - 1)
    for start in range(0, terms.size, _COLUMNS):
        piece = x[:, start : start + _COLUMNS]
        count = terms.n_projections * piece.shape[1]
        drawn = np.empty((len(x), count), dtype=np.uint16)
        for row, challenge in zip(drawn, challenges, strict=True):
            seed = _digest(b"coefficients", challenge, start.to_bytes(8, "little"))
            row[:] = stretch(seed, -(-count // 8)).view("<u2").ravel()[:count] & mask
        sums = add(sums, combine(drawn.reshape(len(x), terms.n_projections, -1), piece))
    return sums


def _block_products(a: Words, b: Words, terms: ProofTerms) -> Words:
    """The sum of a b over each block."""
    ends, sums = np.cumsum([0, *(block.size for block in terms.bound)]), []
    for start, end in itertools.pairwise(ends):
        pieces = [slice(at, min(at + _MOST_AT_ONCE, end)) for at in range(start, end, _MOST_AT_ONCE)]
        sums.append(total(np.stack([dot(a[..., one, :], b[..., one, :]) for one in pieces], axis=-2)))
    return np.stack(sums, axis=-2)


def _pieces(a: Words, sizes: tuple[int, ...]) -> Words:
    """The sums of so many numbers each, along the last axis but one."""
    return np.stack([total(one) for one in np.split(a, np.cumsum(sizes)[:-1], axis=-2)], axis=-2)


@lru_cache(maxsize=64)
def _powers(terms: ProofTerms) -> Words:
    """The weight of each digit."""
    counts = [terms.range_bits] * terms.n_projections + list(terms.norm_bits)
    return whole([1 << i for count in counts for i in range(count)])
