"""Envelopes: an addend, split and sealed so that each center node can open its own part and nobody else any.

Sealed boxes of libsodium (X25519, XSalsa20-Poly1305): the coordinator relays what it cannot read or alter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox

from tacit import wire
from tacit.errors import CenterError, WireError
from tacit.rand import Rng
from tacit.secure.share import SEED_BYTES, Ints, Part, Words, expand, split
from tacit.wire import Value

OPEN = "open"  # the use of an addend whose sum is opened
MAX_SIZE = 1 << 24  # numbers in an envelope: a seed is short, what it stretches to is not


@dataclass(frozen=True, kw_only=True)
class Label:
    """What a party binds to its shares: nodes do nothing else with them.

    Attributes:
        context: the question that the addend answers; only addends of one context are added up.
        party: who sealed it.
        n_parties: the sum is used over no fewer parties than this.
        use: `OPEN`, or the name under which the nodes keep the sum, unopened, for programs that read that name.
    """

    context: str
    party: str
    n_parties: int
    use: str = OPEN


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What one node finds in an envelope: its shares, and what it may do with them."""

    label: Label
    words: Words = field(repr=False)


def seal(addend: Ints, label: Label, keys: Sequence[bytes], *, rng: Rng) -> list[bytes]:
    """One envelope for each node of the center."""
    envelopes = []
    for key, parts in zip(keys, split(addend, rng=rng, n_nodes=len(keys)), strict=True):
        contents = wire.encode({**vars(label), "size": addend.size, "parts": [*parts]})
        envelopes.append(bytes(SealedBox(PublicKey(key)).encrypt(contents)))
    return envelopes


def unseal(envelope: bytes, key: PrivateKey, n_parts: int) -> Contents:
    """What the envelope holds, for the node whose key it is; a node of the center holds `n_parts` of each number.

    Raises:
        CenterError: if it was sealed for another key, was altered, or holds something else.
    """
    match _decrypt(envelope, key):
        case {
            "context": str(context),
            "party": str(party),
            "n_parties": int(n),
            "use": str(use),
            "size": int(size),
            "parts": list(parts),
        } if 0 <= size <= MAX_SIZE and len(own := _parts(parts, size)) == len(parts) == n_parts:
            label = Label(context=context, party=party, n_parties=n, use=use)
            return Contents(label=label, words=expand(own, size))
    raise CenterError("an envelope opens to something that is not shares of whole numbers")


def seal_message(message: bytes, label: Label, key: bytes) -> bytes:
    """An envelope with any bytes, for one node."""
    return bytes(SealedBox(PublicKey(key)).encrypt(wire.encode({**vars(label), "message": message})))


def unseal_message(envelope: bytes, key: PrivateKey) -> tuple[Label, bytes]:
    """What `seal_message` put in, for the node whose key it is; a `CenterError` as for `unseal`."""
    match _decrypt(envelope, key):
        case {
            "context": str(context),
            "party": str(party),
            "n_parties": int(n),
            "use": str(use),
            "message": bytes(message),
        }:
            return Label(context=context, party=party, n_parties=n, use=use), message
    raise CenterError("an envelope opens to something that is not a sealed message")


def _decrypt(envelope: bytes, key: PrivateKey) -> Value:
    try:
        return wire.decode(SealedBox(key).decrypt(envelope))
    except (CryptoError, WireError, TypeError) as error:
        raise CenterError("an envelope does not open: it was sealed for another key, or altered") from error


def _parts(values: list[Value], size: int) -> list[Part]:
    """Those of the values that are parts of `size` numbers."""
    parts: list[Part] = []
    for value in values:
        if isinstance(value, np.ndarray) and value.dtype == np.uint64 and value.shape == (size, 2):
            parts.append(value.view(np.uint64))
        elif isinstance(value, bytes) and len(value) == SEED_BYTES:
            parts.append(value)
    return parts
