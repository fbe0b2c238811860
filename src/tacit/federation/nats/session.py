"""Sessions: keys that a process of the coordinator's and a member's daemon share, so that not every letter is signed.

A signature costs more than all else that is done for a letter. So the first letters are signed and carry the halves of
a key agreement. Later letters carry a tag that only the two ends can make (keyed BLAKE2b). How a session begins:

1. The coordinator's process draws a key pair (X25519), for itself alone, and puts the public key C into every letter
   that it signs: its *offer*.
2. A member that believes such a letter, and finds it fresh, draws a pair for this offer, with the public key P. Its
   reply, which it signs, carries C and P.
3. Both derive two keys, one for each direction, and a name for the session. All of it depends on the agreed secret, the
   version, both names, both keys of signatures, C and P.

There is no lap for it: offers ride on letters that are sent in any case. A letter that got no reply is sent again with
a signature and an offer. So a member that was started again, and knows no session, has a new one after that.

Why a tag is as good as a signature here:
1. *Who wrote it.* Whoever lacks both secrets of the pairs does not know the keys. C and P each came in a letter that
   its owner signed, to the other by name. Nobody in between can exchange one: it could not sign.
2. *To whom, about what, in which order.* A letter says the same as before (sender, recipient, kind, study, run, round,
   what it replies to, nonce, time), all of it is under the tag, and the reader checks the same.
3. *Again.* A member takes each nonce once, as before. After a restart it knows no session, so it takes no tag of an
   earlier one at all. A reply counts for what was asked, as before.
4. *Back to its sender.* Each direction has a key of its own: a letter that is sent back is not believed.
5. *Elsewhere.* Names and keys of signatures are in the derivation. So a letter in one member's session is nothing in
   another's, also if a member brings another's P as its own.
6. *A weaker way.* There is none to be talked into: a letter has a signature or a tag of the one length, and an offer
   that somebody takes out, or exchanges for a weak key, breaks the signature. A key that makes no secret is refused.

What is lost: two ends that share a key could each have made a tag, so a tag proves nothing to a third. No letter is
ever shown to one. What others rely on is signed by itself inside of letters: sizes, offers, envelopes with their
marks, approvals, key changes, what nodes tell each other. Letters to everybody, and those by which a member joins or
changes keys, are signed as before.

Keys live in memory only, and end with the process. Who steals an identity later reads no session's keys from it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import OrderedDict
from dataclasses import dataclass, field

from nacl.bindings import crypto_scalarmult, crypto_scalarmult_base

from tacit.errors import WireError
from tacit.federation.member.identity import Member
from tacit.rand import Rng

KEY_BYTES = 32
NAME_BYTES, TAG_BYTES = 16, 48  # together as long as a signature
_DOMAIN = b"tacit session 1\0"
_MOST_SESSIONS = 64  # of a member, with as many processes of the coordinator's
_RNG = Rng.system()


@dataclass(frozen=True, kw_only=True)
class LetterSession:
    """One end of a session.

    Guarantees:
        `is_tagged` is true of what the other end tagged in this session. To make such a tag without the keys means to
        break keyed BLAKE2b, or X25519 (128 bits of security), on which the keys rest.
    """

    name: bytes
    peer: str
    _own: bytes = field(repr=False)
    _others: bytes = field(repr=False)

    def tag(self, *text: bytes) -> bytes:
        """The tag of what is sent to the other end, given in pieces."""
        return _tag(self._own, *text)

    def is_tagged(self, tag: bytes, *text: bytes) -> bool:
        """Whether the other end wrote this."""
        return hmac.compare_digest(_tag(self._others, *text), tag)


class OfferedSessions:
    """The coordinator's end: one offer for the life of a process, and the sessions that members began with it."""

    def __init__(self, coordinator: Member) -> None:
        self._coordinator = coordinator
        self._secret = _RNG.bytes(KEY_BYTES)
        self.offer = crypto_scalarmult_base(self._secret)
        self._sessions: dict[str, tuple[Member, LetterSession]] = {}

    def find(self, member: Member) -> LetterSession | None:
        """The session with a member; None if there is none with just these keys of its own."""
        known, session = self._sessions.get(member.name, (None, None))
        return session if known is member or known == member else None

    def take(self, member: Member, accepted: bytes) -> None:
        """Begin the session that a member accepted in a letter that it signed; another process's offer is not ours.

        Raises:
            WireError: if what it gave is no key, or one with which anybody would know the secret.
        """
        if accepted[:KEY_BYTES] != self.offer:
            return
        key = accepted[KEY_BYTES:]
        down, up, name = _derive(self._secret, key, (self._coordinator, self.offer), (member, key))
        self._sessions[member.name] = member, LetterSession(name=name, peer=member.name, _own=down, _others=up)

    def forget(self, name: str) -> None:
        """Sign the next letter to this member: it may have been started again."""
        self._sessions.pop(name, None)


class AcceptedSessions:
    """A member's end: the sessions that it began with processes of the coordinator's, the last 64 of them."""

    def __init__(self, member: Member, coordinator: Member) -> None:
        self._member = member
        self._coordinator = coordinator
        self._accepted: OrderedDict[bytes, tuple[bytes, LetterSession]] = OrderedDict()  # offer -> what it accepted
        self._names: dict[bytes, LetterSession] = {}

    def find(self, name: bytes) -> LetterSession | None:
        """The session of this name."""
        return self._names.get(name)

    def accept(self, offer: bytes) -> bytes:
        """What to reply to an offer in a letter that the coordinator signed; an offer gets the same reply each time.

        Raises:
            WireError: if it is no key, or one with which anybody would know the secret.
        """
        if offer not in self._accepted:
            secret = _RNG.bytes(KEY_BYTES)
            key = crypto_scalarmult_base(secret)
            down, up, name = _derive(secret, offer, (self._coordinator, offer), (self._member, key))
            session = LetterSession(name=name, peer=self._coordinator.name, _own=up, _others=down)
            self._accepted[offer] = offer + key, session
            self._names[name] = session
        self._accepted.move_to_end(offer)
        if len(self._accepted) > _MOST_SESSIONS:
            _, (_, oldest) = self._accepted.popitem(last=False)
            del self._names[oldest.name]
        return self._accepted[offer][0]


def _derive(
    secret: bytes, key: bytes, coordinator: tuple[Member, bytes], member: tuple[Member, bytes]
) -> tuple[bytes, bytes, bytes]:
    """The key of letters to the member, the key of letters from it, and the session's name, which is public."""
    if len(key) != KEY_BYTES:
        raise WireError(f"the key of a session has {KEY_BYTES} bytes, not {len(key)}")
    try:
        agreed = crypto_scalarmult(secret, key)
    except RuntimeError as error:  # of a point of small order the product is always zero
        raise WireError("the key of a session makes no secret") from error
    said = [part for one, public in (coordinator, member) for part in (one.name.encode(), one.letter_key, public)]
    text = b"".join(len(part).to_bytes(4, "little") + part for part in (_DOMAIN, *said))
    keys = hashlib.blake2b(text, key=agreed, person=b"tacit keys").digest()
    name = hashlib.blake2b(text, digest_size=NAME_BYTES, person=b"tacit session").digest()
    return keys[:KEY_BYTES], keys[KEY_BYTES:], name


def _tag(key: bytes, *text: bytes) -> bytes:
    return hashlib.blake2b(b"".join(text), key=key, digest_size=TAG_BYTES, person=b"tacit letter").digest()
