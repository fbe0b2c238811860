"""The wire format: a closed set of types, one encoding for each value, nothing that can run code.

A message is one value: None, bool, int (64 bit), float, str, bytes, list, dict with str keys, or a numpy array of a
listed type. Every value has exactly one encoding (keys are sorted, floats keep their bits), so a message's digest
names its content.

The reader checks every length against what is there before it allocates, and reads no more than `MAX_VALUES` values: an
array is one, and so is each key of a dict. So a message costs time linear in its bytes, and memory of a small multiple
of them: the least encoding of a value has 1 byte in a list and 5 otherwise, and no value takes more than 300 in memory.

    N | T | F          None, True, False
    I + 8 bytes        a signed integer, little-endian
    D + 8 bytes        a float (IEEE 754 double)
    S/B + u32 + bytes  text in UTF-8 / raw bytes
    L + u32 + values   a list
    M + u32 + pairs    a dict: (text, value), keys strictly ascending
    A + type + ndim + ndim * u64 + data   an array in C order, little-endian
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tacit.errors import WireError

Array = npt.NDArray[np.generic]
Value = None | bool | int | float | str | bytes | list["Value"] | tuple["Value", ...] | Mapping[str, "Value"] | Array

BYTES_HEAD = 5
"""Of bytes, a text, a list or a dict: what comes before the content."""
MAX_DEPTH = 16
MAX_BYTES = 1 << 31
MAX_VALUES = 1 << 18
_MAX_NDIM = 4
_DTYPES = {b"d": "<f8", b"q": "<i8", b"Q": "<u8", b"B": "|u1", b"?": "|b1"}
_U8, _U32, _U64, _I64, _F64 = (struct.Struct(f"<{code}") for code in "BIQqd")  # compiled once
_CODES = {np.dtype(name): code for code, name in _DTYPES.items()}


def encode(value: Value) -> bytes:
    """The one encoding of `value`; a `WireError` names a type that has none."""
    parts: list[bytes] = []
    _encode(value, parts, depth=0)
    if len(parts) > MAX_VALUES:
        raise WireError(
            f"a message of {len(parts):,} values is over the limit of {MAX_VALUES:,}; send numbers as an array"
        )
    return b"".join(parts)


def decode(message: bytes) -> Value:
    """The value that `message` encodes; a `WireError` for anything else, trailing bytes included."""
    if len(message) > MAX_BYTES:
        raise WireError(f"a message of {len(message)} bytes is over the limit of {MAX_BYTES}")
    reader = _Reader(message)
    value = reader.value(depth=0)
    if reader.at != len(message):
        raise WireError(f"{len(message) - reader.at} bytes follow the end of the message")
    return value


def digest(value: Value) -> str:
    """A name for the content of `value`: SHA-256 of its encoding, in hexadecimal."""
    return hashlib.sha256(encode(value)).hexdigest()


def _encode(value: Value, parts: list[bytes], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise WireError(f"a message may nest {MAX_DEPTH} levels deep, no more")
    if type(value) is str:  # most of a message's values: keys and names
        parts.append(_sized(b"S", value.encode()))
        return
    match value:
        case None:
            parts.append(b"N")
        case bool() | np.bool_():
            parts.append(b"T" if value else b"F")
        case int() | np.integer():
            if not -(1 << 63) <= int(value) < 1 << 63:
                raise WireError("an integer outside 64 bits has no encoding; send it as bytes")
            parts.append(b"I" + _I64.pack(int(value)))
        case float() | np.floating():
            parts.append(b"D" + _F64.pack(float(value)))
        case str():
            parts.append(_sized(b"S", value.encode()))
        case bytes():
            parts.append(_sized(b"B", value))
        case list() | tuple():
            parts.append(b"L" + _U32.pack(len(value)))
            for item in value:
                _encode(item, parts, depth + 1)
        case Mapping():
            parts.append(b"M" + _U32.pack(len(value)))
            for key in sorted(value):
                if not isinstance(key, str):
                    raise WireError(f"a key of type {type(key).__name__} has no encoding; keys are text")
                parts.append(_key(key))
                _encode(value[key], parts, depth + 1)
        case np.ndarray():
            _encode_array(value, parts)
        case _:
            raise WireError(f"a value of type {type(value).__name__} has no encoding")


def _encode_array(array: Array, parts: list[bytes]) -> None:
    code = _CODES.get(array.dtype.newbyteorder("<"))
    if code is None:
        raise WireError(f"an array of {array.dtype} has no encoding; use one of {', '.join(_DTYPES.values())}")
    if array.ndim > _MAX_NDIM:
        raise WireError(f"an array of {array.ndim} dimensions has no encoding; {_MAX_NDIM} is the most")
    data = np.ascontiguousarray(array, dtype=_DTYPES[code]).tobytes()
    parts.append(b"A" + code + struct.pack(f"<B{array.ndim}Q", array.ndim, *array.shape) + data)


@lru_cache(maxsize=4096)  # what this program writes has few keys, again and again
def _key(key: str) -> bytes:
    return _sized(b"S", key.encode())


def _sized(tag: bytes, data: bytes) -> bytes:
    return tag + _U32.pack(len(data)) + data


class _Reader:
    """Reads values off a message; never past its end."""

    def __init__(self, message: bytes) -> None:
        self.message = message
        self.end = len(message)
        self.at = 0
        self.n_values = 0

    def take(self, n_bytes: int) -> bytes:
        start, self.at = self.at, self.at + n_bytes
        if self.at > self.end:
            raise self.cut_off()
        return self.message[start : self.at]

    def cut_off(self) -> WireError:
        return WireError(f"the message ends at byte {self.end}, within a value")

    def number(self, layout: struct.Struct) -> int:
        start, self.at = self.at, self.at + layout.size
        if self.at > self.end:
            raise self.cut_off()
        number: int = layout.unpack_from(self.message, start)[0]
        return number

    def value(self, depth: int) -> Value:
        if depth > MAX_DEPTH:
            raise WireError(f"a message may nest {MAX_DEPTH} levels deep, no more")
        self.n_values += 1
        if self.n_values > MAX_VALUES:
            raise WireError(f"a message of more than {MAX_VALUES:,} values is over the limit; send numbers as an array")
        tag = self.take(1)
        if tag == b"S":  # most of a message's values
            return self.text()
        match tag:
            case b"N":
                return None
            case b"T":
                return True
            case b"F":
                return False
            case b"I":
                return self.number(_I64)
            case b"D":
                return float(_F64.unpack(self.take(8))[0])
            case b"B":
                return self.take(self.number(_U32))
            case b"L":
                return [self.value(depth + 1) for _ in range(self.count())]
            case b"M":
                return self.mapping(depth)
            case b"A":
                return self.array()
            case _:
                raise WireError(f"{tag!r} starts no value")

    def count(self) -> int:
        count = self.number(_U32)
        if count > self.end - self.at:  # every item takes at least one byte
            raise WireError(f"the message announces {count} items and ends before them")
        if self.n_values + count > MAX_VALUES:
            raise WireError(f"a message of more than {MAX_VALUES:,} values is over the limit; send numbers as an array")
        return count

    def text(self) -> str:
        start = self.at + 4
        if start > self.end:
            raise self.cut_off()
        self.at = start + _U32.unpack_from(self.message, self.at)[0]
        if self.at > self.end:
            raise self.cut_off()
        try:
            return self.message[start : self.at].decode()
        except UnicodeDecodeError as error:
            raise WireError("a text is not UTF-8") from error

    def mapping(self, depth: int) -> dict[str, Value]:
        entries: dict[str, Value] = {}
        last: str | None = None
        for _ in range(self.count()):
            if self.take(1) != b"S":
                raise WireError("a key is not text")
            self.n_values += 1
            key = self.text()
            if last is not None and key <= last:
                raise WireError("the keys of a message are not in ascending order")
            entries[key] = self.value(depth + 1)
            last = key
        return entries

    def array(self) -> Array:
        dtype = _DTYPES.get(self.take(1))
        if dtype is None:
            raise WireError("an array is of no listed type")
        ndim = self.number(_U8)
        if ndim > _MAX_NDIM:
            raise WireError(f"an array has {ndim} dimensions; {_MAX_NDIM} is the most")
        shape = tuple(self.number(_U64) for _ in range(ndim))
        if math.prod(n for n in shape if n) > MAX_BYTES:  # a zero beside huge numbers would slip past the length
            raise WireError(f"an array of shape {shape} is over the limit of {MAX_BYTES} bytes")
        data = self.take(math.prod(shape) * np.dtype(dtype).itemsize)
        array = np.frombuffer(data, dtype=dtype)
        if dtype == "|b1" and np.any(array.view(np.uint8) > 1):
            raise WireError("a truth value is neither 0 nor 1")
        return array.reshape(shape)
