"""A study's run, at the coordinator's: gather the parties, learn, and go on after a loss or a restart.

A run is a deterministic program of questions. To resume it is to run it again from the start under its old name. Each
question that was answered then gets the same answer again, at no cost, until the first one that was not.

A run that loses a party begins a new attempt with the rest, since the noise and the sums of the first counted on
everybody. What was spent stays spent, and the report says so. Where the study allows for `dropouts`, a round goes on
without so many of those that began. Who was in it is written down before its sum is opened: the center opens no other.

A study with looks has one run a look. Each look waits until its records are enrolled. What it came to is written down
before its run counts as finished, so that a restart takes no look twice and leaves none out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from tacit.daemon.coordinator.run_record import FILE, FINISHED, RUNNING, STOPPED, LookRecord, Run, Runs
from tacit.errors import AddendRefused, QuorumLost, Refused, TacitError
from tacit.federation.federation import Federation
from tacit.federation.member.approval import Approval
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.nats.blocking import BlockingConnection
from tacit.federation.nats.engine import NatsEngine, Wanted, wanted_of
from tacit.federation.nats.offer import Offer
from tacit.methods import Method, load
from tacit.report.spending import as_ledgers_say
from tacit.storage import make_private_folder
from tacit.studies.content import check_content
from tacit.studies.looking import LookOutcome, outcome_of
from tacit.studies.looks import Look, look_methods, looks_agreed, planned_looks
from tacit.studies.result import named_after
from tacit.studies.run import method_of
from tacit.studies.study import Study

_ASK_AGAIN_SECONDS = 10.0  # while a look waits for records: how soon parties that joined meanwhile are asked
_PAUSE_SECONDS = 2.0
_COUNTED = "The epsilons are those of the parties' ledgers, with every run and attempt of this study"


@dataclass(frozen=True, kw_only=True)
class _Task:
    """What one run is of: its method, its name among runs, and its look if it is one."""

    method: Method
    name: str
    look: Look | None = None


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


@runtime_checkable
class LookWatcher(Protocol):
    """Whoever wants to know what each look of a study came to, besides."""

    def looked(self, outcome: LookOutcome) -> None:
        """A look is over."""
        ...


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A run that ended well; of a study with looks the run of the last one, and what each came to."""

    run: Run
    model: Method
    outcomes: tuple[LookOutcome, ...] = ()

    @property
    def facts(self) -> dict[str, object]:
        """What `result.json` tells of the run besides the model."""
        told: dict[str, object] = {"run": self.run.id, "attempt": self.run.attempt}
        if self.outcomes:
            told["looks"] = [outcome.as_dict() for outcome in self.outcomes]
        return told


def offer_of(study: Study, approvals: Sequence[Approval] = ()) -> Offer:
    """The study as it is announced, with those who signed that it is good.

    Raises a `StudyError` if it plans looks that cannot be kept.
    """
    if study.stop is not None:
        look_methods(study)
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
    """One call of `tacit run`: begins a run, or resumes the one that did not end, or goes through the study's looks."""

    def __init__(self, coordinator: CoordinatorFolder, study: Study, watcher: Watcher) -> None:
        self._coordinator = coordinator
        self._study = study
        self._watcher = watcher
        self._offer = offer_of(study, coordinator.announced.approvals(study.digest()))
        self._runs = Runs(coordinator.path / FILE)
        self._record = LookRecord(coordinator.path / FILE, self._offer.digest)

    def __call__(self, *, wait: float | None = None, fresh: bool = False) -> Finished:
        """Run to the end.

        Args:
            wait: how many seconds to wait for parties to opt in; None takes the study's deadline.
            fresh: begin a new run even if there is one to resume. Looks that are over stay.

        Raises:
            QuorumLost: if too few parties are left, or too few records are enrolled for the next look.
            TacitError: if the run stopped otherwise. Whatever stopped it, the next call resumes it.
        """
        method = method_of(self._study)
        method.guarantee  # noqa: B018  # refuses bad settings before anybody is asked
        check_content(self._study)
        if self._study.stop is not None:
            return self._go_through_looks(wait, fresh)
        with BlockingConnection(self._coordinator) as connection:
            return self._one_run(connection, _Task(method=method, name=self._offer.digest), wait, fresh)

    def close(self) -> None:
        """Close the record of runs."""
        self._runs.close()
        self._record.close()

    # --- looks -------------------------------------------------------------------------------------------------------

    def _go_through_looks(self, wait: float | None, fresh: bool) -> Finished:
        """Take the looks that are not over yet, until one ends the study; of a study that ended, tell that again."""
        planned, methods = planned_looks(self._study), look_methods(self._study).methods
        with BlockingConnection(self._coordinator) as connection:
            for look, method in zip(planned, methods, strict=True):
                done = self._record.outcomes()
                if done and done[-1].why:
                    break
                if look.number > len(done):
                    name = f"{self._offer.digest} look {look.number}"
                    self._one_run(connection, _Task(method=method, name=name, look=look), wait, fresh)
            done = self._record.outcomes()
            connection.announce(replace(self._offer, ended=done[-1].why))
        run = self._runs.last(f"{self._offer.digest} look {len(done)}")
        return Finished(run=run, model=load(self._model_file(len(done))), outcomes=done)

    def _model_file(self, look: int) -> Path:
        folder = self._coordinator.path / "looks"
        make_private_folder(folder)
        return folder / f"{self._offer.digest[:16]}-{look}.json"

    def _keep_look(self, run: Run, look: Look, model: Method, engine: NatsEngine, *, is_over: bool) -> None:
        """Write down what a look came to, and its model, before its run is finished: a restart repeats nothing."""
        spent = engine.spent(self._study.name, model.guarantee_.delta)
        outcome = outcome_of(self._study, look, model, spent, is_over=is_over)
        model.save(self._model_file(look.number))
        self._record.keep(run, outcome)
        if isinstance(self._watcher, LookWatcher):
            self._watcher.looked(outcome)

    # --- one run -----------------------------------------------------------------------------------------------------

    def _one_run(self, connection: BlockingConnection, task: _Task, wait: float | None, fresh: bool) -> Finished:
        found = None if fresh else self._runs.unfinished(task.name)
        run = self._runs.begin(task.name, self._offer.name) if found is None else found
        if found is not None and not task.method.resumes and run.parties:  # nobody remembers what it was at
            run.attempt, run.parties = run.attempt + 1, []
        self._set(run, RUNNING)
        self._watcher.began(run, resumed=found is not None)
        connection.exchange.on_reply = self._watcher.party
        connection.announce(self._offer)
        engine = NatsEngine(connection, self._offer)
        is_over = task.look is not None and self._is_over
        try:
            fitted = self._attempts(run, task, engine, wait)
        except TacitError as error:
            self._set(run, STOPPED, str(error))
            raise
        if task.look is not None:
            self._keep_look(run, task.look, fitted, engine, is_over=is_over)
        self._set(run, FINISHED)
        return Finished(run=run, model=fitted)

    @property
    def _is_over(self) -> bool:
        """Whether the last day of enrolment is over."""
        agreed = looks_agreed(self._study)
        return agreed is not None and agreed.is_over

    def _attempts(self, run: Run, task: _Task, engine: NatsEngine, wait: float | None) -> Method:
        while True:
            wanted = self._gather(run, task, engine, wait)
            dropouts = self._study.federation.dropouts_among(len(run.parties))
            parties = Federation(
                engine, engine.center, study=self._study.name, run=run.question_run, dropouts=dropouts,
                look=0 if task.look is None else task.look.number,
            )  # fmt: skip
            parties.on_round = self._watcher.round
            engine.lost = {}
            engine.missed.clear()
            engine.presence = self._runs.presence(run) if dropouts else None
            try:
                fitted = task.method.fit(parties)
                break
            except (QuorumLost, Refused, AddendRefused):
                if not engine.lost:
                    raise
                self._begin_again(run, engine.lost, wanted)
        return self._with_notices(fitted, run, engine)

    def _gather(self, run: Run, task: _Task, engine: NatsEngine, wait: float | None) -> Wanted:
        """Wait for the parties: all that are wanted, or, in an attempt that began before, the same as then."""
        wanted = wanted_of(self._offer, self._coordinator, wait)
        if task.look is not None and not run.parties:
            self._enrol(run, task.look, engine, wanted)
            return wanted
        asked: Sequence[str] = run.parties or [name for name in wanted.asked if name not in run.left]
        absent = engine.gather(replace(wanted, asked=tuple(asked)), self._watcher.party)
        gone = {name: why for name, why in absent.items() if name in run.parties}
        if gone:  # the attempt counted on them
            self._next_attempt(run, gone)
        if gone and task.look is not None:  # somebody else may have joined
            run.parties = []
            return self._gather(run, task, engine, wait)
        run.parties = list(engine.cards)
        self._runs.save(run)
        return wanted

    def _enrol(self, run: Run, look: Look, engine: NatsEngine, wanted: Wanted) -> None:
        """Wait until a look has its records; parties that join the federation meanwhile are asked, too."""
        deadline = time.monotonic() + wanted.seconds
        while True:
            asked = tuple(name for name in wanted.asked if name not in run.left)
            n_least = 0 if self._is_over else look.n_records
            left = max(0.0, deadline - time.monotonic())
            part = replace(wanted, asked=asked, seconds=min(left, _ASK_AGAIN_SECONDS), records=n_least)
            with suppress(QuorumLost):
                engine.gather(part, self._watcher.party)
            sizes = {name: card.n_records for name, card in engine.cards.items()}
            self._record.enrol(sizes)
            if len(sizes) >= wanted.quorum and sum(sizes.values()) >= n_least:
                run.parties = list(sizes)
                self._runs.save(run)
                return
            if time.monotonic() >= deadline:
                raise QuorumLost(
                    f"{sum(sizes.values()):,} records of {len(sizes)} parties are enrolled in {self._study.name!r}, "
                    f"and {look.words} begins with {n_least:,} of {wanted.quorum}; let more opt in, and run again"
                )
            time.sleep(min(_PAUSE_SECONDS, max(0.0, deadline - time.monotonic())))
            wanted = replace(wanted_of(self._offer, self._coordinator), seconds=wanted.seconds)

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
        # Into another attempt at a look whoever has joined since may come.
        run.parties = [] if self._study.stop is not None else [name for name in run.parties if name not in lost]
        self._runs.save(run)
        self._watcher.lost(lost)

    def _next_attempt(self, run: Run, lost: dict[str, str]) -> None:
        run.left |= lost
        run.attempt += 1

    def _with_notices(self, method: Method, run: Run, engine: NatsEngine) -> Method:
        """The method, whose report says what became of parties and counts what their ledgers do."""
        notices = []
        if engine.missed:
            told = ", ".join(f"{name} in {count}" for name, count in sorted(engine.missed.items()))
            notices.append(
                f"Of {method.n_rounds_} rounds, some went on without a party: {told}. The noise counts on the others "
                f"alone, and what was asked of the missing stays spent."
            )
        if run.attempt > 1:
            left = "; ".join(f"{name} ({why})" for name, why in run.left.items())
            why = f"when parties left: {left}" if left else "with the coordinator"
            notices.append(
                f"This is attempt {run.attempt}. Earlier ones stopped {why}. What was spent in them stays spent. "
                f"{_COUNTED}"
            )
        elif self._study.stop is None and not self._runs.is_first(run):
            notices.append(_COUNTED)
        if any(_COUNTED in notice for notice in notices):
            self._count_all(method, engine)
        method.facts_ = replace(method.facts_, notices=(*method.facts_.notices, *notices))
        return named_after(method, self._study)

    def _count_all(self, method: Method, engine: NatsEngine) -> None:
        """Let the report say what the parties' ledgers say."""
        spent = engine.spent(self._study.name, method.guarantee_.delta)
        method.facts_ = as_ledgers_say(method.facts_, spent)
        if method.facts_.guarantee is not None:
            method.guarantee_ = method.facts_.guarantee

    def _set(self, run: Run, state: str, why: str = "") -> None:
        run.state, run.why = state, why
        self._runs.save(run)
