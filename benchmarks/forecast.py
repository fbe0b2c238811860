"""Does `tacit plan` tell the truth? Forecasts of heart, adult, bank and fraud against the runs that follow.

    python benchmarks/forecast.py [--epsilons 0.316,1,3.16] [--method private-newton] [--sets heart_disease,adult]

Of each set, half of the records are public: the forecast rehearses on them. The other half belong to the parties, and
the run is measured on a fifth of those. Both are repeated over random halves, since heart has 920 records in all.
Shown are accuracy, AUC and log-loss, foretold and found; the median over coefficients of the ratio of half-widths,
foretold to found; and how many coefficients were not identified.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from tacit.data.table import Table
from tacit.datasets import load
from tacit.errors import DataError
from tacit.federation.federation import Federation
from tacit.studies.expectation import expectation
from tacit.studies.forecast import Forecast, forecast
from tacit.studies.rehearsal import RehearsedRun, rehearse
from tacit.studies.run import method_of
from tacit.studies.study import PrivacyRequest, Study

SETS = {"heart_disease": 20, "adult": 3, "bank_marketing": 3, "creditcard_fraud": 2}  # random halves of each
WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])


def halves(pooled: Table, repeats: int) -> Iterator[tuple[Table, dict[str, Table], Table]]:
    """Public records, the parties' tables and records to measure on."""
    for repeat in range(repeats):
        order = np.random.default_rng(repeat).permutation(pooled.n_records)
        half, cut = pooled.n_records // 2, int(0.9 * pooled.n_records)
        parts = np.split(order[half:cut], (np.cumsum(WEIGHTS)[:-1] * (cut - half)).astype(int))
        tables = {f"party{k}": pooled.take(part, f"party{k}") for k, part in enumerate(parts, start=1)}
        yield pooled.take(order[:half], "public"), tables, pooled.take(order[cut:], "test")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilons", default="0.316,1,3.16")
    parser.add_argument("--method", default=None)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--runs", type=int, default=3, help="of each random half")
    arguments = parser.parse_args()
    print(
        "foretold / found    epsilon    bytes  time   accuracy        AUC             log-loss        widths  lost rows"
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
            found: list[RehearsedRun] = []
            for public, tables, test in halves(pooled, SETS[name]):
                sizes = {party: table.n_records for party, table in tables.items()}
                told += forecast(study, sizes, public=public).forecasts
                for _ in range(arguments.runs):
                    found.append(rehearse(method_of(study), Federation.from_tables(tables), test))
            print(f"{name:18} {epsilon:8g} {line(told, found)}", flush=True)


def line(told: list[Forecast], found: list[RehearsedRun]) -> str:
    """Forecasts beside what runs gave; of widths the median over coefficients of foretold / found."""
    runs = [run.measured for run in found]
    really = expectation(told[0].epsilon, runs, {})
    n_bytes = np.mean([run.model.facts_.traffic.bytes_total for run in found])
    seconds = np.median([f.seconds for f in told]) / np.median([run.seconds for run in found])
    pairs = []
    for quantity in ("accuracy", "auc", "log_loss"):
        foretold = np.mean([getattr(f, quantity).mean for f in told])
        pairs.append(f"{foretold:6.3f} / {getattr(really, quantity).mean:.3f}")
    widths = []
    for width in really.widths:
        foretold = np.median([w.half_width for f in told for w in f.widths if w.term == width.term])
        if np.isfinite(foretold) and np.isfinite(width.half_width):
            widths.append(foretold / width.half_width)
    lost = f"{np.mean([f.not_identified for f in told]):.1f} / {really.not_identified:.1f}"
    ratio = f"{np.median(widths):6.2f}" if widths else "     -"
    return f"{told[0].n_bytes / n_bytes:8.3f} {seconds:5.2f} {'  '.join(pairs)} {ratio}  {lost}"


if __name__ == "__main__":
    main()
