"""How a run gets on, as events: for a terminal, a log, a page, and whoever looks later."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tacit.daemon.coordinator.run_record import Run
from tacit.federation.nats.kind import ANSWER, CALLS, REFUSAL
from tacit.record import decode_record, encode_record
from tacit.storage import open_database
from tacit.studies.looking import LookOutcome
from tacit.visible import shown

FILE = "events.db"
MOST_EVENTS = 5000  # of one study: the oldest are forgotten

Kind = Literal["began", "resumed", "round", "answered", "party", "left", "look", "consent", "finished", "ended"]

_LONGEST = 500  # characters of what a party says
_MOST_CONSENTS = 100  # of one party in one study: it may change its mind for ever, and must not crowd the rest out
_TABLES = """
CREATE TABLE IF NOT EXISTS event (
    number INTEGER PRIMARY KEY,
    study  TEXT NOT NULL,
    body   BLOB NOT NULL,
    consent_of TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS event_study ON event (study, number);
CREATE INDEX IF NOT EXISTS event_consent ON event (study, consent_of, number) WHERE consent_of != '';
"""
_UPGRADES = {1: "ALTER TABLE event ADD COLUMN consent_of TEXT NOT NULL DEFAULT '';"}  # a party, if it is one's consent


@dataclass(frozen=True, kw_only=True)
class RunEvent:
    """One thing that happened in a run, or in a study before it.

    Attributes:
        kind: what happened. "party": a party said something; "answered": it answered a round; "left": it is left out;
            "look": a look of the study is over; "consent": its owner opted in or out; "ended": the run stopped, and
            `words` say why.
        party: whose doing it was; empty if nobody's alone.
        words: what was said or done, with nothing hidden in it.
        round: the number of the round.
        attempt: the run's attempt.
        time: when, in seconds since 1970.
    """

    kind: Kind
    party: str = ""
    words: str = ""
    round: int = 0
    attempt: int = 0
    time: float = field(default_factory=time.time)

    def encode(self) -> bytes:
        """As it travels between processes, and is kept."""
        return encode_record(self)

    @staticmethod
    def decode(body: bytes) -> RunEvent:
        """What `encode` wrote."""
        return decode_record(RunEvent, body)


class EventWatcher:
    """Watches a `StudyRun`, and tells what happens as events. What a party says is shown with nothing hidden in it."""

    def __init__(self, tell: Callable[[RunEvent], None]) -> None:
        self._tell_event = tell
        self._round = 0
        self._attempt = 1

    def began(self, run: Run, *, resumed: bool) -> None:
        """The run has a name."""
        self._attempt = run.attempt
        self._say("resumed" if resumed else "began", words=run.id)

    def party(self, name: str, state: str) -> None:
        """A party's state has changed, or it has answered."""
        if state == ANSWER:
            self._say("answered", party=name, words=f"answered round {self._round}")
        elif state not in (*CALLS, REFUSAL):  # a reply to a call; what a refusal says is told by who asked
            self._say("party", party=name, words=shown(state))

    def round(self, number: int, step: str) -> None:
        """A round begins."""
        self._round = number
        self._say("round", words=step)

    def lost(self, left: dict[str, str]) -> None:
        """Parties are gone; the run begins again without them."""
        self._attempt += 1
        for name, why in left.items():
            self._say("left", party=name, words=shown(why))

    def looked(self, outcome: LookOutcome) -> None:
        """A look of the study is over."""
        widths = {one.coefficient: one.half_width for one in outcome.reached}
        told = "; ".join(f"{name} {'not identified' if w is None else f'to {w:.3g}'}" for name, w in widths.items())
        why = outcome.why or f"{told or 'it has no goal'}; the study goes on"
        self._say("look", words=f"{outcome.look.words} with {outcome.n_records:,} records: {why}")

    def _say(self, kind: Kind, *, party: str = "", words: str = "") -> None:
        event = RunEvent(kind=kind, party=party, words=words[:_LONGEST], round=self._round, attempt=self._attempt)
        self._tell_event(event)


class RunEvents:
    """The events of all studies by their digests, in one SQLite file; of each study the last few thousand."""

    def __init__(self, path: Path | None) -> None:
        self._database = open_database(path, _TABLES, use="for what happens in runs", version=2, upgrades=_UPGRADES)

    def add(self, study: str, event: RunEvent) -> None:
        """Write an event down."""
        consent_of = event.party if event.kind == "consent" else ""
        with self._database.transaction() as database:
            row = (study, event.encode(), consent_of)
            database.execute("INSERT INTO event (study, body, consent_of) VALUES (?, ?, ?)", row)
            if consent_of:
                theirs = "study = ? AND consent_of = ? AND consent_of != ''"  # the last part lets the index be used
                database.execute(
                    f"DELETE FROM event WHERE {theirs} AND number <= "
                    f"(SELECT number FROM event WHERE {theirs} ORDER BY number DESC LIMIT 1 OFFSET ?)",
                    (study, consent_of, study, consent_of, _MOST_CONSENTS),
                )
            database.execute(
                "DELETE FROM event WHERE study = ? AND number <= "
                "(SELECT number FROM event WHERE study = ? ORDER BY number DESC LIMIT 1 OFFSET ?)",
                (study, study, MOST_EVENTS),
            )

    def of(self, study: str) -> list[RunEvent]:
        """What happened in a study, the first event first."""
        rows = self._database.execute("SELECT body FROM event WHERE study = ? ORDER BY number", (study,))
        return [RunEvent.decode(bytes(body)) for (body,) in rows]

    def close(self) -> None:
        """Close the file."""
        self._database.close()
