"""Accuracy against epsilon: PrivateNewton, the other methods here and peers, on eight data sets, in one script.

    python benchmarks/private_accuracy.py [--sets a9a,...] [--methods ...] [--relations ...] [--epsilons ...]
                                          [--repeats 20] [--shuffled] [--again] [--outdated METHOD] [--page]
                                          [--out docs]

Five parties with 8, 4, 2, 1 and 1 parts of the records; rows of norm at most 1; delta = 1/n^2; every method with its
defaults, the same everywhere, under each relation that it has. Peers see all records in one place (`peers/`): four
that are written here after papers, learned class frequencies, diffprivlib (in an environment of its own, made by `make
peers`; replace-one) and Opacus (add-remove). A cell has 20 runs, and 5 if its first run takes over ten seconds of a
processor. Every finished cell is kept in accuracy.json in the output folder, and is not measured again; one of before
log-loss was measured is not finished.

After a method has changed, `--outdated METHOD --page` marks its cells. The page says which these are, until they are
measured again.

`--shuffled` also fits averaging to shuffled labels of the fraud set: what it reaches there, it has not from labels.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from peers.accuracy_cell import ORDER, RELATIONS, REPEATS, Cell, is_done, relations_of, runs_wanted, settings_of
from peers.accuracy_page import write_page
from peers.attribute import Attributes, widths_of
from peers.descent_peer import descent_scores
from peers.diffprivlib_peer import diffprivlib_scores, worker_seconds
from peers.double_noise_peer import double_noise_scores
from peers.frequency_peer import frequency_scores
from peers.marginal_peer import marginal_scores
from peers.opacus_peer import opacus_scores
from peers.task import Task
from peers.tight_objective_peer import tight_objective_scores
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from threadpoolctl import threadpool_limits

from tacit.data.encoding import clip_rows
from tacit.datasets import load
from tacit.errors import TacitError
from tacit.federation.federation import Federation
from tacit.methods import make
from tacit.storage import write_whole

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

SETS = (
    *("adult_dpml", "a9a", "bank_marketing", "default_credit", "kdd99", "creditcard_fraud"),
    *("coil2000", "wine_quality"),
)
EPSILONS = (0.01, 0.0316, 0.1, 0.316, 1.0, 3.16, 10.0)
ALSO = {"a9a": (0.4,)}  # where others have published a figure
MOST_RECORDS = 20_000  # of a training table with very many rows and columns, drawn once: kdd99
LARGE = 2e7  # rows times columns
PEERS: dict[str, Callable[[Task], Floats]] = {
    "learned-frequencies": frequency_scores,
    "marginal-statistics": marginal_scores,
    "tight-objective": tight_objective_scores,
    "double-noise-newton": double_noise_scores,
    "tuned-dp-sgd": descent_scores,
    "diffprivlib": diffprivlib_scores,
    "opacus": opacus_scores,
}
WEIGHTS = (8, 4, 2, 1, 1)
SHUFFLED = Cell("creditcard_fraud", "averaging", 0.1, "replace-one")


@dataclass(frozen=True)
class Data:
    """Rows of norm at most 1, and labels 0 and 1."""

    X: Floats
    y: Labels
    X_test: Floats
    y_test: Labels

    @property
    def delta(self) -> float:
        return 1 / len(self.y) ** 2

    def figures(self, scores: Floats) -> dict[str, float]:
        """Accuracy, area under the curve, average precision and log-loss of log odds."""
        against = np.where(self.y_test == 1, -scores, scores)  # the log odds of the wrong class
        return {
            "accuracy": float(np.mean((scores > 0) == self.y_test)),
            "auc": float(roc_auc_score(self.y_test, scores)),
            "average_precision": float(average_precision_score(self.y_test, scores)),
            "log_loss": float(np.mean(np.logaddexp(0.0, against))),
        }

    def frequencies(self) -> dict[str, float]:
        """The figures of one who knows the class frequencies of the training records and nothing else."""
        share = float(self.y.mean())
        figures = self.figures(np.full(len(self.y_test), math.log(share / (1 - share))))
        return {measure: figures[measure] for measure in ("accuracy", "log_loss")}

    def shuffled(self, seed: int) -> Data:
        """The same with training labels that say nothing about their rows."""
        return Data(self.X, np.random.default_rng(seed).permutation(self.y), self.X_test, self.y_test)

    def federation(self) -> Federation:
        return Federation.split(self.X, self.y, weights=WEIGHTS, norm_bound=1.0)


@lru_cache(maxsize=1)
def data(name: str) -> Data:
    """The train and test records of a set, their rows clipped."""
    X, y, X_test, y_test = _encoded(name)
    rows, test_rows = (clip_rows(np.array(part), 1.0, overwrite=True)[0] for part in (X, X_test))
    return Data(rows, y, test_rows, y_test)


@lru_cache(maxsize=1)
def attributes(name: str) -> Attributes:
    """The same records as codes."""
    X, _, X_test, _ = _encoded(name)
    return Attributes.of(X, X_test, widths_of(name, load(name).schema))


def _encoded(name: str) -> tuple[Floats, Labels, Floats, Labels]:
    """The train and test tables of a set; without a test table, all its records cut at random, 80 to 20."""
    tables = load(name).tables
    if "test" in tables:
        (X, y), (X_test, y_test) = tables["train"].arrays(), tables["test"].arrays()
        X, y = _fewer(X, y)
    else:
        X, y = (np.concatenate(parts) for parts in zip(*(table.arrays() for table in tables.values()), strict=True))
        order = np.random.default_rng(0).permutation(len(y))
        cut = int(0.8 * len(y))
        X, y, X_test, y_test = X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]]
    return X, y, X_test, y_test


@lru_cache(maxsize=1)
def federation(name: str) -> Federation:
    return data(name).federation()


def _fewer(X: Floats, y: Labels) -> tuple[Floats, Labels]:
    """A table that is too large for so many runs, cut to some records at random."""
    if X.size <= LARGE:
        return X, y
    chosen = np.random.default_rng(0).choice(len(y), size=MOST_RECORDS, replace=False)
    return X[chosen], y[chosen]


def run_cell(cell: Cell, repeats: int) -> list[dict[str, float]]:
    """The figures of each run of a cell."""
    found = data(cell.set)
    parties = None if cell.method in PEERS else federation(cell.set)
    runs = [one_run(cell, found, parties, seed=0)]
    runs += [one_run(cell, found, parties, seed=seed) for seed in range(1, runs_wanted(runs[0], repeats))]
    return runs


def shuffled_cell(cell: Cell, repeats: int) -> list[dict[str, float]]:
    """The same with training labels shuffled anew for each run; test labels are the true ones."""
    runs = []
    for seed in range(repeats):
        found = data(cell.set).shuffled(seed)
        runs.append(one_run(cell, found, found.federation(), seed=seed))
    return runs


def one_run(cell: Cell, found: Data, parties: Federation | None, *, seed: int) -> dict[str, float]:
    """Fit once; a seed is for peers, since ours have none."""
    task = task_of(cell, found, seed)
    started, spent = time.perf_counter(), time.process_time() + worker_seconds()
    if parties is None:
        scores = PEERS[cell.method](task)
    else:
        model = make(cell.method, {"epsilon": cell.epsilon, "delta": found.delta} | settings_of(cell))
        scores = model.fit(parties).decision_function(found.X_test)
    times = {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() + worker_seconds() - spent,
    }
    return found.figures(scores) | times


def task_of(cell: Cell, found: Data, seed: int) -> Task:
    """What a peer is given; codes are for one that counts, and test labels for one that is tuned by an oracle."""
    return Task(
        X=found.X,
        y=found.y,
        X_test=found.X_test,
        epsilon=cell.epsilon,
        delta=found.delta,
        relation=cell.relation,
        seed=seed,
        attributes=attributes(cell.set) if cell.method == "marginal-statistics" else None,
        y_test=found.y_test if cell.method == "tuned-dp-sgd" else None,
    )


def plain_cell(name: str) -> dict[str, Any]:
    """The plain fit of the same rows, and the class frequencies."""
    found = data(name)
    started = time.perf_counter()
    model = LogisticRegression(C=1.0, max_iter=1000).fit(found.X, found.y)
    seconds = time.perf_counter() - started
    positive = float(found.y_test.mean())
    figures = found.figures(model.decision_function(found.X_test))
    facts = {"n": float(len(found.y)), "d": float(found.X.shape[1]), "positive": positive, "seconds": seconds}
    return figures | facts | {"frequencies": found.frequencies()}


@dataclass(frozen=True)
class Kept:
    """accuracy.json, written anew after every cell."""

    path: Path
    results: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> Kept:
        empty: dict[str, Any] = {"plain": {}, "cells": [], "shuffled": []}
        return cls(path, empty | (json.loads(path.read_text()) if path.exists() else {}))

    def done(self, shelf: str, repeats: int) -> set[Cell]:
        return {Cell.of(kept) for kept in self.results[shelf] if is_done(kept, repeats)}

    def take(self, shelf: str, cell: Cell, runs: list[dict[str, float]]) -> None:
        others = [kept for kept in self.results[shelf] if Cell.of(kept) != cell]
        self.results[shelf] = [*others, cell.entry(runs)]
        self.write()

    def outdate(self, method: str) -> None:
        """Mark the cells of a method that has changed."""
        for kept in self.results["cells"]:
            if kept["method"] == method:
                kept["outdated"] = True
        self.write()

    def write(self) -> None:
        write_whole(self.path, json.dumps(self.results, separators=(",", ":"), sort_keys=True) + "\n")


def wanted_cells(arguments: argparse.Namespace) -> list[Cell]:
    """Every set with every method under each relation that it has, at every epsilon."""
    return [
        Cell(name, method, epsilon, relation)
        for name in arguments.sets.split(",")
        for method in arguments.methods.split(",")
        for relation in relations_of(method)
        if relation in arguments.relations.split(",")
        for epsilon in _epsilons(name, arguments.epsilons)
    ]


def _epsilons(name: str, asked: str | None) -> list[float]:
    return sorted({*EPSILONS, *ALSO.get(name, ())}) if asked is None else [float(word) for word in asked.split(",")]


def measure_plain(pool: ProcessPoolExecutor, kept: Kept, names: set[str]) -> None:
    """The plain fits that are not there, or that were made before log-loss was measured."""
    missing = sorted(name for name in names if "frequencies" not in kept.results["plain"].get(name, {}))
    jobs = {pool.submit(plain_cell, name): name for name in missing}
    for future in as_completed(jobs):
        try:
            kept.results["plain"][jobs[future]] = future.result()
        except TacitError as error:
            print(f"skipped {jobs[future]}: {error}", file=sys.stderr)
    kept.write()


def measure(pool: ProcessPoolExecutor, kept: Kept, arguments: argparse.Namespace) -> None:
    """Everything that was asked for and is not there."""
    repeats, wanted = arguments.repeats, wanted_cells(arguments)
    shuffled = [SHUFFLED] if arguments.shuffled else []
    measure_plain(pool, kept, {*arguments.sets.split(","), *(cell.set for cell in shuffled)})
    jobs: dict[Future[list[dict[str, float]]], tuple[str, Cell]] = {}
    for shelf, work, cells in (("shuffled", shuffled_cell, shuffled), ("cells", run_cell, wanted)):
        done = set() if arguments.again else kept.done(shelf, repeats)
        todo = [cell for cell in cells if cell not in done and cell.set in kept.results["plain"]]
        jobs |= {pool.submit(work, cell, repeats): (shelf, cell) for cell in todo}
    for count, future in enumerate(as_completed(jobs), start=1):
        shelf, cell = jobs[future]
        try:
            runs = future.result()
        except TacitError as error:
            print(f"skipped {cell}: {error}", file=sys.stderr)
            continue
        kept.take(shelf, cell, runs)
        print(f"[{count}/{len(jobs)}] {shelf} {_line(cell, runs)}", flush=True)


def _line(cell: Cell, runs: list[dict[str, float]]) -> str:
    accuracy = [run["accuracy"] for run in runs]
    error_of_mean = np.std(accuracy, ddof=1) / math.sqrt(len(runs)) if len(runs) > 1 else math.nan
    return (
        f"{cell.set} {cell.method} {cell.relation} epsilon {cell.epsilon:g}: {np.mean(accuracy):.4f} +- "
        f"{error_of_mean:.4f}, log-loss {np.mean([run['log_loss'] for run in runs]):.4f}, {len(runs)} runs, "
        f"{np.median([run['cpu_seconds'] for run in runs]):.2f} s of a processor each"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default=",".join(ORDER))
    parser.add_argument("--relations", default=",".join(RELATIONS))
    parser.add_argument("--epsilons", help="otherwise " + ", ".join(map(str, EPSILONS)))
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    parser.add_argument("--shuffled", action="store_true", help="also fit averaging to shuffled labels (fraud)")
    parser.add_argument("--again", action="store_true", help="measure again what was measured before")
    parser.add_argument("--outdated", choices=ORDER, help="this method has changed: mark its cells")
    parser.add_argument("--page", action="store_true", help="measure nothing, and write the page of what is kept")
    arguments = parser.parse_args()
    for option, known in (("methods", ORDER), ("relations", RELATIONS)):
        unknown = set(getattr(arguments, option).split(",")) - set(known)
        if unknown:
            parser.error(f"--{option}: {', '.join(sorted(unknown))} is not one of {', '.join(known)}")
    kept = Kept.read(arguments.out / "accuracy.json")
    if arguments.outdated is not None:
        kept.outdate(arguments.outdated)
    if not arguments.page:
        with ProcessPoolExecutor(max_workers=arguments.workers, initializer=threadpool_limits, initargs=(1,)) as pool:
            measure(pool, kept, arguments)
    write_page(kept.results, arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
