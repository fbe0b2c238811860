"""The two data sets of Du, Li and Li, in their form, and the methods that are compared on them.

Categories become whole numbers (scikit-learn's LabelEncoder), every column is scaled to [0, 1], and three parties hold
40, 30 and 10 % of the records; 20 % are for the test. The printed constants are for columns in [0, 1]. The sound
methods count on rows of norm sqrt(d), which is what such columns have.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
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
from tacit.methods.baseline.pooled import Pooled
from tacit.methods.functional.method import FunctionalMechanism
from tacit.methods.functional.statistic import paper_minimum, statistics
from tacit.methods.newton.method import PrivateNewton
from tacit.methods.objective.method import ObjectivePerturbation
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Scales = Callable[[int, float], tuple[float, float]]

DATA = ("bank_marketing", "default_credit")
DIMENSIONS = {"bank_marketing": (5, 8, 11, 14, 17), "default_credit": (8, 12, 16, 20, 24)}  # the label is counted in
SHARES = {"a": 0.4, "b": 0.3, "c": 0.1}
POLICY = Policy(not_private=["pooled", "objective-perturbation", "functional-mechanism"])

SECOND_DEGREE: dict[str, Scales] = {
    "OFAA, as printed, degree 2 by its rule": lambda d, epsilon: (9 * d / 2 / epsilon, 3 * d**2 / 4 / epsilon),
    "OFAA, as printed, degree 2 like degree 1": lambda d, epsilon: (9 * d / 2 / epsilon, 9 * d / 2 / epsilon),
    "OFAA, as printed, no noise on degree 2": lambda d, epsilon: (9 * d / 2 / epsilon, 0.0),
}
"""Readings of the noise on degree 2, which the document does not print."""

PRINTED_OFPA, SOUND_OFPA, SOUND_OFAA = "OFPA, as printed", "OFPA, sound (pure)", "OFAA, sound (pure)"
PRINTED_OFAA = next(iter(SECOND_DEGREE))
PLAIN, COMMONEST, NEWTON = "LR_NoPrivacy", "commonest class", "PrivateNewton"
METHODS: dict[str, Callable[[float], Any]] = {
    PRINTED_OFPA: lambda epsilon: ObjectivePerturbation(epsilon=epsilon, calibration="paper"),
    SOUND_OFPA: lambda epsilon: ObjectivePerturbation(epsilon=epsilon, delta=0),
    SOUND_OFAA: lambda epsilon: FunctionalMechanism(epsilon=epsilon, delta=0),
    "OFAA, sound (Gaussian)": lambda epsilon: FunctionalMechanism(epsilon=epsilon),
    NEWTON: lambda epsilon: PrivateNewton(epsilon=epsilon),
}


@cache
def rows(name: str) -> tuple[Floats, Ints]:
    """All records: columns in [0, 1] in the file's order, and labels."""
    [path] = public.files(name).values()
    frame = pd.read_csv(path, sep=";" if name == "bank_marketing" else ",")
    label = frame.columns[-1]
    y = frame[label].map({"no": 0, "yes": 1, 0: 0, 1: 1}).to_numpy(dtype=np.int64)
    features = frame.drop(columns=[label, "ID"], errors="ignore")
    coded = [
        pd.factorize(column, sort=True)[0] if column.dtype.kind not in "if" else column
        for _, column in features.items()
    ]
    X = np.column_stack([np.asarray(column, dtype=np.float64) for column in coded])
    low, high = X.min(axis=0), X.max(axis=0)
    return (X - low) / np.where(high > low, high - low, 1.0), y


def split(name: str, *, rate: float, dimension: int, seed: int) -> tuple[dict[str, Table], Table]:
    """The parties and the test records of one draw."""
    X, y = rows(name)
    d = dimension - 1
    schema = Schema.of_arrays(d, ["0", "1"], norm_bound=math.sqrt(d))
    order = Rng.seeded(seed).generator().permutation(len(X))[: round(rate * len(X))]
    parties, start = {}, 0
    for party, share in SHARES.items():
        held = order[start : start + round(share * len(order))]
        parties[party] = Table.from_arrays(X[held, :d], y[held], schema)
        start += len(held)
    return parties, Table.from_arrays(X[order[start:], :d], y[order[start:]], schema)


def errors(*, data: str, rate: float, dimension: int, epsilon: float, runs: int, seed: int) -> dict[str, list[float]]:
    """Of each method: the mean misclassification rate, its standard error, and the median of its seconds."""
    found: dict[str, list[tuple[float, float]]] = {}
    for k in range(runs):
        tables, test = split(data, rate=rate, dimension=dimension, seed=seed + k)
        federation = Federation.from_tables(tables, policy=POLICY, rng=Rng.seeded(seed + k))
        X, y = test.arrays()
        for name, make in {PLAIN: lambda _: Pooled(l2=1e-6), **METHODS}.items():
            begun = time.process_time()
            model = make(epsilon).fit(federation)
            seconds = time.process_time() - begun
            found.setdefault(name, []).append((1 - model.score(test), seconds))
        for name, scales in SECOND_DEGREE.items():
            begun = time.process_time()
            theta = _printed_average(tables, scales(dimension - 1, epsilon), Rng.seeded(seed + k).child(name))
            seconds = time.process_time() - begun
            found.setdefault(name, []).append((float(np.mean((X @ theta[:-1] + theta[-1] > 0) != (y == 1))), seconds))
        found.setdefault(COMMONEST, []).append((float(min(np.mean(y), 1 - np.mean(y))), 0.0))
    return {name: _summary(points) for name, points in found.items()}


def _printed_average(tables: dict[str, Table], scales: tuple[float, float], rng: Rng) -> Floats:
    """Algorithm 3: the parties' perturbed minima, averaged by size."""
    models = [
        table.n_records * paper_minimum(*statistics(table, 1.0), scales, 0.0, rng=rng) for table in tables.values()
    ]
    mean: Floats = np.sum(models, axis=0).ravel() / sum(table.n_records for table in tables.values())
    return mean


def _summary(points: list[tuple[float, float]]) -> list[float]:
    rates, seconds = np.array(points).T
    spread = rates.std(ddof=1) / math.sqrt(len(rates)) if len(rates) > 1 else 0.0
    return [float(rates.mean()), float(spread), float(np.median(seconds))]
