"""The ledger: charges before it lets go, refuses what is over the budget, forgets nothing when killed."""

from __future__ import annotations

import json
import math
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.errors import BudgetExceeded, SettingError
from tacit.privacy.event import DiscreteGaussian, Event, Free, NotPrivate, Pure, to_json
from tacit.privacy.ledger import Budget, Ledger, LedgerEntry


def release(question: str, event: Event, study: str = "s", party: str = "p") -> LedgerEntry:
    return LedgerEntry(
        party=party, study=study, run="r", step="s/one", turn=0, question=question, event=event,
        answer=question.encode(),
    )  # fmt: skip


def test_what_is_spent_adds_up_by_study_and_in_all() -> None:
    ledger = Ledger()
    for i, study in enumerate(["a", "a", "b"]):
        ledger.spend(release(f"q{i}", Pure(epsilon=0.5), study), Budget())
    assert ledger.epsilon("p", delta=1e-9, study="a") == pytest.approx(1.0)
    assert ledger.epsilon("p", delta=1e-9) == pytest.approx(1.5)
    assert ledger.epsilon("q", delta=1e-9) == 0.0
    assert ledger.n_releases("p") == 3
    assert ledger.studies("p") == ["a", "b"]


@pytest.mark.parametrize("limit", ["epsilon_per_study", "epsilon_in_all"])
def test_what_is_over_the_budget_is_refused_and_nothing_is_charged(limit: str) -> None:
    ledger = Ledger()
    budget = Budget(**{limit: 1.0})
    ledger.spend(release("q0", Pure(epsilon=0.75)), budget)
    with pytest.raises(BudgetExceeded, match=r"to 1.25 .* over the limit of 1; 0.75 is spent already"):
        ledger.spend(release("q1", Pure(epsilon=0.5)), budget)
    assert ledger.n_releases("p") == 1
    assert ledger.answer("p", "q1") is None
    ledger.spend(release("q2", Pure(epsilon=0.25)), budget)  # exactly the rest


def test_the_budget_of_one_study_does_not_limit_another() -> None:
    ledger = Ledger()
    budget = Budget(epsilon_per_study=1.0)
    for study in ("a", "b", "c"):
        ledger.spend(release(f"q{study}", Pure(epsilon=1.0), study), budget)
    assert ledger.epsilon("p", delta=1e-9) == pytest.approx(3.0)


def test_what_is_not_private_exceeds_every_finite_budget() -> None:
    ledger = Ledger()
    with pytest.raises(BudgetExceeded, match="to inf"):
        ledger.spend(release("q", NotPrivate(why="exact")), Budget(epsilon_in_all=1e6))
    ledger.spend(release("q", NotPrivate(why="exact")), Budget())
    assert math.isinf(ledger.epsilon("p", delta=1e-6))
    ledger.spend(release("private", Pure(epsilon=1.0)), Budget(epsilon_in_all=1.5))  # it stands beside
    with pytest.raises(BudgetExceeded, match="to 2 "):
        ledger.spend(release("more", Pure(epsilon=1.0)), Budget(epsilon_in_all=1.5))


def test_gaussian_events_compose_better_than_they_add_up() -> None:
    ledger = Ledger()
    one = Ledger()
    one.spend(release("q", DiscreteGaussian(noise_multiplier=20.0)), Budget())
    for i in range(16):
        ledger.spend(release(f"q{i}", DiscreteGaussian(noise_multiplier=20.0)), Budget())
    ledger.spend(release("free", Free()), Budget())
    assert ledger.epsilon("p", delta=1e-6) < 6 * one.epsilon("p", delta=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_a_budget_that_is_none_is_refused(epsilon: float) -> None:
    with pytest.raises(SettingError, match="epsilon_in_all"):
        Budget(epsilon_in_all=epsilon)
    with pytest.raises(SettingError, match="delta"):
        Budget(delta=epsilon)


def test_a_ledger_survives_being_closed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    first = Ledger(path)
    first.spend(release("q", Pure(epsilon=0.5)), Budget())
    first.close()
    second = Ledger(path)
    assert second.answer("p", "q") == b"q"
    assert second.epsilon("p", delta=1e-9) == pytest.approx(0.5)


def test_a_file_that_is_no_ledger_is_named(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("this is not a database, and long enough to be read as one " * 20)
    with pytest.raises(SettingError, match=r"text cannot be used as a ledger"):
        Ledger(tmp_path / "text")
    with pytest.raises(SettingError, match=r"nowhere.* cannot be used as a ledger"):
        Ledger(tmp_path / "nowhere" / "ledger.db")


KILLED = Path(__file__).with_name("killed_party.py")


@pytest.mark.slow
def test_killed_at_random_points_a_hundred_times_nothing_is_uncounted(tmp_path: Path) -> None:
    """Every answer that left is in the ledger, once, and the same question gets the same answer afterwards."""
    done = subprocess.run(
        [sys.executable, str(KILLED), str(tmp_path), "100"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    kills, left, counted, in_transaction = map(int, done.stdout.split())
    assert kills == 100
    assert left > 300  # the parties did get answers out between the kills
    assert counted >= left
    assert in_transaction >= 33  # and a third of them were killed between the charge and the release


def test_a_ledger_of_version_1_is_read_and_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with sqlite3.connect(path) as old:  # as the first release wrote it
        old.execute(
            "CREATE TABLE release (party TEXT NOT NULL, study TEXT NOT NULL, question TEXT NOT NULL, "
            "event TEXT NOT NULL, answer BLOB NOT NULL, time REAL NOT NULL, PRIMARY KEY (party, question)) "
            "WITHOUT ROWID"
        )
        event = json.dumps(to_json(Pure(epsilon=0.4)), sort_keys=True)
        old.execute("INSERT INTO release VALUES ('p', 's', 'q', ?, x'00', 1.0)", (event,))
    old.close()
    for _ in range(2):  # brought up to date once, and then as it is
        ledger = Ledger(path)
        assert ledger.epsilon("p", delta=0.0) == pytest.approx(0.4)
        assert ledger.answer("p", "q") == b"\0"
        assert ledger.answered("p", "r") == []
        assert ledger.database.execute("PRAGMA user_version").fetchone() == (2,)
        ledger.close()
