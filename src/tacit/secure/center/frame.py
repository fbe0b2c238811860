"""The messages of the engine's link, as far as a tunnel must read them: nothing passes that is not exactly one.

The engine (SPU 0.9.5, its link by yacl over brpc) speaks `baidu_std`: "PRPC", the size of the rest, the size of the
description, both in four bytes, then the description and the message, both in the protocol-buffer encoding.

    description of a request   field 1: the service and its method; 3: compression; 4: a number of the call
    description of a response  field 2: an error, if any; 3: compression; 4: the number of the call
    message of a request       field 1: the sender's rank; 2: a key; 3: the content

The engine believes the rank. So whoever forwards a request compares it with the node from which it came. A decoder may
take the last of two fields of one number. So each field may be there once, with a tag of one byte, in the type that the
engine writes. Any other protocol that the library would understand is refused too. A test holds this to the version of
the engine.

The link can also send a message in parts (fields 4 and 5). The receiving library believes the sizes that parts tell,
and two parts that disagree write outside its memory. So our engines send every message whole, and parts do not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tacit.errors import CenterError

MAX_FRAME = 512 << 20  # bytes after the header: an encrypted matrix of 2,500 columns

HEADER_BYTES = 12
_MAGIC = b"PRPC"
_SERVICE = memoryview(b"\x0a\x28org.interconnection.link.ReceiverService\x12\x04Push")
_NUMBER, _BYTES = 0, 2
_REQUEST_TAGS = {1: _BYTES, 3: _NUMBER, 4: _NUMBER}
_RESPONSE_TAGS = {2: _BYTES, 3: _NUMBER, 4: _NUMBER}
_PUSH_TAGS = {1: _NUMBER, 2: _BYTES, 3: _BYTES}

Check = Callable[[bytes], None]
"""Raises a `CenterError` for a frame that must not pass."""


def rest_of(header: bytes) -> int:
    """How many bytes follow the first `HEADER_BYTES` of a frame; a `CenterError` if they begin no frame of ours."""
    size = int.from_bytes(header[4:8], "big")
    if header[:4] != _MAGIC or size > MAX_FRAME:
        raise CenterError(f"what came is no message of the engine's, or one of over {MAX_FRAME:,} bytes")
    return size


def request_of(rank: int) -> Check:
    """Lets requests of the engine pass that name `rank` as their sender, and nothing else."""

    def check(frame: bytes) -> None:
        description, message = _parts(frame)
        fields = _fields(description, _REQUEST_TAGS)
        if fields.get(1) != _SERVICE or fields.get(3, 0) != 0:
            raise CenterError("a message asks for something else than the engine's link")
        told = _fields(message, _PUSH_TAGS).get(1, 0)
        if told != rank:
            raise CenterError(f"node {rank} sent a message in the name of node {told!r}")

    return check


def response(frame: bytes) -> None:
    """Lets responses pass, and nothing else."""
    description, _ = _parts(frame)
    if 2 not in _fields(description, _RESPONSE_TAGS):
        raise CenterError("what should be the response to a message is none")


def _parts(frame: bytes) -> tuple[memoryview, memoryview]:
    """The description and the message of a whole frame."""
    size = int.from_bytes(frame[8:HEADER_BYTES], "big")
    if size > len(frame) - HEADER_BYTES:
        raise CenterError("the description of a message is longer than the message")
    rest = memoryview(frame)[HEADER_BYTES:]
    return rest[:size], rest[size:]


def _fields(message: memoryview, known: Mapping[int, int]) -> dict[int, int | memoryview]:
    """The fields by number: each known, of its type, and there once."""
    found: dict[int, int | memoryview] = {}
    at = 0
    while at < len(message):
        number, kind = message[at] >> 3, message[at] & 7
        if known.get(number) != kind or number in found:
            raise CenterError(f"a message of the engine's link has a field {number} where none is due")
        value, at = _number(message, at + 1)
        if kind == _NUMBER:
            found[number] = value
            continue
        if at + value > len(message):
            raise CenterError("a message of the engine's link ends within a field")
        found[number] = message[at : at + value]
        at += value
    return found


def _number(message: memoryview, at: int) -> tuple[int, int]:
    """A number below 2^64 in groups of seven bits, and where it ends; a decoder would cut a larger one."""
    number = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80 and number < 1 << 64:
            return number, at
        shift += 7
    raise CenterError("a message of the engine's link ends within a number, or has one that is too large")
