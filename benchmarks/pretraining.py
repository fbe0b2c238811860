"""What a public start is worth: noisy descent with and without one, beside table 1 of Hoseinpour et al.

python benchmarks/pretraining.py [--runs 20]

The document has 400 private and 400 public records of two features that it does not name, and prints training
accuracies, apparently of one run. Here: age and largest heart rate of the 920 patients of the four hospitals, cut at
random into 400 private (at three parties), 400 public and 120 test records for each run; accuracy on the test records,
mean and standard error over the runs. "unlike" turns the public labels about. Every epsilon is that of the whole run,
at delta = 1e-6; the document's is that of one round. "Told" is how often the report said that the start seems unlike
the private data, and how often that the noise is too large to tell.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tacit import Federation, Rng, Schema, Table
from tacit import datasets as public
from tacit.methods.descent.method import NoisyDescent
from tacit.methods.public_model import PublicModel, pretrain

EPSILONS = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 15, 150)
PRINTED = {  # epsilon: without and with pre-training, in per cent
    0.01: (29.75, 29.75), 0.05: (33.00, 33.50), 0.1: (40.25, 41.25), 0.5: (53.25, 60.00), 1: (60.25, 70.50),
    5: (66.25, 77.25), 10: (66.50, 77.50), 15: (67.00, 77.50), 150: (67.50, 78.00),
}  # fmt: skip
FEATURES = ("age", "max_heart_rate")
TURNED = {"no": "yes", "yes": "no"}


@dataclass(frozen=True)
class Cut:
    parties: Federation
    test: Table
    like: PublicModel
    unlike: PublicModel


def cut(frame: pd.DataFrame, schema: Schema, seed: int) -> Cut:
    order = np.random.default_rng(seed).permutation(len(frame))

    def table(rows: pd.DataFrame) -> Table:
        return Table.from_frame(rows, schema, name="heart")

    private, known, test = frame.iloc[order[:400]], frame.iloc[order[400:800]], frame.iloc[order[800:]]
    parties = {f"party{i}": table(private.iloc[i::3]) for i in range(3)}
    return Cut(
        parties=Federation.from_tables(parties, rng=Rng.seeded(seed)),
        test=table(test),
        like=pretrain(table(known)),
        unlike=pretrain(table(known.assign(disease=known["disease"].map(TURNED)))),
    )


def spread(values: list[float]) -> str:
    return f"{100 * np.mean(values):.1f} ± {100 * np.std(values, ddof=1) / np.sqrt(len(values)):.1f}"


def accuracy(model: PublicModel, test: Table) -> float:
    X, y = test.arrays()
    return float(np.mean((X @ model.coef_[0] + model.intercept_[0] > 0) == y))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs: int = parser.parse_args().runs
    data = public.load("heart_disease")
    schema = Schema(tuple(f for f in data.schema.features if f.name in FEATURES), data.schema.target)
    frame = pd.concat(data.frames.values(), ignore_index=True)[[*FEATURES, schema.target.name]]
    cuts = [cut(frame, schema, seed) for seed in range(runs)]

    print(f"The like start alone: {spread([accuracy(c.like, c.test) for c in cuts])} %; ", end="")
    print(f"the unlike one: {spread([accuracy(c.unlike, c.test) for c in cuts])} %. {runs} runs.\n")
    print("| epsilon | printed: cold | printed: warm | cold | warm | told | warm, unlike | told |")
    print("|---|---|---|---|---|---|---|---|")
    for epsilon in EPSILONS:
        cells = [f"{epsilon:g}", *(f"{value:.2f}" for value in PRINTED[epsilon])]
        for kind in (None, "like", "unlike"):
            starts = [None if kind is None else getattr(c, kind) for c in cuts]
            models = [NoisyDescent(epsilon=epsilon, start=s).fit(c.parties) for s, c in zip(starts, cuts, strict=True)]
            cells.append(spread([m.score(c.test) for m, c in zip(models, cuts, strict=True)]))
            if kind is not None:
                notices = ["".join(m.facts_.notices) for m in models]
                cells.append(" / ".join(str(sum(word in n for n in notices)) for word in ("seems unlike", "too large")))
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
