"""Do private Newton's 95 % intervals cover the truth at that rate, and the exact estimates of real records?

    python benchmarks/intervals.py [--cells 'narrow-*' ...] [--real] [--runs 300] [--real-runs 20] [--out docs]

A cell is a law of the rows, numbers of records and features, and an epsilon: narrow-1/3000/6/0.3. Or it is a real data
set and an epsilon: real/adult/1. Where a name ends with /robust, the sandwich is asked for. Each run is a federation of
three parties in this process. Data are drawn from seeds; the noise is not, so a repeated run differs. Finished cells
are kept in intervals.json in the output folder and are not measured again; intervals.md beside it is written from that
file. What laws and columns mean stands on that page.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from interval.figures import drawn_figures, numbers_told, real_figures
from interval.laws import Cell, cells, draw
from interval.page import VERSION, drawn_lines, page, real_lines
from interval.real import RealCell, real_cells, real_data
from threadpoolctl import threadpool_limits

from tacit import Federation, PrivateNewton, Table
from tacit.errors import DataError, TacitError
from tacit.report.row import INTERCEPT
from tacit.storage import write_whole

Floats = npt.NDArray[np.float64]

N_PARTIES = 3


@dataclass(frozen=True)
class Run:
    """What one run told (4, k) and the truth (k,), or why it failed."""

    told: Floats | None
    truth: Floats
    cpu_seconds: float
    error: str = ""


def drawn_run(cell: Cell, seed: int) -> Run:
    """One run on drawn records."""
    drawn = draw(cell, seed)
    tables = {
        str(i): Table.from_arrays(drawn.X[i::N_PARTIES], drawn.y[i::N_PARTIES], drawn.schema) for i in range(N_PARTIES)
    }
    method = PrivateNewton(epsilon=cell.epsilon, robust=cell.robust)
    return _run(tables, method, (*drawn.schema.column_names, INTERCEPT), drawn.truth)


def real_run(cell: RealCell, seed: int) -> Run:
    """One run on real records."""
    real = real_data(cell.data_set)
    method = PrivateNewton(epsilon=cell.epsilon, robust=cell.robust)
    return _run(real.parties(N_PARTIES, seed), method, real.exact.names, real.exact.estimate)


def _run(tables: dict[str, Table], method: PrivateNewton, names: Sequence[str], truth: Floats) -> Run:
    started = time.process_time()
    try:
        model = method.fit(Federation.from_tables(tables))
        told = numbers_told(model.facts_.coefficients, names)
    except Exception as error:  # one run that fails is counted and told, and does not cost the cell
        return Run(None, truth, time.process_time() - started, f"{type(error).__name__}: {error}")
    return Run(told, truth, time.process_time() - started)


def measured(
    pool: ProcessPoolExecutor, one: Callable[[Any, int], Run], cell: Cell | RealCell, runs: int
) -> Iterator[Run]:
    """The runs of a cell as they finish; every tenth part of them is told."""
    jobs = [pool.submit(one, cell, seed) for seed in range(runs)]
    for count, job in enumerate(as_completed(jobs), start=1):
        yield job.result()
        if count % max(1, runs // 10) == 0:
            print(f"  {cell.name}: {count} of {runs} runs", file=sys.stderr, flush=True)


def drawn_cell(pool: ProcessPoolExecutor, cell: Cell, runs: int) -> dict[str, Any]:
    """The figures of a cell with a known truth."""
    found = list(measured(pool, drawn_run, cell, runs))
    told, truth = _stacked(found)
    names = [*(f"x{j}" for j in range(cell.n_features)), INTERCEPT]
    return drawn_figures(told, truth, names) | _counts(found)


def real_cell(pool: ProcessPoolExecutor, cell: RealCell, runs: int) -> dict[str, Any]:
    """The figures of a cell of real records."""
    real = real_data(cell.data_set)
    found = list(measured(pool, real_run, cell, runs))
    figures = real_figures(_stacked(found)[0], real.exact.estimate, real.exact.standard_error, real.exact.names)
    return figures | _counts(found) | {"n_records": len(real.y), "n_coefficients": real.schema.n_columns + 1}


def _stacked(found: Sequence[Run]) -> tuple[Floats, Floats]:
    """What the runs that did not fail told, and the truth of each."""
    done = [(run.told, run.truth) for run in found if run.told is not None]
    if not done:
        raise DataError(f"all {len(found)} runs failed; the first with {found[0].error}")
    return np.array([told for told, _ in done]), np.array([truth for _, truth in done])


def _counts(found: Sequence[Run]) -> dict[str, Any]:
    errors = sorted({run.error for run in found if run.error})
    return {
        "version": VERSION,
        "runs": sum(not run.error for run in found),
        "failed": sum(bool(run.error) for run in found),
        "errors": errors[:3],
        "cpu_seconds": round(float(np.median([run.cpu_seconds for run in found])), 3),
    }


def measure(pool: ProcessPoolExecutor, cell: Cell | RealCell, arguments: argparse.Namespace) -> dict[str, Any]:
    """The figures of either kind of cell."""
    if isinstance(cell, Cell):
        return drawn_cell(pool, cell, arguments.runs)
    return real_cell(pool, cell, arguments.real_runs)


def line(cell: Cell | RealCell, found: dict[str, Any]) -> str:
    """The line of a cell in its table."""
    results = {cell.name: found}
    return (drawn_lines(results, [cell]) if isinstance(cell, Cell) else real_lines(results, [cell]))[0]


def wanted_cells(arguments: argparse.Namespace, results: dict[str, Any]) -> list[Cell | RealCell]:
    """The cells that were asked for and are not measured yet with as many runs."""
    everything: list[Cell | RealCell] = [*([] if arguments.real else cells()), *real_cells()]
    asked = [cell for cell in everything if any(fnmatchcase(cell.name, pattern) for pattern in arguments.cells)]
    if arguments.again:
        return asked
    return [cell for cell in asked if not _is_done(cell, results.get(cell.name), arguments)]


def _is_done(cell: Cell | RealCell, found: dict[str, Any] | None, arguments: argparse.Namespace) -> bool:
    least = arguments.runs if isinstance(cell, Cell) else arguments.real_runs
    return found is not None and found["runs"] + found["failed"] >= least and found.get("version", 1) == VERSION


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", default=["*"], help="names of cells, * and ? stand for anything")
    parser.add_argument("--real", action="store_true", help="the real data sets alone")
    parser.add_argument("--runs", type=int, default=300, help="of a cell with a known truth")
    parser.add_argument("--real-runs", type=int, default=20, help="of a cell of real records")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("docs"), help="the folder of intervals.json and intervals.md")
    parser.add_argument("--again", action="store_true", help="measure again what was measured before")
    return parser.parse_args(arguments)


def write_page(path: Path, results: dict[str, Any]) -> None:
    """Write the page; what follows on joint tests is of another script (`joint_test.py`) and stays."""
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    _, heading, rest = before.partition("\n## Does a factor matter")
    write_whole(path, page(results) + heading + rest)


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _arguments(arguments)
    kept = chosen.out / "intervals.json"
    results: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    todo = wanted_cells(chosen, results)
    with ProcessPoolExecutor(chosen.workers, initializer=threadpool_limits, initargs=(1,)) as pool:
        for count, cell in enumerate(todo, start=1):
            try:
                results[cell.name] = measure(pool, cell, chosen)
            except TacitError as error:
                print(f"skipped {cell.name}: {error}", file=sys.stderr, flush=True)
                continue
            lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(results[name])}" for name in sorted(results))
            write_whole(kept, "{\n" + lines + "\n}\n")
            write_page(chosen.out / "intervals.md", results)
            print(f"[{count}/{len(todo)}] {line(cell, results[cell.name])}", flush=True)
    write_page(chosen.out / "intervals.md", results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
