"""The log: lines of several processes form one chain, and what was taken back is no line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.daemon.party.anchor import FILE, AnchoredLedger, make_ledger
from tacit.errors import LogTampered
from tacit.federation.ledger_mark import LedgerMarks
from tacit.federation.log import Log
from tacit.privacy.ledger import Ledger


def take_back(ledger: Ledger, work: Callable[[], object]) -> None:
    """Do something in a transaction that fails in the end."""

    def fail() -> None:
        with ledger.transaction():
            work()
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        fail()


def test_two_processes_write_one_chain(tmp_path: Path) -> None:
    """Neither may go on from a last line that it has kept in memory."""
    logs = [Log(Ledger(tmp_path / "ledger.db"), "north") for _ in range(2)]
    for number in range(6):
        logs[number % 2].append("released", number=number)
    assert [line.decision["number"] for line in logs[0].lines()] == list(range(6))
    assert logs[0].verify() == logs[1].verify() == 6
    assert logs[0].tail() == logs[1].tail() == (6, logs[0].lines()[-1].hash)


def test_a_line_that_was_taken_back_leaves_no_gap() -> None:
    ledger = Ledger()
    log = Log(ledger, "north")
    log.append("released", number=1)
    take_back(ledger, lambda: log.append("released", number=2))
    assert log.tail()[0] == 1
    log.append("released", number=3)
    assert log.verify() == 2


def test_a_changed_line_is_still_found() -> None:
    ledger = Ledger()
    log = Log(ledger, "north")
    for number in range(3):
        log.append("released", number=number)
    ledger.database.execute("UPDATE log SET text = '{}' WHERE line = 2")
    with pytest.raises(LogTampered, match="at or before line 2"):
        log.verify()


def test_two_processes_number_what_they_seal_once(tmp_path: Path) -> None:
    ledgers = [Ledger(tmp_path / "ledger.db") for _ in range(2)]
    marks = [LedgerMarks(ledger, Log(ledger, "north"), "north") for ledger in ledgers]
    numbers = [marks[number % 2].next().number for number in range(6)]
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert marks[0].now() == marks[1].now()
    take_back(ledgers[0], marks[0].next)
    assert marks[0].next().number == 7


def test_an_anchor_is_never_ahead_of_its_ledger(tmp_path: Path) -> None:
    """A party would not start again."""
    make_ledger(tmp_path, "north")
    anchored = AnchoredLedger(tmp_path, "north")
    anchored.log.append("released", number=1)
    take_back(anchored.ledger, lambda: anchored.log.append("released", number=2))
    anchored.anchor()
    anchored.close()
    assert json.loads((tmp_path / FILE).read_text())["line"] == 1
    AnchoredLedger(tmp_path, "north").close()
