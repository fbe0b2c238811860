"""What a promise for persons instead of records costs: accuracy of PrivateNewton where persons have several records.

    python benchmarks/person.py [--repeats 10] [--persons 4000]

Persons are drawn with 1 to 9 records each, 5 on average. A person's records are alike: half of the variance of each
column is the person's own, and so is a part of the log odds. Three promises are compared at the same epsilon:

    record      for one record: what it leaves to a person with m records is m times that
    person      for all records of a person, which weigh 1/m each
    by group    for all records of a person, from the promise for records at epsilon / 9: the only way without weights

Figures are the log loss and the accuracy on records of other persons, their mean and standard error over repeats.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from tacit import Federation, PrivateNewton

N_FEATURES, N_PARTIES, MOST = 8, 3, 9
EPSILONS = (0.3, 1.0, 3.0)
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Drawn:
    """Records, and whose they are."""

    X: Floats
    y: Ints
    persons: Ints


def draw(n_persons: int, chance: np.random.Generator) -> Drawn:
    """Records of so many persons."""
    persons = np.repeat(np.arange(n_persons), chance.integers(1, MOST + 1, n_persons))
    own = chance.normal(size=(n_persons, N_FEATURES))[persons]
    X = np.clip((own + chance.normal(size=own.shape)) / (2 * math.sqrt(2)), -1, 1)
    effects = 3 * np.cos(np.arange(N_FEATURES))
    odds = X @ effects + 0.7 * chance.normal(size=n_persons)[persons] - 0.5
    return Drawn(X, (chance.random(len(odds)) < expit(odds)).astype(np.int64), persons)


def fits(drawn: Drawn, epsilon: float) -> Iterator[tuple[str, PrivateNewton]]:
    """The three promises."""
    for label, own, unit in (
        ("record", epsilon, "record"),
        ("person", epsilon, "person"),
        ("by group", epsilon / MOST, "record"),
    ):
        parties = Federation.split(
            drawn.X, drawn.y, groups=drawn.persons % N_PARTIES, persons=drawn.persons, norm_bound=math.sqrt(N_FEATURES)
        )
        yield label, PrivateNewton(epsilon=own, delta=1e-6, unit=unit).fit(parties)  # type: ignore[arg-type]


def figures(model: PrivateNewton, test: Drawn) -> tuple[float, float]:
    """Log loss and accuracy."""
    chances = model.predict_proba(test.X)[np.arange(len(test.y)), test.y]
    return float(-np.log(np.maximum(chances, 1e-12)).mean()), float((chances > 0.5).mean())


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--persons", type=int, default=4000)
    asked = parser.parse_args()
    found: dict[tuple[float, str], list[tuple[float, float]]] = {}
    for repeat in range(asked.repeats):
        chance = np.random.default_rng(repeat)
        drawn, test = draw(asked.persons, chance), draw(4000, chance)
        for epsilon in EPSILONS:
            for label, model in fits(drawn, epsilon):
                found.setdefault((epsilon, label), []).append(figures(model, test))
    print(f"{asked.persons} persons in {N_PARTIES} parties, {asked.repeats} repeats")
    print("| epsilon | promise | log loss | accuracy |\n|---|---|---|---|")
    for (epsilon, label), pairs in found.items():
        values = np.array(pairs)
        errors = values.std(axis=0, ddof=1) / math.sqrt(len(values))
        cells = " | ".join(f"{mean:.4f} ± {error:.4f}" for mean, error in zip(values.mean(axis=0), errors, strict=True))
        print(f"| {epsilon:g} | {label} | {cells} |")


if __name__ == "__main__":
    main()
