"""Signatures (Ed25519): whether a message is signed by the holder of a pinned key."""

from __future__ import annotations

from collections.abc import Callable

from nacl.exceptions import CryptoError
from nacl.signing import VerifyKey

Sign = Callable[[bytes], bytes]


def is_signed(message: bytes, signature: bytes, key: bytes) -> bool:
    """Whether the holder of the public key signed this very message; false for a key or signature that is none."""
    try:
        VerifyKey(key).verify(message, signature)
    except (CryptoError, ValueError, TypeError):
        return False
    return True
