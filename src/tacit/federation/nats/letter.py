"""Letters: everything that is sent between members, signed, addressed and dated.

A letter is believed if all of this holds:
1. The member that the subject names has signed it.
2. It is addressed to the reader.
3. It is of a kind that the reader expects there.
4. If it asks for something, it is not older or younger than the clocks may differ, and its nonce is new.
A question that is replayed after a restart, when nonces are forgotten, is still the same question and gets the stored
answer: a replay costs nothing and tells nothing new.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass

from tacit.errors import WireError
from tacit.federation.member.identity import Identity, Member
from tacit.rand import Rng
from tacit.record import decode_record, encode_record

MAX_SKEW = 120.0  # seconds by which two clocks may differ
MAX_LETTER = 60 << 20  # bytes; the server's limit lies above it
_DOMAIN = b"tacit letter 1\0"
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
class _Frame:
    """A letter as it travels: its text, and the sender's signature of that."""

    letter: bytes
    signature: bytes


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
    text = encode_record(letter)
    frame = encode_record(_Frame(letter=text, signature=identity.sign(_DOMAIN + text)))
    if len(frame) > MAX_LETTER:
        raise WireError(
            f"a letter of {len(frame):,} bytes is over the limit of {MAX_LETTER:,}; "
            f"ask for less in one round (fewer columns or parties)"
        )
    return frame


def read_letter(frame: bytes, *, sender: Member, recipient: str, kinds: tuple[str, ...]) -> Letter:
    """The letter, if `sender` signed it, for `recipient`, as one of `kinds`; a `WireError` says what is wrong.

    Guarantees:
        Nothing but the frame itself is parsed before the signature has been checked.
    """
    if len(frame) > MAX_LETTER:
        raise WireError(f"a letter of {len(frame):,} bytes is over the limit of {MAX_LETTER:,}")
    found = decode_record(_Frame, frame)
    if not sender.signed(_DOMAIN + found.letter, found.signature):
        raise WireError(f"a letter in the name of {sender.name!r} is not signed by it")
    letter = decode_record(Letter, found.letter)
    if (letter.sender, letter.recipient) != (sender.name, recipient):
        raise WireError(f"a letter of {letter.sender!r} to {letter.recipient!r} was delivered to {recipient!r}")
    if letter.kind not in kinds:
        raise WireError(f"a letter of kind {letter.kind!r} came where one of {', '.join(kinds)} was expected")
    return letter


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
