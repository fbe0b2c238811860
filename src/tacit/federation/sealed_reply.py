"""Replies of which only the sum is opened, as the channel reads and counts them.

In a simulated crowd a party seals one box to the process, where it would seal one envelope to each node. What travels
is counted as if it had sealed the envelopes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tacit import wire
from tacit.federation.message import Answer
from tacit.secure.process_key import ProcessKey, SealKeys, sealed_bytes
from tacit.secure.share import N_NODES
from tacit.wire import Value


def read_sealed(value: Value, keys: SealKeys) -> tuple[list[bytes], tuple[int, ...]] | None:
    """The envelopes in a sealed reply, one for each key, and the shape that it declares; None if it is none."""
    n_envelopes = 1 if isinstance(keys, ProcessKey) else len(keys)
    match value:
        case {"envelopes": list(sealed), "shape": list(dims), **rest} if not rest:
            envelopes = [envelope for envelope in sealed if isinstance(envelope, bytes)]
            shape = tuple(n for n in dims if isinstance(n, int) and n >= 0)
            if len(envelopes) == len(sealed) == n_envelopes and len(shape) == len(dims):
                return envelopes, shape
    return None


def relayed_bytes(envelopes: Sequence[bytes], shape: Sequence[int]) -> int:
    """How many bytes the nodes get of one reply."""
    return sealed_bytes(envelopes[0], math.prod(shape)) if len(envelopes) == 1 else sum(map(len, envelopes))


def answer_bytes(answer: Answer, keys: SealKeys) -> int:
    """How many bytes an answer has."""
    read = read_sealed(answer.value, keys) if answer.kind == "sealed" and isinstance(keys, ProcessKey) else None
    if read is None:
        return answer.n_bytes
    envelopes, shape = read
    return answer.n_bytes - len(envelopes[0]) + relayed_bytes(envelopes, shape) + (N_NODES - 1) * wire.BYTES_HEAD
