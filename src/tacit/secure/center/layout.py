"""The engine's own form of a share, written and read here byte by byte: nothing is pickled.

An engine's share is a description and chunks, both in the protocol-buffer encoding:

    description   field 1: type of the elements; 3: visibility; 4: the shape, field 1 of a message, packed; 5: the name
                  of the storage, `aby3.AShr<FM128>`
    chunk         field 1: bytes in all; 2: where this chunk begins; 3: the content

The content is, element by element, the parts that the node holds, 16 little-endian bytes each. A test holds this to the
version of the engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tacit.errors import CenterError
from tacit.secure.ring import Words
from tacit.secure.share import PARTS_HELD, Shared

_STORAGE = b"aby3.AShr<FM128>"
_DOUBLE = 12  # DT_F64
_SECRET = 1  # VIS_SECRET
_CHUNK_BYTES = 1 << 26
_WORD_BYTES = 16


def describe(shape: tuple[int, ...]) -> bytes:
    """The description of a secret array of real numbers."""
    dims = b"".join(_varint(n) for n in shape)
    shape_message = _field(1, dims) if shape else b""
    described = _tag(1, 0) + _varint(_DOUBLE) + _tag(3, 0) + _varint(_SECRET)
    if shape:
        described += _field(4, shape_message)
    return described + _field(5, _STORAGE)


def pack(shared: Shared) -> list[bytes]:
    """The chunks of one node's shares."""
    content = np.ascontiguousarray(shared.words.transpose(1, 0, 2), dtype="<u8").tobytes()
    return [
        _tag(1, 0) + _varint(len(content)) + _offset(at) + _field(3, content[at : at + _CHUNK_BYTES])
        for at in range(0, len(content), _CHUNK_BYTES)
    ]


def unpack(description: bytes, chunks: Sequence[bytes]) -> Shared:
    """One node's shares, from the engine's description and chunks.

    Raises:
        CenterError: if they are not additive shares of real numbers in the layout of this center.
    """
    fields = dict(_fields(description))
    shape = tuple(_varints(dict(_fields(_bytes(fields.get(4, b"")))).get(1, b"")))
    if (fields.get(1), fields.get(3), fields.get(5)) != (_DOUBLE, _SECRET, _STORAGE):
        raise CenterError("the engine returned something that is not a shared array of real numbers")
    content = bytearray(math.prod(shape) * PARTS_HELD * _WORD_BYTES)
    seen = 0
    for chunk in chunks:
        parts = dict(_fields(chunk))
        data, at = _bytes(parts.get(3, b"")), parts.get(2, 0)
        if parts.get(1) != len(content) or not isinstance(at, int) or at + len(data) > len(content):
            raise CenterError("the engine returned chunks of a share that do not fit its shape")
        content[at : at + len(data)] = data
        seen += len(data)
    if seen != len(content):
        raise CenterError("the engine returned a share with parts missing")
    words: Words = np.frombuffer(bytes(content), dtype="<u8").astype(np.uint64, copy=False).reshape(-1, PARTS_HELD, 2)
    return Shared(np.ascontiguousarray(words.transpose(1, 0, 2)), shape)


def _varint(number: int) -> bytes:
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def _tag(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def _field(number: int, content: bytes) -> bytes:
    return _tag(number, 2) + _varint(len(content)) + content


def _offset(at: int) -> bytes:
    return _tag(2, 0) + _varint(at) if at else b""


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        value, at = _read_varint(message, at)
        if key & 7 == 0:
            yield key >> 3, value
        elif key & 7 == 2 and at + value <= len(message):
            yield key >> 3, message[at : at + value]
            at += value
        else:
            raise CenterError("the engine returned a share in an unknown encoding")


def _varints(packed: int | bytes) -> Iterator[int]:
    message, at = _bytes(packed), 0
    while at < len(message):
        number, at = _read_varint(message, at)
        yield number


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
    raise CenterError("the engine returned a share in an unknown encoding")


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise CenterError("the engine returned a share in an unknown encoding")
    return value
