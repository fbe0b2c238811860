"""A party wants to exhaust a center node: a few hundred bytes state millions of numbers, stretched from two seeds."""

from __future__ import annotations

import hashlib
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import AddendRefused, WireError
from tacit.secure import envelope as sealing
from tacit.secure.bound import NormBound
from tacit.secure.envelope import MAX_SIZE, Label, sum_group_digest
from tests.secure.center.conftest import mark
from tests.secure.center.signed_center import RNG, SignedCenter

HONEST = np.array([1, 2, 3])


def short_envelope(center: SignedCenter, size: int) -> bytes:
    """What `west` sends to node 0: two seeds, properly committed to and signed, for so many numbers."""
    seeds = (RNG.bytes(32), RNG.bytes(32))
    digests = [
        hashlib.blake2b(len(s).to_bytes(8, "little") + s, digest_size=32, person=b"seed").digest() for s in seeds
    ]
    label = Label(
        context="q", party="west", n_parties=1, sum_group=sum_group_digest(center.pinned),
        bound=(NormBound(size=size, norm=1000),), ledger=mark(),
    )  # fmt: skip
    addend = sealing._Addend(label=label, size=size, parts=seeds, digests=b"".join(digests) + bytes(64))
    sign = center.signers["west"].sign
    return sealing._encrypt(addend, center.keys[0], lambda text: bytes(sign(text).signature))


def test_a_short_envelope_stretches_to_nothing_before_its_size_is_the_others() -> None:
    center = SignedCenter(["north", "south", "west"])
    envelopes = {name: center.sealed(name, HONEST, 1000)[0] for name in ("north", "south")}
    envelopes["west"] = short_envelope(center, MAX_SIZE)
    assert len(envelopes["west"]) < 1000
    tracemalloc.start()
    try:
        with pytest.raises(AddendRefused, match=f"party 'west': it sent {MAX_SIZE} numbers"):
            center.nodes[0].check("q", "open", envelopes, ("north", "south", "west"), center.keys)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**20


def test_the_envelope_would_stretch_if_its_size_were_right() -> None:
    """So the test above could fail: the same envelope, for as many numbers as the others sent, is opened."""
    center = SignedCenter(["north", "south", "west"])
    envelopes = {name: center.sealed(name, HONEST, 1000)[0] for name in ("north", "south")}
    envelopes["west"] = short_envelope(center, HONEST.size)
    assert center.nodes[0].check("q", "open", envelopes, ("north", "south", "west"), center.keys)


def test_no_size_beyond_the_largest_is_taken() -> None:
    center = SignedCenter(["north", "south", "west"])
    with pytest.raises(WireError, match=f"outside 0 to {MAX_SIZE}"):
        short_envelope(center, MAX_SIZE + 1)


def test_a_node_keeps_no_long_names_of_ledgers() -> None:
    """Each sum of a ledger whose numbers have gaps adds a row with its epoch, for good."""
    for state in ({"epoch": "e" * 1000}, {"head": "h" * 1000}):
        with pytest.raises(WireError, match="names of 128 characters at most"):
            replace(mark(), **state)  # type: ignore[arg-type]
