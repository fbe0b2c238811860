"""Envelopes: an addend, split and sealed so that each center node can open its own part and nobody else any.

Sealed boxes of libsodium (X25519, XSalsa20-Poly1305): the coordinator relays what it cannot read or alter. Anybody can
seal, though, so a party between organisations signs what it seals (Ed25519), and binds to it with whom it lets itself
be added up: a coordinator that invents parties, or speaks for real ones, opens nothing. In a simulation all parties and
nodes are one process that could read everything anyway, and nothing is signed there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox
from nacl.signing import VerifyKey

from tacit import wire
from tacit.errors import CenterError, WireError
from tacit.rand import Rng
from tacit.record import decode_record, encode_record
from tacit.secure.share import N_NODES, PARTS_HELD, SEED_BYTES, Ints, Words, expand, split

OPEN = "open"  # the use of an addend whose sum is opened
MAX_SIZE = 1 << 24  # numbers in an envelope: a seed is short, what it stretches to is not
_DOMAIN = b"tacit envelope 1\0"

Sign = Callable[[bytes], bytes]


@dataclass(frozen=True, kw_only=True)
class Label:
    """What a party binds to its shares: nodes do nothing else with them.

    Attributes:
        context: the question that the addend answers; only addends of one context are added up.
        party: who sealed it.
        n_parties: the sum is used over no fewer parties than this.
        use: `OPEN`, or the name under which the nodes keep the sum, unopened, for programs that read that name.
        sum_group: the digest of who may be in the sum (`sum_group_digest`); empty in a simulation.
    """

    context: str
    party: str
    n_parties: int
    use: str = OPEN
    sum_group: str = ""


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What one node finds in an envelope: its shares, and what it may do with them."""

    label: Label
    words: Words = field(repr=False)


def sum_group_digest(sum_group: Mapping[str, bytes]) -> str:
    """A name for those who are added up with each other: their names and the public keys of their signatures."""
    return wire.digest(dict(sum_group))


@dataclass(frozen=True, kw_only=True)
class _Addend:
    """What an envelope with shares holds: this node's parts of `size` numbers."""

    label: Label
    size: int
    parts: tuple[bytes | Words, ...]

    def __post_init__(self) -> None:
        if not 0 <= self.size <= MAX_SIZE:
            raise WireError(f"an addend of {self.size} numbers is outside 0 to {MAX_SIZE}")
        for part in self.parts:
            if not (len(part) == SEED_BYTES if isinstance(part, bytes) else part.shape == (self.size, 2)):
                raise WireError("a part is neither a seed nor two words for each number")


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
    """One envelope for each node of the center; `sign` signs as the party, for nodes that know its key."""
    if len(keys) != N_NODES:
        raise CenterError(f"a center has {N_NODES} nodes; {len(keys)} keys were given")
    return [
        _encrypt(_Addend(label=label, size=addend.size, parts=tuple(parts)), key, sign)
        for key, parts in zip(keys, split(addend, rng=rng), strict=True)
    ]


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
        found = decode_record(_Addend, contents)
    except WireError as error:
        raise CenterError(f"an envelope opens to something that is not shares of whole numbers: {error}") from error
    if len(found.parts) != PARTS_HELD:
        raise CenterError(
            f"an envelope opens to something that is not shares of whole numbers: it holds {len(found.parts)} parts "
            f"of each where {PARTS_HELD} are due"
        )
    return Contents(label=found.label, words=expand(list(found.parts), found.size))


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
    if signer is not None:
        _check_signature(_DOMAIN + bytes(key.public_key) + found.contents, found.signature, signer)
    return found.contents


def _check_signature(message: bytes, signature: bytes, signer: bytes) -> None:
    try:
        VerifyKey(signer).verify(message, signature)
    except (CryptoError, ValueError, TypeError) as error:
        raise CenterError("an envelope is not signed by the party in whose name it came") from error
