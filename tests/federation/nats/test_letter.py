"""Letters: what is believed, and what is not."""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import WireError
from tacit.federation.member.identity import Identity
from tacit.federation.nats.letter import Freshness, Letter, read_letter, signed, write_letter

COORDINATOR = Identity("coordinator", "coordinator", b"c" * 32)
NORTH = Identity("north", "party", b"n" * 32)


def ask(body: bytes = b"what?", **changes: object) -> Letter:
    facts = {"study": "d" * 64, "run": "r", "round": 3, "about": "q"}
    return replace(write_letter(COORDINATOR, kind="ask", recipient="north", body=body, **facts), **changes)  # type: ignore[arg-type]


def read(frame: bytes, recipient: str = "north") -> Letter:
    return read_letter(frame, sender=COORDINATOR.member, recipient=recipient, kinds=("ask",))


def test_a_letter_arrives_as_it_was_written() -> None:
    letter = ask()
    assert read(signed(letter, COORDINATOR)) == letter
    assert ask().nonce != letter.nonce


def test_only_the_pinned_key_signs() -> None:
    with pytest.raises(WireError, match="in the name of 'coordinator' is not signed by it"):
        read(signed(ask(), NORTH))


@given(position=st.integers(0, 10**6), flip=st.integers(1, 255))
def test_one_changed_byte_anywhere_is_not_believed(position: int, flip: int) -> None:
    frame = bytearray(signed(ask(), COORDINATOR))
    frame[position % len(frame)] ^= flip
    with pytest.raises(WireError, match=r"\w"):
        read(bytes(frame))


@given(st.binary(max_size=300))
def test_garbage_is_no_letter(garbage: bytes) -> None:
    with pytest.raises(WireError, match=r"\w"):
        read(garbage)


def test_a_letter_is_for_its_recipient_alone() -> None:
    with pytest.raises(WireError, match="to 'north' was delivered to 'south'"):
        read(signed(ask(), COORDINATOR), recipient="south")


def test_a_letter_of_one_kind_is_never_taken_for_another() -> None:
    with pytest.raises(WireError, match="kind 'study' came where one of ask"):
        read(signed(ask(kind="study"), COORDINATOR))


def test_a_letter_cannot_name_another_sender() -> None:
    with pytest.raises(WireError, match="a letter of 'south'"):
        read(signed(ask(sender="south"), COORDINATOR))


def framed(head: bytes, body: bytes = b"", sign: Callable[[bytes], bytes] = COORDINATOR.sign) -> bytes:
    text = struct.pack("<IQ", len(head), len(body)) + head + body
    return b"tacit letter 3\0\0" + sign(b"tacit letter 3\0" + hashlib.blake2b(text).digest()) + text


def head_of(letter: Letter) -> bytes:
    facts = struct.pack("<qd16sH", letter.round, letter.time, bytes.fromhex(letter.nonce), len(letter.key))
    said = (letter.kind, letter.study, letter.run, letter.sender, letter.recipient, letter.about)
    return facts + letter.key + "\0".join(said).encode()


def test_a_letter_with_more_or_less_or_something_else_in_it_is_none() -> None:
    letter = ask(key=b"k" * 32)
    right = head_of(letter)
    assert read(framed(right, b"what?")) == letter
    long_key = right[:32] + struct.pack("<H", 2000) + right[34:]
    for head in (b"", right[:33], right[:34], right + b"\0", right.replace(b"\0r\0", b"\0"), long_key, right + b"\xff"):
        with pytest.raises(WireError, match="has not the head of a letter"):
            read(framed(head))


@given(key=st.binary(max_size=64), said=st.tuples(st.text(max_size=9), st.text(max_size=9), st.text(max_size=9)))
def test_every_head_that_is_believed_is_the_one_that_its_letter_has(key: bytes, said: tuple[str, str, str]) -> None:
    """Two heads never say the same: whoever reads a letter again reads what was signed."""
    study, run, about = said
    texts = "\0".join(("ask", study, run, "coordinator", "north", about)).encode()
    head = head_of(ask())[:32] + struct.pack("<H", len(key)) + key + texts
    try:
        letter = read_letter(framed(head), sender=COORDINATOR.member, recipient="north", kinds=("ask",))
    except WireError:
        return
    assert head_of(letter) == head


def test_names_with_a_zero_in_them_are_not_written() -> None:
    with pytest.raises(WireError, match="a zero character"):
        signed(ask(run="r\0coordinator"), COORDINATOR)


def test_a_frame_of_other_lengths_or_of_another_version_is_none() -> None:
    frame = signed(ask(), COORDINATOR)
    for other in (frame + b"x", frame[:-1], b"tacit letter 2\0\0" + frame[16:]):
        with pytest.raises(WireError, match="no letter of this version"):
            read(other)


def test_a_signature_of_a_server_challenge_signs_no_letter() -> None:
    """The connection's key signs whatever the server sends; it is another key."""
    import nkeys  # type: ignore[import-untyped]

    pair = nkeys.from_seed(bytearray(COORDINATOR.nkey_seed.encode()))
    head = head_of(ask())
    with pytest.raises(WireError, match="not signed by it"):
        read(framed(head, sign=lambda text: bytes(pair.sign(text))))


def test_a_letter_is_no_longer_than_its_kind_allows() -> None:
    with pytest.raises(WireError, match=r"kind 'spent' with 16,385 bytes is over the limit of 16,384; ask for less"):
        signed(ask(b"x" * 16385, kind="spent"), COORDINATOR)
    with pytest.raises(WireError, match=r"names in a letter take .* use shorter ones"):
        signed(ask(run="r" * 3000), COORDINATOR)
    head = head_of(ask(kind="spent"))
    with pytest.raises(WireError, match=r"kind 'spent' has 20,000 bytes, over its limit"):
        read_letter(framed(head, bytes(20000)), sender=COORDINATOR.member, recipient="north", kinds=("spent", "begin"))


def test_a_replayed_letter_is_believed_once() -> None:
    fresh = Freshness()
    letter = ask()
    fresh.check(letter)
    with pytest.raises(WireError, match="came twice"):
        fresh.check(letter)
    fresh.check(ask())


@pytest.mark.parametrize(("shift", "word"), [(-121.0, "behind"), (180.0, "ahead of"), (float("nan"), "behind")])
def test_clocks_may_differ_by_two_minutes(shift: float, word: str) -> None:
    with pytest.raises(WireError, match=f"{word} this clock, over the limit of 120 s; set both clocks"):
        Freshness().check(ask(time=time.time() + shift))
    Freshness().check(ask(time=time.time() + 100))


def test_memory_of_nonces_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = Freshness(max_skew=10.0, most=5)
    for _ in range(5):
        fresh.check(ask())
    with pytest.raises(WireError, match="5 letters came within"):
        fresh.check(ask())
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 21)
    fresh.check(ask(time=now + 21))
    assert len(fresh._seen) == 1
