"""A study's course as its page shows it: each party, each round, and what was refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tacit.daemon.coordinator.run_event import RunEvent
from tacit.daemon.coordinator.study_store import StudyVersion
from tacit.studies.study import Study

_WIDTH, _ROW, _LEFT = 720, 26, 150  # of the timeline, in its own units
_MOST_MARKS = 300  # of one party
_COLOURS = {"consent": "consent", "answered": "answered", "party": "said", "left": "left"}


@dataclass
class PartyCourse:
    """One party in a study.

    Attributes:
        name: the party.
        state: what is known of it now, in a few words.
        tone: "good", "bad" or "plain".
        n_answers: how many rounds it answered in the present run.
        refusals: what it refused, and why.
        marks: what it did when: kind and time.
    """

    name: str
    state: str = "has not replied yet"
    tone: str = "plain"
    n_answers: int = 0
    refusals: list[str] = field(default_factory=list)
    marks: list[tuple[str, float]] = field(default_factory=list)


@dataclass
class StudyProgress:
    """A study's course so far."""

    parties: list[PartyCourse] = field(default_factory=list)
    round: int = 0
    step: str = ""
    n_runs: int = 0
    attempt: int = 0
    rounds: list[tuple[int, str, float]] = field(default_factory=list)  # number, step, when it began
    looks: list[str] = field(default_factory=list)  # what each look of the study came to
    ended: str = ""
    started: float = 0.0
    latest: float = 0.0

    @property
    def n_in(self) -> int:
        """How many parties take part, as far as is known."""
        return sum(party.tone == "good" for party in self.parties)


def progress_of(events: Sequence[RunEvent], asked: Sequence[str] = ()) -> StudyProgress:
    """What the events say; `asked` are the parties that the study names."""
    told = StudyProgress()
    parties: dict[str, PartyCourse] = {name: PartyCourse(name) for name in asked}
    for event in events:
        told.started, told.latest = min(told.started or event.time, event.time), max(told.latest, event.time)
        match event.kind:
            case "began" | "resumed":
                told.n_runs += event.kind == "began"
                told.attempt, told.ended = event.attempt, ""
                told.rounds, told.round = [], 0
                for party in parties.values():
                    party.n_answers = 0
            case "round":
                told.round, told.step = event.round, event.words
                told.rounds.append((event.round, event.words, event.time))
            case "look":
                told.looks.append(event.words)
            case "finished" | "ended":
                told.ended = event.words
            case _:
                _tell(parties.setdefault(event.party, PartyCourse(event.party)), event)
                told.attempt = max(told.attempt, event.attempt)
    told.parties = sorted(parties.values(), key=lambda party: party.name)
    return told


def progress_values(events: Sequence[RunEvent], version: StudyVersion, study: Study | None = None) -> dict[str, Any]:
    """What the live part of a study's page shows."""
    told = progress_of(events, (study.federation.parties if study is not None else None) or ())
    epsilon = study.privacy.epsilon if study is not None and study.privacy is not None else None
    looks = () if study is None or study.stop is None else study.stop.looks
    return {"told": told, "line": timeline(told), "state": version.state, "epsilon": epsilon, "looks": looks}


def _tell(party: PartyCourse, event: RunEvent) -> None:
    words = event.words.removeprefix(f"party {party.name!r}: ")
    party.marks.append((_COLOURS[event.kind], event.time))
    del party.marks[:-_MOST_MARKS]
    match event.kind:
        case "answered":
            party.state, party.tone, party.n_answers = event.words, "good", party.n_answers + 1
        case "consent":
            party.state, party.tone = ("opted in", "good") if event.words == "in" else ("opted out", "bad")
        case "left":
            party.state, party.tone = f"left out: {words}", "bad"
            party.refusals.append(words)
        case _ if event.words == "ready":
            party.state, party.tone = "ready", "good"
        case _:
            party.state, party.tone = words, "bad"
            if words not in party.refusals:
                party.refusals.append(words)


def timeline(told: StudyProgress) -> dict[str, object]:
    """Where the marks of the timeline stand: a line a party, time from left to right."""
    begin, end = told.started, max(told.latest, told.started + 1)
    scale = (_WIDTH - _LEFT - 20) / (end - begin)
    rows = [
        {
            "name": party.name,
            "y": _ROW * (k + 1),
            "marks": [(kind, round(_LEFT + (when - begin) * scale, 1)) for kind, when in party.marks],
        }
        for k, party in enumerate(told.parties)
    ]
    lines = [round(_LEFT + (when - begin) * scale, 1) for _, _, when in told.rounds][-_MOST_MARKS:]
    return {"rows": rows, "rounds": lines, "width": _WIDTH, "height": _ROW * (len(rows) + 1) + 8, "left": _LEFT}
