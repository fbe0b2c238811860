"""A crowd votes on KDD-99: accuracy with and without privacy of a whole party, and time against the local fits alone.

python benchmarks/ensemble.py --activities     1,000 parties of six records: the rule for a party's l2
python benchmarks/ensemble.py [--parties 20000] [--records 22] [--rows 2000] [--epsilon 0.1] [--repeats 3]

Parties hold random records of the 10 % training file. The public rows are training records that no party holds, their
labels thrown away, as in Hamm, Cao and Belkin 2016. Accuracy is on 50,000 random records of the test file, whose
attacks are partly of kinds that the training file does not have. Without the data set nothing is measured.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np

from tacit import Federation, Policy
from tacit.data.table import Table
from tacit.datasets import load
from tacit.errors import DataError
from tacit.methods.ensemble.classifier import local_models
from tacit.methods.ensemble.method import Ensemble
from tacit.reproduce.hamm.figure import activity_crowd

LINES: dict[str, dict[str, Any]] = {
    "statistic, shaped noise": {"delta": 0},
    "statistic, shaped noise, delta = 1e-6": {"delta": 1e-6},
    "statistic, isotropic noise": {"delta": 0, "noise": "isotropic"},
    "entity, soft (sound constants)": {"delta": 0, "release": "minimiser"},
    "entity, vote (sound constants)": {"delta": 0, "release": "minimiser", "labels": "vote"},
    "entity, avg (sound constants)": {"delta": 0, "release": "minimiser", "labels": "avg"},
    "as printed, soft": {"calibration": "paper"},
    "as printed, vote": {"calibration": "paper", "labels": "vote"},
    "as printed, avg": {"calibration": "paper", "labels": "avg"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", type=int, default=20_000)
    parser.add_argument("--records", type=int, default=22)
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--all", action="store_true", help="also the lines that trust an entity")
    parser.add_argument("--activities", action="store_true", help="six activities, by a party's l2")
    arguments = parser.parse_args()
    if arguments.activities:
        activities(arguments.repeats)
        return
    try:
        tables = load("kdd99").tables
    except DataError as error:
        print(f"skipped: {error}")
        return
    chance = np.random.default_rng(0)
    X, y = tables["train"].arrays()
    order = chance.permutation(len(X))
    n_private = arguments.parties * arguments.records
    groups = np.repeat(np.arange(arguments.parties), arguments.records).astype(str)
    held, spare = order[:n_private], order[n_private : n_private + arguments.rows]
    public = X[spare]
    X_test, y_test = tables["test"].arrays()
    seen = chance.permutation(len(X_test))[:50_000]
    parties = Federation.split(
        X[held],
        y[held],
        groups=groups,
        norm_bound=tables["train"].schema.radius,
        policy=Policy(not_private=["ensemble"]),
    )
    print(f"{arguments.parties} parties x {arguments.records} records, {len(public)} public rows, {X.shape[1]} columns")
    local = local_seconds(parties)

    lines = {name: own for name, own in LINES.items() if arguments.all or name.startswith("statistic")}
    for name, epsilon, own in [
        ("no noise", math.inf, {}),
        *((name, arguments.epsilon, own) for name, own in lines.items()),
    ]:
        scores, seconds, busy = [], [], []
        for _ in range(1 if math.isinf(epsilon) else arguments.repeats):
            start, start_busy = time.perf_counter(), time.process_time()
            model = Ensemble(epsilon=epsilon, public=public, **own).fit(parties)
            seconds.append(time.perf_counter() - start)
            busy.append(time.process_time() - start_busy)
            scores.append(float(np.mean(model.predict(X_test[seen]) == y_test[seen])))
        print(
            f"{name:40} epsilon {epsilon:<5g} accuracy {np.mean(scores):.4f} (least {min(scores):.4f})  "
            f"{np.mean(seconds):6.1f} s, processor {np.mean(busy):5.1f} s, {np.mean(busy) / local:.1f} x local fits",
            flush=True,
        )


def activities(repeats: int) -> None:
    """The nine people of UCI HAR's test, by votes of 1,000 parties with six records of the others each."""
    for epsilon in (math.inf, 3.0, 1.0):
        for l2 in (None, 6e-4, 1.0):
            scores = []
            for seed in range(repeats):
                crowd = activity_crowd(seed)
                groups = np.repeat(np.arange(crowd.n_parties), crowd.size).astype(str)
                parties = Federation.split(crowd.X, crowd.y, groups=groups, norm_bound=1.0)
                model = Ensemble(epsilon=epsilon, delta=0, public=crowd.auxiliary, l2=l2).fit(parties)
                scores.append(float(np.mean(np.asarray(model.predict(crowd.X_test)) == crowd.y_test)))
            shown = "rule" if l2 is None else f"{l2:g}"
            print(f"epsilon {epsilon:<4g} l2 {shown:<6} accuracy {np.mean(scores):.3f}", flush=True)


def local_seconds(parties: Federation) -> float:
    """The processor time of the local fits alone."""
    tables: list[Table] = [parties.guard(name).table for name in parties.names]
    start = time.process_time()
    for some in range(0, len(tables), 2048):
        local_models(tables[some : some + 2048], l2=1.0, constant=1.0)
    seconds = time.process_time() - start
    print(f"local fits alone: processor {seconds:.1f} s")
    return seconds


if __name__ == "__main__":
    main()
