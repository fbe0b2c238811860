"""Local classifiers: names travel, votes come back, and a failure tells nobody anything."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from tacit import Federation, Policy, Rng, Schema, Table
from tacit.errors import SettingError
from tacit.methods.ensemble import classifier as local_classifier
from tacit.methods.ensemble.classifier import (
    assign_local_classifier,
    local_models,
    party_l2,
    register_local_classifier,
    votes_of,
)
from tacit.methods.ensemble.method import Ensemble

from ..conftest import make_data

PUBLIC = make_data(40, 3, seed=9)[0]


def crowd(n_parties: int = 5, rng: Rng | None = None) -> Federation:
    X, y = make_data(12 * n_parties, 3)
    return Federation.split(X, y, n_parties=n_parties, policy=Policy(not_private=["ensemble"]), rng=rng)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_classifier, "_FACTORIES", dict(local_classifier._FACTORIES))


class Constant:
    """Predicts what it is told, or fails where there are more than six records."""

    def __init__(self, value: float | None = 1.0) -> None:
        self.value = value

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        if self.value is None and len(X) > 6:
            raise ValueError("a record with the value 17")

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), 0.0 if self.value is None else self.value)


@pytest.mark.parametrize("name", ["logistic", "tree", "forest", "naive-bayes"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_classifiers_at_hand_learn(name: str, classes: int) -> None:
    X, y = make_data(400, 3, classes, seed=2)
    table = Table.from_arrays(X[:300], y[:300], Schema.of_arrays(3, list(range(classes))))
    (votes,) = votes_of([table], X[300:], names=[name], l2=1.0, rngs=[Rng.seeded(0)])
    majority = np.bincount(y[300:]).max() / 100
    assert np.mean(votes == y[300:]) > majority + 0.05


def test_a_party_of_one_class_votes_for_it() -> None:
    schema = Schema.of_arrays(1, ["0", "1", "2"])
    table = Table.from_arrays(np.array([[0.3], [0.1]]), np.array([2, 2]), schema)
    for name in local_classifier.local_classifiers():
        votes = votes_of([table], np.array([[0.2], [0.4]]), names=[name], l2=1.0, rngs=[Rng.seeded(0)])
        np.testing.assert_array_equal(votes, [[2, 2]])


@pytest.mark.usefixtures("registry")
def test_registered_and_mixed_classifiers_vote() -> None:
    parties, X = crowd(40, rng=Rng.seeded(6)), PUBLIC
    register_local_classifier("ones", lambda: Constant(1.0))
    register_local_classifier("zeros", lambda: Constant(0.0))
    model = Ensemble(epsilon=math.inf, public=X, local=["ones", "zeros"], global_l2=1e-6)
    share = model.fit(parties).predict_proba(X)[:, 1]
    assert 0.2 < share.mean() < 0.8  # each party drew one of the two
    np.testing.assert_allclose(share, share[0], atol=1e-6)
    with pytest.raises(SettingError, match="'ones' is registered already"):
        register_local_classifier("ones", lambda: Constant(1.0))


def test_a_party_may_choose_for_itself() -> None:
    parties, X = crowd(), PUBLIC
    for name in parties.names:
        assign_local_classifier(parties.guard(name).table, DecisionTreeClassifier(max_depth=1, random_state=0))
    own = Ensemble(epsilon=math.inf, public=X).fit(parties)
    for name in parties.names:
        assign_local_classifier(parties.guard(name).table, "logistic")
    back = Ensemble(epsilon=math.inf, public=X, local="tree").fit(parties)
    fresh = Ensemble(epsilon=math.inf, public=X).fit(crowd())
    np.testing.assert_allclose(back.coef_, fresh.coef_, atol=1e-8)
    assert np.linalg.norm(own.coef_ - back.coef_) > 1e-3


@pytest.mark.usefixtures("registry")
def test_a_classifier_that_fails_at_a_party_tells_nobody() -> None:
    register_local_classifier("moody", lambda: Constant(None))
    register_local_classifier("wild", lambda: Constant(1.0))
    local_classifier._FACTORIES["wild"] = lambda: Constant(7.0)  # no class index
    for name in ("moody", "wild"):
        model = Ensemble(epsilon=math.inf, public=PUBLIC, local=name).fit(crowd())
        assert set(model.predict(PUBLIC)) == {0}


def test_a_broken_classifier_is_found_when_it_is_registered() -> None:
    class Broken:
        def fit(self, X: np.ndarray, y: np.ndarray) -> None:
            raise RuntimeError("not today")

        def predict(self, X: np.ndarray) -> np.ndarray:
            return np.zeros(len(X))

    with pytest.raises(SettingError, match="'broken' cannot learn and predict six made-up rows: not today"):
        register_local_classifier("broken", Broken)
    with pytest.raises(SettingError, match="does not predict one of the class indices"):
        register_local_classifier("odd", lambda: Constant(3.0))
    with pytest.raises(SettingError, match="local = 'oracle' is no registered classifier"):
        assign_local_classifier(crowd().guard("party1").table, "oracle")


def test_a_small_party_is_hardly_penalised_and_a_large_one_as_by_scikit_learn() -> None:
    assert party_l2(6) == pytest.approx(4e-4)
    assert party_l2(150) == pytest.approx(0.25)
    assert party_l2(300) == party_l2(10**6) == 1.0
    assert party_l2(0) == party_l2(1) > 0


def test_each_party_of_a_crowd_has_the_penalty_of_its_own_size() -> None:
    X, y = make_data(260, 3, seed=8)
    schema = Schema.of_arrays(3, [0, 1], norm_bound=1.0)
    sizes = (6, 40, 200)
    ends = np.cumsum(sizes)
    tables = [Table.from_arrays(X[end - n : end], y[end - n : end], schema) for n, end in zip(sizes, ends, strict=True)]
    together = local_models(tables, l2=None, constant=1.0)
    for table, theta in zip(tables, together, strict=True):
        alone = local_models([table], l2=party_l2(table.n_records), constant=1.0)[0]
        np.testing.assert_allclose(theta, alone, atol=1e-6)
