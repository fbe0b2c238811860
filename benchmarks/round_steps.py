"""What one question costs, step by step, at a party and at the coordinator: the profile of `benchmarks/rounds.py`.

    python benchmarks/round_steps.py [ROUNDS] [FOLDER]

All in one process, without the line: 1,000 floats down and up, as in a round. Medians are of the processor's time, so
that a busy machine matters little. A flush is waited for, which takes little of it. FOLDER says where the ledger lies.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from rounds import AGREEMENT, N_FLOATS, PARTIES, SCHEMA, Down, echo

from tacit.daemon.party.anchor import AnchoredLedger, make_ledger
from tacit.data.table import Table
from tacit.federation.group import SumGroup
from tacit.federation.guard import Guard
from tacit.federation.member.identity import Identity
from tacit.federation.message import Answer, Question, question_digest
from tacit.federation.nats.kind import ANSWER, ASK
from tacit.federation.nats.letter import Freshness, read_letter, tagged, write_letter
from tacit.federation.nats.session import AcceptedSessions, LetterSession, OfferedSessions
from tacit.federation.policy import Policy
from tacit.rand import Rng

T = TypeVar("T")
WARM_UP = 20


class Round:
    """The two sides of a question, and the time of every step."""

    def __init__(self, folder: Path) -> None:
        make_ledger(folder, "north")
        self.anchored = AnchoredLedger(folder, "north")
        self.times: defaultdict[str, list[float]] = defaultdict(list)
        self.n_commits = 0
        self._coordinator = Identity("coordinator", "coordinator", b"c" * 32)
        self._party = Identity("north", "party", b"n" * 32)
        table = Table.from_arrays(np.zeros((2, 1)), np.array([0, 1]), SCHEMA)
        ledger = self.anchored.ledger
        self._guard = Guard("north", table, policy=Policy(), ledger=ledger, rng=Rng.system())
        self._group = SumGroup.of(dict.fromkeys(PARTIES, 2), quorum=3)
        self._guard.begin("run", AGREEMENT, self._group)
        self._plan = AGREEMENT.terms(SCHEMA, self._group).digest
        self._fresh = Freshness()
        offered = OfferedSessions(self._coordinator.member)
        self._accepted = AcceptedSessions(self._party.member, self._coordinator.member)
        offered.take(self._party.member, self._accepted.accept(offered.offer))
        self._session = offered.find(self._party.member)

    def count(self, statement: str) -> None:
        self.n_commits += statement == "COMMIT"

    def _timed(self, step: str, work: Callable[[], T]) -> T:
        start = time.thread_time()
        result = work()
        self.times[step].append(time.thread_time() - start)
        return result

    def run(self, number: int) -> None:
        timed, guard, group = self._timed, self._guard, self._group
        coordinator, party = self._coordinator, self._party
        values = Down(values=np.arange(float(N_FLOATS)), number=number)
        question = Question(
            study=AGREEMENT.study, run="run", method=AGREEMENT.method.name, step=echo.name, version=echo.version,
            group=group.digest, plan=self._plan, turn=number, values=echo.encode_values(values),
        )  # fmt: skip
        message = timed("coordinator: encode, once for all", question.encode)
        about = timed("coordinator: digest, once for all", lambda: question_digest(message))

        session, find = self._session, self._accepted.find
        assert session is not None
        own = find(session.name)
        assert own is not None

        def letter_to(sender: Identity, end: LetterSession, recipient: str, kind: str, body: bytes) -> bytes:
            letter = write_letter(sender, kind=kind, recipient=recipient, body=body, run="run", about=about)
            return tagged(letter, end)

        asked = timed("coordinator: tag, for each", lambda: letter_to(coordinator, session, "north", ASK, message))
        believed = timed(
            "party: check the tag and read",
            lambda: read_letter(asked, sender=coordinator.member, recipient="north", kinds=(ASK,), find=find),
        )
        timed("party: fresh", lambda: self._fresh.check(believed))
        timed("party: asked before?", lambda: guard.recall(believed.body))
        admitted = timed("party: admit", lambda: guard.admit(believed.body, AGREEMENT))
        seat = guard.seat(admitted.question)
        timed("party: keep cost", lambda: guard.keep_cost(admitted.question))
        reply = timed(
            "party: step",
            lambda: admitted.step(guard.table, admitted.plan, admitted.values, rng=guard.rng, seat=seat),
        )
        answer = timed("party: charge, store, flush", lambda: guard.release(believed.body, reply, ()))
        timed("party: anchor", self.anchored.anchor)
        sent = timed("party: tag", lambda: letter_to(party, own, "coordinator", ANSWER, answer))
        got = timed(
            "coordinator: check the tag, for each",
            lambda: read_letter(
                sent, sender=party.member, recipient="coordinator", kinds=(ANSWER,), find=lambda _: session
            ),
        )
        timed("coordinator: decode, for each", lambda: Answer.decode(got.body))


def main(rounds: int, where: str | None) -> None:
    with tempfile.TemporaryDirectory(dir=where) as temporary:
        one = Round(Path(temporary))
        one.anchored.ledger.database.set_trace_callback(one.count)
        for number in range(WARM_UP):
            one.run(number)
        one.anchored.ledger.database.set_trace_callback(None)
        one.times.clear()
        for number in range(WARM_UP, WARM_UP + rounds):
            one.run(number)
        one.anchored.close()
        medians = {step: 1e6 * statistics.median(times) for step, times in one.times.items()}
        for step, median in medians.items():
            print(f"{step:<36}{median:5.0f} us")
        for side in ("party", "coordinator"):
            total = sum(median * (len(PARTIES) if "for each" in step else 1) for step, median in medians.items()
                        if step.startswith(side))  # fmt: skip
            print(f"{side}, in all: {total:.0f} us a round")
        print(f"commits, each with one flush: {(one.n_commits - 1) / WARM_UP:g} for an answer")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400, sys.argv[2] if len(sys.argv) > 2 else None)
