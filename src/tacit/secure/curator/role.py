"""A role: a program that reads like the protocol, run one delivery at a time by bytes in and bytes out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field

from tacit.errors import WireError
from tacit.rand import Rng
from tacit.record import decode_record, encode_record
from tacit.secure.curator.letter import (
    Body,
    Correspondent,
    Delivery,
    Directory,
    OutgoingLetters,
    ParticipantKeys,
    Pins,
)  # fmt: skip
from tacit.secure.curator.terms import CURATOR, CuratorTerms
from tacit.secure.paillier.key import PrivateKey, PublicKey
from tacit.wire import Value

Mail = Mapping[str, Mapping[str, Value]]  # sender -> body


@dataclass(frozen=True, kw_only=True)
class Turn:
    """Letters to send, and the letters to wait for."""

    send: Mapping[str, Body]
    subject: str
    awaits: Sequence[str]
    about: str


@dataclass(frozen=True, kw_only=True)
class Finish:
    """The last letters, and the share that is published."""

    share: Sequence[int]
    send: Mapping[str, Body] = field(default_factory=dict)
    subject: str = ""


Program = Generator[Turn, Mail, Finish]


class Role(ABC):
    """One participant. `hello` introduces it; `receive` takes a directory first and then deliveries.

    Guarantees:
        Nothing but the bytes that `hello` and `receive` return leaves a role. Each delivery is taken once, in order;
        any other message is refused, and a run in which one was refused is over.
    """

    def __init__(
        self, name: str, terms: CuratorTerms, *, rng: Rng, key: PrivateKey | None = None, pins: Pins | None = None
    ) -> None:
        """Take part; without `pins` nobody's keys are checked, for the curator and for simulations."""
        self.name = name
        self.terms = terms
        self._rng = rng
        self._letters = Correspondent(terms.session, name, rng=rng)
        if key is None and name in (terms.first, CURATOR):
            key = PrivateKey.generate(terms.key_bits, rng=rng)
        self._paillier = key
        self._pins = pins
        self._keys: dict[str, PublicKey] = {}
        self._running: Program | None = None
        self._turn: Turn | None = None
        self._is_over = False

    @abstractmethod
    def _program(self) -> Program:
        """The role's part of the protocol; returns the share that it publishes."""

    def hello(self) -> bytes:
        """The keys under which others write to this participant."""
        paillier = b"" if self._paillier is None else self._paillier.public_key.to_bytes()
        keys = ParticipantKeys(letters=self._letters.public_key, paillier=paillier)
        return encode_record(keys if self._pins is None else self._pins.signed(self.name, keys))

    def receive(self, message: bytes) -> bytes:
        """Take a delivery and hand over what follows from it."""
        if self._is_over:
            raise WireError(f"the run {self.terms.session!r} is over for {self.name}; start a new one")
        self._is_over = True  # until this delivery has been dealt with
        try:
            self._turn = turn = self._start(message) if self._running is None else self._advance(message)
        except StopIteration as end:
            finish: Finish = end.value
            letters = self._sealed(finish.send, finish.subject)
            return OutgoingLetters(letters=letters, awaits=(), published=self._write(finish.share)).encode()
        self._is_over = False
        return OutgoingLetters(letters=self._sealed(turn.send, turn.subject), awaits=tuple(turn.awaits)).encode()

    def _sealed(self, send: Mapping[str, Body], subject: str) -> dict[str, bytes]:
        return {recipient: self._letters.seal(recipient, subject, body) for recipient, body in send.items()}

    def _start(self, message: bytes) -> Turn:
        entries = decode_record(Directory, message).directory
        if set(entries) != set(self.terms.participants):
            raise WireError("the first delivery of a run is the directory of its participants")
        if entries[self.name] != self.hello():
            raise WireError(f"the directory has other keys for {self.name} than its own")
        peers = {}
        for name, entry in entries.items():
            try:
                keys = decode_record(ParticipantKeys, entry)
            except WireError as error:
                raise WireError(f"the directory has no keys for {name!r}: {error}") from error
            if self._pins is not None and name != CURATOR:
                self._pins.check(name, keys)
            peers[name] = keys.letters
            if name in (self.terms.first, CURATOR):
                self._keys[name] = self._paillier_key(keys.paillier)
        if len(set(peers.values())) < len(peers):
            raise WireError("two participants in the directory have the same key")
        self._letters.meet({name: key for name, key in peers.items() if name != self.name})
        self._running = self._program()
        return next(self._running)

    def _paillier_key(self, message: bytes) -> PublicKey:
        key = PublicKey.from_bytes(message)
        if key.bits != self.terms.key_bits:
            raise WireError(f"a Paillier key of {key.bits} bits was sent where {self.terms.key_bits} were agreed")
        return key

    def _advance(self, message: bytes) -> Turn:
        turn = self._turn
        assert self._running is not None
        assert turn is not None
        letters = decode_record(Delivery, message).letters
        if set(letters) != set(turn.awaits):
            raise WireError(f"a delivery to {self.name} does not bring the letters that are due")
        return self._running.send(
            {sender: self._letters.open(sender, turn.about, letters[sender]) for sender in letters}
        )

    # --- vectors modulo 2^share_bits ---------------------------------------------------------------------------------

    @property
    def _width(self) -> int:
        return self.terms.share_bits // 8

    def _write(self, vector: Sequence[int]) -> bytes:
        return b"".join((x % (1 << self.terms.share_bits)).to_bytes(self._width, "big") for x in vector)

    def _split(self, vector: Sequence[int]) -> dict[str, list[int]]:
        """Fresh additive shares, one for each participant: all but one's are uniform."""
        others = [name for name in self.terms.participants if name != self.name]
        shares = {name: self._uniform() for name in others}
        shares[self.name] = [
            x - sum(column) for x, column in zip(vector, zip(*shares.values(), strict=True), strict=True)
        ]
        return shares

    def _uniform(self) -> list[int]:
        drawn = self._rng.bytes(self._width * self.terms.dimension)
        return read_vector(drawn, self.terms)

    def _gather(self, own: Sequence[int], mail: Mail) -> list[int]:
        """The sum of the shares that this participant got, its own among them."""
        received = [read_vector(take(body, "share"), self.terms) for body in mail.values()]
        return [sum(column) for column in zip(own, *received, strict=True)]


def read_vector(message: bytes, terms: CuratorTerms) -> list[int]:
    """A vector modulo 2^share_bits off the wire."""
    width = terms.share_bits // 8
    if len(message) != width * terms.dimension:
        raise WireError(f"a share of {len(message)} bytes was sent where {terms.dimension} numbers are due")
    return [int.from_bytes(message[i : i + width], "big") for i in range(0, len(message), width)]


def open_shares(published: Mapping[str, bytes], terms: CuratorTerms) -> list[int]:
    """The sum of all published shares, as signed whole numbers: anybody can do this."""
    if set(published) != set(terms.participants):
        raise WireError("a sum needs the published share of every participant")
    totals = [sum(column) for column in zip(*(read_vector(p, terms) for p in published.values()), strict=True)]
    modulus = 1 << terms.share_bits
    return [(total + modulus // 2) % modulus - modulus // 2 for total in totals]


def take(body: Mapping[str, Value], field: str) -> bytes:
    """A field of a letter that must be bytes."""
    value = body.get(field)
    if not isinstance(value, bytes):
        raise WireError(f"a letter lacks its {field!r}")
    return value
