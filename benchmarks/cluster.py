"""A party whose table lies on a Dask cluster of two workers: PrivateNewton and an exact fit, against one process.

    python benchmarks/cluster.py [ROWS] [COLUMNS] [--kill] [--folder FOLDER] [--method METHOD]

Records are drawn into Parquet files of a million rows. Each worker may use 2 GB. In the same run: one process that
reads the same files one after another, and the largest memory of each. With --kill a worker is killed in the second
pass. The models are compared to the last digit; the script fails if they differ.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psutil
from distributed import LocalCluster

import tacit
from tacit.data.cluster import Cluster, cut
from tacit.data.parquet import Reading, find_files, span_blocks
from tacit.data.schema import Numeric, Schema, Target
from tacit.data.stream import PART_ROWS, LocalParts
from tacit.data.table import Table
from tacit.federation.policy import Policy
from tacit.rand import Rng

FILE_ROWS = 1_000_000
METHODS = ("private-newton", "privlogit")


def write(folder: Path, rows: int, columns: int) -> None:
    """Draw records into files; those that are there already stay."""
    connection = duckdb.connect(config={"threads": 2, "memory_limit": "2GB"})
    for number, start in enumerate(range(0, rows, FILE_ROWS)):
        path = folder / f"{columns}-{number:03}.parquet"
        if path.exists():
            continue
        connection.execute(f"SELECT setseed({(number % 100) / 100})")
        drawn = ", ".join(f"(2 * random() - 1)::FLOAT AS x{j}" for j in range(columns))
        odds = " + ".join(f"{(-1) ** j / (1 + j):.4f} * x{j}" for j in range(min(columns, 10)))
        connection.execute(
            f"COPY (SELECT *, CASE WHEN random() < 1 / (1 + exp(-2 * ({odds}))) THEN 'yes' ELSE 'no' END AS y "
            f"FROM (SELECT {drawn} FROM range({min(FILE_ROWS, rows - start)}))) TO '{path}.new' (FORMAT parquet)"
        )
        Path(f"{path}.new").rename(path)


def one_process(pattern: str, schema: Schema, like: Table) -> Table:
    """The same files in this process, read part by part."""
    files, reading = find_files([pattern]), Reading(schema, (), "error")
    streams = [lambda rows, part=part: span_blocks(part, reading, rows) for part in cut(files, PART_ROWS)]
    return Table("files", schema, like._facts, LocalParts(streams), lambda: 0)


class Watch:
    """The largest resident memory of the workers."""

    def __init__(self, cluster: Any) -> None:
        self.cluster, self.largest, self.over = cluster, 0, threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()

    def _look(self) -> None:
        while not self.over.wait(0.2):
            for worker in list(self.cluster.workers.values()):
                try:
                    self.largest = max(self.largest, psutil.Process(worker.process.pid).memory_info().rss)
                except (psutil.Error, AttributeError):
                    continue  # between two lives


def neighbour(schema: Schema) -> Table:
    """Another party, small: an exact sum takes two."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, schema.n_columns))
    return Table.from_arrays(X, np.where(X[:, 0] + rng.normal(size=len(X)) > 0, "yes", "no"), schema)


def timed(method: str, table: Table) -> tuple[float, Any]:
    made = {
        "private-newton": lambda: tacit.PrivateNewton(epsilon=1.0),
        "privlogit": lambda: tacit.PrivLogit(l2=1.0, standard_errors=False, secure="sums"),
    }[method]()
    parties = tacit.Federation.from_tables(
        {"large": table, "small": neighbour(table.schema)}, policy=Policy(not_private=("privlogit",)), rng=Rng.seeded(1)
    )
    start = time.perf_counter()
    made.fit(parties)
    return time.perf_counter() - start, made


def killing(cluster: Any) -> None:
    """Kill a worker at the third sum that comes back."""
    in_order, seen = Cluster.in_order, [0]

    def counted(self: Cluster, function: Any, items: Any) -> Iterator[Any]:
        for value in in_order(self, function, items):
            yield value
            seen[0] += 1
            if seen[0] == 3:
                os.kill(next(iter(cluster.workers.values())).process.pid, signal.SIGKILL)

    Cluster.in_order = counted  # type: ignore[assignment]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, nargs="?", default=2_000_000)
    parser.add_argument("columns", type=int, nargs="?", default=50)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "tacit-cluster")
    parser.add_argument("--method", choices=METHODS, action="append", help="one of them alone")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    write(given.folder, given.rows, given.columns)
    features = tuple(Numeric(f"x{j}", -1, 1) for j in range(given.columns))
    schema = Schema(features, Target("y", ("no", "yes")), norm_bound=float(np.sqrt(given.columns)))
    pattern = str(given.folder / f"{given.columns}-*.parquet")
    size = sum(path.stat().st_size for path in given.folder.glob(f"{given.columns}-*.parquet"))
    with LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="2GB", dashboard_address=":0") as cluster:
        start = time.perf_counter()
        table = Table.from_dask(pattern, schema, cluster.scheduler_address)
        print(
            f"{table.n_records:,} x {given.columns}, {size / 1e9:.1f} GB; opened in {time.perf_counter() - start:.0f} s"
        )
        alone, watch = one_process(pattern, schema, table), Watch(cluster)
        if given.kill:
            killing(cluster)
        for method in given.method or METHODS:
            seconds, model = timed(method, table)
            print(f"{method}: two workers {seconds:.1f} s, the largest {watch.largest / 1e9:.2f} GB", flush=True)
            other_seconds, other = timed(method, alone)
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            same = np.array_equal(model.coef_, other.coef_) and np.array_equal(model.intercept_, other.intercept_)
            print(
                f"{method}: one process {other_seconds:.1f} s ({seconds / other_seconds:.2f} of it), {own:.2f} GB",
                flush=True,
            )
            if not same:
                raise SystemExit(f"{method}: the models differ")
            print(f"{method}: the same model to the last digit", flush=True)
        watch.over.set()


if __name__ == "__main__":
    main()
