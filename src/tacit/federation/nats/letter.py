"""Letters: everything that is sent between members, signed or tagged, addressed and dated.

A letter is believed if all of this holds:
1. The member that the subject names has signed it, or tagged it in a session that its signature began (`session.py`).
2. It is addressed to the reader.
3. It is of a kind that the reader expects there.
4. If it asks for something, it is not older or younger than the clocks may differ, and its nonce is new.
A question that is replayed after a restart, when nonces are forgotten, is still the same question and gets the stored
answer: a replay costs nothing and tells nothing new.

A letter travels in a frame with a header of fixed size, so that nothing has to be parsed to find the signature:

    16 bytes   the version, "tacit letter 3", or "tacit session 1" of a letter with a tag, filled up with zeros
    64 bytes   the sender's signature of the domain and of BLAKE2b over everything that follows; or the session's name
               (16 bytes) and the tag (48 bytes) over lengths, head and the SHA-256 of the body
     4 bytes   how long the head is (little-endian)
     8 bytes   how long the body is
    the head   8 bytes the round, 8 bytes the time, 16 bytes the nonce, 2 bytes how long the key is, the key; then kind,
               study, run, sender, recipient and what it is about, in UTF-8, with a zero byte between each two
    the body

A frame is read in this order: its length against the longest that the reader expects there, the version and the
lengths, the signature or tag over the raw bytes, then the head. So a frame that is neither signed nor tagged costs one
hash of its bytes, no memory beyond them, and is never parsed. One of a session that the reader does not know costs not
even that.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from tacit.errors import WireError
from tacit.federation.member.identity import Identity, Member
from tacit.federation.message import question_digest
from tacit.federation.nats.kind import ASK, most_bytes
from tacit.federation.nats.session import NAME_BYTES, LetterSession
from tacit.rand import Rng

MAX_SKEW = 120.0  # seconds by which two clocks may differ
_VERSION = b"tacit letter 3\0\0"
_IN_SESSION = b"tacit session 1\0"
_DOMAIN = b"tacit letter 3\0"
_LENGTHS = struct.Struct("<IQ")
_HEADER = struct.Struct(f"<{len(_VERSION)}s64s")
_START = _HEADER.size + _LENGTHS.size
_MAX_HEAD = 2048
_NONCE_BYTES = 16
_FACTS = struct.Struct(f"<qd{_NONCE_BYTES}sH")
_BETWEEN, _N_TEXTS = "\0", 6
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
        key: the offer of a session, or what was accepted of one; empty if it carries neither.
        body: what it says, encoded.
        session: the name of the session in which it was tagged; empty if it was signed. It is not part of what it says.
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
    key: bytes = b""
    body: bytes = b""
    session: bytes = field(default=b"", compare=False)

    def __post_init__(self) -> None:
        if len(self.nonce) != 2 * _NONCE_BYTES:
            raise WireError(f"a nonce has {2 * _NONCE_BYTES} characters, not {len(self.nonce)}")


def write_letter(identity: Identity, *, kind: str, recipient: str, body: bytes = b"", **facts: str | int) -> Letter:
    """A new letter, dated now; send it with `signed` or `tagged`."""
    nonce = _RNG.bytes(_NONCE_BYTES).hex()
    return Letter(
        kind=kind, sender=identity.name, recipient=recipient, nonce=nonce, time=time.time(), body=body,
        study=str(facts.get("study", "")), run=str(facts.get("run", "")), round=int(facts.get("round", 0)),
        about=str(facts.get("about", "")),
    )  # fmt: skip


def signed(letter: Letter, identity: Identity) -> bytes:
    """The letter as it travels, with its sender's signature."""
    lengths, head = _parts(letter)
    text = b"".join((lengths, head, letter.body))
    return _HEADER.pack(_VERSION, identity.sign(_DOMAIN + _digest(text))) + text


def tagged(letter: Letter, session: LetterSession) -> bytes:
    """The letter as it travels to the other end of a session."""
    lengths, head = _parts(letter)
    # Of a question the digest is known already, for all letters that carry it.
    body = question_digest(letter.body) if letter.kind == ASK else hashlib.sha256(letter.body).hexdigest()
    tag = session.tag(lengths, head, body.encode())
    return b"".join((_IN_SESSION, session.name, tag, lengths, head, letter.body))


def _parts(letter: Letter) -> tuple[bytes, bytes]:
    """The lengths of head and body, and the head."""
    if len(letter.body) > most_bytes(letter.kind):
        raise WireError(
            f"a letter of kind {letter.kind!r} with {len(letter.body):,} bytes is over the limit of "
            f"{most_bytes(letter.kind):,}; ask for less in one round (fewer columns or parties)"
        )
    said = (letter.kind, letter.study, letter.run, letter.sender, letter.recipient, letter.about)
    texts = _BETWEEN.join(said)
    if texts.count(_BETWEEN) != _N_TEXTS - 1:
        raise WireError("a name in a letter holds a zero character, which no letter can carry; use another name")
    facts = _FACTS.pack(letter.round, letter.time, bytes.fromhex(letter.nonce), len(letter.key))
    head = b"".join((facts, letter.key, texts.encode()))
    if len(head) > _MAX_HEAD:
        raise WireError(
            f"the names in a letter take {len(head):,} bytes, over the limit of {_MAX_HEAD:,}; use shorter ones"
        )
    return _LENGTHS.pack(len(head), len(letter.body)), head


def read_letter(
    frame: bytes,
    *,
    sender: Member,
    recipient: str,
    kinds: tuple[str, ...],
    find: Callable[[bytes], LetterSession | None] | None = None,
) -> Letter:
    """The letter, if `sender` wrote it, for `recipient`, as one of `kinds`; a `WireError` says what is wrong.

    Args:
        frame: the letter as it came.
        sender: who must have signed it, or tagged it.
        recipient: who reads it.
        kinds: what it may be.
        find: the reader's session with `sender` that has a name; None believes signatures alone.

    Guarantees:
        Nothing is parsed before the signature or the tag has been checked, and no frame is hashed that is longer than
        the longest letter of `kinds`.
    """
    longest = _START + _MAX_HEAD + max(most_bytes(kind) for kind in kinds)
    if not _START <= len(frame) <= longest:
        raise WireError(
            f"a letter of {len(frame):,} bytes is none; it has {_START} at least and {longest:,} at most here"
        )
    version, proof = _HEADER.unpack_from(frame)
    n_head, n_body = _LENGTHS.unpack_from(frame, _HEADER.size)
    if version not in (_VERSION, _IN_SESSION) or n_head > _MAX_HEAD or _START + n_head + n_body != len(frame):
        raise WireError("a message is no letter of this version; use the same release")
    session = b""
    if version == _IN_SESSION:
        session = proof[:NAME_BYTES]
        _check_tag(frame, n_head, proof, sender, None if find is None else find(session))
    elif not sender.signed(_DOMAIN + _digest(memoryview(frame)[_HEADER.size :]), proof):
        raise WireError(f"a letter in the name of {sender.name!r} is not signed by it")
    letter = _letter(frame[_START : _START + n_head], frame[_START + n_head :], session)
    if (letter.sender, letter.recipient) != (sender.name, recipient):
        raise WireError(f"a letter of {letter.sender!r} to {letter.recipient!r} was delivered to {recipient!r}")
    if letter.kind not in kinds:
        raise WireError(f"a letter of kind {letter.kind!r} came where one of {', '.join(kinds)} was expected")
    if n_body > most_bytes(letter.kind):
        raise WireError(f"a letter of kind {letter.kind!r} has {n_body:,} bytes, over its limit")
    return letter


def _letter(head: bytes, body: bytes, session: bytes) -> Letter:
    """The letter with this head, which must be exactly what a letter says."""
    try:
        round_, time_, nonce, n_key = _FACTS.unpack_from(head)
        after = _FACTS.size + n_key
        key = head[_FACTS.size : after]
        kind, study, run, sender, recipient, about = head[after:].decode().split(_BETWEEN)
    except (struct.error, ValueError) as error:  # too short, no text, or more or fewer texts
        raise WireError("a message has not the head of a letter; use the same release") from error
    return Letter(
        kind=kind, study=study, run=run, round=round_, sender=sender, recipient=recipient, about=about,
        nonce=nonce.hex(), time=time_, key=key, body=body, session=session,
    )  # fmt: skip


def _check_tag(frame: bytes, n_head: int, proof: bytes, sender: Member, session: LetterSession | None) -> None:
    if session is None or session.peer != sender.name:
        raise WireError(f"a letter in the name of {sender.name!r} is of a session that is not known here")
    body = hashlib.sha256(memoryview(frame)[_START + n_head :]).hexdigest()
    if not session.is_tagged(proof[NAME_BYTES:], frame[_HEADER.size : _START + n_head], body.encode()):
        raise WireError(f"a letter in the name of {sender.name!r} has no tag of its session")


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
