"""Parties with unlike distributions: four hospitals as they are, and the same records dealt out at random.

python benchmarks/unlike.py [--runs 10] [--out docs/unlike.md]

The heart data come from four hospitals: patients differ in age, in how many are ill and in what is missing. In each run
30 % of every hospital's records are for the test. "As they are" gives each hospital its own records; "dealt
out" gives the four parties as many records as before, drawn at random from all. A method that opens sums over all
records cannot tell the two apart, but for its noise. One that fits a model at each party can. Log-loss, AUC and
accuracy are on the test records of all hospitals together; means and standard errors over the runs.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

from tacit import (
    Averaging,
    Federation,
    FunctionalMechanism,
    NoisyDescent,
    ObjectivePerturbation,
    Policy,
    Pooled,
    PrivateNewton,
    Rng,
    Table,
)
from tacit import datasets as public
from tacit.storage import write_whole

METHODS: dict[str, Any] = {
    "Pooled (no privacy)": lambda: Pooled(l2=1.0),
    "Averaging, no noise": lambda: Averaging(epsilon=math.inf, l2=1.0),
    "Averaging, epsilon 3": lambda: Averaging(epsilon=3.0),
    "ObjectivePerturbation, epsilon 3": lambda: ObjectivePerturbation(epsilon=3.0),
    "FunctionalMechanism, epsilon 3": lambda: FunctionalMechanism(epsilon=3.0),
    "NoisyDescent, epsilon 3": lambda: NoisyDescent(epsilon=3.0),
    "PrivateNewton, epsilon 1": lambda: PrivateNewton(epsilon=1.0),
    "PrivateNewton, epsilon 3": lambda: PrivateNewton(epsilon=3.0),
}
POLICY = Policy(not_private=["pooled", "averaging"])


def split(tables: dict[str, Table], seed: int) -> tuple[dict[str, Table], dict[str, Table]]:
    """The records of each hospital to learn from, and those for the test."""
    chance = Rng.seeded(seed).generator()
    train, test = {}, {}
    for name, table in tables.items():
        order = chance.permutation(table.n_complete)
        cut = round(0.7 * len(order))
        train[name], test[name] = table.take(order[:cut], name), table.take(order[cut:], name)
    return train, test


def dealt(train: dict[str, Table], seed: int) -> dict[str, Table]:
    """The same records at parties of the same sizes, dealt out at random."""
    everything = Table.concatenate(list(train.values()))
    order, start, found = Rng.seeded(seed).child("dealt").permutation(everything.n_complete), 0, {}
    for name, table in train.items():
        found[name] = everything.take(order[start : start + table.n_complete], name)
        start += table.n_complete
    return found


def scores(model: Any, tables: list[Table]) -> tuple[float, float, float]:
    """Log-loss, AUC and accuracy on all records of these tables."""
    table = Table.concatenate(tables)
    X, y = table.arrays()
    chance = 1 / (1 + np.exp(-(X @ model.coef_[0] + model.intercept_[0])))
    auc = roc_auc_score(y, chance) if 0 < y.mean() < 1 else math.nan
    return (
        log_loss(y, np.clip(chance, 1e-12, 1 - 1e-12), labels=[0, 1]),
        auc,
        float(np.mean((chance > 0.5) == (y == 1))),
    )


def shown(values: list[float]) -> str:
    mean, spread = np.nanmean(values), np.nanstd(values, ddof=1) / math.sqrt(len(values))
    return f"{mean:.3f} ± {spread:.3f}"


def compared(splits: list[tuple[dict[str, Table], dict[str, Table]]]) -> list[str]:
    """A line a method: as they are, and dealt out."""
    lines = [
        "| method | as they are: log-loss | AUC | accuracy | dealt out: log-loss | AUC | accuracy |",
        "|---" * 7 + "|",
    ]
    for name, make in METHODS.items():
        found: dict[str, list[tuple[float, float, float]]] = {"own": [], "dealt": []}
        for seed, (train, test) in enumerate(splits):
            for kind, tables in (("own", train), ("dealt", dealt(train, seed))):
                parties = Federation.from_tables(tables, policy=POLICY, rng=Rng.seeded(seed))
                found[kind].append(scores(make().fit(parties), list(test.values())))
        cells = [shown([one[k] for one in found[kind]]) for kind in ("own", "dealt") for k in range(3)]
        lines.append(f"| {' | '.join([name, *cells])} |")
        print(lines[-1], flush=True)
    return lines


def each_hospital(splits: list[tuple[dict[str, Table], dict[str, Table]]]) -> list[str]:
    """Accuracy at each hospital: of its own model, of all others' together, of all, and of all in private."""
    kinds = ("its own records", "the other three", "all four", "all four, PrivateNewton, epsilon 3")
    lines = [f"| accuracy at | ill | {' | '.join(kinds)} |", "|---" * 6 + "|"]
    for name in splits[0][0]:
        found: dict[str, list[float]] = {kind: [] for kind in kinds}
        ill = []
        for seed, (train, test) in enumerate(splits):
            others = {other: table for other, table in train.items() if other != name}
            for kind, tables in zip(kinds, ({name: train[name]}, others, train, train), strict=True):
                method = PrivateNewton(epsilon=3.0) if "Newton" in kind else Pooled(l2=1.0)
                parties = Federation.from_tables(tables, policy=POLICY, rng=Rng.seeded(seed))
                found[kind].append(scores(method.fit(parties), [test[name]])[2])
            ill.append(float(test[name].class_counts[1] / test[name].n_complete))
        cells = [shown(found[kind]) for kind in kinds]
        lines.append(f"| {name} | {100 * np.mean(ill):.0f} % | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


HEAD = """# Parties with unlike distributions

Written by `python benchmarks/unlike.py --out docs/unlike.md`. Four hospitals share the heart data: their patients
differ in age, in how many are ill and in what is missing. In each of {runs} runs 30 % of every hospital's records
are for the test. *As they are* gives each hospital its own records. *Dealt out* gives the four parties as many
records as before, drawn at random from all. Log-loss, AUC and accuracy are on the test records of all hospitals
together.

"""

BETWEEN = """
What a hospital gains. Models are fitted without privacy, but for the last column; accuracy is on the hospital's own
test records.

"""

TAIL = """
How to read it. A sum over all records is the same however the records are dealt out. So what opens sums
(`PrivateNewton`, `FunctionalMechanism`, `NoisyDescent`, and the exact fits) loses nothing with unlike parties. What
fits a model at each party and averages them (`Averaging`, `ObjectivePerturbation`) learns the mean of four models,
not the model of all records. This is also why theorem 4.2 of Pathak et al. does not hold
([reproduction](reproduction/pathak.md)). One model for all parties need not be the best one for each. Where a
hospital has nearly only ill patients, its own model is hard to beat, and says little.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    tables = public.load("heart_disease").tables
    splits = [split(tables, seed) for seed in range(arguments.runs)]
    parts = [compared(splits), each_hospital(splits)]
    if arguments.out is not None:
        text = (
            HEAD.format(runs=arguments.runs) + "\n".join(parts[0]) + "\n" + BETWEEN + "\n".join(parts[1]) + "\n" + TAIL
        )
        write_whole(arguments.out, text)


if __name__ == "__main__":
    main()
