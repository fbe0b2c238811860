"""Does `tacit plan` tell the truth? Forecasts of heart, adult and bank against the runs that follow.

    python benchmarks/forecast.py [--epsilons 0.316,1,3.16] [--method private-newton] [--sets heart_disease,adult]

Of each set, half of the records are public: the forecast rehearses on them. The other half belong to the parties, and
the run is measured on a fifth of those. Both are repeated over random halves, since heart has 920 records in all.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np

from tacit.data.table import Table
from tacit.datasets import load
from tacit.errors import DataError
from tacit.federation.federation import Federation
from tacit.studies.forecast import Forecast, forecast
from tacit.studies.run import method_of
from tacit.studies.study import PrivacyRequest, Study

SETS = {"heart_disease": 20, "adult": 3, "bank_marketing": 3}  # random halves of each
WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])


def halves(pooled: Table, repeats: int) -> Iterator[tuple[Table, dict[str, Table], Table]]:
    """Public records, the parties' tables and records to measure on."""
    for repeat in range(repeats):
        order = np.random.default_rng(repeat).permutation(pooled.n_records)
        half, cut = pooled.n_records // 2, int(0.9 * pooled.n_records)
        parts = np.split(order[half:cut], (np.cumsum(WEIGHTS)[:-1] * (cut - half)).astype(int))
        tables = {f"party{k}": pooled.take(part, f"party{k}") for k, part in enumerate(parts, start=1)}
        yield pooled.take(order[:half], "public"), tables, pooled.take(order[cut:], "test")


def measure(study: Study, tables: dict[str, Table], test: Table) -> tuple[int, int, float, float]:
    """Rounds, bytes, seconds and accuracy of one run."""
    started = time.perf_counter()
    model = method_of(study).fit(Federation.from_tables(tables))
    seconds = time.perf_counter() - started
    return model.n_rounds_, model.facts_.traffic.bytes_total, seconds, model.score(test)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilons", default="0.316,1,3.16")
    parser.add_argument("--method", default=None)
    parser.add_argument("--sets", default=",".join(SETS))
    arguments = parser.parse_args()
    print(
        "set              epsilon  rounds   bytes, foretold/found   time, foretold/found   accuracy, foretold - found"
    )
    for name in arguments.sets.split(","):
        try:
            data = load(name)
            pooled = Table.concatenate(list(data.tables.values()))
        except DataError as error:
            print(f"skipped {name}: {error}")
            continue
        for epsilon in map(float, arguments.epsilons.split(",")):
            request = PrivacyRequest(epsilon=epsilon, delta=1 / pooled.n_records**2)
            study = Study(name=name, purpose="forecast", schema=data.schema, method=arguments.method, privacy=request)
            told: list[Forecast] = []
            found = []
            for public, tables, test in halves(pooled, SETS[name]):
                sizes = {party: table.n_records for party, table in tables.items()}
                told += forecast(study, sizes, public=public).forecasts
                found += [measure(study, tables, test) for _ in range(3)]
            rounds, n_bytes, _, accuracy = np.mean(found, axis=0)
            foretold = float(np.mean([f.accuracy.mean for f in told]))
            print(
                f"{name:15} {epsilon:8g}  {told[0].rounds:3d} / {rounds:<4.1f}  {told[0].n_bytes / n_bytes:12.3f}"
                f"{np.median([f.seconds for f in told]) / np.median([run[2] for run in found]):22.2f}"
                f"{foretold:18.3f} - {accuracy:.3f} = {foretold - accuracy:+.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
