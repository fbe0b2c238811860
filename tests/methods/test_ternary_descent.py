"""Ternary descent: exact noise, what is chosen and packed, what it costs, and what is left without noise."""

from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtri
from sklearn.metrics import roc_auc_score

import tacit
from tacit import Federation, Policy, Rng, Schema, Table
from tacit.data.public import load
from tacit.errors import NotConverged, PolicyRefusal, SettingError, WireError
from tacit.methods import METHODS, ternary
from tacit.methods.ternary import largest, pack, report_noisy_top_n, rounded_gaussian, signed_gumbel_top, unpack
from tacit.methods.ternary_descent import Plan, TernaryDescent, noise_multiplier, poisson_sample, ternary_gradient
from tacit.models.network import Perceptron, register_module
from tacit.privacy.accounting import epsilon_of
from tacit.privacy.event import Gaussian, NotPrivate, PoissonSampled, Repeated, Zcdp
from tacit.wire import encode

from .conftest import make_data

Make = Callable[..., Federation]

ALLOWED = Policy(not_private=["ternary-descent"])
QUICK: dict[str, Any] = {"epsilon": 1.0, "layers": (5,), "rounds": 3, "q": 0.2}
PLAN = Plan(
    mechanism="gaussian", noise=2.0, q=1.0, clip=0.5, n_chosen=10, ternary=True, layers=[3], activation="relu",
    module=None,
)  # fmt: skip


def small_table(n: int = 40, d: int = 4, classes: int = 2, seed: int = 0) -> Table:
    X, y = make_data(n, d, classes, seed)
    return Table.from_arrays(X, y, Schema.of_arrays(d, list(range(classes)), norm_bound=1.0))


# --- noise -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise_std", [1.0, 2.7, 40.0])
def test_the_rounded_gaussian_has_its_law(noise_std: float) -> None:
    draws = rounded_gaussian(noise_std, 100_000, rng=Rng.seeded(1))
    reach = int(3 * noise_std)
    k = np.arange(-reach, reach + 1)
    inside = stats.norm.cdf((k + 0.5) / noise_std) - stats.norm.cdf((k - 0.5) / noise_std)
    observed = np.array([np.sum(draws == i) for i in k])
    expected = np.append(inside, 1 - inside.sum()) * len(draws)
    assert stats.chisquare(np.append(observed, len(draws) - observed.sum()), expected).pvalue > 1e-3


def test_the_rounded_gaussian_is_gaussian_on_a_fine_grid() -> None:
    draws = rounded_gaussian(2.0**24, 50_000, rng=Rng.seeded(2)) / 2.0**24
    assert stats.kstest(draws, "norm").pvalue > 1e-3


@pytest.mark.parametrize("noise_std", [1.0, 33.3, 2.0**24])
def test_exact_comparisons_decide_as_floats_do_where_those_are_sure(
    monkeypatch: pytest.MonkeyPatch, noise_std: float
) -> None:
    fast = rounded_gaussian(noise_std, 200, rng=Rng.seeded(3))
    monkeypatch.setattr(ternary, "_NORMAL_ERROR", 1.0)  # now every draw is in doubt
    np.testing.assert_array_equal(rounded_gaussian(noise_std, 200, rng=Rng.seeded(3)), fast)


def test_a_draw_far_out_in_the_tail_is_exact() -> None:
    """The first word 0 says only that U < 2**-64; the next digits decide, here 2**-64 / 2 and 2**-64 / 2**64."""

    class Words:
        def __init__(self, *words: int) -> None:
            self.waiting = list(words)

        def words(self, n: int) -> np.ndarray:
            return np.array([self.waiting.pop(0) for _ in range(n)], dtype=np.uint64)

        def bits(self, n: int) -> np.ndarray:
            return np.zeros(n, dtype=bool)

    for word, tail in ((2**63, mpmath.mpf(2) ** -65), (1, mpmath.mpf(2) ** -128)):
        expected = mpmath.findroot(lambda x, tail=tail: mpmath.log(mpmath.erfc(x / mpmath.sqrt(2)) / tail), 10)
        (drawn,) = rounded_gaussian(100.0, 1, rng=Words(0, word, 7, 7))  # type: ignore[arg-type]
        assert drawn == pytest.approx(float(100 * expected), abs=1)


def test_ndtri_is_as_good_as_the_proof_needs() -> None:
    with mpmath.workdps(40):
        for u in [2.0**-66, 1e-12, 1e-3, 0.06, 0.0677, 0.13, 0.2, 0.4, 0.499999]:
            x = -float(ndtri(u))
            exact = mpmath.findroot(lambda t, u=u: mpmath.erfc(t / mpmath.sqrt(2)) / 2 - u, x)
            assert abs(x - exact) < ternary._NORMAL_ERROR / 16 * (1 + x)


@pytest.mark.parametrize("noise_std", [0.5, math.nan, 2.0**41])
def test_a_noise_that_the_proof_does_not_cover_is_refused(noise_std: float) -> None:
    with pytest.raises(SettingError, match="noise_std = "):
        rounded_gaussian(noise_std, 3, rng=Rng.system())


SUMS = np.array([0, 50, -30, 10])


def ranking_chances(sums: np.ndarray, noise_scale: float, n: int) -> dict[frozenset[tuple[int, bool]], float]:
    """Exact chances of every outcome of n draws without return, by going through all orders."""
    weight = {(j, s): math.exp((-1) ** s * int(v) / noise_scale) for j, v in enumerate(sums) for s in (False, True)}
    chances: Counter[frozenset[tuple[int, bool]]] = Counter()
    for js in itertools.permutations(range(len(sums)), n):
        for signs in itertools.product((False, True), repeat=n):
            chance, left = 1.0, set(range(len(sums)))
            for j, s in zip(js, signs, strict=True):
                chance *= weight[j, s] / sum(weight[k, t] for k in left for t in (False, True))
                left.remove(j)
            chances[frozenset(zip(js, signs, strict=True))] += chance
    return chances


@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_signed_gumbel_choice_is_drawn_as_by_the_exponential_mechanism(n: int) -> None:
    rng, expected = Rng.seeded(4), ranking_chances(SUMS, 25.0, n)
    seen: Counter[frozenset[tuple[int, bool]]] = Counter()
    runs = 6000
    for _ in range(runs):
        chosen, negative = signed_gumbel_top(SUMS, 25.0, n, rng=rng)
        assert chosen.sum() == n
        seen[frozenset((int(j), bool(negative[j])) for j in np.flatnonzero(chosen))] += 1
    common = [outcome for outcome, chance in expected.items() if chance * runs > 5]
    rest = runs - sum(seen[o] for o in common)
    chances = np.array([expected[o] for o in common])
    observed, chances = np.array([*(seen[o] for o in common), rest]), np.append(chances, 1 - chances.sum())
    kept = chances > 1e-9
    assert np.all(observed[~kept] == 0)
    assert stats.chisquare(observed[kept], chances[kept] * runs).pvalue > 1e-3


@given(st.lists(st.integers(-40, 40), min_size=2, max_size=4), st.data())
@settings(max_examples=100, deadline=None)
def test_the_signed_gumbel_choice_costs_no_more_than_is_claimed(sums: list[int], data: st.DataObject) -> None:
    """One draw is of bounded range e, and n of them are n e**2 / 8 zero-concentrated private, from exact chances.

    The range of n draws together may exceed n e, since a later draw's range starts where the earlier ones say.
    """
    reach = 7
    moved = [v + data.draw(st.integers(-reach, reach)) for v in sums]
    n = data.draw(st.integers(1, 2))
    bounded_range = data.draw(st.sampled_from([0.1, 0.7, 3.0]))
    first, second = (ranking_chances(np.array(s), 2 * reach / bounded_range, n) for s in (sums, moved))
    outcomes = list(first)
    p, losses = np.array([first[o] for o in outcomes]), np.log([first[o] / second[o] for o in outcomes])
    if n == 1:
        assert losses.max() - losses.min() <= bounded_range + 1e-9
    for alpha in (1.01, 2.0, 8.0, 64.0):
        divergence = np.log(np.sum(p * np.exp((alpha - 1) * losses))) / (alpha - 1)
        assert divergence <= alpha * n * bounded_range**2 / 8 + 1e-9


def test_comparisons_in_doubt_are_made_anew_and_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = np.random.default_rng(0).integers(-50, 50, 120)
    fast = signed_gumbel_top(sums, 20.0, 30, rng=Rng.seeded(5))
    monkeypatch.setattr(ternary, "_GUMBEL_ERROR", 1.0)
    np.testing.assert_array_equal(signed_gumbel_top(sums, 20.0, 30, rng=Rng.seeded(5)), fast)


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
    plan = replace(PLAN, layers=[50, 20], n_chosen=math.ceil(0.1 * network.n_parameters))
    reply = ternary_gradient(table, rng=Rng.seeded(0), weights=network.initial(0), turn=0, **asdict(plan))
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
    plan = replace(PLAN, clip=clip)
    X, y = np.array([r[:2] for r in records]), np.array([r[2] for r in records])
    sums = [network.clipped_sum(network.initial(seed), X[i:], y[i:], plan.bound) for i in (0, 1)]
    quiet = [plan._gaussian(s, Rng.seeded(1)) for s in sums]  # the same noise twice
    step = quiet[0][1]
    moved = np.linalg.norm((quiet[0][0] - quiet[1][0]).astype(float))
    assert moved <= clip / step + math.sqrt(network.n_parameters)


def test_the_noise_of_a_reply_is_the_claimed_gaussian() -> None:
    table, network = small_table(), Perceptron(n_features=4, n_classes=2, hidden=(3,))
    plan = replace(PLAN, ternary=False, n_chosen=network.n_parameters)
    weights, rng = network.initial(0), Rng.seeded(8)
    centre = network.clipped_sum(weights, *table.arrays(), plan.bound) * plan.bound.unit
    noise = []
    for turn in range(60):
        reply = ternary_gradient(table, rng=rng, weights=weights, turn=turn, **asdict(plan))
        noise.append(unpack(reply.value, network.n_parameters) - centre)  # type: ignore[union-attr]
    scaled = np.ravel(noise) / (plan.noise * plan.clip)
    assert stats.kstest(scaled, "norm").pvalue > 1e-3


@pytest.mark.parametrize("change", [{}, {"mechanism": "gumbel", "q": None}, {"compression": "none"}])
def test_the_ledgers_are_charged_what_the_event_says(federation: Make, change: dict[str, Any]) -> None:
    parties = federation(policy=Policy())
    model = TernaryDescent(**QUICK | change)
    told = model.event()
    model.fit(parties)
    assert isinstance(told, Repeated)
    assert told.count == 3
    for party in parties.names:
        ledger = parties.guard(party).ledger
        assert ledger.n_releases(party) == 3
        for relation in ("replace-one", "add-remove"):
            charged = ledger.epsilon(party, delta=1e-5, relation=relation)
            assert charged == pytest.approx(epsilon_of(told, 1e-5, relation=relation), rel=1e-9)
    assert 0.99 <= model.guarantee_.epsilon <= 1.0
    assert (model.guarantee_.relation, model.guarantee_.unit, model.guarantee_.delta) == ("add-remove", "record", 1e-5)
    assert model.n_rounds_ == 9


def test_the_event_is_sampled_gaussian_or_concentrated() -> None:
    sampled = TernaryDescent(**QUICK).event()
    sigma = noise_multiplier(1.0, 1e-5, 0.2, 3)
    expected = PoissonSampled(probability=0.2, event=Gaussian(noise_multiplier=sigma))
    assert sampled == Repeated(event=expected, count=3)
    gumbel = TernaryDescent(epsilon=1.0, mechanism="gumbel", rounds=4).event()
    assert isinstance(gumbel, Repeated)
    assert isinstance(gumbel.event, Zcdp)


@pytest.mark.parametrize(("epsilon", "q", "rounds"), [(1.0, 0.2, 3), (0.1, 0.05, 50), (0.5, 1.0, 1)])
def test_the_noise_is_just_enough(epsilon: float, q: float, rounds: int) -> None:
    sigma = noise_multiplier(epsilon, 1e-5, q, rounds)
    event = Repeated(event=PoissonSampled(probability=q, event=Gaussian(noise_multiplier=sigma)), count=rounds)
    assert 0.997 * epsilon <= epsilon_of(event, 1e-5, relation="add-remove") <= epsilon


def test_gumbel_noise_is_sized_for_a_replaced_record() -> None:
    """The ledger may count under either relation: the scale is 2 D / e with D = 2 B, and n e**2 / 8 is rho."""
    plan = replace(PLAN, mechanism="gumbel", noise=0.02, n_chosen=4)
    sums = np.zeros(19, dtype=np.int64)
    seen: list[float] = []

    def spy(values: np.ndarray, noise_scale: float, n: int, *, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
        seen.append(noise_scale)
        return signed_gumbel_top(values, noise_scale, n, rng=rng)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tacit.methods.ternary_descent.signed_gumbel_top", spy)
        plan.compress(sums, 3, rng=Rng.seeded(0))
    bounded_range = 2 * (2 * plan.coordinate / plan.bound.unit) / seen[0]
    assert 4 * bounded_range**2 / 8 == pytest.approx(0.02, rel=1e-6)
    assert 4 * bounded_range**2 / 8 <= 0.02


@pytest.mark.parametrize("mechanism", ["gaussian", "gumbel"])
def test_at_noise_scales_the_noise(mechanism: Any) -> None:
    model = TernaryDescent(epsilon=1.0, rounds=3, q=0.2 if mechanism == "gaussian" else None, mechanism=mechanism)
    one, two = (m._plan(1).noise for m in (model, model.at_noise(2.0)))
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


LIES: list[dict[str, Any]] = [
    {"q": 0.0}, {"q": 1.5}, {"noise": -1.0}, {"noise": math.nan}, {"noise": math.inf}, {"n_chosen": 0},
    {"n_chosen": 10**6}, {"weights": np.zeros(5)}, {"weights": np.full(38, math.nan)}, {"weights": np.full(38, 1e9)},
    {"layers": [9]}, {"mechanism": "none"}, {"mechanism": "gumbel", "q": 0.5}, {"activation": "gelu"},
    {"mechanism": "gumbel", "ternary": False},
]  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_plan_that_cannot_be_honoured_is_refused(federation: Make, lie: dict[str, Any]) -> None:
    parties = federation()
    honest = asdict(TernaryDescent(**QUICK)._plan(37)) | {"weights": np.zeros(37), "turn": 0}
    with pytest.raises(PolicyRefusal, match="do not fit this party's table"):
        parties.begin("ternary-descent").ask(ternary_gradient, **honest | lie)
    assert all(parties.guard(name).ledger.n_releases(name) == 0 for name in parties.names)


def test_batches_too_large_for_exact_sums_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.methods.ternary_descent.LARGEST_BATCH", 60)
    with pytest.raises(PolicyRefusal, match=r"batches of q n = 40 records are too large; lower q"):
        ternary_gradient(small_table(), rng=Rng.seeded(0), weights=np.zeros(23), turn=0, **asdict(PLAN))


# --- without noise ---------------------------------------------------------------------------------------------------


def plain_descent(model: TernaryDescent, parties: Federation, network: Perceptron) -> np.ndarray:
    """Clipped gradient descent, party after party, each record's gradient formed by itself."""
    weights = network.initial(model.seed)
    turns = model._rounds * parties.n_parties
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
        epsilon=math.inf, layers=(5, 3), activation="tanh", rounds=4, q=1.0, clip=0.4, compression="none",
        learning_rate=2.0,
    )  # fmt: skip
    network = Perceptron(n_features=4, n_classes=classes, hidden=(5, 3), activation="tanh")
    np.testing.assert_allclose(model.fit(parties).weights_, plain_descent(model, parties, network), atol=1e-8)
    assert model.event() == Repeated(event=NotPrivate(why="epsilon is infinite: no noise is added"), count=4)
    assert not model.guarantee_.is_private


def test_ternary_steps_have_the_length_of_the_clipping_bound(federation: Make) -> None:
    parties = federation(weights=[1], policy=ALLOWED)
    settings_ = {"epsilon": math.inf, "layers": (5,), "q": 1.0, "rounds": 1, "clip": 0.4, "learning_rate": 1.0}
    model = TernaryDescent(**settings_).fit(parties)
    network = Perceptron(n_features=4, n_classes=2, hidden=(5,))
    step = model.weights_ - network.initial(0)
    n = math.ceil(0.1 * network.n_parameters)
    assert np.count_nonzero(step) == n
    np.testing.assert_allclose(np.abs(step[step != 0]), 0.4 / math.sqrt(n))
    gradient = network.float_sum(network.initial(0), *parties.guard("party1").table.arrays(), model._plan(37).bound)
    np.testing.assert_array_equal(np.sign(step), -np.sign(gradient * largest(gradient, n)))


# --- as a classifier -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [{}, {"activation": "tanh"}, {"compression": "none"}, {"layers": ()}])
def test_it_learns_with_noise(change: dict[str, Any]) -> None:
    X, y = make_data(6000, 4, 2, seed=1)
    parties = Federation.split(X[:5000], y[:5000], n_parties=2, norm_bound=1.0, rng=Rng.seeded(1))
    settings_ = {"epsilon": 1.0, "layers": (10,), "rounds": 30, "q": 0.1} | change
    model = TernaryDescent(**settings_).fit(parties)
    truth = tacit.Pooled(l2=1.0).fit(
        Federation.split(X[:5000], y[:5000], n_parties=1, norm_bound=1.0, policy=Policy(not_private=["pooled"]))
    )
    assert model.score(X[5000:], y[5000:]) > truth.score(X[5000:], y[5000:]) - 0.06


def test_gumbel_learns_with_noise() -> None:
    X, y = make_data(6000, 4, 2, seed=1)
    parties = Federation.split(X[:5000], y[:5000], n_parties=2, norm_bound=1.0, rng=Rng.seeded(1))
    model = TernaryDescent(epsilon=1.0, layers=(10,), rounds=20, mechanism="gumbel").fit(parties)
    assert model.score(X[5000:], y[5000:]) > max(np.mean(y[5000:]), 1 - np.mean(y[5000:])) + 0.03


@pytest.mark.parametrize("classes", [2, 3])
def test_it_predicts_as_scikit_learn_would_have_it_and_comes_back_from_its_file(
    federation: Make, classes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METHODS, "ternary-descent", TernaryDescent)
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
    model = TernaryDescent(epsilon=1.0, module="test-linear", rounds=2, q=0.5).fit(federation())
    assert model.weights_.shape == (10,)
    assert model.predict_proba(np.zeros((2, 4))).shape == (2, 2)
    quiet = {"epsilon": math.inf, "rounds": 2, "q": 1.0, "compression": "none", "layers": ()}
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
    asked = asdict(TernaryDescent(**QUICK)._plan(37)) | {"weights": np.zeros(37)}
    run = parties.begin("ternary-descent")
    first, again, second = (run.ask(ternary_gradient, turn=turn, **asked)["party1"] for turn in (0, 0, 1))
    assert encode(first) == encode(again)
    assert encode(first) != encode(second)
    assert parties.guard("party1").ledger.n_releases("party1") == 2


def test_weights_that_diverge_are_named(federation: Make) -> None:
    with pytest.raises(NotConverged, match="the weights diverge in round 1; choose a learning_rate below 1e"):
        TernaryDescent(**QUICK | {"learning_rate": 1e15}).fit(federation())


BAD_SETTINGS: list[dict[str, Any]] = [
    {"delta": 0.0}, {"delta": None}, {"layers": (0,)}, {"layers": "50"}, {"activation": "gelu"}, {"rounds": 0},
    {"rounds": 2.5}, {"q": 0.0}, {"q": 1.1}, {"q": True}, {"clip": 0.0}, {"clip": math.nan}, {"top": 0.0},
    {"top": 2.0}, {"learning_rate": -1.0}, {"mechanism": "laplace"}, {"compression": "zip"}, {"calibration": "loud"},
    {"seed": -1}, {"module": 5}, {"epsilon": 0.0}, {"epsilon": math.nan},
]  # fmt: skip


@pytest.mark.parametrize("settings_", BAD_SETTINGS)
def test_settings_that_cannot_be_honoured_are_named(federation: Make, settings_: dict[str, Any]) -> None:
    (name,) = settings_
    with pytest.raises(SettingError, match=f"{name} = "):
        TernaryDescent(**settings_).fit(federation())


def test_gumbel_takes_neither_a_sample_nor_values(federation: Make) -> None:
    for change in ({"q": 0.5}, {"compression": "none"}):
        with pytest.raises(SettingError, match="mechanism = 'gumbel' with q = "):
            TernaryDescent(mechanism="gumbel", **change).fit(federation())  # type: ignore[arg-type]


def test_a_missing_bound_is_an_error(federation: Make) -> None:
    with pytest.raises(SettingError, match="TernaryDescent needs a bound on the norm of a row"):
        TernaryDescent(**QUICK).fit(federation(norm_bound=None))


# --- the dissertation as printed -------------------------------------------------------------------------------------


def test_as_printed_it_is_not_private_and_refused_by_default(federation: Make) -> None:
    model = TernaryDescent(**QUICK | {"calibration": "paper"})
    assert model.event() == Repeated(event=NotPrivate(why="Ternary descent as the dissertation prints it"), count=3)
    with pytest.raises(PolicyRefusal, match="no epsilon bounds"):
        model.fit(federation(policy=Policy()))
    assert "NOT PRIVATE" in model.fit(federation(policy=ALLOWED)).report.text()


def printed_values(table: Table, runs: int, epsilon: float) -> np.ndarray:
    """(3.6) as printed, divided by B: average plus Laplace noise."""
    plan = replace(PLAN, mechanism="paper", noise=epsilon, ternary=False, n_chosen=10, layers=[])
    rng = Rng.seeded(9)
    replies = [ternary_gradient(table, rng=rng, weights=np.zeros(10), turn=i, **asdict(plan)) for i in range(runs)]
    values = np.array([unpack(reply.value, 10) for reply in replies])  # type: ignore[union-attr]
    return values / plan.coordinate


def test_the_printed_noise_has_the_printed_scale() -> None:
    """lambda / epsilon with lambda = 2 B / |D_q| (3.5); q = 1, and all coordinates are chosen."""
    table, bound = small_table(), PLAN.clip / math.sqrt(10)
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
    beyond = 8 * (2 * PLAN.clip / math.sqrt(n)) / 4 / epsilon
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
    model = TernaryDescent(epsilon=3.0).fit(parties)
    assert model.guarantee_.epsilon <= 3.0
    assert roc_auc_score(y[test], model.decision_function(X[test])) > least
