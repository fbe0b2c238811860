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
_read_u32, _read_i64, _read_f64 = (struct.Struct(f"<{code}").unpack_from for code in "Iqd")
_CODES = {np.dtype(name): code for code, name in _DTYPES.items()}
_READ_DTYPES = {ord(code): np.dtype(name) for code, name in _DTYPES.items()}
_SIZED, _INTEGER, _FLOAT = (struct.Struct(f"<c{code}") for code in "Iqd")  # a tag, and what follows it
_S, _B, _I, _D, _L, _M, _A, _N, _T, _F = b"SBIDLMANTF"  # the tags, as numbers


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
    try:
        value, end = _Reader(message).value(0, depth=0)
    except (struct.error, IndexError) as error:
        raise _cut_off(message) from error
    except UnicodeDecodeError as error:
        raise WireError("a text is not UTF-8") from error
    if end != len(message):
        raise WireError(f"{len(message) - end} bytes follow the end of the message")
    return value


def digest(value: Value) -> str:
    """A name for the content of `value`: SHA-256 of its encoding, in hexadecimal."""
    return hashlib.sha256(encode(value)).hexdigest()


def _encode(value: Value, parts: list[bytes], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise WireError(f"a message may nest {MAX_DEPTH} levels deep, no more")
    kind = type(value)
    if kind is str:  # most of a message's values: names
        data = value.encode()  # type: ignore[union-attr]
        parts.append(_SIZED.pack(b"S", len(data)) + data)
    elif kind is dict:
        _encode_mapping(value, parts, depth)  # type: ignore[arg-type]
    elif kind is int and -(1 << 63) <= value < 1 << 63:  # type: ignore[operator]
        parts.append(_INTEGER.pack(b"I", value))
    elif kind is float:
        parts.append(_FLOAT.pack(b"D", value))
    elif kind is np.ndarray:
        _encode_array(value, parts)  # type: ignore[arg-type]
    else:
        _encode_other(value, parts, depth)


def _encode_mapping(value: Mapping[str, Value], parts: list[bytes], depth: int) -> None:
    parts.append(_SIZED.pack(b"M", len(value)))
    for key in sorted(value):
        if not isinstance(key, str):
            raise WireError(f"a key of type {type(key).__name__} has no encoding; keys are text")
        parts.append(_key(key))
        _encode(value[key], parts, depth + 1)


def _encode_other(value: Value, parts: list[bytes], depth: int) -> None:
    """Encode what is not one of the most frequent types."""
    match value:
        case None:
            parts.append(b"N")
        case bool() | np.bool_():
            parts.append(b"T" if value else b"F")
        case int() | np.integer():
            if not -(1 << 63) <= int(value) < 1 << 63:
                raise WireError("an integer outside 64 bits has no encoding; send it as bytes")
            parts.append(_INTEGER.pack(b"I", int(value)))
        case float() | np.floating():
            parts.append(_FLOAT.pack(b"D", float(value)))
        case str():
            parts.append(_sized(b"S", value.encode()))
        case bytes():
            parts.append(_sized(b"B", value))
        case list() | tuple():
            parts.append(_SIZED.pack(b"L", len(value)))
            for item in value:
                _encode(item, parts, depth + 1)
        case Mapping():
            _encode_mapping(value, parts, depth)
        case np.ndarray():
            _encode_array(value, parts)
        case _:
            raise WireError(f"a value of type {type(value).__name__} has no encoding")


def _encode_array(array: Array, parts: list[bytes]) -> None:
    code = _CODES.get(array.dtype) or _CODES.get(array.dtype.newbyteorder("<"))
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
    return _SIZED.pack(tag, len(data)) + data


class _Reader:
    """Reads values off a message; never past its end.

    A method is told where a value begins and returns it with where it ends. A number or a tag that would lie past the
    end is noticed by `struct`, or by an index; `decode` says so. Whatever has a length is measured before it is taken.
    """

    __slots__ = ("end", "message", "n_values")

    def __init__(self, message: bytes) -> None:
        self.message = message
        self.end = len(message)
        self.n_values = 1

    def value(self, at: int, depth: int) -> tuple[Value, int]:
        if depth > MAX_DEPTH:
            raise WireError(f"a message may nest {MAX_DEPTH} levels deep, no more")
        message, tag = self.message, self.message[at]
        at += 1
        if tag == _S:  # most of a message's values
            stop = at + 4 + _read_u32(message, at)[0]
            return self.taken(at + 4, stop).decode(), stop
        if tag == _M:
            return self.mapping(at, depth)
        if tag == _I:
            return _read_i64(message, at)[0], at + 8
        if tag == _A:
            return self.array(at)
        if tag == _D:
            return _read_f64(message, at)[0], at + 8
        if tag == _B:
            stop = at + 4 + _read_u32(message, at)[0]
            return self.taken(at + 4, stop), stop
        if tag == _L:
            return self.items(at, depth)
        if tag == _N:
            return None, at
        if tag in (_T, _F):
            return tag == _T, at
        raise WireError(f"{bytes([tag])!r} starts no value")

    def taken(self, start: int, stop: int) -> bytes:
        if stop > self.end:
            raise _cut_off(self.message)
        return self.message[start:stop]

    def count(self, at: int, values_each: int) -> int:
        """How many items follow, if so many can; they are counted before one of them is read."""
        count: int = _read_u32(self.message, at)[0]
        if count > self.end - at - 4:  # every item takes at least one byte
            raise WireError(f"the message announces {count} items and ends before them")
        self.n_values += values_each * count
        if self.n_values > MAX_VALUES:
            raise WireError(f"a message of more than {MAX_VALUES:,} values is over the limit; send numbers as an array")
        return count

    def items(self, at: int, depth: int) -> tuple[list[Value], int]:
        items: list[Value] = []
        count, at = self.count(at, 1), at + 4
        for _ in range(count):
            item, at = self.value(at, depth + 1)
            items.append(item)
        return items, at

    def mapping(self, at: int, depth: int) -> tuple[dict[str, Value], int]:
        entries: dict[str, Value] = {}
        message, last = self.message, None
        count, at = self.count(at, 2), at + 4
        for _ in range(count):
            if message[at] != _S:
                raise WireError("a key is not text")
            stop = at + 5 + _read_u32(message, at + 1)[0]
            key = self.taken(at + 5, stop).decode()
            if last is not None and key <= last:
                raise WireError("the keys of a message are not in ascending order")
            entries[key], at = self.value(stop, depth + 1)
            last = key
        return entries, at

    def array(self, at: int) -> tuple[Array, int]:
        dtype = _READ_DTYPES.get(self.message[at])
        if dtype is None:
            raise WireError("an array is of no listed type")
        ndim = self.message[at + 1]
        if ndim > _MAX_NDIM:
            raise WireError(f"an array has {ndim} dimensions; {_MAX_NDIM} is the most")
        shape = struct.unpack_from(f"<{ndim}Q", self.message, at + 2)
        if math.prod(n for n in shape if n) > MAX_BYTES:  # a zero beside huge numbers would slip past the length
            raise WireError(f"an array of shape {shape} is over the limit of {MAX_BYTES} bytes")
        start = at + 2 + 8 * ndim
        stop = start + math.prod(shape) * dtype.itemsize
        array = np.frombuffer(self.taken(start, stop), dtype=dtype)
        if dtype.kind == "b" and np.any(array.view(np.uint8) > 1):
            raise WireError("a truth value is neither 0 nor 1")
        return array.reshape(shape), stop


def _cut_off(message: bytes) -> WireError:
    return WireError(f"the message ends at byte {len(message)}, within a value")
