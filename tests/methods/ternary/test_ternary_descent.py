"""Ternary descent: what is chosen and packed, what it costs, and what is left without noise."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import tacit
from tacit import Federation, Policy, Rng, Schema, Table
from tacit.datasets import load
from tacit.errors import NotAgreed, NotConverged, PolicyRefusal, SettingError, WireError
from tacit.federation.group import SumGroup
from tacit.methods.averaging.statistic import local_model
from tacit.methods.cohort import Cohort, Promise
from tacit.methods.ternary.choice import largest, pack, report_noisy_top_n, unpack
from tacit.methods.ternary.method import TernaryDescent
from tacit.methods.ternary.schedule import noise_multiplier
from tacit.methods.ternary.statistic import Architecture, NetworkWeights, Plan, poisson_sample, ternary_gradient
from tacit.methods.ternary.upload import Upload
from tacit.models.ghost import Clip
from tacit.models.network import Perceptron, register_module
from tacit.privacy.accounting import epsilon_of
from tacit.privacy.event import Gaussian, NotPrivate, PoissonSampled, Repeated, Under, Zcdp
from tacit.privacy.noise.gumbel import signed_gumbel_top
from tacit.wire import encode

from ..conftest import derived, make_data

pytestmark = pytest.mark.xdist_group("ternary-descent")  # what it calibrates is calibrated once

Make = Callable[..., Federation]

ALLOWED = Policy(not_private=["ternary-descent"])
QUICK: dict[str, Any] = {"epsilon": 1.0, "hidden_layer_sizes": (5,), "rounds": 9, "batch": 0.2}
UPLOAD = Upload(mechanism="gaussian", noise=2.0, clip=0.5, n_chosen=10, ternary=True)


def small_table(n: int = 40, d: int = 4, classes: int = 2, seed: int = 0) -> Table:
    X, y = make_data(n, d, classes, seed)
    return Table.from_arrays(X, y, Schema.of_arrays(d, list(range(classes)), norm_bound=1.0))


def plan_of(table: Table, upload: Upload, hidden: tuple[int, ...] = (3,), calibration: str = "sound") -> Plan:
    """A plan for a party that is alone, and is asked with all of its records."""
    group = SumGroup.of({"alone": table.n_records}, quorum=1)
    return Plan(
        cohort=Cohort.of(table.schema, group, colluders=None),
        promise=Promise(method="TernaryDescent", epsilon=1.0, delta=1e-5, calibration=calibration),
        architecture=Architecture(hidden_layer_sizes=hidden, activation="relu", module=None),
        upload=upload,
        batch=1.0,
        rounds=1000,
    )


def test_a_batch_takes_each_record_with_its_chance() -> None:
    taken = poisson_sample(0.05, 200_000, rng=Rng.seeded(6))
    assert stats.binomtest(int(taken.sum()), taken.size, 0.05).pvalue > 1e-3
    assert poisson_sample(1.0, 9, rng=Rng.seeded(6)).all()


# --- choosing and packing --------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=60), st.data())
def test_what_is_packed_comes_back(entries: list[int], data: st.DataObject) -> None:
    values = np.array(entries)
    n = data.draw(st.integers(1, len(values)))
    chosen = largest(values, n)
    assert chosen.sum() == min(n, np.count_nonzero(values))
    assert np.abs(values[chosen]).min(initial=9) >= np.abs(values[~chosen]).max(initial=0)
    np.testing.assert_array_equal(unpack(pack(chosen, values=values), len(values)), values * chosen)
    np.testing.assert_array_equal(unpack(pack(chosen, negative=values < 0), len(values)), np.sign(values) * chosen)


BITS = np.packbits(np.array([True, False, True]))
BAD_REPLIES: list[dict[str, Any]] = [
    {}, {"chosen": BITS}, {"chosen": BITS, "negative": np.zeros(2, np.uint8)}, {"chosen": BITS, "values": np.zeros(3)},
    {"chosen": np.zeros(2, np.uint8), "negative": BITS}, {"chosen": BITS.astype(np.int64), "negative": BITS},
    {"chosen": BITS, "values": [1.0, 2.0]}, {"chosen": "x", "negative": BITS},
]  # fmt: skip


@pytest.mark.parametrize("reply", BAD_REPLIES)
def test_a_reply_of_another_form_is_named(reply: dict[str, Any]) -> None:
    with pytest.raises(WireError, match="something else came"):
        unpack(reply, 3)


def test_an_upload_is_below_a_tenth_of_a_gradient() -> None:
    table = small_table(60, d=264)
    network = Perceptron(n_features=264, n_classes=2)
    plan = plan_of(table, replace(UPLOAD, n_chosen=math.ceil(0.1 * network.n_parameters)), (50, 20))
    reply = ternary_gradient(table, plan, NetworkWeights(weights=network.initial(0)), rng=Rng.seeded(0))
    assert network.n_parameters == 14_312  # as the dissertation counts
    uploaded = reply.value["chosen"].nbytes + reply.value["negative"].nbytes  # type: ignore[union-attr]
    assert uploaded <= 2 * network.n_parameters / 8
    assert len(encode(reply.value)) <= 4 * network.n_parameters / 10  # type: ignore[union-attr]


# --- what it costs ---------------------------------------------------------------------------------------------------


record = st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.integers(0, 1))


@given(records=st.lists(record, min_size=1, max_size=9), clip=st.floats(0.01, 3), seed=st.integers(0, 99))
@settings(max_examples=100, deadline=None)
def test_a_record_more_moves_what_noise_is_added_to_by_no_more_than_its_sensitivity(
    records: list[tuple[float, float, int]], clip: float, seed: int
) -> None:
    """||S'(B + i) - S'(B)|| <= C / v + sqrt(d), which the noise is sigma times."""
    network = Perceptron(n_features=2, n_classes=2, hidden=(3,), input_bound=math.sqrt(2))
    upload = replace(UPLOAD, clip=clip)
    X, y = np.array([r[:2] for r in records]), np.array([r[2] for r in records])
    sums = [network.clipped_sum(network.initial(seed), X[i:], y[i:], upload.bound) for i in (0, 1)]
    quiet = [upload._gaussian(s, Rng.seeded(1)) for s in sums]  # the same noise twice
    step = quiet[0][1]
    moved = np.linalg.norm((quiet[0][0] - quiet[1][0]).astype(float))
    assert moved <= clip / step + math.sqrt(network.n_parameters)


def test_the_noise_of_a_reply_is_the_claimed_gaussian() -> None:
    table, network = small_table(), Perceptron(n_features=4, n_classes=2, hidden=(3,))
    upload = replace(UPLOAD, ternary=False, n_chosen=network.n_parameters)
    plan, weights, rng = plan_of(table, upload), network.initial(0), Rng.seeded(8)
    centre = network.clipped_sum(weights, *table.arrays(), upload.bound) * upload.bound.unit
    noise = []
    for _ in range(60):
        reply = ternary_gradient(table, plan, NetworkWeights(weights=weights), rng=rng)
        noise.append(unpack(reply.value, network.n_parameters) - centre)  # type: ignore[union-attr]
    scaled = np.ravel(noise) / (upload.noise * upload.clip)
    assert stats.kstest(scaled, "norm").pvalue > 1e-3


@pytest.mark.parametrize(
    "change", [{}, {"mechanism": "gumbel", "batch": None}, {"compression": "none", "party_records": 100}]
)
def test_the_ledgers_are_charged_what_the_event_says(federation: Make, change: dict[str, Any]) -> None:
    parties = federation(policy=Policy())
    model = TernaryDescent(**QUICK | change)
    model.fit(parties)
    asked = Repeated(event=parties.terms(model).plan.event(), count=3)  # each of three parties, three times
    told = model.event()  # the most that it costs anybody, however many take turns
    for party in parties.names:
        ledger = parties.guard(party).ledger
        assert ledger.n_releases(party) == 3
        for relation in ("replace-one", "add-remove"):
            charged = ledger.epsilon(party, delta=1e-6, relation=relation)
            assert charged == pytest.approx(epsilon_of(asked, 1e-6, relation=relation), rel=1e-9)
            assert charged <= epsilon_of(told, 1e-6, relation=relation) * 1.002  # noise is found to 1 in 1,000
        assert ledger.epsilon(party, delta=1e-6, relation="add-remove") <= model.guarantee_.epsilon
    guarantee = model.guarantee_
    assert guarantee.epsilon == model.guarantee.epsilon == 1.0
    assert (guarantee.relation, guarantee.unit, guarantee.delta) == ("add-remove", "record", 1e-6)
    assert model.n_rounds_ == 9
    assert isinstance(told, Repeated)
    assert 0.99 <= epsilon_of(told, 1e-6, relation="add-remove") <= 1.0


@pytest.mark.parametrize(("rounds", "asked"), [(1, [1, 0, 0]), (4, [2, 1, 1]), (None, [30, 30, 30])])
def test_rounds_are_a_total_and_parties_take_turns(federation: Make, rounds: int | None, asked: list[int]) -> None:
    parties = federation()
    model = TernaryDescent(hidden_layer_sizes=(), rounds=rounds, mechanism="gumbel")
    plan = parties.begin(model).plan
    assert (plan.rounds, plan.each) == (sum(asked), max(asked))
    assert plan.upload.noise * plan.each == pytest.approx(plan.promise.rho)  # of the party that is asked most often
    model.fit(parties)
    assert [parties.guard(name).ledger.n_releases(name) for name in parties.names] == asked


def test_the_event_is_sampled_gaussian_or_concentrated() -> None:
    sampled = TernaryDescent(**QUICK | {"rounds": 3}).event()
    sigma = noise_multiplier(1.0, 1e-6, 0.2, 1)
    expected = PoissonSampled(probability=0.2, event=Gaussian(noise_multiplier=sigma))
    assert sampled == Repeated(event=expected, count=1)
    gumbel = TernaryDescent(epsilon=1.0, mechanism="gumbel", rounds=4).event()
    assert isinstance(gumbel, Repeated)
    assert isinstance(gumbel.event, Under)
    assert isinstance(gumbel.event.event, Zcdp)
    assert set(gumbel.event.relations) == {"replace-one", "add-remove"}


@pytest.mark.parametrize(("epsilon", "q", "rounds"), [(1.0, 0.2, 3), (0.1, 0.05, 50), (0.5, 1.0, 1)])
def test_the_noise_is_just_enough(epsilon: float, q: float, rounds: int) -> None:
    sigma = noise_multiplier(epsilon, 1e-5, q, rounds)
    event = Repeated(event=PoissonSampled(probability=q, event=Gaussian(noise_multiplier=sigma)), count=rounds)
    assert 0.997 * epsilon <= epsilon_of(event, 1e-5, relation="add-remove") <= epsilon


def test_gumbel_noise_is_sized_for_a_replaced_record() -> None:
    """The ledger may count under either relation: the scale is 2 D / e with D = 2 B, and n e**2 / 8 is rho."""
    upload = replace(UPLOAD, mechanism="gumbel", noise=0.02, n_chosen=4)
    sums = np.zeros(19, dtype=np.int64)
    seen: list[float] = []

    def spy(values: np.ndarray, noise_scale: float, n: int, *, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
        seen.append(noise_scale)
        return signed_gumbel_top(values, noise_scale, n, rng=rng)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tacit.methods.ternary.upload.signed_gumbel_top", spy)
        upload.compress(sums, 3, rng=Rng.seeded(0))
    bounded_range = 2 * (2 * upload.coordinate / upload.bound.unit) / seen[0]
    assert 4 * bounded_range**2 / 8 == pytest.approx(0.02, rel=1e-6)
    assert 4 * bounded_range**2 / 8 <= 0.02


@pytest.mark.parametrize("mechanism", ["gaussian", "gumbel"])
def test_at_noise_scales_the_noise(mechanism: Any) -> None:
    batch = 0.2 if mechanism == "gaussian" else None
    model = TernaryDescent(epsilon=1.0, rounds=3, batch=batch, mechanism=mechanism)
    alone = Federation.split(*make_data(30, 2), n_parties=1, norm_bound=1.0)
    one, two = (alone.begin(m).plan.upload.noise for m in (model, model.at_noise(2.0)))
    assert (two / one if mechanism == "gaussian" else math.sqrt(one / two)) == pytest.approx(2.0, rel=0.005)


def test_the_worst_neighbours_differ_by_the_whole_bound() -> None:
    for pair in TernaryDescent.worst_neighbours():
        model = TernaryDescent(**pair.settings | {"epsilon": math.inf})
        sums = []
        for tables in (pair.first, pair.second):
            parties = Federation.from_tables(dict(tables), policy=ALLOWED)
            parties.witness = []
            model.fit(parties)
            sums.append(unpack(parties.witness[0], 4))  # type: ignore[arg-type]
        assert np.linalg.norm(sums[0] - sums[1]) == pytest.approx(0.05, rel=1e-6)
        assert TernaryDescent(**pair.settings | {"epsilon": 0.5}).guarantee.epsilon <= 0.5


LIES = [np.zeros(5), np.zeros((37, 1)), np.full(37, math.nan), np.full(37, 1e9), np.zeros(0)]


@pytest.mark.parametrize("lie", LIES)
def test_weights_that_are_not_of_the_network_are_refused(federation: Make, lie: np.ndarray) -> None:
    parties = federation()
    with pytest.raises(PolicyRefusal, match="do not fit the study's network"):
        parties.begin(TernaryDescent(**QUICK)).ask(ternary_gradient, NetworkWeights(weights=lie))
    assert all(parties.guard(name).ledger.n_releases(name) == 0 for name in parties.names)


def test_batches_too_large_for_exact_sums_are_refused(federation: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.methods.ternary.statistic.LARGEST_BATCH", 50)
    with pytest.raises(PolicyRefusal, match=r"batch = 0.2 makes too large a batch for exact sums of so many records"):
        TernaryDescent(**QUICK).fit(federation())


CHANGES: list[dict[str, Any]] = [
    {}, {"mechanism": "gumbel", "batch": None}, {"calibration": "paper"}, {"epsilon": math.inf}, {"top": 0.5},
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_party_derives_the_plan_and_answers_each_turn_once(federation: Make, change: dict[str, Any]) -> None:
    parties = federation(weights=[1, 1])
    model = TernaryDescent(**QUICK | change | {"rounds": 3})
    run = parties.begin(model)
    assert derived(model, run).plan == run.plan
    (ask,) = derived(model, run).course
    assert (ask.step, ask.times, ask.each) == (ternary_gradient, 3, 2)
    iterate = NetworkWeights(weights=np.zeros(run.plan.network.n_parameters))
    for _ in range(2):
        run.ask(ternary_gradient, iterate, parties=["party1"])
    with pytest.raises(NotAgreed, match="turn 3 is not the next"):
        run.ask(ternary_gradient, iterate, parties=["party1"])  # twice is as often as a party is asked
    with pytest.raises(NotAgreed, match="turn 4 is not the next"):
        run.ask(ternary_gradient, iterate, parties=["party2"])  # the run has three turns
    with pytest.raises(NotAgreed, match="never asks step 'averaging/model'"):
        run.ask(local_model)
    assert [parties.guard(name).ledger.n_releases(name) for name in parties.names] == [2, 0]


# --- without noise ---------------------------------------------------------------------------------------------------


def plain_descent(model: TernaryDescent, parties: Federation, network: Perceptron) -> np.ndarray:
    """Clipped gradient descent, party after party, each record's gradient formed by itself."""
    weights = network.initial(model.random_state)
    turns = model.rounds
    assert turns is not None
    for turn in range(turns):
        X, y = parties.guard(parties.names[turn % parties.n_parties]).table.arrays()
        total = np.zeros(network.n_parameters)
        for row, label in zip(X, y, strict=True):
            layers, inputs = network.stack(weights).layers, [row]
            for layer in layers[:-1]:
                inputs.append(np.tanh(layer.W @ inputs[-1] + layer.b))
            z = layers[-1].W @ inputs[-1] + layers[-1].b
            error = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
            error[label] -= 1
            parts: list[np.ndarray] = []
            for layer, a in zip(reversed(layers), reversed(inputs), strict=True):
                parts = [np.outer(error, a).ravel(), error, *parts]
                error = (layer.W.T @ error) * (1 - a**2)
            g = np.concatenate(parts)
            total += g * min(1, model.clip / np.linalg.norm(g))
        rate = model.learning_rate * (1 - turn / turns)  # type: ignore[operator]
        weights = weights - rate * total / len(y)
    return weights


@pytest.mark.parametrize("classes", [2, 3])
def test_without_noise_and_compression_it_is_clipped_gradient_descent(federation: Make, classes: int) -> None:
    parties = federation(n=90, classes=classes, policy=ALLOWED)
    model = TernaryDescent(
        epsilon=math.inf, hidden_layer_sizes=(5, 3), activation="tanh", rounds=12, batch=1.0, clip=0.4,
        compression="none", learning_rate=2.0,
    )  # fmt: skip
    network = Perceptron(n_features=4, n_classes=classes, hidden=(5, 3), activation="tanh")
    np.testing.assert_allclose(model.fit(parties).weights_, plain_descent(model, parties, network), atol=1e-8)
    assert model.event() == Repeated(event=NotPrivate(why="epsilon is infinite: no noise is added"), count=1)
    assert not model.guarantee_.is_private


def test_ternary_steps_have_the_length_of_the_clipping_bound(federation: Make) -> None:
    parties = federation(weights=[1], policy=ALLOWED)
    model = TernaryDescent(
        epsilon=math.inf, hidden_layer_sizes=(5,), batch=1.0, rounds=1, clip=0.4, learning_rate=1.0
    ).fit(parties)
    network = Perceptron(n_features=4, n_classes=2, hidden=(5,))
    step = model.weights_ - network.initial(0)
    n = math.ceil(0.1 * network.n_parameters)
    assert np.count_nonzero(step) == n
    np.testing.assert_allclose(np.abs(step[step != 0]), 0.4 / math.sqrt(n))
    gradient = network.float_sum(network.initial(0), *parties.guard("party1").table.arrays(), Clip(bound=0.4))
    np.testing.assert_array_equal(np.sign(step), -np.sign(gradient * largest(gradient, n)))


# --- as a classifier -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change", [{}, {"activation": "tanh"}, {"compression": "none", "party_records": 100}, {"hidden_layer_sizes": ()}]
)
def test_it_learns_with_noise(change: dict[str, Any]) -> None:
    X, y = make_data(6000, 4, 2, seed=1)
    parties = Federation.split(X[:5000], y[:5000], n_parties=2, norm_bound=1.0, rng=Rng.seeded(1))
    settings_ = {"epsilon": 1.0, "delta": 1e-5, "hidden_layer_sizes": (10,), "rounds": 60, "batch": 0.1} | change
    model = TernaryDescent(**settings_).fit(parties)
    truth = LogisticRegression().fit(X[:5000], y[:5000])
    assert model.score(X[5000:], y[5000:]) > truth.score(X[5000:], y[5000:]) - 0.06


def test_gumbel_learns_with_noise() -> None:
    X, y = make_data(6000, 4, 2, seed=1)
    parties = Federation.split(X[:5000], y[:5000], n_parties=2, norm_bound=1.0, rng=Rng.seeded(1))
    model = TernaryDescent(epsilon=1.0, delta=1e-5, hidden_layer_sizes=(10,), rounds=40, mechanism="gumbel").fit(
        parties
    )
    assert model.score(X[5000:], y[5000:]) > max(np.mean(y[5000:]), 1 - np.mean(y[5000:])) + 0.03


@pytest.mark.parametrize("classes", [2, 3])
def test_it_predicts_as_scikit_learn_would_have_it_and_comes_back_from_its_file(
    federation: Make, classes: int, tmp_path: Path
) -> None:
    model = TernaryDescent(**QUICK).fit(federation(classes=classes))
    X = np.random.default_rng(1).normal(size=(9, 4))
    assert model.decision_function(X).shape == ((9,) if classes == 2 else (9, 3))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert set(model.predict(X)) <= set(range(classes))
    assert not hasattr(model, "coef_")
    assert len(model.summary()) > 100
    model.save(tmp_path / "model.json")
    loaded = tacit.load(tmp_path / "model.json")
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.report.html() == model.report.html()


@pytest.mark.slow
def test_a_registered_module_is_trained(federation: Make) -> None:
    torch = pytest.importorskip("torch")
    register_module("test-linear", linear_module)
    model = TernaryDescent(epsilon=1.0, module="test-linear", rounds=6, batch=0.5).fit(federation())
    assert model.weights_.shape == (10,)
    assert model.predict_proba(np.zeros((2, 4))).shape == (2, 2)
    quiet = {"epsilon": math.inf, "rounds": 6, "batch": 1.0, "compression": "none", "hidden_layer_sizes": ()}
    torch.manual_seed(0)
    own = TernaryDescent(**quiet | {"module": "test-linear"}).fit(federation(policy=ALLOWED))
    start = own._network.initial(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Perceptron, "initial", lambda self, seed: start)
        same = TernaryDescent(**quiet).fit(federation(policy=ALLOWED))
    np.testing.assert_allclose(own.weights_, same.weights_, atol=1e-8)


def linear_module(n_features: int, n_classes: int) -> Any:
    import torch

    return torch.nn.Linear(n_features, n_classes)


def test_every_turn_draws_fresh_noise_and_a_repeated_question_none(federation: Make) -> None:
    parties = federation()
    run = parties.begin(TernaryDescent(**QUICK))
    start, iterate = run._start, NetworkWeights(weights=np.zeros(37))
    messages = [run._question(ternary_gradient, iterate) for _ in range(2)]
    ask = parties.engine.ask
    first, again, second = (
        ask(start, message, ["party1"], parties.center.keys)["party1"] for message in (messages[0], *messages)
    )
    assert first.encode() == again.encode()
    assert encode(first.value) != encode(second.value)
    assert parties.guard("party1").ledger.n_releases("party1") == 2


def test_weights_that_diverge_are_named(federation: Make) -> None:
    with pytest.raises(NotConverged, match="the weights diverge in round 1; choose a learning_rate below 1e"):
        TernaryDescent(**QUICK | {"learning_rate": 1e15}).fit(federation())


BAD_SETTINGS: list[dict[str, Any]] = [
    {"delta": 0}, {"delta": 1.0}, {"hidden_layer_sizes": (0,)}, {"hidden_layer_sizes": "50"}, {"activation": "gelu"},
    {"rounds": 0}, {"rounds": 2.5}, {"batch": 0.0}, {"batch": 1.1}, {"batch": True}, {"clip": 0.0}, {"clip": math.nan},
    {"top": 0.0}, {"top": 2.0}, {"learning_rate": -1.0}, {"mechanism": "laplace"}, {"compression": "zip"},
    {"calibration": "loud"}, {"random_state": -1}, {"random_state": None}, {"module": 5}, {"epsilon": 0.0},
    {"epsilon": math.nan},
]  # fmt: skip


@pytest.mark.parametrize("settings_", BAD_SETTINGS)
def test_settings_that_cannot_be_honoured_are_named(federation: Make, settings_: dict[str, Any]) -> None:
    (name,) = settings_
    with pytest.raises(SettingError, match=f"{name} = "):
        TernaryDescent(**settings_).fit(federation())


def test_gumbel_takes_neither_a_sample_nor_values(federation: Make) -> None:
    for change in ({"batch": 0.5}, {"compression": "none"}):
        with pytest.raises(SettingError, match="mechanism = 'gumbel' with batch = "):
            TernaryDescent(mechanism="gumbel", **change).fit(federation())  # type: ignore[arg-type]


def test_a_missing_bound_is_an_error(federation: Make) -> None:
    with pytest.raises(SettingError, match="needs a bound on the norm of a row"):
        TernaryDescent(**QUICK).fit(federation(norm_bound=None))


# --- the dissertation as printed -------------------------------------------------------------------------------------


def test_as_printed_it_is_not_private_and_refused_by_default(federation: Make) -> None:
    model = TernaryDescent(**QUICK | {"calibration": "paper"})
    assert model.event() == Repeated(event=NotPrivate(why="TernaryDescent as the document prints it"), count=1)
    with pytest.raises(PolicyRefusal, match="no epsilon bounds"):
        model.fit(federation(policy=Policy()))
    assert "NOT PRIVATE" in model.fit(federation(policy=ALLOWED)).report.text()


def printed_values(table: Table, runs: int, epsilon: float) -> np.ndarray:
    """(3.6) as printed, divided by B: average plus Laplace noise."""
    upload = replace(UPLOAD, mechanism="paper", noise=epsilon, ternary=False, n_chosen=10)
    plan, rng = plan_of(table, upload, (), "paper"), Rng.seeded(9)
    replies = [ternary_gradient(table, plan, NetworkWeights(weights=np.zeros(10)), rng=rng) for _ in range(runs)]
    values = np.array([unpack(reply.value, 10) for reply in replies])  # type: ignore[union-attr]
    return values / upload.coordinate


def test_the_printed_noise_has_the_printed_scale() -> None:
    """lambda / epsilon with lambda = 2 B / |D_q| (3.5); q = 1, and all coordinates are chosen."""
    table, bound = small_table(), UPLOAD.clip / math.sqrt(10)
    values = printed_values(table, 300, 0.7)
    centred = values - np.mean(values, axis=0)
    scale = 2 * bound / len(table.arrays()[1]) / 0.7
    assert stats.kstest(centred.ravel(), stats.laplace(0, scale).cdf).pvalue > 1e-3


def test_the_printed_scale_tells_the_number_of_records() -> None:
    """Its scale falls with |D_q|: at the value v a record more changes the density by |v| epsilon / (2 B), any amount.

    2 and 4 records whose gradients cancel: the average is 0 for both, and large values still tell them apart.
    """
    epsilon, n = 0.01, 10
    schema = Schema.of_arrays(4, [0, 1], norm_bound=1.0)
    X, y = np.zeros((4, 4)), np.array([0, 1, 0, 1])
    values = [printed_values(Table.from_arrays(X[:m], y[:m], schema), 800, epsilon)[:, :8] for m in (2, 4)]
    beyond = 8 * (2 * UPLOAD.clip / math.sqrt(n)) / 4 / epsilon
    first, second = (int(np.sum(np.abs(v) > beyond)) for v in values)
    low = stats.beta.ppf(0.0005, first, values[0].size - first + 1)
    high = stats.beta.ppf(0.9995, second + 1, values[1].size - second)
    # A single value loses more than two records should in all n of them, the noise that is not counted included.
    assert math.log(low / high) > 2 * 3 * n * epsilon


def test_report_noisy_top_n_with_its_values_breaks_its_promise() -> None:
    """d = 200, N = 1, claimed 2 N epsilon = 1: the largest value tells that all the others lie below it."""
    epsilon, sensitivity, d, runs = 0.5, 1000, 200, 6000
    noise_scale = sensitivity / epsilon
    threshold = noise_scale * math.log(d / 2 / 3)  # P(all below) = exp(-3) without, exp(-3 e^epsilon) with the record
    counts = []
    for shift, seed in ((0, 1), (sensitivity, 2)):
        rng, values = Rng.seeded(seed), np.full(d, shift, dtype=np.int64)
        tops = [report_noisy_top_n(values, noise_scale, 1, rng=rng)[1][0] for _ in range(runs)]
        counts.append(int(np.sum(np.array(tops) < threshold)))
    low = stats.beta.ppf(0.0005, counts[0], runs - counts[0] + 1)
    high = stats.beta.ppf(0.9995, counts[1] + 1, runs - counts[1])
    assert math.log(low / high) > 2 * epsilon


def test_report_noisy_top_n_can_lose_d_epsilon() -> None:
    """The exact loss at an output far below all values: d = 1000, N = 100, epsilon = 0.01 lose 10, claimed are 2."""
    d, n, epsilon, low = 1000, 100, 0.01, -100.0
    laplace = stats.laplace(0, 1 / epsilon)
    chosen = n * (laplace.logpdf(low) - laplace.logpdf(low - 1))
    others = (d - n) * (laplace.logcdf(low) - laplace.logcdf(low - 1))
    assert chosen + others == pytest.approx(d * epsilon)
    assert chosen + others > 2 * n * epsilon


# --- real records ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif("TACIT_DATA" not in os.environ, reason="TACIT_DATA does not name a folder with the data sets")
@pytest.mark.parametrize(("name", "least"), [("adult", 0.88), ("creditcard_fraud", 0.93)])
def test_five_parties_train_on_real_records_at_epsilon_3(name: str, least: float) -> None:
    data = load(name)
    rows = [table.arrays() for table in data.tables.values()]
    X, y = np.concatenate([r[0] for r in rows]), np.concatenate([r[1] for r in rows])
    order = np.random.default_rng(0).permutation(len(X))
    cut = 4 * len(X) // 5
    train, test = order[:cut], order[cut:]
    parties = Federation.split(X[train], y[train], n_parties=5, norm_bound=data.schema.radius, rng=Rng.seeded(0))
    model = TernaryDescent(epsilon=3.0, delta=1e-5).fit(parties)
    assert model.guarantee_.epsilon <= 3.0
    assert roc_auc_score(y[test], model.decision_function(X[test])) > least
