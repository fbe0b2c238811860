"""Letters between participants: sealed by the sender for one recipient, carried by somebody who cannot read them.

Authenticated boxes of libsodium (X25519, XSalsa20-Poly1305): the recipient knows who wrote, and nobody else can have
altered it. A letter says which run, sender, recipient and turn it belongs to, so none can be replayed or swapped. Who
carries the letters sees who writes to whom, and how much; both are public.

Participants know each other's keys from the directory, which the carrier brings. Between organisations (`Pins`):
1. Each party makes its keys for one run, and signs them with its own identity, for this run and its group.
2. Each party checks every other party's signature with the key that its owner accepted, before it writes a letter.
3. So a box opens only for the party that its owner accepted, and only that party can have closed it: the carrier can
   neither put itself in between nor play a party. A box is as good as a signature to its reader.
4. A directory, or a letter, of another run or group does not pass: its keys are signed for that one.
The curator's keys are the coordinator's own, and nobody signs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nacl.exceptions import CryptoError
from nacl.public import Box, PrivateKey, PublicKey

from tacit import wire
from tacit.errors import WireError
from tacit.rand import Rng
from tacit.record import decode_record, encode_record
from tacit.secure.signature import Sign, is_signed
from tacit.wire import Value

Body = Mapping[str, Value]

_DOMAIN = "tacit letter keys 1"


@dataclass(frozen=True, kw_only=True)
class OutgoingLetters:
    """What a participant hands over: its letters, whom it waits for, and what it publishes when it has finished."""

    letters: Mapping[str, bytes]
    awaits: tuple[str, ...]
    published: bytes = b""

    def encode(self) -> bytes:
        """As it travels."""
        return encode_record(self)

    @staticmethod
    def decode(message: bytes) -> OutgoingLetters:
        """What `encode` wrote; a `WireError` for anything else."""
        return decode_record(OutgoingLetters, message)


@dataclass(frozen=True, kw_only=True)
class ParticipantKeys:
    """The public keys of a participant: of its letters, and of Paillier's encryption if it has one, else empty.

    The signature is the party's own of both (`Pins`); empty in a simulation, and the curator's.
    """

    letters: bytes
    paillier: bytes
    signature: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Pins:
    """What binds the keys of one run to the parties that an owner accepted.

    Attributes:
        run: a name for the study, the run, its group and its plan.
        keys: each party's public key of its signatures, by its name in the protocol, as the owner accepted them.
        sign: signs as this party.
    """

    run: str
    keys: Mapping[str, bytes]
    sign: Sign

    def signed(self, name: str, keys: ParticipantKeys) -> ParticipantKeys:
        """This party's keys of the run, with its signature."""
        return replace(keys, signature=self.sign(self._statement(name, keys)))

    def check(self, name: str, keys: ParticipantKeys) -> None:
        """Refuse keys that the party of this name did not sign for this run."""
        if not is_signed(self._statement(name, keys), keys.signature, self.keys.get(name, b"")):
            raise WireError(f"the directory's keys for {name!r} are not signed by that party for this run and group")

    def _statement(self, name: str, keys: ParticipantKeys) -> bytes:
        return wire.encode([_DOMAIN, self.run, name, keys.letters, keys.paillier])


@dataclass(frozen=True, kw_only=True)
class Directory:
    """The first delivery: every participant's `ParticipantKeys`, encoded."""

    directory: Mapping[str, bytes]


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """Every later delivery: a letter of each participant that was waited for."""

    letters: Mapping[str, bytes]


@dataclass(frozen=True, kw_only=True)
class _Heading:
    """Where a letter belongs: each letter of a run has its own."""

    session: str
    sender: str
    recipient: str
    turn: int


@dataclass(frozen=True, kw_only=True)
class _Letter:
    """What is sealed."""

    heading: _Heading
    subject: str
    body: Body


class Correspondent:
    """One participant's key, and the turns of its correspondence."""

    def __init__(self, session: str, name: str, *, rng: Rng) -> None:
        self.session = session
        self.name = name
        self._rng = rng
        self._key = PrivateKey(rng.bytes(32))
        self._peers: dict[str, Box] = {}
        self._sent: dict[str, int] = {}
        self._received: dict[str, int] = {}

    @property
    def public_key(self) -> bytes:
        """The key to which others write."""
        return bytes(self._key.public_key)

    def meet(self, peers: Mapping[str, bytes]) -> None:
        """Learn the others' keys."""
        for name, key in peers.items():
            if len(key) != PublicKey.SIZE or (name != self.name and key == self.public_key):
                raise WireError(f"the directory has no key of its own for {name!r}")
            self._peers[name] = Box(self._key, PublicKey(key))

    def seal(self, recipient: str, subject: str, body: Body) -> bytes:
        """A letter that only `recipient` can read."""
        turn = self._sent.get(recipient, 0)
        self._sent[recipient] = turn + 1
        letter = _Letter(heading=self._heading(self.name, recipient, turn), subject=subject, body=body)
        return bytes(self._peers[recipient].encrypt(encode_record(letter), self._rng.bytes(Box.NONCE_SIZE)))

    def open(self, sender: str, subject: str, letter: bytes) -> Body:
        """What `sender` wrote on `subject`; a `WireError` if this is not the next letter of that kind."""
        turn = self._received.get(sender, 0)
        try:
            found = decode_record(_Letter, self._peers[sender].decrypt(letter))
        except (CryptoError, KeyError, WireError, TypeError, ValueError) as error:
            raise WireError(
                f"a letter from {sender!r} does not open: it is for another reader, or was altered"
            ) from error
        if found.heading != self._heading(sender, self.name, turn):
            raise WireError(f"a letter from {sender!r} belongs to another run, reader or turn")
        if found.subject != subject:
            raise WireError(f"{sender!r} writes about {found.subject!r} where {subject!r} is due")
        self._received[sender] = turn + 1
        return found.body

    def _heading(self, sender: str, recipient: str, turn: int) -> _Heading:
        return _Heading(session=self.session, sender=sender, recipient=recipient, turn=turn)


class Carrier:
    """Carries letters: collects what participants hand over, and delivers when all that one waits for is there."""

    def __init__(self, participants: tuple[str, ...]) -> None:
        self._participants = participants
        self._pending: dict[str, dict[str, bytes]] = {name: {} for name in participants}
        self._awaits: dict[str, tuple[str, ...]] = {}
        self.published: dict[str, bytes] = {}

    def collect(self, sender: str, message: bytes) -> None:
        """Take over what a participant handed over."""
        outgoing = OutgoingLetters.decode(message)
        for recipient, letter in outgoing.letters.items():
            if recipient not in self._pending or sender in self._pending[recipient]:
                raise WireError(f"{sender!r} writes to {recipient!r}, who is unknown or has a letter of its waiting")
            self._pending[recipient][sender] = letter
        if outgoing.awaits:
            self._awaits[sender] = outgoing.awaits
        else:
            self.published[sender] = outgoing.published

    def due(self) -> dict[str, bytes]:
        """The deliveries that can be made now: a message for each participant who has all that it waits for."""
        ready = {name: awaits for name, awaits in self._awaits.items() if set(awaits) <= self._pending[name].keys()}
        deliveries = {}
        for name, awaits in ready.items():
            del self._awaits[name]
            letters = {sender: self._pending[name].pop(sender) for sender in awaits}
            deliveries[name] = encode_record(Delivery(letters=letters))
        return deliveries

    def check_finished(self) -> None:
        """Refuse to end before everybody has published."""
        missing = [name for name in self._participants if name not in self.published]
        if missing:
            raise WireError(f"the run ended before {', '.join(missing)} published a share")
