"""A study's run, at the coordinator's: gather the parties, learn, and go on after a loss or a restart.

A run is a deterministic program of questions. To resume it is to run it again from the start under its old name. Each
question that was answered then gets the same answer again, at no cost, until the first one that was not.

A run that loses a party begins a new attempt with the rest, since the noise and the sums of the first counted on
everybody. What was spent stays spent, and the report says so. Where the study allows for `dropouts`, a round goes on
without so many of those that began. Who was in it is written down before its sum is opened: the center opens no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tacit.daemon.coordinator.run_record import FILE, FINISHED, RUNNING, STOPPED, Run, Runs
from tacit.errors import AddendRefused, QuorumLost, Refused, TacitError
from tacit.federation.federation import Federation
from tacit.federation.member.approval import Approval
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.nats.blocking import BlockingConnection
from tacit.federation.nats.engine import NatsEngine, Wanted, wanted_of
from tacit.federation.nats.offer import Offer
from tacit.methods import Method
from tacit.studies.run import method_of
from tacit.studies.study import Study


class Watcher(Protocol):
    """Whoever wants to know how a run gets on."""

    def began(self, run: Run, *, resumed: bool) -> None:
        """The run has a name."""
        ...

    def party(self, name: str, state: str) -> None:
        """A party's state has changed, or it has answered."""
        ...

    def round(self, number: int, step: str) -> None:
        """A round begins."""
        ...

    def lost(self, left: dict[str, str]) -> None:
        """Parties are gone; the run begins again without them."""
        ...


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A run that ended well."""

    run: Run
    model: Method


def offer_of(study: Study, approvals: Sequence[Approval] = ()) -> Offer:
    """The study as it is announced, with those who signed that it is good."""
    return Offer(
        name=study.name,
        digest=study.digest(),
        text=study.to_toml(),
        schema=study.schema.to_dict(),
        quorum=study.federation.quorum,
        deadline_seconds=study.federation.deadline_seconds,
        parties=study.federation.parties,
        dropouts=study.federation.dropouts,
        approvals=tuple(approvals),
    )


class StudyRun:
    """One call of `tacit run`: begins a run of the study, or resumes the one that did not end."""

    def __init__(self, coordinator: CoordinatorFolder, study: Study, watcher: Watcher) -> None:
        self._coordinator = coordinator
        self._study = study
        self._watcher = watcher
        self._offer = offer_of(study, coordinator.announced.approvals(study.digest()))
        self._runs = Runs(coordinator.path / FILE)

    def __call__(self, *, wait: float | None = None, fresh: bool = False) -> Finished:
        """Run to the end.

        Args:
            wait: how many seconds to wait for parties to opt in; None takes the study's deadline.
            fresh: begin a new run even if there is one to resume.

        Raises:
            QuorumLost: if too few parties are left.
            TacitError: if the run stopped otherwise. Whatever stopped it, the next call resumes it.
        """
        method = method_of(self._study)
        method.guarantee  # noqa: B018  # refuses bad settings before anybody is asked
        found = None if fresh else self._runs.unfinished(self._offer.digest)
        run = self._runs.begin(self._offer.digest, self._offer.name) if found is None else found
        if found is not None and not method.resumes and run.parties:  # nobody remembers what it was at
            run.attempt, run.parties = run.attempt + 1, []
        self._set(run, RUNNING)
        self._watcher.began(run, resumed=found is not None)
        with BlockingConnection(self._coordinator) as connection:
            connection.exchange.on_reply = self._watcher.party
            connection.announce(self._offer)
            wanted = wanted_of(self._offer, self._coordinator, wait)
            engine = NatsEngine(connection, self._offer)
            try:
                fitted = self._attempts(run, method, engine, wanted)
            except TacitError as error:
                self._set(run, STOPPED, str(error))
                raise
        self._set(run, FINISHED)
        return Finished(run=run, model=fitted)

    def close(self) -> None:
        """Close the record of runs."""
        self._runs.close()

    def _attempts(self, run: Run, method: Method, engine: NatsEngine, wanted: Wanted) -> Method:
        while True:
            self._gather(run, engine, wanted)
            dropouts = self._study.federation.dropouts_among(len(run.parties))
            parties = Federation(engine, engine.center, study=self._study.name, run=run.question_run, dropouts=dropouts)
            parties.on_round = self._watcher.round
            engine.lost = {}
            engine.missed.clear()
            engine.presence = self._runs.presence(run) if dropouts else None
            try:
                fitted = method.fit(parties)
                break
            except (QuorumLost, Refused, AddendRefused):
                if not engine.lost:
                    raise
                self._begin_again(run, engine.lost, wanted)
        return self._with_notices(fitted, run, engine)

    def _gather(self, run: Run, engine: NatsEngine, wanted: Wanted) -> None:
        """Wait for the parties: all that are wanted, or, in an attempt that began before, the same as then."""
        asked: Sequence[str] = run.parties or [name for name in wanted.asked if name not in run.left]
        absent = engine.gather(replace(wanted, asked=tuple(asked)), self._watcher.party)
        gone = {name: why for name, why in absent.items() if name in run.parties}
        if gone:  # the attempt counted on them
            self._next_attempt(run, gone)
        run.parties = list(engine.cards)
        self._runs.save(run)

    def _begin_again(self, run: Run, lost: dict[str, str], wanted: Wanted) -> None:
        n_left = len([name for name in run.parties if name not in lost])
        n_needed = len(run.parties) if wanted.everybody else wanted.quorum
        if n_left < n_needed:
            told = "; ".join(f"{name}: {why}" for name, why in lost.items())
            raise QuorumLost(
                f"{n_left} parties are left in {self._study.name!r} and {n_needed} are needed ({told}); "
                f"what was spent stays spent"
            )
        self._next_attempt(run, lost)
        run.parties = [name for name in run.parties if name not in lost]
        self._runs.save(run)
        self._watcher.lost(lost)

    def _next_attempt(self, run: Run, lost: dict[str, str]) -> None:
        run.left |= lost
        run.attempt += 1

    def _with_notices(self, method: Method, run: Run, engine: NatsEngine) -> Method:
        if engine.missed:
            told = ", ".join(f"{name} in {count}" for name, count in sorted(engine.missed.items()))
            notice = (
                f"Of {method.n_rounds_} rounds, some went on without a party: {told}. The noise counts on the others "
                f"alone, and what was asked of the missing stays spent."
            )
            method.facts_ = replace(method.facts_, notices=(*method.facts_.notices, notice))
        if run.attempt > 1:
            left = "; ".join(f"{name} ({why})" for name, why in run.left.items())
            why = f"when parties left: {left}" if left else "with the coordinator"
            notice = (
                f"This is attempt {run.attempt}. Earlier ones stopped {why}. "
                f"What was spent in them stays spent, beyond what this report counts."
            )
            method.facts_ = replace(method.facts_, notices=(*method.facts_.notices, notice))
        return method

    def _set(self, run: Run, state: str, why: str = "") -> None:
        run.state, run.why = state, why
        self._runs.save(run)
