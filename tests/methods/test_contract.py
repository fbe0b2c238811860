"""What every method keeps, whatever it does inside."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import tacit
from tacit import Federation, Policy
from tacit.errors import DataError, PolicyRefusal, SettingError
from tacit.methods import METHODS, Method, make
from tacit.methods.method import NotFittedError
from tacit.privacy.accounting import epsilon_of
from tacit.privacy.event import Composed
from tacit.rand import Rng

Make = Callable[..., Federation]

ROWS = [[round(np.sin(3.7 * i + j), 6) / 2 for j in range(4)] for i in range(40)]  # public rows of norm at most 1
TARGET = (ROWS[:12], [0, 1] * 6)

# One setting of each kind of every method.
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "private-newton": [
        {},
        {"delta": 1e-6, "relation": "add-remove"},
        {"rounds": 2},
        {"rounds": 1, "robust": True},
        {"epsilon": math.inf},
        {"unit": "person"},
        {"unit": "party"},
    ],
    "privlogit": [{"l2": 1.0, "secure": "sums"}, {"l2": 1.0}, {"l2": 1.0, "protocol": "local"}],
    "secure-newton": [{"l2": 1.0}],
    "pooled": [{"l2": 1.0}],
    "local": [{"l2": 1.0}],
    "averaging": [
        {"epsilon": 1.0},
        {"epsilon": 1.0, "delta": 0},
        {"calibration": "paper"},
        {"epsilon": math.inf},
        {"unit": "person"},
        {"unit": "party", "delta": 0},
    ],
    "curator-averaging": [{}, {"delta": 0}, {"calibration": "paper"}, {"epsilon": math.inf}],
    "objective-perturbation": [{}, {"delta": 0}, {"calibration": "paper", "l2": 1.0}, {"epsilon": math.inf}],
    "functional-mechanism": [
        {},
        {"delta": 0},
        {"calibration": "paper"},
        {"epsilon": math.inf},
        {"unit": "person", "delta": 0},
        {"unit": "party"},
    ],
    "noisy-descent": [
        {},
        {"rounds": 5, "batch": 0.3},
        {"rounds": 3, "calibration": "paper"},
        {"rounds": 3, "epsilon": math.inf},
        {"rounds": 3, "unit": "person"},
        {"rounds": 3, "unit": "party"},
    ],
    "ensemble": [
        {"public": ROWS},
        {"public": ROWS, "delta": 0},
        {"public": ROWS, "noise": "isotropic"},
        {"public": ROWS, "release": "minimiser", "labels": "vote"},
        {"release": "minimiser", "labels": "avg", "party_records": 50},
        {"public": ROWS, "calibration": "paper"},
        {"public": ROWS, "epsilon": math.inf},
    ],
    "hypothesis-transfer": [
        {"public": ROWS, "target": TARGET},
        {"strategy": "average", "delta": 1e-6},
        {"strategy": "average", "calibration": "paper"},
        {"public": ROWS, "target": TARGET, "epsilon": math.inf},
    ],
    "ternary-descent": [
        {"hidden_layer_sizes": (5,), "rounds": 3, "batch": 0.2},
        {"hidden_layer_sizes": (5,), "rounds": 3, "batch": 0.2, "compression": "none", "party_records": 100},
        {"hidden_layer_sizes": (5,), "rounds": 3, "mechanism": "gumbel"},
        {"hidden_layer_sizes": (5,), "rounds": 3, "batch": 0.2, "calibration": "paper"},
        {"hidden_layer_sizes": (5,), "rounds": 3, "batch": 0.2, "epsilon": math.inf},
    ],
}
GROUP = {"privlogit": "center", "secure-newton": "center"}  # one center of three processes is enough
CASES = [  # in one process for each method: what it calibrates is calibrated once
    pytest.param(name, settings, id=f"{name}-{i}", marks=pytest.mark.xdist_group(GROUP.get(name, name)))
    for name, all_ in SETTINGS.items()
    for i, settings in enumerate(all_)
]
RECORDS = {"target", "unlabelled", "public"}  # settings that hold records: a model's file need not keep them
LEARNED = ("classes_", "n_rounds_", "guarantee_")


def assert_same_state(one: Method, other: Method, rtol: float = 0.0) -> None:
    assert one._state().keys() == other._state().keys()
    for name, array in one._state().items():
        np.testing.assert_allclose(array, other._state()[name], rtol=rtol, atol=0)


class Learned:
    """One fit of each case for all tests that only look at it."""

    def __init__(self, federation: Make) -> None:
        self._federation = federation
        self._kept: dict[tuple[str, str, int], tuple[Method, Federation]] = {}

    def __call__(self, name: str, settings: dict[str, Any], classes: int = 2) -> tuple[Method, Federation]:
        key = (name, repr(settings), classes)
        if key not in self._kept:
            model, parties = make(name, settings), self._federation(classes=classes)
            assert model.fit(parties) is model
            self._kept[key] = model, parties
        return self._kept[key]


@pytest.fixture(scope="module")
def learned(federation: Make) -> Learned:
    return Learned(federation)


def test_every_method_is_held_to_the_contract() -> None:
    assert SETTINGS.keys() == METHODS.keys()


@pytest.mark.parametrize(("name", "settings"), CASES)
@pytest.mark.parametrize("classes", [2, 3])
def test_it_learns_and_predicts(learned: Learned, name: str, settings: dict[str, Any], classes: int) -> None:
    model, _ = learned(name, settings, classes)
    assert type(model) is METHODS[name]
    X = np.zeros((5, 4))
    if hasattr(model, "coef_"):
        rows = 1 if classes == 2 else classes
        assert model.coef_.shape == (rows, 4)
        assert model.intercept_.shape == (rows,)
    np.testing.assert_array_equal(model.classes_, range(classes))
    assert model.predict_proba(X).shape == (5, classes)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.decision_function(X).shape == ((5,) if classes == 2 else (5, classes))
    assert set(model.predict(X)) <= set(range(classes))
    assert 0 <= model.score(X, np.zeros(5, dtype=int)) <= 1
    assert model.n_rounds_ >= 1
    assert model.facts_.traffic.bytes_up > 0
    assert len(model.summary()) > 100


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_the_event_is_what_the_ledgers_were_charged(learned: Learned, name: str, settings: dict[str, Any]) -> None:
    model, parties = learned(name, settings)
    told = model.event()  # needs no data
    for party in parties.names:
        guard = parties.guard(party)
        charged = guard.ledger.epsilon(party, delta=1e-6)
        if guard.ledger.n_releases(party):
            expected = epsilon_of(Composed(events=(told,)), 1e-6)
            assert charged == expected or charged == pytest.approx(expected, rel=1e-9)
    assert model.guarantee_ == model.guarantee


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_settings_and_data_are_left_as_they_were(
    learned: Learned, federation: Make, name: str, settings: dict[str, Any]
) -> None:
    model, parties = learned(name, settings)
    assert model.get_params() == make(name, settings).get_params()
    untouched = federation()
    for party in parties.names:
        for array, before in zip(*(one.guard(party).table.arrays() for one in (parties, untouched)), strict=True):
            np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_clone_copies_the_settings_and_forgets_the_fit(learned: Learned, name: str, settings: dict[str, Any]) -> None:
    model, _ = learned(name, settings)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError, match="call fit"):
        copy.predict(np.zeros((1, 4)))
    with pytest.raises(NotFittedError, match="call fit"):
        copy.summary()


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_a_model_comes_back_from_its_file(
    learned: Learned, name: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    model, _ = learned(name, settings, classes=3)
    model.save(tmp_path / "model.json")
    loaded = tacit.load(tmp_path / "model.json")
    assert type(loaded) is type(model)
    kept = model.get_params().keys() - RECORDS
    assert {key: loaded.get_params()[key] for key in kept} == {key: model.get_params()[key] for key in kept}
    assert_same_state(loaded, model)
    for attribute in LEARNED:
        np.testing.assert_array_equal(getattr(loaded, attribute), getattr(model, attribute))
    assert loaded.summary() == model.summary()
    assert loaded.report.text() == model.report.text()
    if settings is SETTINGS[name][0]:  # the page is made of the same facts, and takes long
        assert loaded.report.html() == model.report.html()
    X = np.random.default_rng(1).normal(size=(9, 4))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_what_is_not_private_is_refused_by_the_default_policy(
    federation: Make, name: str, settings: dict[str, Any]
) -> None:
    parties = federation(policy=Policy())
    model = make(name, settings)
    if model.guarantee.is_private and not getattr(model, "counts_on", ""):
        assert model.fit(parties).facts_.is_private
        return
    with pytest.raises(PolicyRefusal, match="no epsilon bounds"):
        model.fit(parties)
    assert all(parties.guard(party).ledger.n_releases(party) == 0 for party in parties.names)


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_a_seeded_run_repeats_itself_and_says_that_it_is_not_private(
    federation: Make, name: str, settings: dict[str, Any]
) -> None:
    one, two = (make(name, settings).fit(federation(rng=Rng.seeded(3))) for _ in range(2))
    # The center's nodes draw their own chance and round by it, in the last of 40 bits. Linear algebra rounds by where
    # its arrays happen to lie in memory, in the last digit.
    assert_same_state(one, two, rtol=1e-9)
    assert not one.facts_.is_private
    assert "seeded" in one.report.text()


@pytest.mark.parametrize("name", METHODS)
def test_infinite_epsilon_or_none_promises_nothing(name: str) -> None:
    settings = {"epsilon": math.inf} if "epsilon" in METHODS[name]().get_params() else {}
    model = make(name, settings)
    assert not model.guarantee.is_private
    assert "NOT differentially private" in model.guarantee.plain_words()


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, "1", None, True])
def test_an_epsilon_that_is_none_is_refused(federation: Make, epsilon: object) -> None:
    for name in METHODS:
        if "epsilon" in METHODS[name]().get_params():
            with pytest.raises(SettingError, match="epsilon = "):
                make(name, {"epsilon": epsilon}).fit(federation())


def test_unknown_methods_and_settings_are_named() -> None:
    with pytest.raises(SettingError, match="method 'averagin' is unknown; did you mean 'averaging'"):
        make("averagin")
    with pytest.raises(SettingError, match="averaging has no setting 'epsilom'; did you mean 'epsilon'"):
        make("averaging", {"epsilom": 1})


def test_arrays_are_no_federation() -> None:
    with pytest.raises(SettingError, match=r"takes a Federation, not a ndarray.*Federation\.split"):
        tacit.Pooled().fit(np.zeros((3, 2)))  # type: ignore[arg-type]


BAD_MODELS = [
    ("nonsense", "not JSON"),
    ("{}", "not a model file"),
    ('{"format": "tacit-model", "version": 99}', "version 99"),
    ('{"format": "tacit-model", "version": 1}', "damaged"),
]


@pytest.mark.parametrize(("text", "message"), BAD_MODELS)
def test_a_file_that_is_no_model_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        tacit.load(path)
    with pytest.raises(DataError, match="cannot be read"):
        tacit.load(tmp_path / "nowhere.json")


@pytest.fixture
def fitted(federation: Make) -> Method:
    return tacit.Pooled(l2=1.0).fit(federation())


def test_wrong_columns_and_labels_are_named(fitted: Method) -> None:
    with pytest.raises(
        SettingError, match=r"X has 3 features, but Pooled is expecting 4 features as input: x0, x1, x2, x3"
    ):
        fitted.predict(np.zeros((2, 3)))
    with pytest.raises(SettingError, match="1 labels that are none of the classes 0, 1"):
        fitted.score(np.zeros((2, 4)), [0, 7])
    with pytest.raises(SettingError, match="y is missing"):
        fitted.score(np.zeros((2, 4)))
