"""What Hoseinpour et al. train on: 400 private and 400 public records of two features, and how it is run.

The document does not name its data or its features. Here: age and largest heart rate of the patients of four hospitals,
and a made-up pair of features whose best model is right for 78 % of records, as the document's is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tacit import datasets as public
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.methods.descent.method import NoisyDescent
from tacit.methods.newton.method import PrivateNewton
from tacit.methods.public_model import PublicModel, pretrain
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]

EPSILONS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 15.0, 150.0)
ROUNDS = (5, 20, 100)
FEATURES = ("age", "max_heart_rate")
DATA = ("heart", "made-up")
PRINTED = {  # table 1: epsilon -> accuracy in per cent without and with pre-training, and the printed gain
    0.01: (29.75, 29.75, 0.0),
    0.05: (33.00, 33.50, 0.5),
    0.1: (40.25, 41.25, 1.25),
    0.5: (53.25, 60.00, 7.25),
    1.0: (60.25, 70.50, 10.25),
    5.0: (66.25, 77.25, 11.0),
    10.0: (66.50, 77.50, 11.0),
    15.0: (67.00, 77.50, 10.50),
    150.0: (67.50, 78.00, 11.50),
}
_MADE_UP = np.array([2.6, 1.7])  # log odds over the width of each feature: the best model is right for 78 %
_PARTS = (slice(400), slice(400, 800), slice(800, None))  # private, public, test


@dataclass(frozen=True)
class Cut:
    """Private records at three parties, other records for the test, and models of public records: like and unlike."""

    parties: Federation
    private: Table
    test: Table
    like: PublicModel
    unlike: PublicModel


@cache
def _heart() -> tuple[Floats, npt.NDArray[np.int64]]:
    """The complete records: both features scaled to [-1, 1] by their public bounds."""
    data = public.load("heart_disease")
    schema = Schema(tuple(f for f in data.schema.features if f.name in FEATURES), data.schema.target)
    frame = pd.concat(data.frames.values(), ignore_index=True)[[*FEATURES, schema.target.name]].dropna()
    return Table.from_frame(frame, schema, name="heart").arrays()


def _made_up(chance: Any) -> tuple[Floats, npt.NDArray[np.int64]]:
    X = chance.uniform(-1, 1, (2000, 2))
    return X, (chance.uniform(size=2000) < 1 / (1 + np.exp(-X @ _MADE_UP))).astype(np.int64)


def cut(data: str, seed: int) -> Cut:
    """One random cut into 400 private, 400 public and the remaining test records."""
    chance = Rng.seeded(seed).generator()
    X, y = _heart() if data == "heart" else _made_up(chance)
    order = chance.permutation(len(X))
    X, y = X[order], y[order]
    schema = Schema.of_arrays(2, ["0", "1"], norm_bound=math.sqrt(2))
    private, known, test = (Table.from_arrays(X[part], y[part], schema) for part in _PARTS)
    other = Table.from_arrays(X[_PARTS[1]], 1 - y[_PARTS[1]], schema)
    thirds = {f"party{i}": Table.from_arrays(X[:400][i::3], y[:400][i::3], schema) for i in range(3)}
    parties = Federation.from_tables(thirds, policy=Policy(not_private=["noisy-descent"]), rng=Rng.seeded(seed))
    return Cut(parties, private, test, pretrain(known), pretrain(other))


def descent(epsilon: float, rounds: int | None, start: PublicModel | None) -> NoisyDescent:
    """Noisy descent: with a number of rounds as the document prints it, without one the sound method by its rules."""
    if rounds is None:
        return NoisyDescent(epsilon=epsilon, start=start)
    return NoisyDescent(epsilon=epsilon, rounds=rounds, start=start, calibration="paper")


def accuracies(
    *, data: str, rounds: int | None, kinds: list[str], epsilons: list[float], runs: int, seed: int
) -> dict[str, Any]:
    """At each epsilon the mean accuracies in per cent of private and of test records, for each kind of start.

    Kinds are "cold", "warm" and "unlike", and "newton" for PrivateNewton. `told` says in how many runs with an unlike
    start the report said that the start does not fit, and in how many that this cannot be told.
    """
    found: dict[str, Any] = {}
    for epsilon in epsilons:
        scores: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
        told = [0, 0]
        for k in range(runs):
            mine = cut(data, seed + k)
            for kind in kinds:
                start = {"warm": mine.like, "unlike": mine.unlike}.get(kind)
                model = PrivateNewton(epsilon=epsilon) if kind == "newton" else descent(epsilon, rounds, start)
                model.fit(mine.parties)
                scores[kind].append((100 * model.score(mine.private), 100 * model.score(mine.test)))
                if kind == "unlike":
                    notices = "".join(model.facts_.notices)
                    told = [count + (word in notices) for count, word in zip(told, _NOTICES, strict=True)]
        found[f"{epsilon:g}"] = {kind: _summary(points) for kind, points in scores.items()}
        if "unlike" in kinds:
            found[f"{epsilon:g}"]["told"] = told
    return found


_NOTICES = ("seems unlike", "too large")


def _summary(points: list[tuple[float, float]]) -> list[float]:
    """Mean and standard error of training, then of test accuracy."""
    values = np.array(points)
    spread = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    return [float(values[:, 0].mean()), float(spread[0]), float(values[:, 1].mean()), float(spread[1])]


def log_loss(theta: Floats, table: Table) -> float:
    """The mean log-loss of a model, intercept last, on a table."""
    X, y = table.arrays()
    signs = np.where(y == 1, 1.0, -1.0)
    return float(np.logaddexp(0, -signs * (X @ theta[:-1] + theta[-1])).mean())
