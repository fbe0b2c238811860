"""What a tunnel lets pass: a message of the engine's link in its sender's own name, written in one way only."""

from __future__ import annotations

import pytest

from tacit.errors import CenterError
from tacit.secure.center.frame import HEADER_BYTES, MAX_FRAME, request_of, response, rest_of

SERVICE = b"\x0a\x30\x0a\x28org.interconnection.link.ReceiverService\x12\x04Push"
NUMBER = b"\x18\x00\x20\x82\x80\x80\x80\x80\x60"
KEY = b"\x12\x05k\x01\x02\x0e1"
CONTENT = b"\x1a\x03abc"


def frame(description: bytes, message: bytes) -> bytes:
    size = len(description) + len(message)
    return b"PRPC" + size.to_bytes(4, "big") + len(description).to_bytes(4, "big") + description + message


def test_a_message_passes_in_its_sender_s_name() -> None:
    for rank, message in ((0, KEY + CONTENT), (0, b"\x08\x00" + KEY), (2, b"\x08\x02" + KEY + CONTENT)):
        whole = frame(SERVICE + NUMBER, message)
        assert rest_of(whole[:HEADER_BYTES]) == len(whole) - HEADER_BYTES
        request_of(rank)(whole)
        with pytest.raises(CenterError, match="in the name of node"):
            request_of(1)(whole)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"\x08\x01\x08\x02" + KEY, id="two ranks, of which a decoder takes the last"),
        pytest.param(b"\x08\x02" + KEY + CONTENT + b"\x08\x01", id="another rank at the end"),
        pytest.param(b"\x88\x00\x01" + b"\x08\x02" + KEY, id="a tag in a longer form"),
        pytest.param(b"\x0a\x01\x01" + b"\x08\x02" + KEY, id="the rank as bytes"),
        pytest.param(b"\x08\x81\x80\x80\x80\x80\x80\x80\x80\x80\x02" + KEY, id="a rank that a decoder would cut"),
        pytest.param(b"\x08\x02" + KEY + b"\x20\x01", id="in parts"),
        pytest.param(b"\x08\x02" + KEY + b"\x2a\x04\x08\x00\x10\x01", id="a part"),
        pytest.param(b"\x08\x02" + KEY + b"\x1a\x05abc", id="cut short"),
        pytest.param(b"\x08\x02" + KEY + b"\x1a", id="cut within a field"),
        pytest.param(b"\x08\x02" + KEY + b"\x32\x00", id="a field that is unknown"),
    ],
)
def test_a_message_that_could_be_read_in_two_ways_does_not_pass(message: bytes) -> None:
    with pytest.raises(CenterError, match="a message of the engine's link"):
        request_of(2)(frame(SERVICE + NUMBER, message))


@pytest.mark.parametrize(
    "description",
    [
        pytest.param(SERVICE.replace(b"Push", b"Pull") + NUMBER, id="another method"),
        pytest.param(NUMBER, id="no service"),
        pytest.param(SERVICE + b"\x18\x01\x20\x07", id="compressed"),
        pytest.param(b"\x12\x02\x08\x00" + NUMBER, id="a response"),
        pytest.param(SERVICE + SERVICE + NUMBER, id="two services"),
        pytest.param(SERVICE + NUMBER + b"\x28\x05", id="with an attachment"),
    ],
)
def test_anything_else_than_a_push_does_not_pass(description: bytes) -> None:
    with pytest.raises(CenterError, match=r"something else|a field"):
        request_of(2)(frame(description, b"\x08\x02" + KEY))


def test_only_responses_pass_back() -> None:
    response(frame(b"\x12\x02\x08\x00" + NUMBER, b"\x0a\x00"))
    with pytest.raises(CenterError, match="a field 1 where none is due"):
        response(frame(SERVICE + NUMBER, KEY))
    with pytest.raises(CenterError, match="is none"):
        response(frame(NUMBER, b""))


def test_another_protocol_or_size_is_no_frame() -> None:
    for header in (b"GET / HTTP/1", b"PRPC" + (MAX_FRAME + 1).to_bytes(4, "big") + bytes(4), b"HULU" + bytes(8)):
        with pytest.raises(CenterError, match="no message of the engine's"):
            rest_of(header)
    with pytest.raises(CenterError, match="longer than the message"):
        request_of(2)(b"PRPC" + (2).to_bytes(4, "big") + (3).to_bytes(4, "big") + b"ab")
