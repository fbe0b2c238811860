"""A federation between organisations: questions travel over NATS, signed, to parties that consented to the study.

The same methods run on it as on a federation in one process. What differs is who can fail: a party that does not answer
within the study's deadline, or refuses, is left out of the answers, and `lost` says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tacit import wire
from tacit.data.schema import Schema
from tacit.errors import BudgetExceeded, PolicyRefusal, QuorumLost, Refused, SettingError, WireError
from tacit.federation.engine import Card
from tacit.federation.federation import Federation
from tacit.federation.message import Answer, Question, question_digest
from tacit.federation.net.center import RemoteCenter
from tacit.federation.net.exchange import Exchange, Post
from tacit.federation.net.headquarters import Headquarters
from tacit.federation.net.journal import Journal
from tacit.federation.net.letter import Letter
from tacit.federation.net.loop import BackgroundLoop
from tacit.federation.net.offer import Offer
from tacit.federation.net.station import ASK, HELLO, REFUSAL, SPENT
from tacit.wire import Value

_REFUSALS: dict[str, type[Refused]] = {"PolicyRefusal": PolicyRefusal, "BudgetExceeded": BudgetExceeded}
_GREETING_SECONDS = 2.0  # between two calls to parties that have not opted in yet


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which parties a run waits for: `asked` ones, for so many `seconds`, and no fewer than `quorum` of them."""

    asked: tuple[str, ...]
    quorum: int
    seconds: float


class Line:
    """The coordinator's connection, for callers that wait; close it, or use it in a `with` statement."""

    def __init__(self, headquarters: Headquarters, journal: Journal | None = None) -> None:
        self.headquarters = headquarters
        self.exchange = Exchange(headquarters, journal)
        self._center: RemoteCenter | None = None
        self._loop = BackgroundLoop()
        try:
            self._loop.run(self.exchange.open())
        except BaseException:
            self._loop.close()
            raise

    def send(self, post: Post) -> dict[str, Letter]:
        """The members' replies, from those that gave one in time."""
        return self._loop.run(self.exchange.send(post))

    def announce(self, offer: Offer) -> None:
        """Make a study, and who belongs, known to every party, now and later."""
        self._loop.run(self.exchange.introduce())
        self._loop.run(self.exchange.announce(offer.encode(), offer.digest))

    def offers(self) -> list[Offer]:
        """Every study that was announced, oldest first."""
        return [Offer.decode(letter.body) for letter in self._loop.run(self.exchange.studies())]

    def center(self) -> RemoteCenter:
        """The federation's center."""
        if self._center is None:
            nodes = self.headquarters.pinned.center
            self._center = RemoteCenter(self.send, nodes, self.headquarters.center_turn)
        return self._center

    def close(self) -> None:
        """Close the connection."""
        self._loop.run(self.exchange.close())
        self._loop.close()

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class NatsEngine:
    """Carries questions of one study to the parties that opted into it.

    Guarantees:
        An answer is returned only if the party's pinned key signed it as its answer to this very question.
    """

    def __init__(self, line: Line, offer: Offer, *, look_back: bool = False) -> None:
        """`look_back` takes answers that the server has kept before anybody is asked: for a run that is resumed."""
        self._line = line
        self._offer = offer
        self._schema = offer.read_schema()
        self._look_back = look_back
        self._cards: dict[str, Card] = {}
        self._round = 0
        self.lost: dict[str, str] = {}  # of the last question: who did not answer, and why

    @property
    def cards(self) -> Mapping[str, Card]:
        """The parties that opted in, in the order of their names."""
        return self._cards

    @property
    def schema(self) -> Schema:
        """The public facts that all tables share."""
        return self._schema

    def close(self) -> None:
        """Close the connection."""
        self._line.close()

    def gather(self, wanted: Wanted, on_state: Callable[[str, str], None] | None = None) -> dict[str, str]:
        """Wait for the parties to opt in; return who did not, and what they said.

        Args:
            wanted: who, how many and how long.
            on_state: told (party, state) whenever a party's state changes.

        Raises:
            QuorumLost: if too few did.
        """
        deadline = time.monotonic() + wanted.seconds
        states = dict.fromkeys(wanted.asked, "no reply")
        cards: dict[str, Card] = {}
        accepted: dict[str, frozenset[str]] = {}
        while open_ := [name for name in wanted.asked if name not in cards]:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            started = time.monotonic()
            for name, letter in self._call(HELLO, open_, min(left, _GREETING_SECONDS)).items():
                told = self._told(name, letter, cards, accepted)
                if told != states[name] and on_state is not None:
                    on_state(name, told)
                states[name] = told
            if len(cards) < len(wanted.asked):
                pause = min(0.5, deadline - time.monotonic()) - (time.monotonic() - started)
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
        return absent

    def ask(self, message: bytes, parties: Sequence[str], keys: Sequence[bytes]) -> dict[str, bytes]:
        """The answers of those parties that gave one in time; parties seal to the keys that they pinned, not `keys`.

        Raises:
            Refused: if a party said no, and the question needs it; `lost` names every party without an answer.
        """
        self._round += 1
        question = Question.decode(message)
        post = Post(
            kind=ASK,
            bodies=dict.fromkeys(parties, message),
            reference=question_digest(message),
            study=self._offer.digest,
            run=question.run,
            round=self._round,
            company=tuple(sorted(parties)),
            seconds=self._offer.deadline_seconds,
            look_back=self._look_back,
        )
        self._line.center().note_asked(post.reference, post.company)
        letters = self._line.send(post)
        no_word = f"no answer within {self._offer.deadline_seconds:g} s"
        self.lost = {name: no_word for name in parties if name not in letters}
        refusals = {name: _refusal(name, letter) for name, letter in letters.items() if letter.kind == REFUSAL}
        self.lost |= {name: str(refusal) for name, refusal in refusals.items()}
        answers = {name: letter.body for name, letter in letters.items() if name not in refusals}
        for name, body in list(answers.items()):
            if not _is_answer(name, post.reference, body):
                self.lost[name] = "it sent something that is no answer to the question"
                del answers[name]
        quorum = question.arguments.get("quorum")
        if refusals and not (isinstance(quorum, int) and len(answers) >= quorum):
            raise next(iter(refusals.values()))
        return answers

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
        post = Post(kind=kind, bodies=dict.fromkeys(names, body), study=self._offer.digest, seconds=seconds)
        return self._line.send(post)

    def _told(self, name: str, letter: Letter, cards: dict[str, Card], accepted: dict[str, frozenset[str]]) -> str:
        """A party's state in a word or sentence; if it takes part, its card and whom it accepts are kept."""
        if letter.kind == REFUSAL:
            return str(_refusal(name, letter))
        match _decoded(letter.body):
            case {"n_records": int(n_records), "schema": str(digest), "accepts": list(names)} if n_records > 0:
                if digest != self._schema.digest():
                    return "it reads the study's schema in another way; use the same release"
                cards[name] = Card(name=name, n_records=n_records)
                accepted[name] = frozenset(str(other) for other in names)
                return "ready"
        return "it sent a card that cannot be read; use the same release"


class ConnectedFederation(Federation):
    """Parties elsewhere. A run can be named, and one that is named again is resumed."""

    def __init__(self, engine: NatsEngine, center: RemoteCenter, *, study: str, run: str | None = None) -> None:
        super().__init__(engine, center, study=study)
        self._named_run = run

    def begin(self, method: str, *, run: str | None = None) -> Federation:
        """The same parties at the start of a run, under the name that was given when this was made, if any."""
        return super().begin(method, run=run or self._named_run)


def connect(
    url: str | None = None, *, study: str, folder: str | Path = "coordinator", wait: float | None = None
) -> ConnectedFederation:
    """The running federation of the coordinator whose folder this is, ready for a method's `fit`.

    Args:
        url: the message server's address; None takes the folder's. Given, it must be that address.
        study: the name of an announced study (`tacit coordinator announce`); the newest of that name.
        folder: the coordinator's folder, with its keys.
        wait: how many seconds to wait for parties to opt in; None takes the study's deadline.
    """
    headquarters = Headquarters(Path(folder))
    if url is not None and url.rstrip("/") != headquarters.address.url.rstrip("/"):
        raise SettingError(f"{url} is not the server of {folder}, which is {headquarters.address.url}; leave it out")
    line = Line(headquarters)
    try:
        offers = {offer.name: offer for offer in line.offers()}
        if study not in offers:
            known = ", ".join(offers) or "none"
            raise SettingError(
                f"no study {study!r} was announced; known: {known}. Say `tacit coordinator announce STUDY.toml`"
            )
        engine = NatsEngine(line, offers[study])
        engine.gather(wanted_of(offers[study], headquarters, wait))
        return ConnectedFederation(engine, line.center(), study=study)
    except BaseException:
        line.close()
        raise


def leave_strangers(cards: dict[str, Card], accepted: Mapping[str, frozenset[str]]) -> dict[str, str]:
    """Take out of `cards` whom others have not accepted, until all that are left accept each other; and say why."""
    left: dict[str, str] = {}
    while True:
        strange = {name: [other for other in cards if other != name and name not in accepted[other]] for name in cards}
        name = max(sorted(cards), key=lambda one: len(strange[one]), default="")
        if not name or not strange[name]:
            return left
        left[name] = f"{', '.join(strange[name])} did not accept it yet; let them opt in again"
        del cards[name]


def wanted_of(offer: Offer, headquarters: Headquarters, wait: float | None = None) -> Wanted:
    """Whom a run of this study waits for: the parties that it names, or all; without a quorum, all that it names."""
    members = [member.name for member in headquarters.roster.members("party")]
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
    return Wanted(asked=asked, quorum=quorum, seconds=offer.deadline_seconds if wait is None else wait)


def _refusal(name: str, letter: Letter) -> Refused:
    match _decoded(letter.body):
        case {"error": str(error), "why": str(why)}:
            shown = why if repr(name) in why else f"party {name!r}: {why}"
            return _REFUSALS.get(error, Refused)(shown)
    return Refused(f"party {name!r} refused, and not in words that can be read")


def _decoded(body: bytes) -> Value:
    """What a party sent, or None if that is nothing: its garbage must not stop the others."""
    try:
        return wire.decode(body)
    except WireError:
        return None


def _is_answer(name: str, digest: str, body: bytes) -> bool:
    try:
        answer = Answer.decode(body)
    except WireError:
        return False
    return (answer.party, answer.question) == (name, digest)
