"""Accuracy against epsilon: PrivateNewton, the other methods here and peers, on six data sets, in one script.

    python benchmarks/private_accuracy.py [--sets a9a,...] [--methods ...] [--epsilons ...] [--repeats 20] [--out docs]

Five parties with 8, 4, 2, 1 and 1 parts of the records; rows of norm at most 1; replace-one; delta = 1/n^2; every
method with its defaults, the same everywhere. Peers see all records in one place: diffprivlib (in an environment of
its own, made by `make peers`) and Opacus, whose promise is for adding or removing a record and so asks for less noise.
Every finished cell is kept in accuracy.json in the output folder, and is not measured again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from peers.accuracy_page import write_page
from peers.diffprivlib_peer import diffprivlib_scores
from peers.opacus_peer import opacus_scores
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from threadpoolctl import threadpool_limits

from tacit.data.encoding import clip_rows
from tacit.datasets import load
from tacit.errors import TacitError
from tacit.federation.federation import Federation
from tacit.methods import make

Floats = npt.NDArray[np.float64]

SETS = ("adult_dpml", "a9a", "bank_marketing", "default_credit", "kdd99", "creditcard_fraud")
EPSILONS = (0.01, 0.0316, 0.1, 0.316, 1.0, 3.16, 10.0)
OURS = ("private-newton", "functional-mechanism", "noisy-descent", "objective-perturbation", "averaging")
PEERS: dict[str, Callable[..., Floats]] = {"diffprivlib": diffprivlib_scores, "opacus": opacus_scores}
WEIGHTS = (8, 4, 2, 1, 1)


@dataclass(frozen=True)
class Data:
    """Rows of norm at most 1, and labels 0 and 1."""

    X: Floats
    y: npt.NDArray[np.int64]
    X_test: Floats
    y_test: npt.NDArray[np.int64]

    @property
    def delta(self) -> float:
        return 1 / len(self.y) ** 2

    def figures(self, scores: Floats) -> dict[str, float]:
        """Accuracy, area under the curve and average precision of log odds."""
        return {
            "accuracy": float(np.mean((scores > 0) == self.y_test)),
            "auc": float(roc_auc_score(self.y_test, scores)),
            "average_precision": float(average_precision_score(self.y_test, scores)),
        }


@lru_cache(maxsize=1)
def data(name: str) -> Data:
    """The train and test tables of a set; one without a test table is cut at random, 80 to 20."""
    tables = load(name).tables
    if "test" in tables:
        (X, y), (X_test, y_test) = tables["train"].arrays(), tables["test"].arrays()
    else:
        X, y = next(iter(tables.values())).arrays()
        order = np.random.default_rng(0).permutation(len(y))
        cut = int(0.8 * len(y))
        X, y, X_test, y_test = X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]]
    rows, test_rows = (clip_rows(np.array(part), 1.0, overwrite=True)[0] for part in (X, X_test))
    return Data(rows, y, test_rows, y_test)


@lru_cache(maxsize=1)
def federation(name: str) -> Federation:
    return Federation.split(data(name).X, data(name).y, weights=WEIGHTS, norm_bound=1.0)


def run_cell(name: str, method: str, epsilon: float, repeats: int) -> list[dict[str, float]]:
    """The figures of each run of one method at one epsilon."""
    found = data(name)
    runs = []
    for repeat in range(repeats):
        started = time.perf_counter()
        if method in PEERS:
            scores = PEERS[method](found.X, found.y, found.X_test, epsilon=epsilon, delta=found.delta, seed=repeat)
        else:
            model = make(method, {"epsilon": epsilon, "delta": found.delta})
            scores = model.fit(federation(name)).decision_function(found.X_test)
        runs.append(found.figures(scores) | {"seconds": time.perf_counter() - started})
    return runs


def plain_cell(name: str) -> dict[str, float]:
    """The plain fit of the same rows, and the commonest class."""
    found = data(name)
    started = time.perf_counter()
    model = LogisticRegression(C=1.0, max_iter=1000).fit(found.X, found.y)
    seconds = time.perf_counter() - started
    positive = float(found.y_test.mean())
    figures = found.figures(model.decision_function(found.X_test))
    facts = {"n": float(len(found.y)), "d": float(found.X.shape[1]), "positive": positive, "seconds": seconds}
    return figures | facts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default=",".join([*OURS, *PEERS]))
    parser.add_argument("--epsilons", default=",".join(map(str, EPSILONS)))
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    parser.add_argument("--again", action="store_true", help="measure again what was measured before")
    arguments = parser.parse_args()
    kept = arguments.out / "accuracy.json"
    results = json.loads(kept.read_text()) if kept.exists() else {"plain": {}, "cells": []}
    wanted = [
        (name, method, float(epsilon))
        for name in arguments.sets.split(",")
        for method in arguments.methods.split(",")
        for epsilon in arguments.epsilons.split(",")
    ]
    done = {(c["set"], c["method"], c["epsilon"]) for c in results["cells"] if len(c["runs"]) >= arguments.repeats}
    todo = wanted if arguments.again else [cell for cell in wanted if cell not in done]
    with ProcessPoolExecutor(max_workers=arguments.workers, initializer=threadpool_limits, initargs=(1,)) as pool:
        plain = {
            pool.submit(plain_cell, name): name for name in {cell[0] for cell in wanted} if name not in results["plain"]
        }
        for future in as_completed(plain):
            try:
                results["plain"][plain[future]] = future.result()
            except TacitError as error:
                print(f"skipped {plain[future]}: {error}", file=sys.stderr)
        todo = [cell for cell in todo if cell[0] in results["plain"]]
        jobs = {pool.submit(run_cell, *cell, arguments.repeats): cell for cell in todo}
        for count, future in enumerate(as_completed(jobs), start=1):
            name, method, epsilon = jobs[future]
            try:
                runs = future.result()
            except TacitError as error:
                print(f"skipped {name} {method} {epsilon:g}: {error}", file=sys.stderr)
                continue
            results["cells"] = [
                c for c in results["cells"] if (c["set"], c["method"], c["epsilon"]) != (name, method, epsilon)
            ] + [{"set": name, "method": method, "epsilon": epsilon, "runs": runs}]
            kept.write_text(json.dumps(results, indent=None, separators=(",", ":"), sort_keys=True) + "\n")
            accuracy = [run["accuracy"] for run in runs]
            error_of_mean = np.std(accuracy, ddof=1) / math.sqrt(len(runs)) if len(runs) > 1 else math.nan
            print(
                f"[{count}/{len(jobs)}] {name} {method} epsilon {epsilon:g}: {np.mean(accuracy):.4f} +- "
                f"{error_of_mean:.4f}, {np.median([run['seconds'] for run in runs]):.2f} s a run",
                flush=True,
            )
    write_page(results, arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
