"""Addends within one process: in a simulated crowd one box for the process, in place of three envelopes for nodes.

Whoever runs a simulation holds every record, so shares and public keys would protect nobody there. The box protects
what it can: what a party adds is in a ledger's file, and nobody can read it there once the process is gone. Its key is
drawn by the process and kept nowhere. The label in the box is the one that nodes check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from nacl.bindings import (
    crypto_secretbox,
    crypto_secretbox_KEYBYTES,
    crypto_secretbox_NONCEBYTES,
    crypto_secretbox_open,
)
from nacl.exceptions import CryptoError

from tacit import wire
from tacit.errors import CenterError, WireError
from tacit.rand import Rng
from tacit.record import decode_record, encode_record
from tacit.secure.envelope import Label
from tacit.secure.ring import Ints


@dataclass(frozen=True, kw_only=True)
class Boxed:
    """What a box holds: the label without its party, which all parties of a sum share, the party, and its numbers."""

    terms: Label
    party: str
    addend: Ints


_EXTRA = 495  # what three envelopes and their parts have besides, less what three boxes have


def sealed_bytes(box: bytes, size: int) -> int:
    """How many bytes the three envelopes have that parties between organisations would seal of as many numbers.

    Each holds the same label. One holds two seeds, and two of them a seed and 16 bytes for each number. What they sign
    and prove comes on top.
    """
    return 3 * (len(box) - 8 * size) + 2 * 16 * size + _EXTRA


class ProcessKey:
    """Seals addends for the process that drew it, and opens them there."""

    def __init__(self) -> None:
        self._rng = Rng.system()
        self._key = self._rng.bytes(crypto_secretbox_KEYBYTES)

    def __repr__(self) -> str:
        return "ProcessKey()"

    def seal(self, addend: Ints, label: Label) -> bytes:
        """A box with an addend and its label."""
        text = wire.encode([_written(replace(label, party="")), label.party, addend])
        nonce = self._rng.bytes(crypto_secretbox_NONCEBYTES)
        return nonce + bytes(crypto_secretbox(text, nonce, self._key))

    def open(self, box: bytes) -> Boxed:
        """What `seal` put in; a `CenterError` of anything else."""
        nonce, sealed = box[:crypto_secretbox_NONCEBYTES], box[crypto_secretbox_NONCEBYTES:]
        try:
            text = crypto_secretbox_open(sealed, nonce, self._key)
        except (CryptoError, ValueError) as error:
            raise CenterError("a box does not open: it was sealed by another process, or altered") from error
        match wire.decode(bytes(text)):
            case [bytes(terms), str(party), np.ndarray() as addend] if addend.dtype == np.int64:
                return Boxed(terms=_read(terms), party=party, addend=addend.astype(np.int64, copy=False))
        raise WireError("a box holds something that is no addend")


SealKeys = Sequence[bytes] | ProcessKey
"""To whom parties seal: to the center's nodes, by their public keys, or in a simulation to this process."""

# All parties of a sum have the same terms: they are written and read once.


@lru_cache(maxsize=64)
def _written(terms: Label) -> bytes:
    return encode_record(terms)


@lru_cache(maxsize=64)
def _read(terms: bytes) -> Label:
    return decode_record(Label, terms)
