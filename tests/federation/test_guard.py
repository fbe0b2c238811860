"""The guard: nothing leaves but through it, paid for, once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import BudgetExceeded, LogTampered, PolicyRefusal, SettingError, WireError
from tacit.federation.federation import Federation
from tacit.federation.message import Answer, Question
from tacit.federation.policy import Policy
from tacit.federation.step import Step, find_step
from tacit.privacy.event import Free, Pure
from tacit.privacy.ledger import Budget, Ledger
from tacit.secure.center import EmbeddedCenter

from .conftest import addend, count, public, raw

Make = Callable[..., Federation]
KEYS = EmbeddedCenter().keys


def question(step: Step, method: str = "m", run: str = "r", **arguments: object) -> bytes:
    return Question(
        study="s",
        run=run,
        method=method,
        step=step.name,
        version=step.version,
        arguments=arguments,  # type: ignore[arg-type]
    ).encode()


def test_a_repeated_question_gets_the_identical_answer_and_is_charged_once(make_parties: Make) -> None:
    guard = make_parties().guard("north")
    message = question(count, epsilon=0.1)
    first = guard.answer(message, KEYS)
    assert all(guard.answer(message, KEYS) == first for _ in range(50))
    assert guard.ledger.n_releases("north") == 1
    assert guard.spent("s") == pytest.approx(0.1)
    assert [line.decision["decision"] for line in guard.log.lines()][:2] == ["released", "repeated"]


def test_another_run_is_another_question_with_fresh_noise_and_another_charge(make_parties: Make) -> None:
    guard = make_parties().guard("north")
    answers = {guard.answer(question(count, run=f"r{i}", epsilon=0.01), KEYS) for i in range(20)}
    assert len({Answer.decode(a).value["count"] for a in answers}) > 10
    assert guard.ledger.n_releases("north") == 20
    assert 0.1 < guard.spent("s") <= 0.2 * (1 + 1e-9)


def test_the_charge_is_on_disk_before_the_answer_leaves(make_parties: Make, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    guard = make_parties(ledger=Ledger(path)).guard("north")
    answer = guard.answer(question(count, epsilon=0.1), KEYS)
    with sqlite3.connect(path) as other:  # another process's view
        rows = other.execute("SELECT party, answer FROM release").fetchall()
    assert rows == [("north", answer)]


def test_what_a_budget_does_not_allow_leaves_no_trace_but_in_the_log(make_parties: Make) -> None:
    policy = Policy(budget=Budget(epsilon_per_study=0.15))
    guard = make_parties(policy=policy).guard("north")
    guard.answer(question(count, epsilon=0.1), KEYS)
    with pytest.raises(BudgetExceeded, match=r"'north'.*over the limit of 0.15; 0.1 is spent already"):
        guard.answer(question(count, run="r2", epsilon=0.1), KEYS)
    assert guard.spent("s") == pytest.approx(0.1)
    assert guard.log.lines()[-1].decision["decision"] == "refused"
    guard.answer(question(count, run="r3", epsilon=0.05), KEYS)


def test_a_disclosure_is_refused_unless_the_policy_names_the_method(make_parties: Make) -> None:
    guard = make_parties().guard("north")
    with pytest.raises(PolicyRefusal, match=r"no epsilon bounds \(raw data, for a test\).*not_private=\['m'\]"):
        guard.answer(question(raw), KEYS)
    assert guard.ledger.n_releases("north") == 0
    allowed = make_parties(policy=Policy(not_private=["m"])).guard("north")
    assert Answer.decode(allowed.answer(question(raw), KEYS)).kind == "disclosed"
    with pytest.raises(PolicyRefusal, match="'other' discloses"):
        allowed.answer(question(raw, method="other"), KEYS)


def test_the_policy_is_asked_before_a_record_is_read(make_parties: Make) -> None:
    small = make_parties(policy=Policy(min_records=6)).guard("west")
    with pytest.raises(PolicyRefusal, match="answers with 6 records or more"):
        small.answer(question(count, epsilon=1.0), KEYS)
    picky = make_parties(policy=Policy(methods=["averaging"])).guard("north")
    with pytest.raises(PolicyRefusal, match="does not take part in 'm'; it allows: averaging"):
        picky.answer(question(count, epsilon=1.0), KEYS)
    closed = make_parties(policy=Policy(columns=["x0"])).guard("north")
    with pytest.raises(PolicyRefusal, match="column 'x1'; it allows: x0"):
        closed.answer(question(count, epsilon=1.0), KEYS)


def test_each_kind_of_reply_travels_with_its_event(make_parties: Make) -> None:
    guard = make_parties().guard("north")
    noised = Answer.decode(guard.answer(question(count, epsilon=0.5), KEYS))
    assert (noised.kind, noised.event) == ("noised", Pure(epsilon=0.5))
    free = Answer.decode(guard.answer(question(public, value=1.5), KEYS))
    assert (free.kind, free.event, free.value) == ("public", Free(), {"twice": 3.0})


def test_a_sealed_addend_leaves_in_envelopes_only(make_parties: Make) -> None:
    guard = make_parties({"big": 7_777_777 % 1000}).guard("big")
    message = guard.answer(question(addend, epsilon=1e6, n_parties=1), KEYS)
    answer = Answer.decode(message)
    assert answer.kind == "sealed"
    assert set(answer.value) == {"envelopes", "shape"}
    assert np.int64(777).tobytes() not in message


def test_a_log_that_was_cut_short_is_noticed_by_its_head(make_parties: Make) -> None:
    guard = make_parties().guard("north")
    for i in range(5):
        guard.answer(question(count, run=f"r{i}", epsilon=0.1), KEYS)
    head = guard.log.head()
    assert guard.log.verify(head) == 5
    guard.ledger.database.execute("DELETE FROM log WHERE line = 5")
    assert guard.log.verify() == 4
    with pytest.raises(LogTampered, match="lacks the lines"):
        guard.log.verify(head)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE log SET text = replace(text, 'released', 'refused') WHERE line = 3",
        "UPDATE log SET hash = 'ff' WHERE line = 1",
        "DELETE FROM log WHERE line = 2",
        "UPDATE log SET line = 9 WHERE line = 5",
    ],
)
def test_each_way_of_altering_a_log_is_noticed(make_parties: Make, change: str) -> None:
    guard = make_parties().guard("north")
    for i in range(5):
        guard.answer(question(count, run=f"r{i}", epsilon=0.1), KEYS)
    guard.ledger.database.execute(change)
    with pytest.raises(LogTampered, match="was changed at or before line"):
        guard.log.verify()


def test_garbage_is_no_question(make_parties: Make) -> None:
    guard = make_parties().guard("north")
    for garbage in (b"", b"N", b"\x80\x04\x95", question(count, epsilon=1.0)[:-1]):
        with pytest.raises(WireError, match=r"message|starts no value"):
            guard.answer(garbage, KEYS)


def test_an_unknown_step_or_version_is_named() -> None:
    with pytest.raises(WireError, match="'nothing' version 1 cannot run here: this installation does not know it"):
        find_step("nothing", 1)
    with pytest.raises(WireError, match="this installation has version 1"):
        find_step("test/count", 2)


def test_a_policy_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(SettingError, match="min_records = 0"):
        Policy(min_records=0)
    with pytest.raises(SettingError, match="list of method names"):
        Policy(not_private="pooled")
