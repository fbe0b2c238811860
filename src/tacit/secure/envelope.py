"""Envelopes: an addend, split and sealed so that each center node can open its own part and nobody else any.

Sealed boxes of libsodium (X25519, XSalsa20-Poly1305): the coordinator relays what it cannot read or alter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox

from tacit import wire
from tacit.errors import CenterError, WireError
from tacit.rand import Rng
from tacit.secure.share import N_NODES, Ints, Words, split

OPEN = "open"  # the use of an addend whose sum is opened


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
    """What one node finds in an envelope: its pair of shares, and what it may do with them."""

    label: Label
    pair: Words


def seal(addend: Ints, label: Label, keys: Sequence[bytes], *, rng: Rng) -> list[bytes]:
    """One envelope for each node of the center."""
    if len(keys) != N_NODES:
        raise CenterError(f"a center has {N_NODES} nodes; {len(keys)} keys were given")
    envelopes = []
    for key, pair in zip(keys, split(addend, rng=rng), strict=True):
        contents = wire.encode({**vars(label), "pair": pair})
        envelopes.append(bytes(SealedBox(PublicKey(key)).encrypt(contents)))
    return envelopes


def unseal(envelope: bytes, key: PrivateKey) -> Contents:
    """What the envelope holds, for the node whose key it is.

    Raises:
        CenterError: if it was sealed for another key, was altered, or holds something else.
    """
    try:
        contents = wire.decode(SealedBox(key).decrypt(envelope))
    except (CryptoError, WireError, TypeError) as error:
        raise CenterError("an envelope does not open: it was sealed for another key, or altered") from error
    match contents:
        case {
            "context": str(context),
            "party": str(party),
            "n_parties": int(n),
            "use": str(use),
            "pair": np.ndarray() as pair,
        } if pair.dtype == np.uint64 and pair.ndim == 3 and pair.shape[::2] == (2, 2):
            label = Label(context=context, party=party, n_parties=n, use=use)
            return Contents(label=label, pair=pair.view(np.uint64))
    raise CenterError("an envelope opens to something that is not a pair of shares")
