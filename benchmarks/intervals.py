"""Do private Newton's 95 % intervals cover the parameters of a population at that rate?

    python benchmarks/intervals.py [--runs 1000] [--features 5 15 30] [--epsilons 0.3 1 3] [--laws uniform] [--out F]

Each run draws coefficients, 20,000 records and their labels from a logistic model, gives the records to three parties,
fits with the defaults, and looks which of the true coefficients lie in their intervals. Rows are uniform on a cube, or
sparse: feature j is 1 with a chance between 5 and 50 %. A line for each cell: how many intervals cover, the least of
any coefficient, and the standard deviation of (estimate - truth) / standard error, which is 1 if that is right.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from tacit import Federation, PrivateNewton, Schema, Table

N_RECORDS, N_PARTIES = 20_000, 3
HEAD = """# Intervals that count the privacy noise

Written by `python benchmarks/intervals.py --out docs/intervals.md`. Each run draws coefficients, 20,000 records and
their labels from a logistic model, gives the records to three parties, fits `PrivateNewton` with its defaults, and
looks which of the true coefficients lie in their 95 % intervals. Rows are uniform on a cube, or sparse: feature j is 1
with a chance between 5 and 50 %. The spread is the standard deviation of (estimate - truth) / standard error, 1 if that
is right.

"""


@dataclass(frozen=True)
class Cell:
    law: str
    n_features: int
    epsilon: float


def rows(cell: Cell, chance: np.random.Generator) -> np.ndarray:
    size = (N_RECORDS, cell.n_features)
    if cell.law == "uniform":
        return chance.uniform(-1, 1, size=size)
    return (chance.random(size) < np.linspace(0.05, 0.5, cell.n_features)).astype(float)


def run(cell: Cell, seed: int) -> np.ndarray | None:
    """(estimate - truth) / standard error of every coefficient; None if no interval was given."""
    chance = np.random.default_rng([seed, cell.n_features, int(10 * cell.epsilon)])
    d = cell.n_features
    truth = np.append(-0.7, chance.normal(size=d) * 2 / math.sqrt(d))
    X = rows(cell, chance)
    y = (chance.random(N_RECORDS) < expit(truth[0] + X @ truth[1:])).astype(int)
    schema = Schema.of_arrays(d, [0, 1], norm_bound=math.sqrt(d))
    parties = {str(i): Table.from_arrays(X[i::N_PARTIES], y[i::N_PARTIES], schema) for i in range(N_PARTIES)}
    with threadpool_limits(1):
        model = PrivateNewton(epsilon=cell.epsilon).fit(Federation.from_tables(parties))
    told = model.facts_.coefficients
    if any(row.standard_error is None or row.odds_low is None or row.odds_high is None for row in told):
        return None
    middle = np.array([(math.log(row.odds_low) + math.log(row.odds_high)) / 2 for row in told])  # type: ignore[arg-type]
    return (middle - truth) / np.array([row.standard_error for row in told])


def measure(cell: Cell, runs: int, pool: ProcessPoolExecutor) -> str:
    found = list(pool.map(run, [cell] * runs, range(runs)))
    given = np.array([one for one in found if one is not None])
    covered = np.abs(given) <= 1.959964
    least = covered.mean(axis=0).min()
    return (
        f"| {cell.law} | {cell.n_features} | {cell.epsilon:g} | {covered.mean():.3f} | {least:.3f} | {given.std():.2f} "
        f"| {len(given)} |"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--features", type=int, nargs="+", default=[5, 15, 30])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--laws", nargs="+", choices=["uniform", "one-hot"], default=["uniform", "one-hot"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="also write a page with the table to this file")
    chosen = parser.parse_args(arguments)
    lines = [
        "| rows | features | epsilon | covered | least of a coefficient | spread | runs |",
        "|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    with ProcessPoolExecutor(chosen.workers) as pool:
        for law, d, epsilon in product(chosen.laws, chosen.features, chosen.epsilons):
            lines.append(measure(Cell(law, d, epsilon), chosen.runs, pool))
            print(lines[-1], flush=True)
    if chosen.out is not None:
        chosen.out.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
