"""A party's log against its releases, also while the party answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.errors import LogTampered
from tacit.federation.log import Line, Log
from tacit.federation.log_check import check_releases
from tacit.privacy.event import Pure
from tacit.privacy.ledger import Beginning, Ledger, LedgerEntry, Reservation, RunEntry, Stage

COST = Pure(epsilon=0.1)


def give(ledger: Ledger, turn: int, *, is_told: bool = True) -> None:
    entry = LedgerEntry(
        account="p", study="s", run="r", step="s/one", turn=turn, question=f"q{turn}", event=COST, answer=b""
    )
    with ledger.transaction():
        ledger.spend([entry])
        if is_told:
            Log(ledger, "p").append("released", question=entry.question)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "ledger.db")
    stages = (Stage(step="s/one", event=COST, times=10),)
    entry = RunEntry(account="p", run="r", study="s", agreement="a", group="g")
    made.begin_runs([Beginning(entry=entry, reservation=Reservation(stages=stages), budget=None)], b"")
    give(made, 0)
    return made


def test_a_party_that_answers_while_its_owner_looks_is_not_taken_for_tampered_with(
    ledger: Ledger, tmp_path: Path
) -> None:
    owner = Ledger(tmp_path / "ledger.db")

    class Meanwhile(Log):
        """A log whose party answers just when it has been read."""

        def lines(self, *, after: int = 0) -> list[Line]:
            found = super().lines(after=after)
            give(ledger, 1)
            return found

    assert check_releases(owner, Meanwhile(owner, "p"), "p") == 1
    assert check_releases(owner, Log(owner, "p"), "p") == 2
    owner.close()


def test_a_release_that_the_log_does_not_tell_of_is_told(ledger: Ledger) -> None:
    give(ledger, 1, is_told=False)
    with pytest.raises(LogTampered, match="holds a release to question q1, of which the log does not tell"):
        check_releases(ledger, Log(ledger, "p"), "p")
