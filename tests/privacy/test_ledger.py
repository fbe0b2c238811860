"""The ledger: charges before it lets go, refuses what is over the budget, forgets nothing when killed."""

from __future__ import annotations

import json
import math
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.errors import BudgetExceeded, NotAgreed, SettingError
from tacit.privacy.event import DiscreteGaussian, Event, NotPrivate, Pure, to_json
from tacit.privacy.ledger import Beginning, Budget, Ledger, LedgerEntry, Reservation, RunEntry, Stage


def reserve(
    ledger: Ledger, run: str, event: Event, *, study: str = "s", budget: Budget | None = None, delta: float = 1e-6
) -> None:
    """Begin a run of one release."""
    entry = RunEntry(account="p", run=run, study=study, agreement="a", group="g")
    stages = (Stage(step="s/one", event=event, times=1),)
    reservation = Reservation(stages=stages, delta=delta)
    ledger.begin_runs([Beginning(entry=entry, reservation=reservation, budget=budget or Budget())], b"")


def release(ledger: Ledger, run: str, event: Event, question: str = "", study: str = "s") -> None:
    """Give its answer."""
    entry = LedgerEntry(
        account="p", study=study, run=run, step="s/one", turn=0, question=question or run, event=event,
        answer=run.encode(),
    )  # fmt: skip
    ledger.spend([entry])


def test_what_is_reserved_adds_up_by_study_and_in_all() -> None:
    ledger = Ledger()
    for i, study in enumerate(["a", "a", "b"]):
        reserve(ledger, f"r{i}", Pure(epsilon=0.5), study=study)
        release(ledger, f"r{i}", Pure(epsilon=0.5), study=study)
    assert ledger.epsilon("p", delta=1e-9, study="a") == pytest.approx(1.0)
    assert ledger.epsilon("p", delta=1e-9) == pytest.approx(1.5)
    assert ledger.epsilon("q", delta=1e-9) == 0.0
    assert ledger.n_releases("p") == 3
    assert ledger.studies("p") == ["a", "b"]


@pytest.mark.parametrize("limit", ["epsilon_per_study", "epsilon_in_all"])
def test_a_run_that_is_over_the_budget_does_not_begin(limit: str) -> None:
    ledger = Ledger()
    budget = Budget(**{limit: 1.0})
    reserve(ledger, "r0", Pure(epsilon=0.75), budget=budget)
    with pytest.raises(BudgetExceeded, match=r"to 1.25 .* over the limit of 1; 0.75 is spent already"):
        reserve(ledger, "r1", Pure(epsilon=0.5), budget=budget)
    assert ledger.runs(["p"], "r1") == {}
    reserve(ledger, "r2", Pure(epsilon=0.25), budget=budget)  # exactly the rest


def test_the_budget_of_one_study_does_not_limit_another() -> None:
    ledger = Ledger()
    budget = Budget(epsilon_per_study=1.0)
    for study in ("a", "b", "c"):
        reserve(ledger, f"r{study}", Pure(epsilon=1.0), study=study, budget=budget)
    assert ledger.epsilon("p", delta=1e-9) == pytest.approx(3.0)


def test_what_is_not_private_fits_no_finite_budget_and_stands_beside_it_if_allowed_by_name() -> None:
    ledger, budget = Ledger(), Budget(epsilon_in_all=1.5)
    with pytest.raises(BudgetExceeded, match="to inf"):
        reserve(ledger, "r", NotPrivate(why="exact"), budget=budget)
    entry = RunEntry(account="p", run="r", study="s", agreement="a", group="g")
    stages = (Stage(step="s/one", event=NotPrivate(why="exact"), times=1),)
    ledger.begin_runs([Beginning(entry=entry, reservation=Reservation(stages=stages), budget=None)], b"")
    assert math.isinf(ledger.epsilon("p", delta=1e-6))
    reserve(ledger, "private", Pure(epsilon=1.0), budget=budget)
    with pytest.raises(BudgetExceeded, match="to 2 "):
        reserve(ledger, "more", Pure(epsilon=1.0), budget=budget)


def test_gaussian_runs_compose_better_than_they_add_up() -> None:
    ledger, one, event = Ledger(), Ledger(), DiscreteGaussian(noise_multiplier=20.0)
    reserve(one, "r", event)
    for i in range(16):
        reserve(ledger, f"r{i}", event)
    assert ledger.epsilon("p", delta=1e-6) < 6 * one.epsilon("p", delta=1e-6)


def test_nothing_is_released_that_its_run_has_not_reserved() -> None:
    ledger = Ledger()
    with pytest.raises(NotAgreed, match="'r' has reserved nothing"):
        release(ledger, "r", Pure(epsilon=0.1))
    reserve(ledger, "r", Pure(epsilon=0.1))
    for event in (Pure(epsilon=0.2), NotPrivate(why="exact")):
        with pytest.raises(NotAgreed, match="'s/one' would release what run 'r' has not reserved"):
            release(ledger, "r", event)
    release(ledger, "r", Pure(epsilon=0.1))
    with pytest.raises(NotAgreed, match="has reserved 1 answers"):
        release(ledger, "r", Pure(epsilon=0.1), question="another")
    assert ledger.n_releases("p") == 1


def test_a_run_without_an_answer_gives_its_cost_back_and_one_with_an_answer_never() -> None:
    ledger, budget = Ledger(), Budget(epsilon_in_all=1.0)
    reserve(ledger, "silent", Pure(epsilon=1.0), budget=budget)
    ledger.pin("p", "silent", "field", "x")
    assert ledger.abandon("p", "silent")
    assert not ledger.abandon("p", "silent")
    assert ledger.epsilon("p", delta=1e-6) == 0.0
    with pytest.raises(NotAgreed, match="reserved nothing"):
        release(ledger, "silent", Pure(epsilon=1.0))  # it answers no more
    reserve(ledger, "silent", Pure(epsilon=1.0), budget=budget)  # unless it pays again
    assert ledger.pin("p", "silent", "field", "y") == "y"
    release(ledger, "silent", Pure(epsilon=1.0))
    assert not ledger.abandon("p", "silent")
    assert ledger.epsilon("p", delta=1e-6) == pytest.approx(1.0)
    with pytest.raises(BudgetExceeded, match="1 is spent already"):
        reserve(ledger, "more", Pure(epsilon=0.1), budget=budget)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_a_budget_that_is_none_is_refused(epsilon: float) -> None:
    with pytest.raises(SettingError, match="epsilon_in_all"):
        Budget(epsilon_in_all=epsilon)
    with pytest.raises(SettingError, match="delta"):
        Budget(delta=epsilon)


def test_a_ledger_survives_being_closed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    first = Ledger(path)
    reserve(first, "q", Pure(epsilon=0.5))
    release(first, "q", Pure(epsilon=0.5))
    first.close()
    second = Ledger(path)
    assert second.answers(["p"], "q") == {"p": b"q"}
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


OLD_RELEASE = (
    "CREATE TABLE release (party TEXT NOT NULL, study TEXT NOT NULL, question TEXT NOT NULL, event TEXT NOT NULL, "
    "answer BLOB NOT NULL, time REAL NOT NULL{more}, PRIMARY KEY (party, question)) WITHOUT ROWID"
)
PURE = json.dumps(to_json(Pure(epsilon=0.4)), sort_keys=True)


def test_a_ledger_of_version_1_is_read_and_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with sqlite3.connect(path) as old:  # as the first release wrote it
        old.execute(OLD_RELEASE.format(more=""))
        old.execute("INSERT INTO release VALUES ('p', 's', 'q', ?, x'00', 1.0)", (PURE,))
    old.close()
    for _ in range(2):  # brought up to date once, and then as it is
        ledger = Ledger(path)
        assert ledger.epsilon("p", delta=1e-9) == pytest.approx(0.4)
        assert ledger.epsilon("p", delta=1e-9, relation="add-remove") == pytest.approx(0.4)  # it counts as it stands
        assert ledger.answers(["p"], "q") == {"p": b"\0"}
        assert ledger.answered(["p"], "r") == {}
        assert ledger.database.execute("PRAGMA user_version").fetchone() == (4,)
        ledger.close()


def test_a_ledger_of_version_2_counts_its_runs_as_they_stand_and_they_answer_no_more(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with sqlite3.connect(path) as old:  # as the second release wrote it
        more = ", run TEXT NOT NULL DEFAULT '', step TEXT NOT NULL DEFAULT '', turn INTEGER NOT NULL DEFAULT 0"
        old.execute(OLD_RELEASE.format(more=more))
        old.execute(
            "CREATE TABLE run (party TEXT NOT NULL, run TEXT NOT NULL, study TEXT NOT NULL, agreement TEXT NOT NULL, "
            "sum_group TEXT NOT NULL, time REAL NOT NULL, PRIMARY KEY (party, run)) WITHOUT ROWID"
        )
        old.executemany("INSERT INTO run VALUES ('p', ?, 's', 'd', 'g', 1.0)", [("answered",), ("silent",)])
        rows = [(f"q{i}", PURE, "answered" if i < 2 else "") for i in range(3)]  # and one of version 1
        old.executemany("INSERT INTO release VALUES ('p', 's', ?, ?, x'00', 1.0, ?, 's/one', 0)", rows)
        old.execute("PRAGMA user_version = 2")
    old.close()
    ledger = Ledger(path)
    assert ledger.epsilon("p", delta=1e-9) == pytest.approx(1.2)
    assert ledger.n_runs("p", "d") == 2
    for run in ("answered", "silent"):
        assert not ledger.abandon("p", run)
        with pytest.raises(NotAgreed, match="begin a new run"):
            release(ledger, run, Pure(epsilon=0.4), question="new")
    with pytest.raises(BudgetExceeded, match=r"to 1.3 .*; 1.2 is spent"):
        reserve(ledger, "new", Pure(epsilon=0.1), budget=Budget(epsilon_in_all=1.25))


def make_version_3(path: Path) -> None:
    """A ledger with one release, as the third release wrote it: the same rows, sorted by question."""
    ledger = Ledger(path)
    begin_long(ledger)
    give(ledger, 0)
    ledger.close()
    with sqlite3.connect(path) as old:
        more = ", run TEXT NOT NULL DEFAULT '', step TEXT NOT NULL DEFAULT '', turn INTEGER NOT NULL DEFAULT 0"
        columns = "party, study, question, event, answer, time, run, step, turn"
        old.execute("ALTER TABLE release RENAME TO new_release")
        old.execute(OLD_RELEASE.format(more=more))
        old.execute("CREATE INDEX release_by_study ON release (party, study)")
        old.execute("CREATE INDEX release_by_run ON release (party, run, step, turn)")
        old.execute(f"INSERT INTO release SELECT {columns} FROM new_release")
        old.execute("DROP TABLE new_release")
        old.execute("PRAGMA user_version = 3")
    old.close()


def test_who_still_writes_version_3_releases_nothing_once_the_ledger_is_of_this_version(tmp_path: Path) -> None:
    """Else a daemon that runs on while its package is updated would not find its own releases, and answer for ever."""
    path = tmp_path / "ledger.db"
    make_version_3(path)
    daemon = sqlite3.connect(path, isolation_level=None)
    daemon.execute("SELECT * FROM release").fetchall()
    Ledger(path).close()
    row = ("p", "s", "r 1", '{"kind": "pure", "epsilon": 0.1}', b"answer", 1.0, "r", "s/one", 1)  # in its order
    with pytest.raises(sqlite3.IntegrityError, match="CHECK constraint failed"):
        daemon.execute("INSERT INTO release VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    daemon.close()
    ledger = Ledger(path)
    assert ledger.n_releases("p") == 1
    ledger.close()


def test_a_ledger_of_version_3_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    make_version_3(path)
    for turn in (1, 2):  # brought up to date once, and then as it is
        ledger = Ledger(path)
        assert ledger.answered(["p"], "r") == {"p": {"s/one": (turn, turn - 1)}}
        give(ledger, turn)
        assert ledger.epsilon("p", delta=1e-9) == pytest.approx(0.3)
        assert ledger.answers(["p"], "r 0") == ledger.answers(["p"], "r 0", ("r", "s/one", 0)) == {"p": b""}
        assert not ledger.answers(["p"], "r 0", ("r", "s/one", 1))
        ledger.close()
    with pytest.raises(NotAgreed, match="has reserved 3 answers"):
        give(Ledger(path), 3)
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):  # and nothing is written a second time
        Ledger(path).database.execute("INSERT INTO release SELECT * FROM release LIMIT 1")


# --- what is known of a run without a query --------------------------------------------------------------------------


def begin_long(ledger: Ledger, run: str = "r", times: int = 3) -> None:
    entry = RunEntry(account="p", run=run, study="s", agreement="a", group="g")
    stages = (Stage(step="s/one", event=Pure(epsilon=0.1), times=times),)
    ledger.begin_runs([Beginning(entry=entry, reservation=Reservation(stages=stages), budget=None)], b"")


def give(ledger: Ledger, turn: int, run: str = "r") -> None:
    ledger.spend(
        [
            LedgerEntry(
                account="p", study="s", run=run, step="s/one", turn=turn, question=f"{run} {turn}",
                event=Pure(epsilon=0.1), answer=b"",
            )
        ]
    )  # fmt: skip


def test_answers_that_another_process_gave_count(tmp_path: Path) -> None:
    """Two ledgers open on one file: neither may go on with a count that it has kept."""
    own, other = Ledger(tmp_path / "ledger.db"), Ledger(tmp_path / "ledger.db")
    begin_long(own)
    give(own, 0)
    give(other, 1)
    give(own, 2)
    assert own.answered(["p"], "r") == other.answered(["p"], "r") == {"p": {"s/one": (3, 2)}}
    for ledger in (own, other):
        with pytest.raises(NotAgreed, match="reserved 3 answers to step 's/one', and gave them"):
            give(ledger, 3)


def test_an_answer_that_was_taken_back_does_not_count() -> None:
    ledger = Ledger()
    begin_long(ledger)
    give(ledger, 0)

    def fail() -> None:
        with ledger.transaction():
            give(ledger, 1)
            assert ledger.answered(["p"], "r") == {"p": {"s/one": (2, 1)}}
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        fail()
    assert ledger.answered(["p"], "r") == {"p": {"s/one": (1, 0)}}
    give(ledger, 1)
    give(ledger, 2)
    with pytest.raises(NotAgreed, match="and gave them"):
        give(ledger, 3)


def test_within_one_transaction_no_answer_too_many_is_given() -> None:
    ledger = Ledger()
    begin_long(ledger)

    def give_four() -> None:
        with ledger.transaction():
            for turn in range(4):
                give(ledger, turn)

    with pytest.raises(NotAgreed, match="and gave them"):
        give_four()
    assert ledger.answered(["p"], "r") == {}


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_run_that_was_given_up_or_failed_is_known_as_such(tmp_path: Path, elsewhere: bool) -> None:
    own = Ledger(tmp_path / "ledger.db")
    other = Ledger(tmp_path / "ledger.db") if elsewhere else own
    begin_long(own, "gone")
    assert own.failed(["p"], "gone") == set()
    with pytest.raises(NotAgreed, match="not reserved"):  # after which it is known what the run reserved
        own.spend(
            [
                LedgerEntry(
                    account="p", study="s", run="gone", step="s/other", turn=0, question="q", event=Pure(epsilon=0.1),
                    answer=b"",
                )
            ]
        )  # fmt: skip
    assert other.abandon("p", "gone")
    with pytest.raises(NotAgreed, match="has reserved nothing here"):
        give(own, 0, "gone")
    begin_long(own, "failed")
    assert own.failed(["p"], "failed") == set()
    other.pin("p", "failed", "failed", "s/one")
    assert own.failed(["p"], "failed") == {"p"}


def test_the_count_of_a_long_run_is_not_taken_for_each_question() -> None:
    ledger, asked = Ledger(), 0

    def note(statement: str) -> None:
        nonlocal asked
        asked += "COUNT(*)" in statement

    begin_long(ledger, times=1000)
    ledger.database.set_trace_callback(note)
    for turn in range(1000):
        ledger.answered(["p"], "r")
        give(ledger, turn)
    assert asked == 1
    assert ledger.answered(["p"], "r") == {"p": {"s/one": (1000, 999)}}
