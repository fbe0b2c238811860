"""The documents' computations in small: they use the library's own noise, and quick cells give what summaries need."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

from tacit.methods.cohort import Promise
from tacit.methods.ensemble.label import LabelDesign, lengthened, simplex
from tacit.methods.ensemble.method import Ensemble
from tacit.methods.ensemble.statistic import Opening
from tacit.reproduce.hamm.crowd import Crowd, entity, learn, without_noise
from tacit.reproduce.hoseinpour.task import PRINTED, cut
from tacit.reproduce.pathak.theorem import distance_bound, risk_bound, true_risk_bound, unlike_parties
from tacit.reproduce.registry import REPRODUCTIONS
from tacit.reproduce.run import run

from ..methods.conftest import cohort_of

needs_data = pytest.mark.skipif(
    "TACIT_DATA" not in os.environ, reason="set TACIT_DATA to the folder of the public data sets"
)


def crowd(n_classes: int, parties: int = 30, size: int = 6) -> Crowd:
    chance = np.random.default_rng(n_classes)
    centres = 2 * np.eye(4)[:n_classes]
    y = chance.integers(0, n_classes, parties * size + 300)
    X = centres[y] + 0.7 * chance.normal(size=(len(y), 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    held, spare, test = slice(parties * size), slice(parties * size, -200), slice(-200, None)
    return Crowd(
        X=X[held], y=y[held], size=size, auxiliary=X[spare], X_test=X[test], y_test=y[test], n_classes=n_classes
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_crowd_gives_the_statistic_that_the_parties_of_an_ensemble_send(n_classes: int) -> None:
    """The sum of the parties' addends is D' A E / N of the shares of votes."""
    made = crowd(n_classes)
    votes = learn(made)
    Z = lengthened(made.auxiliary, 1.0)
    theta = votes.local.reshape(made.n_parties, -1, Z.shape[1])
    scores = np.einsum("pck,nk->pnc", theta, Z)
    own = scores[..., 0] > 0 if n_classes == 2 else scores.argmax(axis=2)
    plan = Ensemble(delta=0).plan(cohort_of(*[made.size] * made.n_parties, classes=n_classes, d=4))
    D = Z @ LabelDesign(Z=Z, n_classes=n_classes, shaped=True).basis
    sent = Opening(plan=plan, D=D).addends(own.astype(np.int64)).sum(axis=0)
    np.testing.assert_allclose(sent, (D.T @ votes.shares @ simplex(n_classes) / len(Z)).ravel(), atol=1e-12)


def test_the_printed_noise_of_a_crowd_has_the_printed_length() -> None:
    made = crowd(3)
    release = entity(made, "soft", Promise(method="Ensemble", epsilon=0.5, calibration="paper"))
    assert release.sensitivity == pytest.approx(math.sqrt(2) * math.sqrt(2) / (made.n_parties * 1e-4))  # (60), R sqrt 2
    models = without_noise(made, learn(made))
    assert made.accuracy(models["batch"][None]) > 0.9
    assert all(made.accuracy(models[kind][None]) > 0.8 for kind in ("vote", "soft", "avg"))


def test_two_unlike_parties_refute_theorem_4_2() -> None:
    """One coordinate each: sigma(-w) = 2 lambda w at home, half of that in the fit of all data."""
    [point] = unlike_parties(sizes=[10_000], epsilon=1.0, draws=5, seed=1)
    at_home, of_all = (_root(share) for share in (1.0, 0.5))
    assert point["distance"] == pytest.approx(math.sqrt(2) * (of_all - at_home / 2), rel=1e-6)
    assert point["distance"] > 100 * point["distance_bound"]
    assert point["distance_bound"] == distance_bound(2, 10_000, 0.01) == pytest.approx(0.01)
    assert point["true_risk_bound"] > 2 * point["risk_bound"] == 2 * risk_bound(2, 10_000, 0.01, 1.0, 2)
    assert true_risk_bound(1, 10, 1.0, 1.0, 2, 10) > 16 * 32 / 10


def _root(share: float) -> float:
    low, high = 0.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if share / (1 + math.exp(middle)) > 0.02 * middle else (low, middle)
    return low


def test_made_up_records_have_the_documents_best_accuracy() -> None:
    mine = cut("made-up", 3)
    X, y = mine.test.arrays()
    best = np.mean((X @ np.array([2.6, 1.7]) > 0) == (y == 1))
    assert best == pytest.approx(0.78, abs=0.03)
    assert sum(mine.parties.sizes.values()) == 400
    assert {e for e, (cold, warm, gain) in PRINTED.items() if abs(warm - cold - gain) > 0.005} == {0.1, 0.5, 150}


LEFT_OUT = (
    *("wang-figure-3.3", "wang-figure-3.4", "wang-figure-3.5", "wang-figure-5.5"),  # the longest
    *("hoseinpour-figure-10", "hoseinpour-figure-11"),  # as figure 9, with more noise
)
"""Of the quick runs, so that all together take less than two minutes of a processor."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What results share is computed once."""
    return tmp_path_factory.mktemp("cells")


@needs_data
@pytest.mark.slow
@pytest.mark.xdist_group("quick-reproductions")
@pytest.mark.parametrize("name", [name for name in REPRODUCTIONS if name not in LEFT_OUT])
def test_a_quick_run_gives_tables_pictures_and_verdicts(name: str, cache: Path) -> None:
    done = run(REPRODUCTIONS[name], quick=True, cache=cache)
    summary = done.reproduction.summarise(done.values)
    assert all(len(row) == len(table.columns) for table in summary.tables for row in table.rows)
    assert all(draw().startswith("<svg") for draw in summary.pictures.values())
    assert all(found.why for found in done.findings)
