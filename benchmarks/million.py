"""A crowd of up to a million parties in one ensemble: time and memory against the number of parties.

    python benchmarks/million.py [PARTIES ...] [--out docs]      1,000 to 1,000,000 by default
    python benchmarks/million.py --draw --out docs               the figure and the table of what was measured before

Each party holds 22 made-up records of ten columns and has a guard; all have accounts and logs in one ledger. Each
number of parties is measured in a process of its own. Figures are kept in parties.json in the folder `out`, beside
parties.svg and the table in scale.md. A run fails unless every party has paid for its one answer, and no more.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit import Ensemble, Federation, Ledger
from tacit.report.plots import BLUE, VERMILION, picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]

SIZES = (1_000, 10_000, 100_000, 1_000_000)
RECORDS, COLUMNS, PUBLIC_ROWS = 22, 10, 500
EPSILON, DELTA = 0.1, 1e-6  # no grid is fine enough for pure noise of a million parties at this epsilon
BEGIN, END = "<!-- parties -->\n", "<!-- end of parties -->"


def memory() -> float:
    """The largest memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def drawn(n_rows: int, truth: Floats, rng: np.random.Generator) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Made-up records."""
    X = rng.standard_normal((n_rows, COLUMNS))
    X /= 4 * np.sqrt(COLUMNS)
    return X, (X @ truth + rng.logistic(size=n_rows) > 0).astype(np.int64)


def measure(n_parties: int) -> dict[str, Any]:
    """One run, in this process."""
    rng = np.random.default_rng(0)
    truth = 12 * rng.standard_normal(COLUMNS)
    public, X_test = drawn(PUBLIC_ROWS, truth, rng)[0], drawn(20_000, truth, rng)
    X, y = drawn(n_parties * RECORDS, truth, rng)
    groups = np.repeat(np.array([f"{i:07d}" for i in range(n_parties)]), RECORDS)
    ledger, start, busy = Ledger(), time.perf_counter(), time.process_time()
    parties = Federation.split(X, y, groups=groups, norm_bound=1.0, ledger=ledger)
    made, made_busy = time.perf_counter() - start, time.process_time() - busy
    del X, y, groups
    gc.collect()
    model = Ensemble(epsilon=EPSILON, delta=DELTA, public=public).fit(parties)
    wall, busy = time.perf_counter() - start, time.process_time() - busy
    paid = ledger.database.execute("SELECT COUNT(*), COUNT(DISTINCT party) FROM release").fetchone()
    assert paid == (n_parties, n_parties), paid
    assert all(abs(ledger.epsilon(name, delta=DELTA) - EPSILON) < 1e-4 for name in parties.names[:: n_parties // 100])
    for name in parties.names[:: n_parties // 100]:
        assert parties.guard(name).log.verify() == 2
    return {
        "parties": n_parties, "made_seconds": made, "made_processor": made_busy, "seconds": wall, "processor": busy,
        "gigabytes": memory(), "accuracy": float(np.mean(model.predict(X_test[0]) == X_test[1])),
        "load": os.getloadavg()[0],
    }  # fmt: skip


def told(row: dict[str, Any]) -> str:
    n = row["parties"]
    return (
        f"{n:9,d} parties: processor {row['processor']:7.1f} s ({row['processor'] / n * 1e6:4.0f} us a party), "
        f"{row['made_processor']:5.1f} s to make them; wall-clock {row['seconds']:.1f} s, load {row['load']:.0f}; "
        f"{row['gigabytes']:5.2f} GB ({row['gigabytes'] / n * 1e6:4.1f} kB a party); accuracy {row['accuracy']:.4f}"
    )


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| parties | processor | a party | largest memory | a party | wall-clock, at this load of two cores "
        "| accuracy |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        n = row["parties"]
        lines.append(
            f"| {n:,} | {row['processor']:.1f} s | {row['processor'] / n * 1e6:.0f} us | {row['gigabytes']:.2f} GB | "
            f"{row['gigabytes'] / n * 1e6:.1f} kB | {row['seconds']:.0f} s, {row['load']:.0f} | {row['accuracy']:.4f} |"
        )
    return "\n".join(lines) + "\n"


def draw(folder: Path) -> None:
    """The figure, and the table in scale.md."""
    kept = json.loads((folder / "parties.json").read_text(encoding="utf-8"))
    rows = [kept[key] for key in sorted(kept, key=int)]

    def panels(figure: Figure) -> None:
        x = [row["parties"] for row in rows]
        for axes, key, label, color in zip(
            figure.subplots(1, 2), ("processor", "gigabytes"), ("seconds of one processor", "GB"), (BLUE, VERMILION),
            strict=True,
        ):  # fmt: skip
            axes.loglog(x, [row[key] for row in rows], "o-", color=color)
            axes.set(xlabel="parties", ylabel=label)
            axes.minorticks_off()
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.set_xticks(x, [f"{value:,}" for value in x], rotation=30, ha="right")

    svg = picture(
        panels,
        figure_id="parties",
        title="One ensemble of many parties in one process: time and memory",
        description="; ".join(
            f"{row['parties']:,} parties: {row['processor']:.1f} s, {row['gigabytes']:.2f} GB" for row in rows
        ) + ".",
        height=3.4,
        width=9.0,
    )  # fmt: skip
    (folder / "parties.svg").write_text(svg + "\n", encoding="utf-8")
    page = folder / "scale.md"
    if page.exists():
        before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        if begin:
            page.write_text(before + BEGIN + table(rows) + END + rest.partition(END)[2], encoding="utf-8")
    print(table(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parties", type=int, nargs="*")
    parser.add_argument("--out", type=Path, help="where figures are kept; without it they are only printed")
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--one", action="store_true", help="measure in this process, and print the figures as JSON")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.parties[0])))
        return
    for n_parties in () if given.draw else given.parties or SIZES:
        done = subprocess.run(
            [sys.executable, __file__, str(n_parties), "--one"], check=True, stdout=subprocess.PIPE, text=True
        )
        row = json.loads(done.stdout)
        print(told(row), flush=True)
        if given.out:
            path = given.out / "parties.json"
            kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
            path.write_text(json.dumps({**kept, str(n_parties): row}, indent=1) + "\n", encoding="utf-8")
    if given.out:
        draw(given.out)


if __name__ == "__main__":
    main()
