"""Does it matter over how many parties the same records are split? PrivateNewton on adult, in 2, 5 and 50 parties.

    python benchmarks/splits.py [--epsilons 0.1 0.316 1] [--runs 20] [--out docs/splits.md]

Mean accuracy, and how much it differs from that of five parties, beside the standard deviation of a single run, which
is what the noise does to it. Shares of possible colluders come on top of the noise: with K parties it is sqrt(K / (K -
1)) times as large, so that two parties add twice the variance.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path

import numpy as np
from private_accuracy import Data, data
from threadpoolctl import threadpool_limits

from tacit import Federation, PrivateNewton

CASES = {"2": (2, 1), "2, none colluding": (2, 0), "5": (5, 1), "50": (50, 1)}  # parties and colluders
HEAD = """# The same records in 2, 5 and 50 parties

Written by `python benchmarks/splits.py --out docs/splits.md`: `PrivateNewton` on adult, mean of 20 runs. Shares of
possible colluders come on top of the noise: with K parties of which one may collude it is sqrt(K / (K - 1)) times as
large, so that of two parties each adds all of it. The standard deviation of a run is what the noise does to accuracy.

"""


@lru_cache(maxsize=1)
def federation(n_parties: int) -> tuple[Data, Federation]:
    found = data("adult_dpml")
    weights = [1 + i % 4 for i in range(n_parties)]  # unequal
    return found, Federation.split(found.X, found.y, weights=weights, norm_bound=1.0)


def runs_of(case: str, epsilon: float, runs: int) -> list[float]:
    n_parties, colluders = CASES[case]
    found, parties = federation(n_parties)
    # Of two parties one may collude by default only: as a setting, two honest ones must be left.
    method = PrivateNewton(epsilon=epsilon, delta=found.delta, colluders=None if colluders else 0)
    models = (method.fit(parties) for _ in range(runs))
    return [found.figures(model.decision_function(found.X_test))["accuracy"] for model in models]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.316, 1.0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="also write a page with the table to this file")
    chosen = parser.parse_args(arguments)
    cells = [(case, epsilon) for case in CASES for epsilon in chosen.epsilons]
    with ProcessPoolExecutor(chosen.workers, initializer=threadpool_limits, initargs=(1,)) as pool:
        jobs = {cell: pool.submit(runs_of, *cell, chosen.runs) for cell in cells}
        found = {cell: np.array(job.result()) for cell, job in jobs.items()}
    lines = [
        "| parties | epsilon | accuracy | beyond that of 5 | standard deviation of a run |",
        "|---|---|---|---|---|",
    ]
    for case, epsilon in cells:
        runs = found[case, epsilon]
        beyond = runs.mean() - found["5", epsilon].mean()
        lines.append(f"| {case} | {epsilon:g} | {runs.mean():.4f} | {beyond:+.4f} | {runs.std(ddof=1):.4f} |")
    print("\n".join(lines))
    if chosen.out is not None:
        chosen.out.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
