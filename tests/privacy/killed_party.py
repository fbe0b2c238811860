"""A party that is killed again and again while it answers; run by test_ledger.

    python killed_party.py FOLDER N_KILLS

Each child answers questions in order and appends every answer that has left to a file. The parent kills it at a random
moment, then checks the ledger against that file. Prints: kills, answers that left, answers counted, and how often one
was counted that had not left yet.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.guard import Guard
from tacit.federation.message import Question, question_digest
from tacit.federation.policy import Policy
from tacit.federation.reply import Noised
from tacit.federation.step import step
from tacit.privacy.event import Pure
from tacit.privacy.ledger import Ledger
from tacit.privacy.noise import discrete_laplace
from tacit.rand import Rng


@step("test/noisy-count", version=1)
def noisy_count(table: Table, *, rng: Rng, number: int) -> Noised:
    return Noised({"count": table.n_records + int(discrete_laplace(1e6, 1, rng=rng)[0])}, Pure(epsilon=1e-6))


def guard(folder: Path) -> Guard:
    schema = Schema.of_arrays(1, ["0", "1"])
    table = Table.from_arrays(np.zeros((2, 1)), np.array([0, 1]), schema)
    return Guard("p", table, policy=Policy(), ledger=Ledger(folder / "ledger.db"), rng=Rng.system())


def question(number: int) -> bytes:
    return Question(
        study="s", run="r", method="m", step="test/noisy-count", version=1, arguments={"number": number}
    ).encode()


def live(folder: Path) -> None:
    """Answer question after question; a line in `left` is an answer that the world has seen."""
    party = guard(folder)
    start = party.ledger.n_releases("p")
    with (folder / "left").open("ab", buffering=0) as left:
        for number in range(max(0, start - 1), 10**9):  # the last one again: a retry after the crash
            answer = party.answer(question(number), [])
            left.write(f"{number} {answer.hex()}\n".encode())


def check(folder: Path) -> tuple[int, int]:
    party = guard(folder)
    party.log.verify()
    lines = (folder / "left").read_text().splitlines() if (folder / "left").exists() else []
    seen: dict[int, str] = {}
    for line in lines:
        number, _, answer = line.partition(" ")
        assert seen.setdefault(int(number), answer) == answer, "a question got two different answers"
        stored = party.ledger.answer("p", question_digest(question(int(number))))
        assert stored is not None, "an answer left that the ledger does not know"
        assert stored.hex() == answer, "the ledger knows another answer than the one that left"
    counted = party.ledger.n_releases("p")
    party.ledger.close()
    return len(seen), counted


def main() -> None:
    folder, kills = Path(sys.argv[1]), int(sys.argv[2])
    chance = random.Random(1)
    in_transaction = 0
    left = counted = 0
    for _ in range(kills):
        child = os.fork()
        if child == 0:
            live(folder)
        time.sleep(chance.uniform(0.002, 0.06))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        left, counted = check(folder)
        in_transaction += counted > left
    print(kills, left, counted, in_transaction)


if __name__ == "__main__":
    main()
