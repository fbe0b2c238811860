"""A party that is killed again and again while it answers; run by test_ledger.

    python killed_party.py FOLDER N_KILLS

Each child answers questions in order and appends every answer that has left to a file. It is killed after a random
number of them, in one of three ways, so that no way depends on how fast the machine is:

    parent   the parent kills it as soon as that many are reported, wherever the child is by then
    inside   it kills itself at a random call within the next answer
    charged  it kills itself when the next answer is charged and has not left

The parent then checks the ledger against the file. Prints: kills, answers that left, answers counted, and how often one
was counted that had not left yet.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

import numpy as np

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.agreement import Agreement, Ask, Terms
from tacit.federation.group import SizesTold, SumGroup
from tacit.federation.guard import Guard
from tacit.federation.message import Question, question_digest
from tacit.federation.policy import Policy
from tacit.federation.reply import Noised
from tacit.federation.step import step
from tacit.methods.cohort import Cohort
from tacit.privacy.event import Pure
from tacit.privacy.ledger import Ledger
from tacit.privacy.noise.discrete import discrete_laplace
from tacit.rand import Rng
from tacit.unit import Unit

Way = Literal["parent", "inside", "charged"]
WAYS: tuple[Way, ...] = ("parent", "inside", "charged")
CALLS = 1200  # calls and returns: an answer takes about 1100, and then it leaves


@dataclass(frozen=True)
class Plan:
    cohort: Cohort


@step("test/noisy-count", version=1, plan=Plan)
def noisy_count(table: Table, plan: Plan, *, rng: Rng) -> Noised:
    return Noised({"count": table.n_records + int(discrete_laplace(1e6, 1, rng=rng)[0])}, Pure(epsilon=1e-6))


class Counting:
    """A method that asks for the count without end."""

    name = "m"
    sizes_told: SizesTold = "each"
    weighted_unit: Unit = "record"
    needs_everybody = True

    def terms(self, schema: Schema, group: SumGroup) -> Terms:
        plan = Plan(Cohort.of(schema, group, colluders=None))
        return Terms(plan=plan, course=(Ask(step=noisy_count, times=10**9, event=Pure(epsilon=1e-6)),))


AGREEMENT = Agreement(study="s", method=Counting(), digest="d", runs=1)
GROUP = SumGroup.of({"p": 2}, quorum=1)
SCHEMA = Schema.of_arrays(1, ["0", "1"])


def guard(folder: Path) -> Guard:
    table = Table.from_arrays(np.zeros((2, 1)), np.array([0, 1]), SCHEMA)
    made = Guard("p", table, policy=Policy(), ledger=Ledger(folder / "ledger.db"), rng=Rng.system())
    made.begin("r", AGREEMENT, GROUP)
    return made


def question(number: int) -> bytes:
    return Question(
        study="s", run="r", method="m", step="test/noisy-count", version=1, group=GROUP.digest,
        plan=AGREEMENT.terms(SCHEMA, GROUP).digest, turn=number, values=None,
    ).encode()  # fmt: skip


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a process outlived SIGKILL")


def die_at_call(number: int) -> None:
    """Die at the `number`-th call or return from now on, of Python's functions or C's."""
    left = number

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            die()

    sys.setprofile(count)


def live(folder: Path, report: int, n_answers: int, way: Way, n_calls: int) -> NoReturn:
    """Answer question after question until killed; a line in `left` is an answer that the world has seen."""
    party = guard(folder)
    start = max(0, party.ledger.n_releases("p") - 1)  # the last one again: a retry after the crash
    with (folder / "left").open("ab", buffering=0) as left:
        for number in range(start, start + 10**6):
            if number == start + n_answers and way == "inside":
                die_at_call(n_calls)
            answer = party.answer(question(number), AGREEMENT, [])
            if number == start + n_answers and way == "charged":
                die()
            left.write(f"{number} {answer.hex()}\n".encode())
            os.write(report, b".")
    raise AssertionError("a million answers, and nobody killed the party")


def die_once(folder: Path, chance: random.Random, way: Way) -> None:
    """Let one child live and be killed."""
    n_answers, n_calls = chance.randint(2, 8), chance.randrange(CALLS)
    reports, report = os.pipe()
    child = os.fork()
    if child == 0:
        live(folder, report, n_answers, way, n_calls)
    os.close(report)
    while n_answers > 0 and (told := os.read(reports, n_answers)):
        n_answers -= len(told)
    if way == "parent":
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(reports)
    assert os.WIFSIGNALED(status), f"the party ended by itself, with status {status}"
    assert os.WTERMSIG(status) == signal.SIGKILL


def check(folder: Path) -> tuple[int, int]:
    party = guard(folder)
    party.log.verify()
    lines = (folder / "left").read_text().splitlines() if (folder / "left").exists() else []
    seen: dict[int, str] = {}
    for line in lines:
        number, _, answer = line.partition(" ")
        assert seen.setdefault(int(number), answer) == answer, "a question got two different answers"
        stored = party.ledger.answers(["p"], question_digest(question(int(number)))).get("p")
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
    for number in range(kills):
        die_once(folder, chance, WAYS[number % len(WAYS)])
        left, counted = check(folder)
        in_transaction += counted > left
    print(kills, left, counted, in_transaction)


if __name__ == "__main__":
    main()
