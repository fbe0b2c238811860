"""Envelopes: an addend, split and sealed so that each center node can open its own part and nobody else any.

Sealed boxes of libsodium (X25519, XSalsa20-Poly1305): the coordinator relays what it cannot read or alter. Anybody can
seal, though, so a party between organisations signs what it seals (Ed25519), and binds to it with whom it lets itself
be added up: a coordinator that invents parties, or speaks for real ones, opens nothing. In a simulation all parties and
nodes are one process that could read everything anyway, and nothing is signed there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox
from nacl.signing import VerifyKey

from tacit import wire
from tacit.errors import CenterError, WireError
from tacit.rand import Rng
from tacit.secure.share import SEED_BYTES, Ints, Part, Words, expand, split
from tacit.wire import Value

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
        company: the digest of who may be in the sum (`company_digest`); empty in a simulation.
    """

    context: str
    party: str
    n_parties: int
    use: str = OPEN
    company: str = ""


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What one node finds in an envelope: its shares, and what it may do with them."""

    label: Label
    words: Words = field(repr=False)


def company_digest(company: Mapping[str, bytes]) -> str:
    """A name for those who are added up with each other: their names and the public keys of their signatures."""
    return wire.digest(dict(company))


def seal(addend: Ints, label: Label, keys: Sequence[bytes], *, rng: Rng, sign: Sign | None = None) -> list[bytes]:
    """One envelope for each node of the center; `sign` signs as the party, for nodes that know its key."""
    envelopes = []
    for key, parts in zip(keys, split(addend, rng=rng, n_nodes=len(keys)), strict=True):
        contents = {**vars(label), "size": addend.size, "parts": [*parts]}
        envelopes.append(_encrypt(contents, key, sign))
    return envelopes


def unseal(envelope: bytes, key: PrivateKey, n_parts: int, signer: bytes | None = None) -> Contents:
    """What the envelope holds, for the node whose key it is; a node of the center holds `n_parts` of each number.

    Args:
        envelope: the envelope.
        key: the node's own key.
        n_parts: how many parts of each number the node holds.
        signer: the public key of the party that must have signed it; None asks for no signature.

    Raises:
        CenterError: if it was sealed for another key, was altered, was not signed by `signer`, or holds something else.
    """
    match _decrypt(envelope, key, signer):
        case {
            "context": str(context),
            "party": str(party),
            "n_parties": int(n),
            "use": str(use),
            "company": str(company),
            "size": int(size),
            "parts": list(parts),
        } if 0 <= size <= MAX_SIZE and len(own := _parts(parts, size)) == len(parts) == n_parts:
            label = Label(context=context, party=party, n_parties=n, use=use, company=company)
            return Contents(label=label, words=expand(own, size))
    raise CenterError("an envelope opens to something that is not shares of whole numbers")


def seal_message(message: bytes, label: Label, key: bytes, *, sign: Sign | None = None) -> bytes:
    """An envelope with any bytes, for one node."""
    return _encrypt({**vars(label), "message": message}, key, sign)


def unseal_message(envelope: bytes, key: PrivateKey, signer: bytes | None = None) -> tuple[Label, bytes]:
    """What `seal_message` put in, for the node whose key it is; a `CenterError` as for `unseal`."""
    match _decrypt(envelope, key, signer):
        case {
            "context": str(context),
            "party": str(party),
            "n_parties": int(n),
            "use": str(use),
            "company": str(company),
            "message": bytes(message),
        }:
            return Label(context=context, party=party, n_parties=n, use=use, company=company), message
    raise CenterError("an envelope opens to something that is not a sealed message")


def _encrypt(contents: Mapping[str, Value], key: bytes, sign: Sign | None) -> bytes:
    text = wire.encode(contents)
    # The node's key is signed too: what was sealed to one node is no message to another.
    signature = b"" if sign is None else sign(_DOMAIN + key + text)
    return bytes(SealedBox(PublicKey(key)).encrypt(wire.encode([text, signature])))


def _decrypt(envelope: bytes, key: PrivateKey, signer: bytes | None) -> Value:
    try:
        opened = wire.decode(SealedBox(key).decrypt(envelope))
    except (CryptoError, WireError, TypeError) as error:
        raise CenterError("an envelope does not open: it was sealed for another key, or altered") from error
    match opened:
        case [bytes(text), bytes(signature)]:
            if signer is not None:
                _check_signature(_DOMAIN + bytes(key.public_key) + text, signature, signer)
            return wire.decode(text)
    raise CenterError("an envelope opens to something that is not signed contents; use the same release")


def _check_signature(message: bytes, signature: bytes, signer: bytes) -> None:
    try:
        VerifyKey(signer).verify(message, signature)
    except (CryptoError, ValueError, TypeError) as error:
        raise CenterError("an envelope is not signed by the party in whose name it came") from error


def _parts(values: list[Value], size: int) -> list[Part]:
    """Those of the values that are parts of `size` numbers."""
    parts: list[Part] = []
    for value in values:
        if isinstance(value, np.ndarray) and value.dtype == np.uint64 and value.shape == (size, 2):
            parts.append(value.view(np.uint64))
        elif isinstance(value, bytes) and len(value) == SEED_BYTES:
            parts.append(value)
    return parts
