"""A federation between organisations: questions travel over NATS, as letters, to parties that consented to the study.

The same methods run on it as on a federation in one process. What differs is who can fail: a party that does not answer
within the study's deadline, or refuses, is left out of the answers, and `lost` says why.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tacit import wire
from tacit.data.schema import Schema
from tacit.errors import NotAgreed, OptedOut, PolicyRefusal, QuorumLost, Refused, SettingError, WireError
from tacit.federation.engine import Card, RunStart
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.message import Answer, question_digest
from tacit.federation.nats.blocking import BlockingConnection
from tacit.federation.nats.center import RemoteCenter
from tacit.federation.nats.exchange import Request
from tacit.federation.nats.kind import ABANDON, ASK, BEGIN, HELLO, REFUSAL, SPENT
from tacit.federation.nats.letter import Letter
from tacit.federation.nats.offer import Offer
from tacit.secure.process_key import SealKeys
from tacit.wire import Value

_REFUSALS: dict[str, type[Refused]] = {kind.__name__: kind for kind in (PolicyRefusal, NotAgreed, OptedOut)}
_GREETING_SECONDS = 2.0  # between two calls to parties that have not opted in yet
_NO_ANSWER = "it sent something that is no answer to the question"
_REPLY_SECONDS = 5.0  # a party that is there says yes or no within this, however short the wait for its opting in is
_MOST_RECORDS = 1 << 40  # more than any table has; what follows from more fits no message
_NO_REPLY = "no reply"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which parties a run waits for: the `asked` ones, and no fewer than `quorum` of them.

    With `everybody` those who take part must be all whom they accepted: the study names no quorum. A party that has not
    decided has `seconds` to opt in. A silent one gets at least 5 s. One that opted out is not waited for, nor are the
    others if too few are left without it. Once `records` are enrolled, who refused is not waited for.
    """

    asked: tuple[str, ...]
    quorum: int
    seconds: float
    everybody: bool = False
    records: int | None = None

    def is_met(self, cards: Mapping[str, Card]) -> bool:
        """Whether those who opted in are as many, and have as many records, as a look needs."""
        n_records = sum(card.n_records for card in cards.values())
        return self.records is not None and len(cards) >= self.quorum and n_records >= self.records


class Presence(Protocol):
    """Who was in the answers to each question: a sum is opened over one set of parties, in a resumed run too."""

    def find(self, question: str) -> tuple[str, ...] | None:
        """Those who were; None if the question was not answered yet."""
        ...

    def keep(self, question: str, parties: Sequence[str]) -> None:
        """Write down who is, before the sum is opened."""
        ...


class NatsEngine:
    """Carries questions of one study to the parties that opted into it.

    Guarantees:
        An answer is returned only if the party's pinned key signed it as its answer to this very question, or signed
        the beginning of the session in which it was tagged (`session.py`).
    """

    def __init__(self, connection: BlockingConnection, offer: Offer) -> None:
        self._connection = connection
        self._offer = offer
        self._schema = offer.read_schema()
        self._cards: dict[str, Card] = {}
        self._round, self._run = 0, ""
        self.lost: dict[str, str] = {}  # of the last question: who did not answer, and why
        self.missed: Counter[str] = Counter()  # party -> how many rounds went on without it
        self.presence: Presence | None = None  # needed where rounds may go on without a few parties

    @property
    def cards(self) -> Mapping[str, Card]:
        """The parties that opted in, in the order of their names."""
        return self._cards

    @property
    def schema(self) -> Schema:
        """The public facts that all tables share."""
        return self._schema

    @property
    def center(self) -> RemoteCenter:
        """The federation's center."""
        return self._connection.center()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def gather(self, wanted: Wanted, on_state: Callable[[str, str], None] | None = None) -> dict[str, str]:
        """Wait for the parties to opt in; return who did not, and what they said.

        Args:
            wanted: who, how many and how long.
            on_state: told (party, state) whenever a party's state changes.

        Raises:
            QuorumLost: if too few did.
        """
        started = time.monotonic()
        deadline, silence = started + wanted.seconds, started + max(wanted.seconds, _REPLY_SECONDS)
        states = dict.fromkeys(wanted.asked, _NO_REPLY)
        cards: dict[str, Card] = {}
        accepted: dict[str, frozenset[str]] = {}
        gone: frozenset[str] = frozenset()  # who opted out
        while open_ := [name for name in wanted.asked if name not in cards]:
            is_silent = any(states[name] == _NO_REPLY for name in open_)
            left = (silence if is_silent else deadline) - time.monotonic()
            if left <= 0 or (wanted.is_met(cards) and not is_silent) or gone.issuperset(open_):
                break
            if len(wanted.asked) - len(gone) < wanted.quorum:
                break
            called = time.monotonic()
            for name, letter in self._call(HELLO, open_, min(left, _GREETING_SECONDS)).items():
                told = self._told(name, letter, cards, accepted)
                if told != states[name] and on_state is not None:
                    on_state(name, told)
                states[name] = told
                gone = gone | {name} if is_out(letter) else gone - {name}
            if len(cards) < len(wanted.asked):
                pause = min(0.5, deadline - time.monotonic()) - (time.monotonic() - called)
                time.sleep(max(0.0, pause))
        states |= leave_strangers(cards, accepted)
        self._cards = {name: cards[name] for name in sorted(cards)}
        absent = {name: state for name, state in states.items() if name not in cards}
        if len(cards) < wanted.quorum:
            said = "; ".join(f"{name}: {state}" for name, state in absent.items())
            raise QuorumLost(
                f"{len(cards)} parties take part in {self._offer.name!r} and {wanted.quorum} are needed ({said}); "
                f"let them opt in and run again"
            )
        missing = sorted({other for name in cards for other in accepted[name]} - set(cards)) if wanted.everybody else []
        if missing:
            raise QuorumLost(
                f"{self._offer.name!r} names no quorum, so all who were accepted take part, and {', '.join(missing)} "
                f"do not; let them opt in, or let {', '.join(cards)} opt in again without them"
            )
        return absent

    def begin(self, start: RunStart) -> None:
        """Let every party of the group reserve what the run costs; a party that did so before says yes again.

        If one does not, the others are told to abandon the run, so that nobody has paid for it.

        Raises:
            Refused: if a party said no.
            QuorumLost: if one said nothing in time; `lost` names them.
        """
        request = Request(
            kind=BEGIN,
            bodies=dict.fromkeys(start.group.names, start.group.encode()),
            study=self._offer.digest,
            run=start.run,
            seconds=self._offer.deadline_seconds,
        )
        letters = self._connection.send(request)
        refusals = self._lost(request, letters)
        if self.lost:
            self.abandon(start, start.group.names)
        if refusals:
            raise next(iter(refusals.values()))
        if self.lost:
            raise QuorumLost(f"no word from {', '.join(self.lost)} at the start of a run; run again")

    def abandon(self, start: RunStart, parties: Sequence[str]) -> None:
        """Tell these parties that the run is over for them, as far as they are there."""
        self._connection.send(
            Request(
                kind=ABANDON,
                bodies=dict.fromkeys(parties, b""),
                study=self._offer.digest,
                run=start.run,
                seconds=_GREETING_SECONDS,
            )
        )

    def ask(self, start: RunStart, message: bytes, parties: Sequence[str], keys: SealKeys) -> dict[str, Answer]:
        """The answers of those parties that gave one in time; parties seal to the keys that they pinned, not `keys`.

        Raises:
            Refused: if a party said no, and the question needs it; `lost` names every party without an answer.
        """
        self._round += 1
        reference = question_digest(message)
        then = None if self.presence is None else self.presence.find(reference)
        quorum = start.group.quorum if len(parties) == start.group.n_parties else len(parties)
        read: dict[str, Answer | None] = {}

        def on_reply(letter: Letter) -> None:  # the first answers are read while others are still on their way
            if letter.kind != REFUSAL:
                read[letter.sender] = _answer(letter.sender, reference, letter.body)

        request = Request(
            kind=ASK,
            bodies=dict.fromkeys(parties if then is None else then, message),
            reference=reference,
            study=self._offer.digest,
            run=start.run,
            round=self._round,
            seconds=self._offer.deadline_seconds,
            unwaited=self._unwaited(start.run, quorum, len(parties)) if then is None else frozenset(),
            on_reply=on_reply,
        )
        self.center.note_asked(request.reference, tuple(sorted(start.group.names)))
        refusals = self._lost(request, self._connection.send(request))
        answers = {name: answer for name in request.bodies if (answer := read.get(name)) is not None}
        self.lost |= {name: _NO_ANSWER for name, answer in read.items() if answer is None}
        is_enough = len(answers) >= quorum and (then is None or len(answers) == len(then))
        if refusals and not is_enough:
            raise next(iter(refusals.values()))
        if self.lost and not is_enough:
            return {} if then is not None else answers  # a sum over others than then would not be opened
        self.missed.update(name for name in parties if name not in answers)
        if self.presence is not None and then is None:
            self.presence.keep(reference, tuple(answers))
        return answers

    def _unwaited(self, run: str, quorum: int, n_parties: int) -> frozenset[str]:
        """Who was missing in the round before, where a round may go on without: it is asked, but holds up nobody."""
        if run != self._run:
            self._run, self.lost = run, {}
        return frozenset(self.lost) if quorum < n_parties else frozenset()

    def _lost(self, request: Request, letters: Mapping[str, Letter]) -> dict[str, Refused]:
        """The refusals among replies; `lost` is then everybody who refused or said nothing."""
        no_word = f"no answer within {self._offer.deadline_seconds:g} s"
        self.lost = {name: no_word for name in request.bodies if name not in letters}
        refusals = {name: _refusal(name, letter) for name, letter in letters.items() if letter.kind == REFUSAL}
        self.lost |= {name: str(refusal) for name, refusal in refusals.items()}
        return refusals

    def exclude(self, parties: Mapping[str, str]) -> None:
        """Note the parties whose addends the center refused: a round goes on without them, or the run ends."""
        self.lost = {**self.lost, **parties}
        self.missed.update(parties.keys())

    def spent(self, study: str, delta: float) -> dict[str, float]:
        """The epsilon that each party has spent in `study`, as far as it tells within a few seconds."""
        body = wire.encode({"study": study, "delta": float(delta)})
        told = {}
        for name, letter in self._call(SPENT, list(self._cards), 5.0, body).items():
            match _decoded(letter.body) if letter.kind == SPENT else None:
                case {"epsilon": float(epsilon)}:
                    told[name] = epsilon
        return told

    def _call(self, kind: str, names: Sequence[str], seconds: float, body: bytes = b"") -> dict[str, Letter]:
        request = Request(kind=kind, bodies=dict.fromkeys(names, body), study=self._offer.digest, seconds=seconds)
        return self._connection.send(request)

    def _told(self, name: str, letter: Letter, cards: dict[str, Card], accepted: dict[str, frozenset[str]]) -> str:
        """A party's state in a word or sentence; if it takes part, its card and whom it accepts are kept."""
        if letter.kind == REFUSAL:
            return str(_refusal(name, letter))
        match _decoded(letter.body):
            case {
                "n_records": int(n_records),
                "schema": str(digest),
                "accepts": list(names),
                "signature": bytes(signature),
                **rest,
            } if 0 <= n_records <= _MOST_RECORDS and rest.keys() <= {"offer"}:
                offer = rest.get("offer")
                if not (offer is None or (isinstance(offer, float) and 0 < offer < math.inf)):
                    return "it offers an epsilon that is none; let it opt in again"
                if digest != self._schema.digest():
                    return "it reads the study's schema in another way; use the same release"
                cards[name] = Card(name=name, n_records=n_records, signature=signature, offer=offer)
                accepted[name] = frozenset(str(other) for other in names)
                return "ready"
        return "it sent a card that cannot be read; use the same release"


def open_engine(
    url: str | None = None, *, study: str, folder: str | Path = "coordinator", wait: float | None = None
) -> tuple[NatsEngine, int]:
    """The engine of an announced study, its parties gathered, and how many of them a round may go on without.

    Args:
        url: the message server's address; None takes the folder's. Given, it must be that address.
        study: the name of an announced study (`tacit coordinator announce`); the newest of that name.
        folder: the coordinator's folder, with its keys.
        wait: how many seconds to wait for parties to opt in; None takes the study's deadline.
    """
    coordinator = CoordinatorFolder(Path(folder))
    if url is not None and url.rstrip("/") != coordinator.address.url.rstrip("/"):
        raise SettingError(f"{url} is not the server of {folder}, which is {coordinator.address.url}; leave it out")
    connection = BlockingConnection(coordinator)
    try:
        offers = {offer.name: offer for offer in connection.offers()}
        if study not in offers:
            known = ", ".join(offers) or "none"
            raise SettingError(
                f"no study {study!r} was announced; known: {known}. Say `tacit coordinator announce STUDY.toml`"
            )
        engine = NatsEngine(connection, offers[study])
        wanted = wanted_of(offers[study], coordinator, wait)
        engine.gather(wanted)
        return engine, max(0, min(offers[study].dropouts, len(engine.cards) - wanted.quorum))
    except BaseException:
        connection.close()
        raise


def leave_strangers(cards: dict[str, Card], accepted: Mapping[str, frozenset[str]]) -> dict[str, str]:
    """Take out of `cards` who lacks the others' acceptance, or withholds its own; and say why.

    First whoever stands apart from most: one party that accepts nobody must not take the place of all others.
    """
    left: dict[str, str] = {}
    while True:
        others = {name: [other for other in cards if other != name] for name in cards}
        strange = {name: [one for one in others[name] if name not in accepted[one]] for name in cards}
        aloof = {name: [one for one in others[name] if one not in accepted[name]] for name in cards}
        apart = {name: (len({*strange[name], *aloof[name]}), len(strange[name])) for name in cards}
        name = max(sorted(cards), key=lambda one: apart[one], default="")
        if not name or not apart[name][0]:
            return left
        left[name] = (
            f"{', '.join(strange[name])} did not accept it yet; let them opt in again"
            if strange[name]
            else f"it did not accept {', '.join(aloof[name])} yet; let it opt in again"
        )
        del cards[name]


def wanted_of(offer: Offer, coordinator: CoordinatorFolder, wait: float | None = None) -> Wanted:
    """Whom a run of this study waits for: the parties that it names, or all; without a quorum, everybody accepted."""
    members = [member.name for member in coordinator.roster.members("party")]
    asked = tuple(members if offer.parties is None else offer.parties)
    strangers = [name for name in asked if name not in members]
    if strangers:
        raise SettingError(
            f"study {offer.name!r} names {', '.join(strangers)}, who did not join this federation; "
            f"members are {', '.join(members) or 'nobody yet'}"
        )
    if not asked:
        raise SettingError("no party has joined this federation; invite them with `tacit coordinator invite NAME`")
    quorum = offer.quorum or (len(asked) if offer.parties is not None else 1)
    return Wanted(
        asked=asked,
        quorum=quorum,
        seconds=offer.deadline_seconds if wait is None else wait,
        everybody=offer.quorum is None,
    )


def _refusal(name: str, letter: Letter) -> Refused:
    match _decoded(letter.body):
        case {"error": str(error), "why": str(why)}:
            shown = why if repr(name) in why else f"party {name!r}: {why}"
            return _REFUSALS.get(error, Refused)(shown)
    return Refused(f"party {name!r} refused, and not in words that can be read")


def is_out(letter: Letter) -> bool:
    """Whether a party says that its owner left the study."""
    match _decoded(letter.body) if letter.kind == REFUSAL else None:
        case {"error": OptedOut.__name__}:
            return True
    return False


def _decoded(body: bytes) -> Value:
    """What a party sent, or None if that is nothing: its garbage must not stop the others."""
    try:
        return wire.decode(body)
    except WireError:
        return None


def _answer(name: str, digest: str, body: bytes) -> Answer | None:
    """The party's answer to the question with this digest; None if the body is anything else."""
    try:
        answer = Answer.decode(body)
    except WireError:
        return None
    return answer if (answer.party, answer.question) == (name, digest) else None
