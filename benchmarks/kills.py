"""kill -9 of daemons at random points of running studies, and what must be true afterwards.

    python benchmarks/kills.py [KILLS] [SEED]

The coordinator, the message server, three center nodes, three parties and the process of `tacit run` are killed and
started again while studies run. Afterwards: every release is in a ledger exactly once, no question got two different
answers, every call of a study finished or stopped with a reason within its deadline. Any of these failing is an error.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.faults.chaos import run_with_kills


def main(kills: int, seed: int) -> None:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as root:
        outcome = run_with_kills(Path(root), kills, seed=seed)
    print(
        f"{outcome.n_kills} kills in {time.perf_counter() - started:.0f} s: {outcome.n_finished} runs finished, "
        f"{outcome.n_stopped} stopped with a reason and were resumed; {outcome.n_releases} releases of "
        f"{outcome.n_questions} questions, each in its ledger once, none with two answers"
    )
    print("killed: " + ", ".join(f"{name} {count}" for name, count in sorted(outcome.victims.items())))


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:3]]
    main(*(numbers + [200, 1][len(numbers) :]))
