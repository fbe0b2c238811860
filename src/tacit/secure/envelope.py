"""Envelopes: an addend, split and sealed so that each center node can open its own part and nobody else any.

Sealed boxes of libsodium (X25519, XSalsa20-Poly1305): the coordinator relays what it cannot read or alter. Anybody can
seal, though, so a party between organisations signs what it seals (Ed25519), and binds to it with whom it lets itself
be added up: a coordinator that invents parties, or speaks for real ones, opens nothing. What it signs comes with a
proof that the addend keeps the bound in its label (`secure.proof`). In a simulation all parties and nodes are one
process that could read everything and spoil everything anyway, so nothing is signed or proved there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox

from tacit import wire
from tacit.errors import CenterError, SettingError, WireError
from tacit.rand import Rng
from tacit.record import decode_record, encode_record
from tacit.secure.bound import Bound, terms_of
from tacit.secure.proof import Commitment, deal, held_by, open_parts
from tacit.secure.ring import Ints, Words, extend
from tacit.secure.share import N_NODES, PARTS_HELD, SEED_BYTES, expand, split
from tacit.secure.signature import Sign, is_signed

OPEN = "open"  # the use of an addend whose sum is opened
MAX_SIZE = 1 << 22  # numbers in an envelope: a seed is short, what it stretches to is not
_MOST_BLOCKS = 64
_MOST_NUMBER = 1 << 62
_LONGEST_NAME = 128
_DOMAIN = b"tacit envelope 2\0"


@dataclass(frozen=True, kw_only=True)
class LedgerMark:
    """In which state of its ledger a party sealed: nodes notice one that was lost, copied or taken back.

    Attributes:
        epoch: a name that was drawn when the ledger was made.
        number: counts what this ledger has sealed, from 1; one that was taken back counts the same again.
        line: the number of the last line in the party's log.
        head: the hash over the lines so far.
    """

    epoch: str
    number: int
    line: int
    head: str

    def __post_init__(self) -> None:
        if not (0 <= self.number < _MOST_NUMBER and 0 <= self.line < _MOST_NUMBER):
            raise WireError("a ledger counts what it has sealed, and its lines, from 0")
        if max(len(self.epoch), len(self.head)) > _LONGEST_NAME:  # a node keeps them
            raise WireError(f"the state of a ledger has names of {_LONGEST_NAME} characters at most")


@dataclass(frozen=True, kw_only=True)
class Label:
    """What a party binds to its shares: nodes do nothing else with them.

    Attributes:
        context: the question that the addend answers; only addends of one context are added up.
        party: who sealed it.
        n_parties: the sum is used over no fewer parties than this.
        use: `OPEN`, or the name under which the nodes keep the sum, unopened, for programs that read that name.
        sum_group: the digest of who may be in the sum (`sum_group_digest`); empty in a simulation.
        bound: how long the addend is at most, block by block; the same for all parties of a sum.
        contrasts: of what is kept, the digest of the contrasts of which `variances` may be opened; empty: of none.
        run: the run of which the question is; what a run keeps is made of that run's answers alone.
        ledger: the state of the party's ledger; None in a simulation.
    """

    context: str
    party: str
    n_parties: int
    use: str = OPEN
    sum_group: str = ""
    bound: Bound = ()
    contrasts: str = ""
    run: str = ""
    ledger: LedgerMark | None = None

    @property
    def statement(self) -> bytes:
        """What a proof is bound to."""
        stated = (self.context, self.party, self.n_parties, self.use, self.sum_group, self.contrasts, self.run)
        return repr((stated, [(block.size, block.norm) for block in self.bound])).encode()


def marks_of(labels: Iterable[Label]) -> dict[str, LedgerMark]:
    """The states of the parties' ledgers, as far as they say."""
    return {label.party: label.ledger for label in labels if label.ledger is not None}


@dataclass(frozen=True, kw_only=True)
class _Addend:
    """What an envelope with shares holds: this node's parts of `size` numbers.

    Where they are proved to be short, they go with a commitment's digests, and with its salt for those who hold the
    last part; else both are empty.
    """

    label: Label
    size: int
    parts: tuple[bytes | Words, ...]
    digests: bytes = b""
    salt: bytes = b""

    def __post_init__(self) -> None:
        if not 0 <= self.size <= MAX_SIZE:
            raise WireError(f"an addend of {self.size} numbers is outside 0 to {MAX_SIZE}")
        if len(self.parts) != PARTS_HELD:
            raise WireError(f"it holds {len(self.parts)} parts of each number where {PARTS_HELD} are due")
        if self.digests and self.size != sum(block.size for block in self.label.bound):
            raise WireError(f"an addend of {self.size} numbers has a bound for another number of them")
        if len(self.label.bound) > _MOST_BLOCKS:
            raise WireError(f"a bound of {len(self.label.bound)} blocks is beyond the {_MOST_BLOCKS} that a plan has")
        n_words = terms_of(self.label.bound).n_words if self.digests else self.size
        for part in self.parts:
            if not (len(part) == SEED_BYTES if isinstance(part, bytes) else part.shape == (n_words, 2)):
                raise WireError("a part is neither a seed nor two words for each number")


class Contents:
    """What one node finds in an envelope: what it may do with its shares, and the shares, once they are asked for.

    Nothing is stretched before: an envelope of two seeds has some hundred bytes, whatever size it states.

    Attributes:
        label: what the party binds to its shares.
        size: how many numbers the addend has.
    """

    def __init__(self, addend: _Addend) -> None:
        self._addend = addend
        self.label = addend.label
        self.size = addend.size

    def words(self) -> Words:
        """The shares, of shape (parts, size, 2), without a look at a proof."""
        return expand(self._addend.parts, self.size)

    def proved(self, node: int) -> tuple[Words, Commitment]:
        """The shares with those of the proof, and what was committed to; a `CenterError` if they are something else."""
        if not self._addend.digests:
            raise CenterError("it does not prove that its addend keeps its bound; use the same release")
        try:
            commitment = Commitment(self._addend.digests)
        except WireError as error:
            raise CenterError(str(error)) from error
        return open_parts(node, self._addend.parts, commitment, self._addend.salt, self.label.bound), commitment


def sum_group_digest(sum_group: Mapping[str, bytes]) -> str:
    """A name for those who are added up with each other: their names and the public keys of their signatures."""
    return wire.digest(dict(sum_group))


@dataclass(frozen=True, kw_only=True)
class _Message:
    """What an envelope with any bytes holds."""

    label: Label
    message: bytes


@dataclass(frozen=True, kw_only=True)
class _Signed:
    """An envelope's contents and their signature; empty where nobody signs."""

    contents: bytes
    signature: bytes


def seal(addend: Ints, label: Label, keys: Sequence[bytes], *, rng: Rng, sign: Sign | None = None) -> list[bytes]:
    """One envelope for each node of the center; `sign` signs as the party, for nodes that know its key.

    What is signed is proved to keep the label's bound.
    """
    if sign is not None:
        return seal_words(extend(addend), label, keys, rng=rng, sign=sign)
    _check_keys(keys)
    return [
        _encrypt(_Addend(label=label, size=addend.size, parts=tuple(parts)), key, sign)
        for key, parts in zip(keys, split(addend, rng=rng), strict=True)
    ]


def seal_words(x: Words, label: Label, keys: Sequence[bytes], *, rng: Rng, sign: Sign) -> list[bytes]:
    """As `seal`, of numbers modulo 2^128, signed and with a proof."""
    _check_keys(keys)
    dealt = deal(x, label.bound, label.statement, rng=rng)
    envelopes = []
    for node, key in enumerate(keys):
        parts = tuple(dealt.parts[i] for i in held_by(node))
        salt = dealt.salt if any(not isinstance(part, bytes) for part in parts) else b""
        addend = _Addend(label=label, size=len(x), parts=parts, digests=dealt.commitment.digests, salt=salt)
        envelopes.append(_encrypt(addend, key, sign))
    return envelopes


def unseal(envelope: bytes, key: PrivateKey, signer: bytes | None = None) -> Contents:
    """What the envelope holds, for the node whose key it is.

    Args:
        envelope: the envelope.
        key: the node's own key.
        signer: the public key of the party that must have signed it; None asks for no signature.

    Raises:
        CenterError: if it was sealed for another key, was altered, was not signed by `signer`, or holds something else.
    """
    contents = _decrypt(envelope, key, signer)
    try:
        return Contents(decode_record(_Addend, contents))
    except (WireError, SettingError) as error:
        raise CenterError(f"an envelope opens to something that is not shares of whole numbers: {error}") from error


def seal_message(message: bytes, label: Label, key: bytes, *, sign: Sign | None = None) -> bytes:
    """An envelope with any bytes, for one node."""
    return _encrypt(_Message(label=label, message=message), key, sign)


def unseal_message(envelope: bytes, key: PrivateKey, signer: bytes | None = None) -> tuple[Label, bytes]:
    """What `seal_message` put in, for the node whose key it is; a `CenterError` as for `unseal`."""
    contents = _decrypt(envelope, key, signer)
    try:
        found = decode_record(_Message, contents)
    except WireError as error:
        raise CenterError(f"an envelope opens to something that is not a sealed message: {error}") from error
    return found.label, found.message


def _check_keys(keys: Sequence[bytes]) -> None:
    if len(keys) != N_NODES:
        raise CenterError(f"a center has {N_NODES} nodes; {len(keys)} keys were given")


def _encrypt(contents: _Addend | _Message, key: bytes, sign: Sign | None) -> bytes:
    text = encode_record(contents)
    # The node's key is signed too: what was sealed to one node is no message to another.
    signature = b"" if sign is None else sign(_DOMAIN + key + text)
    return bytes(SealedBox(PublicKey(key)).encrypt(encode_record(_Signed(contents=text, signature=signature))))


def _decrypt(envelope: bytes, key: PrivateKey, signer: bytes | None) -> bytes:
    """What the envelope holds, as it was signed."""
    try:
        opened = SealedBox(key).decrypt(envelope)
    except (CryptoError, TypeError) as error:
        raise CenterError("an envelope does not open: it was sealed for another key, or altered") from error
    try:
        found = decode_record(_Signed, opened)
    except WireError as error:
        raise CenterError("an envelope opens to something that is not signed contents; use the same release") from error
    if signer is not None and not is_signed(_DOMAIN + bytes(key.public_key) + found.contents, found.signature, signer):
        raise CenterError("an envelope is not signed by the party in whose name it came")
    return found.contents
