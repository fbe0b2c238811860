"""The dissertation's computations in small: its formulas, the library's own noise and methods, and their limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import roc_auc_score

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.methods.privlogit.method import PrivLogit
from tacit.methods.transfer.method import _check_reply
from tacit.rand import Rng
from tacit.reproduce.wang import printed_4, transfer
from tacit.reproduce.wang.budget import ROWS, amplified, printed_costs, right_costs
from tacit.reproduce.wang.fraud import WatchedDescent
from tacit.reproduce.wang.regression import N_PARTIES, parties_of, relative_changes, simulated
from tacit.reproduce.wang.text import Corpus


def test_table_3_1_to_the_printed_digits_and_what_it_costs_in_truth() -> None:
    off = []
    for row, (epsilon, q, n, *printed) in enumerate(ROWS, start=1):
        for value, text in zip(printed_costs(epsilon, q, n), printed, strict=True):
            if abs(value - float(text)) > 1.01 * 10.0 ** -len(text.partition(".")[2]):
                off.append((row, text, round(value, 1)))
    assert off == [(8, "14312.4", 14312.0)]
    assert right_costs(0.1, 0.01, 1431)[0] == pytest.approx(424.7, abs=0.05)


@pytest.mark.parametrize("q", [0.01, 0.5, 1.0])
def test_amplification_of_a_large_epsilon_does_not_overflow(q: float) -> None:
    assert amplified(699.0, q) == pytest.approx(699.0 + math.log(q), abs=1e-9)
    assert amplified(5000.0, q) == pytest.approx(5000.0 + math.log(q))
    assert amplified(1e-4, q) == pytest.approx(q * 1e-4, rel=1e-3)


def test_every_printed_accuracy_is_typed_in() -> None:
    reviews, messages = (printed_4.cells(data) for data in ("amazon_sentiment", "newsgroups20"))
    assert (len(reviews), len(messages)) == (2 * 36, 3 * 36)
    assert reviews[1, "3", "DPHTL"] == 0.814
    assert messages[2, "1", "SOFT"] == 0.752
    assert all(0.5 < value < 0.9 for value in [*reviews.values(), *messages.values()])


def test_a_watched_descent_tells_the_area_of_its_own_model() -> None:
    chance = np.random.default_rng(0)
    X = chance.normal(size=(300, 4))
    y = (X[:, 0] > 0).astype(np.int64)
    schema = Schema.of_arrays(4, ["0", "1"], norm_bound=10.0)
    tables = {name: Table.from_arrays(X[part], y[part], schema) for name, part in PARTS.items()}
    model = WatchedDescent(epsilon=math.inf, rounds=12, batch=1.0, hidden_layer_sizes=(3,))
    model.watch((X[200:], y[200:]), 2, [1, 3, 6])
    model.fit(Federation.from_tables(tables, policy=Policy(not_private=["ternary-descent"])))
    assert len(model.areas_) == 3
    assert model.areas_[-1] == pytest.approx(roc_auc_score(y[200:], model.decision_function(X[200:])))


PARTS = {"a": slice(0, 100), "b": slice(100, 200)}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sources of a few words, in place of the texts."""
    chance = np.random.default_rng(5)
    rows, labels = {}, {}
    for k, name in enumerate(("one", "two")):
        X = chance.random((120, 12)) * (chance.random((120, 12)) < 0.4)
        X[:, k] += 1
        rows[name] = sparse.csr_matrix(X / np.linalg.norm(X, axis=1, keepdims=True) * (1 - 1e-12))
        labels[name] = chance.integers(0, 2, 120)
    monkeypatch.setattr(transfer, "corpus", lambda data: Corpus(rows, labels))
    monkeypatch.setitem(transfer.SIZES, "small", transfer.TransferSizes(30, 20, 20, 30, 20, 0.01))
    transfer.split.cache_clear()
    transfer.sources_of.cache_clear()
    transfer.public_rows.cache_clear()
    transfer.exact_model.cache_clear()
    transfer.exact_description.cache_clear()
    transfer.reference_of.cache_clear()


@pytest.mark.parametrize("calibration", ["paper", "sound"])
def test_kept_replies_are_such_as_sources_send(small: None, calibration: str) -> None:
    """They pass the coordinator's own check, and carry the plan's noise around the source's model."""
    method = transfer.method_of("small", False, calibration, 1.0)
    plan = transfer.plan_of("small", False, method)
    moved = []
    for k in range(30):
        answered = transfer.replies_of("small", 0, False, method, Rng.seeded(k))
        for reply in answered.replies.values():
            _check_reply(plan, answered.reference, reply, 50)
        theta = plan.model_grid(30).from_grid(answered.replies["one"]["model"])
        moved.append(float(np.linalg.norm(theta - transfer.exact_model("small", 0, False, "one", calibration, 1.0))))
    grid = plan.model_grid(30)
    assert np.mean(moved) == pytest.approx(grid.noise_std * math.sqrt(12), rel=0.25)
    if calibration == "paper":
        assert grid.total.sensitivity == pytest.approx(2 / (30 * 0.01))


def test_without_noise_the_shares_of_a_mixture_are_found(small: None) -> None:
    settings: dict[str, Any] = {"data": "small", "draw": 0, "quick": False, "seed": 1}
    found = transfer.weight_errors(mixtures=[[1.0, 0.0]], epsilons=[0.1, transfer.NO_NOISE], **settings)
    assert all(errors[0][1] < 0.02 for errors in found.values())
    accuracy = transfer.accuracies(mixtures=[[0.5, 0.5]], epsilons=[1.0], labelled=[0.3], **settings)["0-0.3"]
    assert set(accuracy) == {
        *("WEAK", "TARGET", "source, paper", "average, paper", "soft, paper", "transfer, paper"),
        *("average, sound", "transfer, sound"),
    }


def test_simulated_tables_take_the_documents_iterations() -> None:
    X, y = simulated(10, 20_000)
    model = PrivLogit(l2=1.0, acceleration=None, secure="sums", standard_errors=False, tol=1e-3)
    model.fit(parties_of(X, y))
    changes = relative_changes(X, y, list(model.iterates_))
    assert abs(next(k for k, change in enumerate(changes, start=1) if change < 1e-6) - 20) <= 2
    assert N_PARTIES == 5
