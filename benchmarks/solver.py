"""One exact fit: our solver against scikit-learn's lbfgs, and a table larger than one wants in memory.

python benchmarks/solver.py [--rows 1000000] [--features 50]
python benchmarks/solver.py --parquet [--rows 5000000]     (a Parquet file in a temporary folder; prints peak memory)
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.special import expit

from tacit.models.loss import Array, Labels
from tacit.models.solver import Problem, fit

BLOCK_ROWS = 16_384
TARGET_RATIO = 1.5


def records(rows: int, features: int) -> tuple[Array, Labels]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features))
    theta = rng.normal(size=features) * 0.3
    return X, (rng.random(rows) < expit(X @ theta - 0.5)).astype(np.int64)


def against_scikit_learn(rows: int, features: int, l2: float) -> bool:
    """Both reach the same objective; the ratio of their times must stay below the target."""
    from sklearn.linear_model import LogisticRegression

    X, y = records(rows, features)

    def blocks() -> Iterator[tuple[Array, Labels]]:
        return ((X[i : i + BLOCK_ROWS], y[i : i + BLOCK_ROWS]) for i in range(0, rows, BLOCK_ROWS))

    start = time.perf_counter()
    ours = fit(blocks, problem=Problem(n_features=features, l2=l2))
    our_seconds = time.perf_counter() - start

    start = time.perf_counter()
    theirs = LogisticRegression(C=1 / l2, tol=1e-4, max_iter=1000).fit(X, y)
    their_seconds = time.perf_counter() - start

    theta = np.r_[theirs.coef_[0], theirs.intercept_]
    loss = Problem(n_features=features).loss.sums(blocks, theta, curvature=False).loss
    their_objective = loss + l2 / 2 * float(theta[:-1] @ theta[:-1])
    gap = (their_objective - ours.objective) / ours.objective
    ratio = our_seconds / their_seconds
    print(f"tacit         {our_seconds:6.2f} s  objective {ours.objective:.6f}  {ours.passes} passes")
    print(f"scikit-learn  {their_seconds:6.2f} s  objective {their_objective:.6f}  {theirs.n_iter_[0]} iterations")
    print(f"ratio {ratio:.2f} (target {TARGET_RATIO}); relative gap of the objectives {gap:.1e}")
    print(f"certified distance from the optimum {ours.distance_bound:.1e}")
    return ratio <= TARGET_RATIO and abs(gap) <= 1e-8


def from_parquet(rows: int, features: int, l2: float) -> None:
    """Write a Parquet file, and fit it in a process of its own, so that its peak memory is the fit's."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.parquet"
        for work, arguments in ((_write, (path, rows, features)), (_fit_file, (path, features, l2))):
            process = context.Process(target=work, args=arguments)
            process.start()
            process.join()
            if process.exitcode != 0:
                sys.exit(f"{work.__name__} failed")


def _write(path: Path, rows: int, features: int) -> None:
    import duckdb

    columns = ", ".join(f"random() * 2 - 1 AS x{j}" for j in range(features))
    score = " + ".join(f"{(-1) ** j * (j % 7) / 7:.3f} * x{j}" for j in range(features))
    label = f"CAST(random() < 1 / (1 + exp(-({score}))) AS INTEGER) AS y"
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"COPY (SELECT *, {label} FROM (SELECT {columns} FROM range({rows}))) TO '{path}' (FORMAT parquet)"
        )
    print(f"written: {rows} x {features}, {path.stat().st_size / 2**20:.0f} MB")


def _fit_file(path: Path, features: int, l2: float) -> None:
    from tacit.data.schema import Schema
    from tacit.data.table import Table

    schema = Schema.of_arrays(features, (0, 1))
    idle = _peak_megabytes()
    start = time.perf_counter()
    table = Table.from_file(path, schema)
    opened = time.perf_counter() - start
    solution = fit(lambda: table.blocks(rows=BLOCK_ROWS), problem=Problem(n_features=features, l2=l2))
    seconds = time.perf_counter() - start
    print(f"opened in {opened:.1f} s, fitted in {seconds:.1f} s all told, {solution.passes} passes")
    print(f"peak memory {_peak_megabytes():.0f} MB ({idle:.0f} MB before the table was opened)")
    print(f"certified distance from the optimum {solution.distance_bound:.1e}")


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parquet", action="store_true")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--l2", type=float, default=1.0)
    arguments = parser.parse_args()
    if arguments.parquet:
        from_parquet(arguments.rows or 5_000_000, arguments.features, arguments.l2)
    elif not against_scikit_learn(arguments.rows or 1_000_000, arguments.features, arguments.l2):
        sys.exit("the target was missed")


if __name__ == "__main__":
    main()
