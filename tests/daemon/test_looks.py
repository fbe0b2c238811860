"""Looks between processes: parties that join later, ledgers that count the looks they were in, and restarts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tacit.daemon.coordinator.run_record import FILE, LookRecord
from tacit.daemon.coordinator.study_run import offer_of
from tacit.daemon.coordinator.study_state import study_state
from tacit.daemon.party.consent import FILE as CONSENT_FILE
from tacit.daemon.party.consent import Consents
from tacit.errors import NotAgreed, QuorumLost
from tacit.federation.federation import Federation
from tacit.federation.look import today
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.nats.blocking import BlockingConnection
from tacit.federation.nats.engine import NatsEngine, Wanted
from tacit.methods import PrivateNewton
from tacit.privacy.ledger import Ledger
from tacit.studies.looking import LookOutcome
from tacit.studies.looks import look_methods, planned_looks
from tacit.studies.study import Study

from .conftest import STUDY, Loopback, allow, wait_for
from .test_federation import Watch, run


class Looking(Watch):
    """Notes looks, too, and does something after one."""

    def __init__(
        self, after: Callable[[int], None] | None = None, at_round: Callable[[int], None] | None = None
    ) -> None:
        super().__init__(at_round)
        self.outcomes: list[LookOutcome] = []
        self._after = after

    def looked(self, outcome: LookOutcome) -> None:
        self.outcomes.append(outcome)
        if self._after is not None:
            self._after(outcome.look.number)


def study_of(name: str, looks: str, goal: str = "", more: str = "", epsilon: float = 1.0) -> Study:
    text = (
        STUDY.replace("epsilon = 1.0", f"epsilon = {epsilon}")
        .replace('name = "averaging"', 'name = "private-newton"\nrounds = 1')
        .replace('"trial"', f'"{name}"')
    )
    return Study.parse(f"{text}\n[stop]\nlooks = {looks}\n{goal}\n{more}")


def spent(loopback: Loopback, party: str, study: Study) -> float:
    ledger = Ledger(loopback.folder(party) / "ledger.db")
    try:
        return ledger.epsilon(party, delta=1e-6, study=study.name)
    finally:
        ledger.close()


def test_a_party_that_joins_later_pays_for_the_later_looks_alone(federation: Loopback) -> None:
    study = study_of("waves", "[150, 230]")
    for name in ("north", "south"):
        federation.consent(name, study)
    with pytest.raises(
        QuorumLost, match=r"200 records of 2 parties are enrolled in 'waves', and look 2 of 2 begins with"
    ):
        run(federation, study, Looking(), wait=0)
    first = planned_looks(study)[0].epsilon
    assert [spent(federation, name, study) for name in ("north", "south", "west")] == pytest.approx(
        [first, first, 0.0], rel=2e-3
    )
    state = study_state(federation.coordinator, study)
    assert (state.state, [outcome.look.number for outcome in state.outcomes]) == ("stopped", [1])
    assert (state.enrolled, state.n_enrolled) == ({"north": 120, "south": 80}, 200)
    assert state.next_look is not None
    assert state.next_look.number == 2
    federation.consent("west", study)
    watch = Looking()
    finished = run(federation, study, watch)
    assert [outcome.look.number for outcome in watch.outcomes] == [2]
    assert [dict(outcome.sizes) for outcome in finished.outcomes] == [
        {"north": 120, "south": 80},
        {"north": 120, "south": 80, "west": 50},
    ]
    assert [spent(federation, name, study) for name in ("north", "south", "west")] == pytest.approx(
        [1.0, 1.0, planned_looks(study)[1].epsilon], rel=2e-3
    )
    told = {party.name: party.epsilon for party in finished.model.facts_.parties}
    assert told == pytest.approx({name: spent(federation, name, study) for name in told}, rel=2e-3)
    assert finished.model.guarantee_.epsilon == pytest.approx(1.0, rel=2e-3)
    assert any("It stopped at look 2 of 2, which is the last." in notice for notice in finished.model.facts_.notices)
    again = run(federation, study)  # an ended study is told again, and costs nothing
    assert again.run.id == finished.run.id
    assert again.model.facts_ == finished.model.facts_
    assert spent(federation, "north", study) == pytest.approx(1.0, rel=2e-3)
    assert study_state(federation.coordinator, study).why.startswith("It stopped at look 2 of 2")


def test_after_the_last_look_nobody_joins_and_the_party_says_so(federation: Loopback) -> None:
    study = study_of("over", "[150, 1000]", 'coefficient = "age"\nhalf_width = 1000', epsilon=100.0)
    for name in ("north", "south"):
        federation.consent(name, study)
        allow(federation.folder(name), 500.0, 500.0)
    finished = run(federation, study)
    assert [outcome.look.number for outcome in finished.outcomes] == [1]
    assert "what was wanted is known (age to" in finished.outcomes[0].why

    def closed() -> str:
        consents = Consents(federation.folder("west") / CONSENT_FILE)
        offered = consents.find(study.digest())
        consents.close()
        return "" if offered is None else offered.why_closed()

    wait_for(closed, "the news that the study is over")
    assert closed().startswith("study 'over' is over, and nobody joins any more. It stopped at look 1 of 2")


def test_a_kill_between_looks_or_within_one_repeats_nothing(federation: Loopback) -> None:
    study = study_of("killed", "[100, 200, 250]")
    for name in ("north", "south", "west"):
        federation.consent(name, study)

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^$"):  # after look 1 was written down, before its run is finished
        run(federation, study, Looking(after=stop))
    n_first = federation.n_releases("north", study)

    def interrupt(number: int) -> None:
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^$"):  # within look 2
        run(federation, study, Looking(at_round=interrupt))
    watch = Looking()
    finished = run(federation, study, watch)
    assert [outcome.look.number for outcome in watch.outcomes] == [2, 3]
    assert watch.told[0][0] == "resumed"
    assert [outcome.look.number for outcome in finished.outcomes] == [1, 2, 3]
    assert all(federation.n_releases(name, study) == 3 * n_first for name in ("north", "south", "west"))
    assert spent(federation, "west", study) == pytest.approx(1.0, rel=2e-3)


def test_after_the_last_day_a_look_takes_whoever_is_there_and_is_the_last(federation: Loopback) -> None:
    study = study_of("late", "[150, 5000]", more="[enrolment]\nuntil = 2020-01-31\n")
    for name in ("north", "south"):
        federation.consent(name, study)
    with pytest.raises(QuorumLost, match=r"0 records of 0 parties are enrolled"):
        run(federation, study, wait=0)  # their owners opted in too late
    assert "opted in after 2020-01-31" in federation.journal("north")
    for name in ("north", "south"):
        consents = Consents(federation.folder(name) / CONSENT_FILE)
        consents._database.execute("UPDATE consent SET time = 0 WHERE digest = ?", (study.digest(),))
        consents.close()
        federation.stop(name)
        federation.start(name, "party")
    finished = run(federation, study)
    assert today().year > 2020
    assert [outcome.look.number for outcome in finished.outcomes] == [1]
    assert "since enrolment is over" in finished.outcomes[0].why
    record = LookRecord(federation.coordinator / FILE, study.digest())
    assert record.outcomes() == finished.outcomes
    record.close()


def test_a_look_that_loses_a_party_begins_again_and_the_report_says_what_ledgers_say(federation: Loopback) -> None:
    study = study_of("lossy", "[150]")
    for name in ("north", "south", "west"):
        federation.consent(name, study)
    watch = Looking(at_round=lambda number: federation.consent("west", study, "out") if number == 2 else None)
    finished = run(federation, study, watch)
    assert ("lost", "west") in watch.told
    assert finished.run.attempt == 2
    assert list(finished.outcomes[0].sizes) == ["north", "south"]
    told = {party.name: party.epsilon for party in finished.model.facts_.parties}
    assert told == pytest.approx({name: spent(federation, name, study) for name in told}, rel=1e-9)
    assert finished.model.guarantee_.epsilon == max(told.values()) > 1.1  # the look was paid for twice
    assert dict(finished.outcomes[0].spent) == told


def test_parties_refuse_looks_that_are_not_planned_and_shares_that_are_not_theirs(federation: Loopback) -> None:
    study = study_of("malicious", "[150, 180]", "shares = [0.2, 0.8]")
    for name in ("north", "south"):
        federation.consent(name, study)
    methods = look_methods(study).methods
    with BlockingConnection(CoordinatorFolder(federation.coordinator)) as connection:
        engine = NatsEngine(connection, offer_of(study))
        engine.gather(Wanted(asked=("north", "south"), quorum=2, seconds=60))

        def ask(look: int, method: PrivateNewton) -> None:
            method.fit(Federation(engine, engine.center, study=study.name, look=look))

        with pytest.raises(NotAgreed, match="plans 2 looks, and the run is of look 3"):
            ask(3, methods[1])
        with pytest.raises(NotAgreed, match="plans 2 looks, and the run is of look 0"):
            ask(0, methods[1])
        with pytest.raises(NotAgreed, match="plan is not the one that study 'malicious' entails"):
            ask(1, methods[1])  # with the larger share
        assert spent(federation, "north", study) == 0.0
        ask(2, methods[1])
        with pytest.raises(NotAgreed, match="look 1 of study 'malicious' comes before one that this party was in"):
            ask(1, methods[0])
    assert spent(federation, "north", study) == pytest.approx(planned_looks(study)[1].epsilon, rel=2e-3)


def test_an_auc_is_measured_between_processes_within_the_cost_of_the_look(federation: Loopback) -> None:
    study = study_of("ranked", "[200]", "auc = 0.45", epsilon=3.0)
    for name in ("north", "south", "west"):
        federation.consent(name, study)
    finished = run(federation, study)
    (found,) = finished.outcomes[-1].reached
    assert (found.coefficient, found.wanted) == ("AUC", 0.45)
    assert finished.model.n_rounds_ == 4  # squares, moments, one model, and scores
    for name in ("north", "south", "west"):
        assert federation.n_releases(name, study) == 4
        assert spent(federation, name, study) == pytest.approx(3.0, rel=2e-3)
    assert "It stopped at look 1 of 1" in finished.outcomes[-1].why
