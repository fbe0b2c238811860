"""Figures 3.3 to 3.6: ternary descent on transactions of several banks, by privacy budget, batch and upload.

The bank's transactions are not public. Card fraud, cut to the document's 14 % positives, stands in for them, and
default of credit cards is a harder task of the same kind. Banks and a test set get equal shares. One iteration asks
every bank once. All runs are runs of `TernaryDescent`; the area under the curve is told after some of the iterations.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score

from tacit import datasets
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.methods.ternary.method import TernaryDescent
from tacit.rand import Rng, public_choices
from tacit.reproduce.result import ResultCell

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

POSITIVE = 0.14  # the document's share of fraud after under-sampling
DATA = {"creditcard_fraud": "card fraud", "default_credit": "default of credit"}
RUNS = 10  # each with other shares of the records, first weights and noise
EPSILONS = (0.01, 0.1, 0.5, 1.0, 10.0)
CALIBRATIONS = {"paper": "as printed (NOT PRIVATE)", "sound": "sound"}
PRIVATE_DELTA = 1e-6
KEPT = (1, 2, 5, 10, 20, 30, 40, 50, 60, 80, 100)  # iterations after which the model is looked at


class WatchedDescent(TernaryDescent):
    """The same, with the area under the curve after some of the iterations."""

    def watch(self, test: tuple[Floats, Labels], every: int, kept: list[int]) -> None:
        """Look at the model on `test` after these iterations, of `every` rounds each."""
        self._watched = (test, every, kept)
        self.areas_: list[float] = []

    def _look_on(self, n_rounds: int, weights: Floats) -> None:
        (X, y), every, kept = self._watched
        if n_rounds % every == 0 and n_rounds // every in kept:
            scores = self._network.scores(weights, X)
            self.areas_.append(float(roc_auc_score(y, scores[:, 1] - scores[:, 0])))


@cache
def rows(data: str) -> tuple[Floats, Labels]:
    """The records, cut to the document's share of positives, in units of the records that the cut leaves out.

    The document standardises by the private records themselves, which costs nothing in its account and should.
    """
    [table] = datasets.load(data).tables.values()
    X, y = table.arrays()
    chance = public_choices(2018)
    positive, negative = (chance.permutation(np.flatnonzero(y == c)) for c in (1, 0))
    n_positive = min(len(positive), round(len(negative) * POSITIVE / (1 - POSITIVE)))
    n_negative = round(n_positive * (1 - POSITIVE) / POSITIVE)
    kept = chance.permutation(np.concatenate([positive[:n_positive], negative[:n_negative]]))
    left_out = X[np.concatenate([positive[n_positive:], negative[n_negative:]])]
    spread = left_out.std(axis=0)
    Z = (X[kept] - left_out.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.clip(Z, -10, 10), y[kept]


def banks_and_test(data: str, banks: int, run: int) -> tuple[dict[str, Table], tuple[Floats, Labels]]:
    """Equal shares for the banks and for a test set, drawn anew in every run."""
    X, y = rows(data)
    schema = Schema.of_arrays(X.shape[1], ["0", "1"], norm_bound=10 * math.sqrt(X.shape[1]))
    order = public_choices(2018, run).permutation(len(y))
    *shares, test = np.array_split(order, banks + 1)
    tables = {f"bank{k + 1}": Table.from_arrays(X[part], y[part], schema) for k, part in enumerate(shares)}
    return tables, (X[test], y[test])


def areas(
    *,
    data: str,
    banks: int,
    calibration: str,
    epsilon: float,
    batch: float,
    upload: float,
    iterations: int,
    runs: int,
    seed: int,
) -> dict[str, Any]:
    """The area under the curve by iteration: the mean of the runs and its standard error."""
    kept = [k for k in KEPT if k <= iterations]
    found = []
    for run in range(runs):
        tables, test = banks_and_test(data, banks, run)
        parties = Federation.from_tables(
            tables, policy=Policy(not_private=["ternary-descent"]), rng=Rng.seeded(seed + run)
        )
        found.append(one_run(parties, test, kept, calibration, epsilon, batch, upload, iterations, run))
    means = np.mean(found, axis=0)
    errors = np.std(found, axis=0, ddof=1) / math.sqrt(runs) if runs > 1 else np.zeros(len(means))
    return {"iterations": kept, "auc": means, "error": errors}


def one_run(
    parties: Federation,
    test: tuple[Floats, Labels],
    kept: list[int],
    calibration: str,
    epsilon: float,
    batch: float,
    upload: float,
    iterations: int,
    run: int,
) -> list[float]:
    """One training, looked at after the iterations `kept`; "plain" has no noise and uploads whole gradients."""
    banks = parties.n_parties
    settings: dict[str, Any] = {"batch": batch, "rounds": iterations * banks, "random_state": run}
    if calibration == "plain":
        about = len(test[1])  # every bank has as many records
        model = WatchedDescent(epsilon=math.inf, compression="none", party_records=about, learning_rate=1.0, **settings)
    else:
        settings |= {"calibration": calibration, "top": upload}
        model = WatchedDescent(epsilon=epsilon, delta=PRIVATE_DELTA, **settings)
    model.watch(test, banks, kept)
    model.fit(parties)
    return model.areas_


def cell(key: str, quick: bool, **settings: Any) -> ResultCell:
    """A cell in the document's setting but for `settings`; fewer runs and iterations if quick."""
    full: dict[str, Any] = {"data": "creditcard_fraud", "banks": 5, "epsilon": 1.0, "batch": 0.01, "upload": 0.1}
    full |= {"iterations": 100, "runs": RUNS} | settings
    if quick:
        full |= {"iterations": full["iterations"] // 5, "runs": 2}
    return ResultCell(key, areas, full)
