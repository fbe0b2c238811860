"""How a study stands at the coordinator's, for pages and commands: its looks, who is enrolled, and how precise it is.

    state = study_state(coordinator.path, study)
    state.enrolled        # {"north": 5000, "south": 3000}
    state.outcomes        # the looks that are over: who was in them, what was reached, what it cost
    state.next_look       # the one that is waited for
    state.why             # why it stopped

All of it is public: sizes, half-widths and epsilons that parties told. Nobody is asked, and nothing is written but the
file of runs if there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tacit.daemon.coordinator.run_record import FILE, LookRecord, Run, Runs
from tacit.studies.looking import LookOutcome
from tacit.studies.looks import Look, planned_looks
from tacit.studies.study import Study

OPEN = "open"  # no run has begun


@dataclass(frozen=True, kw_only=True)
class StudyState:
    """A study as the coordinator knows it.

    Attributes:
        state: "open" until a run begins, then that of its last run: "running", "stopped" or "finished". A study with
            looks that is between two of them is "running" or "stopped", and "finished" when it ended.
        looks: the planned looks; none if the study plans none.
        outcomes: the looks that are over.
        enrolled: who took part when parties were last gathered, with how many records (of a study with looks).
        run: the last run, of whichever look.
        why: why the study ended, or why its last run stopped; empty otherwise.
    """

    state: str
    looks: tuple[Look, ...]
    outcomes: tuple[LookOutcome, ...]
    enrolled: Mapping[str, int]
    run: Run | None
    why: str

    @property
    def n_enrolled(self) -> int:
        """The records of all who are enrolled."""
        return sum(self.enrolled.values())

    @property
    def has_ended(self) -> bool:
        """Whether no look is taken any more."""
        return bool(self.outcomes) and bool(self.outcomes[-1].why)

    @property
    def next_look(self) -> Look | None:
        """The look that is waited for or under way; None if there is none, or the study ended."""
        left = self.looks[len(self.outcomes) :]
        return None if self.has_ended or not left else left[0]


def study_state(folder: Path, study: Study) -> StudyState:
    """How the study stands, from the files of the coordinator's folder."""
    digest, looks = study.digest(), planned_looks(study)
    record, runs = LookRecord(folder / FILE, digest), Runs(folder / FILE)
    try:
        outcomes, enrolled = record.outcomes(), record.enrolled()
        names = [f"{digest} look {look.number}" for look in reversed(looks)] or [digest]
        run = next((found for name in names if (found := runs.find_last(name)) is not None), None)
    finally:
        record.close()
        runs.close()
    ended = outcomes[-1].why if outcomes else ""
    state = OPEN if run is None else run.state
    if looks and state == "finished" and not ended:
        state = "running"  # between two looks
    return StudyState(
        state="finished" if ended else state,
        looks=looks,
        outcomes=outcomes,
        enrolled=enrolled,
        run=run,
        why=ended or ("" if run is None else run.why),
    )
