"""The wire format: every value comes back as it was, has one encoding, and garbage is refused."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tacit import wire
from tacit.errors import WireError

arrays = st.one_of(
    *(
        npst.arrays(np.dtype(name), npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
        for name in ("<f8", "<i8", "<u8", "|u1", "|b1")
    )
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=20),
)
values = st.recursive(
    st.one_of(scalars, arrays),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
    max_leaves=12,
)


def same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, float):
        return isinstance(b, float) and struct.pack("<d", a) == struct.pack("<d", b)
    return type(a) is type(b) and a == b


@given(values)
def test_what_is_encoded_comes_back(value: wire.Value) -> None:
    message = wire.encode(value)
    assert same(value, wire.decode(message))
    assert wire.encode(wire.decode(message)) == message


@given(values, st.data())
@settings(max_examples=300)
def test_an_altered_message_is_refused_or_is_another_value(value: wire.Value, data: st.DataObject) -> None:
    message = bytearray(wire.encode(value))
    at = data.draw(st.integers(0, len(message) - 1))
    message[at] ^= data.draw(st.integers(1, 255))
    try:
        altered = wire.decode(bytes(message))
    except WireError:
        return
    assert wire.encode(altered) == bytes(message)  # one encoding a value, so it cannot pass for the original


@given(st.binary(max_size=200))
@settings(max_examples=500)
def test_garbage_never_does_anything_but_raise_a_wire_error(message: bytes) -> None:
    try:
        value = wire.decode(message)
    except WireError:
        return
    assert wire.encode(value) == message


def test_the_order_of_keys_does_not_change_the_digest() -> None:
    assert wire.digest({"a": 1, "b": 2.0}) == wire.digest({"b": 2.0, "a": 1})
    assert wire.digest({"a": 1}) != wire.digest({"a": 1.0})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**63, "outside 64 bits"),
        (object(), "type object has no encoding"),
        ({1: 2}, "keys are text"),
        (np.zeros(2, dtype=np.complex128), "complex128"),
        (np.array([object()]), "object"),
        (np.zeros((1,) * 5), "5 dimensions"),
    ],
)
def test_what_has_no_encoding_is_named(value: object, message: str) -> None:
    with pytest.raises(WireError, match=message):
        wire.encode(value)  # type: ignore[arg-type]


def test_a_short_message_cannot_make_the_reader_allocate() -> None:
    huge = b"A" + b"d" + struct.pack("<B2Q", 2, 2**31, 2**31)
    with pytest.raises(WireError, match="over the limit"):
        wire.decode(huge)
    with pytest.raises(WireError, match="announces"):
        wire.decode(b"L" + struct.pack("<I", 2**32 - 1))


def test_deep_nesting_is_refused_both_ways() -> None:
    deep: wire.Value = []
    for _ in range(wire.MAX_DEPTH + 1):
        deep = [deep]
    with pytest.raises(WireError, match="levels deep"):
        wire.encode(deep)
    with pytest.raises(WireError, match="levels deep"):
        wire.decode((b"L" + struct.pack("<I", 1)) * 1000 + b"N")


def test_special_floats_keep_their_bits() -> None:
    for value in (math.nan, math.inf, -0.0, 5e-324):
        assert same(value, wire.decode(wire.encode(value)))
