"""Reading and encoding a large file, against DuckDB's own scan of it; and a PrivateNewton fit in constant memory.

    python benchmarks/tabular.py [ROWS] [--folder FOLDER] [--fit]

The file has eight numbers, a whole number, two columns of labels and a target, drawn by DuckDB, as Parquet and as CSV.
DuckDB's scan reads the same columns into numpy, a chunk after another, with as many threads. What is timed of ours is
`Table.from_file`, which looks at every record once, and one pass over the encoded blocks. With --fit also the largest
memory of a process that fits PrivateNewton to the file, for a tenth of the rows and for all of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np

from tacit import Federation, PrivateNewton
from tacit.data.schema import Categorical, Numeric, Schema, Target
from tacit.data.source import MEMORY_LIMIT, THREADS
from tacit.data.table import Table

N_NUMBERS = 8
SITES = tuple(f"site-{i}" for i in range(12))
GRADES = ("low", "middle", "high")
SCHEMA = Schema(
    (
        *(Numeric(f"x{j}", -4, 4) for j in range(N_NUMBERS)), Numeric("age", 0, 120), Categorical("site", SITES),
        Categorical("grade", GRADES),
    ),
    Target("ill", ("no", "yes")),
)  # fmt: skip
VECTOR = 8  # of DuckDB's vectors in a chunk: 16,384 records, as in our blocks


def connect() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": THREADS, "memory_limit": MEMORY_LIMIT})


def write(folder: Path, rows: int) -> dict[str, Path]:
    """Draw the records; files that are there already stay."""
    paths = {kind: folder / f"{rows}.{kind}" for kind in ("parquet", "csv")}
    if all(path.exists() for path in paths.values()):
        return paths
    connection = connect()
    connection.execute("SELECT setseed(0.5)")
    numbers = ", ".join(f"round(2 * (random() + random() + random()) - 3, 4) AS x{j}" for j in range(N_NUMBERS))
    site = f"'site-' || (random() * {len(SITES) - 1})::INTEGER AS site"
    grade = "['low', 'middle', 'high'][1 + (random() * 2)::INTEGER] AS grade"
    connection.execute(
        f"COPY (SELECT *, CASE WHEN random() < 1 / (1 + exp(-x0 + x1 / 2)) THEN 'yes' ELSE 'no' END AS ill FROM "
        f"(SELECT {numbers}, (20 + random() * 70)::INTEGER AS age, {site}, {grade} FROM range({rows}))) "
        f"TO '{paths['parquet']}' (FORMAT parquet)"
    )
    connection.execute(f"COPY (FROM '{paths['parquet']}') TO '{paths['csv']}' (HEADER)")
    return paths


def scan(path: Path) -> int:
    """DuckDB reads every column into numpy."""
    cursor, n_rows = connect().execute(f"SELECT * FROM '{path}'"), 0
    while len(frame := cursor.fetch_df_chunk(VECTOR)):
        n_rows += len(frame)
    return n_rows


def count(path: Path) -> int:
    """DuckDB reads every column and keeps one number of each: nothing comes to Python."""
    sums = ", ".join([f"sum(x{j})" for j in range(N_NUMBERS)] + ["sum(age)"])
    texts = ", ".join(f"sum(length({name}::VARCHAR))" for name in ("site", "grade", "ill"))
    found = connect().execute(f"SELECT count(*), {sums}, {texts} FROM '{path}'").fetchone()
    assert found is not None
    return int(found[0])


def timed(work: Callable[[], object]) -> tuple[float, float]:
    start, busy = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - busy


def compare(kind: str, path: Path, rows: int) -> None:
    tables: list[Table] = []
    assert count(path) == scan(path) == rows  # and the file is in the system's cache
    counted, scanned = timed(lambda: count(path)), timed(lambda: scan(path))
    opened = timed(lambda: tables.append(Table.from_file(path, SCHEMA)))
    passed = timed(lambda: sum(len(block.y) for block in tables[0].blocks()))
    print(
        f"{kind}: {rows:,} records, {path.stat().st_size / 1e9:.2f} GB; processor (wall-clock) seconds: DuckDB sums "
        f"{counted[1]:.1f} ({counted[0]:.1f}), DuckDB into numpy {scanned[1]:.1f} ({scanned[0]:.1f}), opening "
        f"{opened[1]:.1f} ({opened[0]:.1f}), an encoded pass {passed[1]:.1f} ({passed[0]:.1f})"
    )
    print(
        f"{kind}: against DuckDB into numpy, opening takes {opened[1] / scanned[1]:.2f} of its processor time and an "
        f"encoded pass {passed[1] / scanned[1]:.2f}; wall-clock {opened[0] / scanned[0]:.2f} and "
        f"{passed[0] / scanned[0]:.2f}",
        flush=True,
    )


def fit(path: Path) -> None:
    """Fit to the file and a small neighbour, and print what it took."""
    rng = np.random.default_rng(0)
    small = Table.from_arrays(
        np.column_stack([rng.uniform(-3, 3, (2000, N_NUMBERS)), rng.integers(20, 90, 2000), rng.choice(SITES, 2000),
                         rng.choice(GRADES, 2000)]),
        rng.choice(["no", "yes"], 2000), SCHEMA,
    )  # fmt: skip
    parties = Federation.from_tables({"large": Table.from_file(path, SCHEMA), "small": small})
    seconds, busy = timed(lambda: PrivateNewton(epsilon=1.0).fit(parties))
    print(json.dumps({"seconds": seconds, "processor": busy, "megabytes": largest_memory()}))


def largest_memory() -> float:
    """In MB, of this process alone: `getrusage` also counts what started it."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, nargs="?", default=10_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "tacit-tabular")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--fit-file", type=Path, help="fit to this file in this process")
    given = parser.parse_args()
    if given.fit_file:
        fit(given.fit_file)
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    for kind, path in write(given.folder, given.rows).items():
        compare(kind, path, given.rows)
    for rows in (given.rows // 10, given.rows) if given.fit else ():
        path = write(given.folder, rows)["parquet"]
        done = subprocess.run(
            [sys.executable, __file__, "--fit-file", str(path)], check=True, stdout=subprocess.PIPE, text=True
        )
        took = json.loads(done.stdout)
        print(
            f"PrivateNewton, {rows:,} records of Parquet: {took['processor']:.1f} s of processor "
            f"({took['seconds']:.1f} s), largest memory {took['megabytes']:.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
