"""The guard: nothing leaves but through it, paid for, once, and only what was agreed to."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import BudgetExceeded, LogTampered, NotAgreed, PolicyRefusal, SettingError, WireError
from tacit.federation.agreement import Agreement
from tacit.federation.federation import Federation
from tacit.federation.guard import Guard
from tacit.federation.message import Answer, Question
from tacit.federation.policy import Policy
from tacit.federation.step import Step
from tacit.privacy.event import Pure
from tacit.privacy.ledger import Budget, Ledger
from tacit.secure.center.embedded import EmbeddedCenter

from .conftest import Shift, addend, agreement, count, group_of, question, raw, shifted

Make = Callable[..., Federation]
KEYS = EmbeddedCenter().keys
COUNT = agreement(count)
ONCE = agreement(count, times=1)


def ask(guard: Guard, agreed: Agreement, step: Step, *, run: str = "r", turn: int = 0, values: object = None) -> bytes:
    """Begin the run and ask one question."""
    guard.begin(run, agreed, group_of(guard))
    return guard.answer(question(guard, agreed, step, run=run, turn=turn, values=values), agreed, KEYS)


def test_a_repeated_question_gets_the_identical_answer_and_is_charged_once(make_parties: Make) -> None:
    guard = make_parties().guard("north")
    first = ask(guard, ONCE, count)
    message = question(guard, ONCE, count)
    assert all(guard.answer(message, ONCE, KEYS) == first for _ in range(50))
    assert guard.ledger.n_releases("north") == 1
    assert guard.spent("s") == pytest.approx(0.1)
    assert [line.decision["decision"] for line in guard.log.lines()][:3] == ["began", "released", "repeated"]


def test_what_another_process_answered_is_not_answered_anew(make_parties: Make, tmp_path: Path) -> None:
    """Two guards with one file: each has looked at its answers before the other adds one."""
    own, other = (make_parties(ledger=Ledger(tmp_path / "ledger.db")).guard("north") for _ in range(2))
    asked = [question(own, COUNT, count, turn=turn) for turn in range(3)]
    first = ask(own, COUNT, count, turn=0)
    assert ask(other, COUNT, count, turn=0) == first
    second = ask(other, COUNT, count, turn=1)
    assert own.answer(asked[1], COUNT, KEYS) == second
    third = own.answer(asked[2], COUNT, KEYS)
    for guard in (own, other):
        assert [guard.answer(message, COUNT, KEYS) for message in asked] == [first, second, third]
    assert own.ledger.n_releases("north") == 3


def test_another_run_is_another_question_with_fresh_noise_and_another_charge(make_parties: Make) -> None:
    guard = make_parties().guard("north")
    cheap = agreement(count, epsilon=0.01, times=1)
    answers = {ask(guard, cheap, count, run=f"r{i}") for i in range(20)}
    assert len({Answer.decode(a).value["count"] for a in answers}) > 10
    assert guard.ledger.n_releases("north") == 20
    assert 0.1 < guard.spent("s") <= 0.2 * (1 + 1e-9)


def test_the_charge_is_on_disk_before_the_answer_leaves(make_parties: Make, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    guard = make_parties(ledger=Ledger(path)).guard("north")
    answer = ask(guard, COUNT, count)
    with sqlite3.connect(path) as other:  # another process's view
        rows = other.execute("SELECT party, answer FROM release").fetchall()
    assert rows == [("north", answer)]


def test_what_a_budget_does_not_allow_leaves_no_trace_but_in_the_log(make_parties: Make) -> None:
    policy = Policy(budget=Budget(epsilon_per_study=0.15))
    guard = make_parties(policy=policy).guard("north")
    ask(guard, ONCE, count)
    with pytest.raises(BudgetExceeded, match=r"'north'.*over the limit of 0.15; 0.1 is spent already"):
        ask(guard, ONCE, count, run="r2")
    assert guard.spent("s") == pytest.approx(0.1)
    assert guard.log.lines()[-1].decision["decision"] == "refused"
    ask(guard, agreement(count, epsilon=0.05, times=1), count, run="r3")


def test_a_disclosure_is_refused_unless_the_policy_names_the_method(make_parties: Make) -> None:
    guard = make_parties().guard("north")
    with pytest.raises(PolicyRefusal, match=r"no epsilon bounds \(raw data, for a test\).*not_private=\['m'\]"):
        ask(guard, agreement(raw), raw)
    assert guard.ledger.n_releases("north") == 0
    allowed = make_parties(policy=Policy(not_private=["m"])).guard("north")
    assert Answer.decode(ask(allowed, agreement(raw), raw)).kind == "disclosed"


def test_the_policy_is_asked_before_a_record_is_read(make_parties: Make) -> None:
    small = make_parties(policy=Policy(min_records=6)).guard("west")
    with pytest.raises(PolicyRefusal, match="answers with 6 records or more"):
        ask(small, COUNT, count)
    picky = make_parties(policy=Policy(methods=["averaging"])).guard("north")
    with pytest.raises(PolicyRefusal, match="does not take part in 'm'; it allows: averaging"):
        ask(picky, COUNT, count)
    closed = make_parties(policy=Policy(columns=["x0"])).guard("north")
    with pytest.raises(PolicyRefusal, match="column 'x1'; it allows: x0"):
        ask(closed, COUNT, count)


def test_a_reply_travels_with_its_event(make_parties: Make) -> None:
    guard = make_parties().guard("north")
    noised = Answer.decode(ask(guard, agreement(count, epsilon=0.5), count))
    assert (noised.kind, noised.event) == ("noised", Pure(epsilon=0.5))


def test_a_sealed_addend_leaves_in_envelopes_only(make_parties: Make) -> None:
    guard = make_parties({"big": 777}).guard("big")
    message = ask(guard, agreement(addend, epsilon=1e6), addend)
    answer = Answer.decode(message)
    assert answer.kind == "sealed"
    assert set(answer.value) == {"envelopes", "shape"}
    assert np.int64(777).tobytes() not in message


# --- what was agreed to, and nothing else ----------------------------------------------------------------------------


def test_a_question_of_a_run_that_did_not_begin_is_refused(make_parties: Make) -> None:
    guard = make_parties().guard("north")
    with pytest.raises(NotAgreed, match="no run 'r' has begun"):
        guard.answer(question(guard, COUNT, count), COUNT, KEYS)
    assert guard.log.lines()[-1].decision["decision"] == "refused"


def test_no_more_runs_begin_than_were_agreed_to(make_parties: Make, tmp_path: Path) -> None:
    once = agreement(count, runs=1)
    guard = make_parties(ledger=Ledger(tmp_path / "ledger.db")).guard("north")
    ask(guard, once, count)
    with pytest.raises(NotAgreed, match="agreed to 1 run of study 's', and as many have begun"):
        guard.begin("r2", once, group_of(guard))
    ask(guard, once, count)  # the run that began goes on
    restarted = make_parties(ledger=Ledger(tmp_path / "ledger.db")).guard("north")
    with pytest.raises(NotAgreed, match="as many have begun"):
        restarted.begin("r3", once, group_of(restarted))


def test_a_run_keeps_the_group_with_which_it_began(make_parties: Make) -> None:
    parties = make_parties()
    north, south = parties.guard("north"), parties.guard("south")
    north.begin("r", COUNT, group_of(north, south))
    with pytest.raises(NotAgreed, match="began with another group"):
        north.begin("r", COUNT, group_of(north))
    with pytest.raises(NotAgreed, match="began with another group"):
        north.answer(question(north, COUNT, count), COUNT, KEYS)  # which names the group of north alone


def test_a_group_that_does_not_hold_the_party_as_it_is_is_refused(make_parties: Make) -> None:
    parties = make_parties()
    north, south = parties.guard("north"), parties.guard("south")
    with pytest.raises(NotAgreed, match="'north' is not in"):
        north.begin("r", COUNT, group_of(south))
    lying = replace(group_of(north), sizes=(11,), n_records=11)
    with pytest.raises(NotAgreed, match="another number of records than party 'north' has"):
        north.begin("r", COUNT, lying)


def test_a_group_that_the_study_does_not_allow_is_refused(make_parties: Make) -> None:
    parties = make_parties()
    guards = [parties.guard(name) for name in parties.names]
    few = Agreement(study="s", method=COUNT.method, digest="d", least=3)
    with pytest.raises(NotAgreed, match="asks for 3 parties or more, and the run has 2"):
        guards[0].begin("r", few, group_of(*guards[:2]))
    tolerant = replace(COUNT.method, needs_everybody=False)  # type: ignore[type-var]
    strict = Agreement(study="s", method=tolerant, digest="d", dropouts=1)
    with pytest.raises(NotAgreed, match="go on with 1 of 3 parties, and the study with no fewer than 2"):
        guards[0].begin("r", strict, replace(group_of(*guards), quorum=1))
    with pytest.raises(NotAgreed, match="needs every party"):
        guards[0].begin("r", COUNT, replace(group_of(*guards), quorum=2))


def test_a_step_out_of_the_course_is_refused(make_parties: Make) -> None:
    guard = make_parties().guard("north")
    agreed = agreement(count, shifted, times=2)
    with pytest.raises(NotAgreed, match="never asks step 'test/raw'"):
        ask(guard, agreed, raw)
    ask(guard, agreed, count)
    with pytest.raises(NotAgreed, match=r"'test/count' is asked 2 times in a run.*turn 3 is not the next"):
        ask(guard, agreed, count, turn=2)
    ask(guard, agreed, shifted, values=Shift(by=1.0))
    with pytest.raises(NotAgreed, match="'test/count' comes before 'test/shifted'"):
        ask(guard, agreed, count, turn=1)
    with pytest.raises(NotAgreed, match="turn 1 is not the next"):
        ask(guard, agreed, shifted, values=Shift(by=2.0))  # the same turn with another value
    assert guard.ledger.n_releases("north") == 2


def test_a_turn_may_be_missed_but_not_made_up_for(make_parties: Make) -> None:
    guard = make_parties().guard("north")
    agreed = agreement(shifted, times=3)
    ask(guard, agreed, shifted, turn=1, values=Shift(by=1.0))
    with pytest.raises(NotAgreed, match="turn 1 is not the next"):
        ask(guard, agreed, shifted, turn=0, values=Shift(by=1.0))
    ask(guard, agreed, shifted, turn=2, values=Shift(by=1.0))


def test_values_of_another_form_are_refused_and_logged(make_parties: Make) -> None:
    guard = make_parties().guard("north")
    agreed = agreement(shifted, count)
    guard.begin("r", agreed, group_of(guard))
    good = Question.decode(question(guard, agreed, shifted, values=Shift(by=1.0)))
    for values in ({"by": 1}, {"by": "1"}, {}, {"by": 1.0, "epsilon": 9.0}, None, [1.0]):
        with pytest.raises(NotAgreed, match="Shift"):
            guard.answer(replace(good, values=values).encode(), agreed, KEYS)
    plain = Question.decode(question(guard, agreed, count))
    with pytest.raises(NotAgreed, match="takes no values"):
        guard.answer(replace(plain, values={"epsilon": 9.0}).encode(), agreed, KEYS)
    assert guard.ledger.n_releases("north") == 0
    assert sum(line.decision["decision"] == "refused" for line in guard.log.lines()) == 7


@pytest.mark.parametrize(
    "change", [{"study": "t"}, {"method": "n"}, {"version": 2}, {"group": "0" * 64}, {"run": "x"}, {"plan": "0" * 64}]
)
def test_a_question_that_differs_in_one_field_is_refused(make_parties: Make, change: dict[str, object]) -> None:
    guard = make_parties().guard("north")
    guard.begin("r", COUNT, group_of(guard))
    good = Question.decode(question(guard, COUNT, count))
    with pytest.raises(NotAgreed, match=r"agreed to|version|group|no run|plan is not the one"):
        guard.answer(replace(good, **change).encode(), COUNT, KEYS)  # type: ignore[arg-type]
    assert guard.ledger.n_releases("north") == 0


# --- the log ---------------------------------------------------------------------------------------------------------


def test_a_log_that_was_cut_short_is_noticed_by_its_head(make_parties: Make) -> None:
    guard = make_parties().guard("north")
    for i in range(5):
        ask(guard, COUNT, count, turn=i)
    head, n_lines = guard.log.head(), len(guard.log.lines())
    assert guard.log.verify(head) == n_lines
    guard.ledger.database.execute("DELETE FROM log WHERE line = ?", (n_lines,))
    assert guard.log.verify() == n_lines - 1
    with pytest.raises(LogTampered, match="lacks the lines"):
        guard.log.verify(head)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE log SET text = replace(text, 'released', 'refused') WHERE line = 3",
        "UPDATE log SET hash = 'ff' WHERE line = 1",
        "DELETE FROM log WHERE line = 2",
        "UPDATE log SET line = 9 WHERE line = 6",
    ],
)
def test_each_way_of_altering_a_log_is_noticed(make_parties: Make, change: str) -> None:
    guard = make_parties().guard("north")
    for i in range(5):
        ask(guard, COUNT, count, turn=i)
    guard.ledger.database.execute(change)
    with pytest.raises(LogTampered, match="was changed at or before line"):
        guard.log.verify()


def test_garbage_is_no_question(make_parties: Make) -> None:
    guard = make_parties().guard("north")
    for garbage in (b"", b"N", b"\x80\x04\x95", question(guard, COUNT, count)[:-1]):
        with pytest.raises(WireError, match=r"message|starts no value|Question"):
            guard.answer(garbage, COUNT, KEYS)


def test_a_policy_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(SettingError, match="min_records = 0"):
        Policy(min_records=0)
    with pytest.raises(SettingError, match="list of method names"):
        Policy(not_private="pooled")
