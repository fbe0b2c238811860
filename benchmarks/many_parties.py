"""Thousands of small fits at once: time of `fit_many`, and its distance from the single solver.

python benchmarks/many_parties.py [--parties 20000] [--records 22] [--features 123]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from tacit.models.batch import fit_many
from tacit.models.solver import Problem, fit

CHECKED = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parties", type=int, default=20_000)
    parser.add_argument("--records", type=int, default=22)
    parser.add_argument("--features", type=int, default=123)
    parser.add_argument("--l2", type=float, default=0.1)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    parties, records, features = arguments.parties, arguments.records, arguments.features
    # Rows as those of a9a: sparse zeros and ones, scaled to norm at most 1.
    X = (rng.random((parties * records, features)) < 0.11) / np.sqrt(features)
    theta = rng.normal(size=features) * 3
    y = (X @ theta + rng.logistic(size=len(X)) > 0).astype(np.int64)
    offsets = np.arange(parties + 1, dtype=np.int64) * records
    problem = Problem(n_features=features, l2=arguments.l2, intercept="feature")

    start, busy = time.perf_counter(), time.process_time()
    many = fit_many(X, y, offsets, problem=problem)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy

    gap, alone = 0.0, time.process_time()
    checked = range(0, parties, max(1, parties // CHECKED))
    for p in checked:
        rows = slice(offsets[p], offsets[p + 1])
        single = fit(lambda rows=rows: [(X[rows], y[rows])], problem=problem)  # type: ignore[misc]
        gap = max(gap, float(np.abs(single.theta - many.theta[p]).max()))
    ratio = (time.process_time() - alone) / len(checked) * parties / busy
    print(f"fit_many  {parties} parties x {records} records x {features} features: {seconds:.2f} s ({busy:.2f} busy)")
    print(f"one at a time they would take {ratio:.0f} times the processor time")
    print(f"largest distance bound {many.distance_bound.max():.2e}; largest gap to the single solver {gap:.2e}")


if __name__ == "__main__":
    main()
