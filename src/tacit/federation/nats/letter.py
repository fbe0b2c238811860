"""Letters: everything that is sent between members, signed, addressed and dated.

A letter is believed if all of this holds:
1. The member that the subject names has signed it.
2. It is addressed to the reader.
3. It is of a kind that the reader expects there.
4. If it asks for something, it is not older or younger than the clocks may differ, and its nonce is new.
A question that is replayed after a restart, when nonces are forgotten, is still the same question and gets the stored
answer: a replay costs nothing and tells nothing new.

A letter travels in a frame with a header of fixed size, so that nothing has to be parsed to find the signature:

    16 bytes   the version, "tacit letter 2", filled up with zeros
    64 bytes   the sender's signature of the domain and of BLAKE2b over everything that follows
     4 bytes   how long the head is (little-endian)
     8 bytes   how long the body is
    the head   everything that a letter says but its body, as a record
    the body

A frame is read in this order: its length against the longest that the reader expects there, the version and the
lengths, the signature over the raw bytes, then the head. So a frame that is not signed costs one hash of its bytes, no
memory beyond them, and is never parsed.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections import OrderedDict
from dataclasses import dataclass, fields

from tacit.errors import WireError
from tacit.federation.member.identity import Identity, Member
from tacit.federation.nats.kind import most_bytes
from tacit.rand import Rng
from tacit.record import decode_record, encode_record

MAX_SKEW = 120.0  # seconds by which two clocks may differ
_VERSION = b"tacit letter 2\0\0"
_DOMAIN = b"tacit letter 2\0"
_LENGTHS = struct.Struct("<IQ")
_HEADER = struct.Struct(f"<{len(_VERSION)}s64s")
_START = _HEADER.size + _LENGTHS.size
_MAX_HEAD = 2048
_NONCE_BYTES = 16
_RNG = Rng.system()


@dataclass(frozen=True, kw_only=True)
class Letter:
    """One message.

    Attributes:
        kind: what it is ("ask", "answer", "refusal", ...): a letter of one kind is never taken for another.
        study: the digest of the study that it belongs to; empty if it belongs to none.
        run: the run of that study.
        round: how many questions the run has asked.
        sender: who signed it.
        recipient: who may act on it.
        about: what it replies to: a question's digest, or the nonce of a letter.
        nonce: new for each letter.
        time: the sender's clock, in seconds since 1970.
        body: what it says, encoded.
    """

    kind: str
    study: str = ""
    run: str = ""
    round: int = 0
    sender: str
    recipient: str
    about: str = ""
    nonce: str
    time: float
    body: bytes = b""

    def __post_init__(self) -> None:
        if len(self.nonce) != 2 * _NONCE_BYTES:
            raise WireError(f"a nonce has {2 * _NONCE_BYTES} characters, not {len(self.nonce)}")


@dataclass(frozen=True, kw_only=True)
class _Head:
    """A letter without its body."""

    kind: str
    study: str
    run: str
    round: int
    sender: str
    recipient: str
    about: str
    nonce: str
    time: float


_HEAD_FIELDS = tuple(field.name for field in fields(_Head))


def write_letter(identity: Identity, *, kind: str, recipient: str, body: bytes = b"", **facts: str | int) -> Letter:
    """A new letter, dated now; sign it with `signed`."""
    nonce = _RNG.bytes(_NONCE_BYTES).hex()
    return Letter(
        kind=kind, sender=identity.name, recipient=recipient, nonce=nonce, time=time.time(), body=body,
        study=str(facts.get("study", "")), run=str(facts.get("run", "")), round=int(facts.get("round", 0)),
        about=str(facts.get("about", "")),
    )  # fmt: skip


def signed(letter: Letter, identity: Identity) -> bytes:
    """The letter as it travels."""
    if len(letter.body) > most_bytes(letter.kind):
        raise WireError(
            f"a letter of kind {letter.kind!r} with {len(letter.body):,} bytes is over the limit of "
            f"{most_bytes(letter.kind):,}; ask for less in one round (fewer columns or parties)"
        )
    head = encode_record(_Head(**{name: getattr(letter, name) for name in _HEAD_FIELDS}))
    if len(head) > _MAX_HEAD:
        raise WireError(
            f"the names in a letter take {len(head):,} bytes, over the limit of {_MAX_HEAD:,}; use shorter ones"
        )
    text = b"".join((_LENGTHS.pack(len(head), len(letter.body)), head, letter.body))
    return _HEADER.pack(_VERSION, identity.sign(_DOMAIN + _digest(text))) + text


def read_letter(frame: bytes, *, sender: Member, recipient: str, kinds: tuple[str, ...]) -> Letter:
    """The letter, if `sender` signed it, for `recipient`, as one of `kinds`; a `WireError` says what is wrong.

    Guarantees:
        Nothing is parsed before the signature has been checked, and no frame is hashed that is longer than the longest
        letter of `kinds`.
    """
    longest = _START + _MAX_HEAD + max(most_bytes(kind) for kind in kinds)
    if not _START <= len(frame) <= longest:
        raise WireError(
            f"a letter of {len(frame):,} bytes is none; it has {_START} at least and {longest:,} at most here"
        )
    version, signature = _HEADER.unpack_from(frame)
    n_head, n_body = _LENGTHS.unpack_from(frame, _HEADER.size)
    if version != _VERSION or n_head > _MAX_HEAD or _START + n_head + n_body != len(frame):
        raise WireError("a message is no letter of this version; use the same release")
    if not sender.signed(_DOMAIN + _digest(memoryview(frame)[_HEADER.size :]), signature):
        raise WireError(f"a letter in the name of {sender.name!r} is not signed by it")
    head = decode_record(_Head, frame[_START : _START + n_head])
    letter = Letter(**vars(head), body=frame[_START + n_head :])
    if (letter.sender, letter.recipient) != (sender.name, recipient):
        raise WireError(f"a letter of {letter.sender!r} to {letter.recipient!r} was delivered to {recipient!r}")
    if letter.kind not in kinds:
        raise WireError(f"a letter of kind {letter.kind!r} came where one of {', '.join(kinds)} was expected")
    if n_body > most_bytes(letter.kind):
        raise WireError(f"a letter of kind {letter.kind!r} has {n_body:,} bytes, over its limit")
    return letter


def _digest(text: bytes | memoryview) -> bytes:
    return hashlib.blake2b(text).digest()


class Freshness:
    """Which letters are neither old nor seen before.

    Guarantees:
        `check` accepts each nonce once in `max_skew` seconds either way; older and younger letters are refused, so
        memory is bounded by the traffic of that time and by `most`.
    """

    def __init__(self, *, max_skew: float = MAX_SKEW, most: int = 100_000) -> None:
        self._max_skew = max_skew
        self._most = most
        self._seen: OrderedDict[str, float] = OrderedDict()

    def check_time(self, letter: Letter) -> None:
        """Refuse a letter that is too old or too young."""
        difference = letter.time - time.time()
        if not abs(difference) <= self._max_skew:
            raise WireError(
                f"a letter of {letter.sender!r} is dated {abs(difference):.0f} s "
                f"{'ahead of' if difference > 0 else 'behind'} this clock, over the limit of {self._max_skew:.0f} s; "
                f"set both clocks (NTP)"
            )

    def check(self, letter: Letter) -> None:
        """Refuse a letter that is too old, too young, or seen before."""
        self.check_time(letter)
        now = time.time()
        while self._seen and next(iter(self._seen.values())) < now - 2 * self._max_skew:
            self._seen.popitem(last=False)
        if letter.nonce in self._seen:
            raise WireError(f"a letter of {letter.sender!r} came twice")
        if len(self._seen) >= self._most:
            raise WireError(f"{self._most:,} letters came within {2 * self._max_skew:.0f} s; wait")
        self._seen[letter.nonce] = now
