"""Private evaluation: the figures without noise are scikit-learn's, and with noise they are as far off as they say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from tacit import Averaging, Budget, Federation, Policy, Rng
from tacit.errors import BudgetExceeded, NotAgreed, PolicyRefusal, SettingError
from tacit.federation.group import SumGroup
from tacit.methods.averaging.statistic import local_model
from tacit.methods.evaluation.method import PrivateEvaluation, evaluate_privately
from tacit.methods.evaluation.metrics import metrics_of
from tacit.methods.evaluation.statistic import LinearModel, cells, party_histogram
from tacit.privacy.accounting import mu_for
from tacit.privacy.event import Composed, NotPrivate, Pure, Repeated
from tacit.privacy.guarantee import Guarantee

from ..conftest import assert_drawn_from, make_data

Make = Callable[..., Federation]
OPEN = Policy(not_private=["private-evaluation"])


def pooled(parties: Federation) -> tuple[np.ndarray, np.ndarray]:
    arrays = [parties.guard(name).table.arrays() for name in parties.names]
    return np.concatenate([X for X, _ in arrays]), np.concatenate([y for _, y in arrays])


def model_of(parties: Federation) -> LogisticRegression:
    return LogisticRegression().fit(*pooled(parties))


# --- one record ------------------------------------------------------------------------------------------------------

score = st.one_of(st.floats(allow_nan=True), st.floats(-5, 5))


@given(st.lists(st.tuples(score, st.integers(0, 1)), min_size=1, max_size=5), score, st.integers(0, 1))
def test_a_record_falls_into_exactly_one_cell_whatever_its_score(
    records: list[tuple[float, int]], other: float, label: int
) -> None:
    def histogram(rows: list[tuple[float, int]]) -> np.ndarray:
        scores, y = np.array([[s] for s, _ in rows]), np.array([label for _, label in rows])
        return np.bincount(cells(scores, y, 10), minlength=20)

    one, two = histogram(records), histogram([(other, label), *records[1:]])
    assert len(one) == 20
    assert one.sum() == len(records)
    assert np.abs(one - two).sum() <= 2
    assert np.linalg.norm(one - two) <= math.sqrt(2)


def test_a_probability_of_one_half_is_predicted_as_the_first_class() -> None:
    scores = np.array([[-1e-9], [0.0], [1e-9], [-800.0], [800.0]])
    np.testing.assert_array_equal(cells(scores, np.zeros(5, dtype=np.int64), 4), [1, 1, 2, 0, 3])


# --- without noise ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bins", [2, 50, 400])
def test_without_noise_the_figures_are_those_of_scikit_learn(federation: Make, bins: int) -> None:
    parties = federation(policy=OPEN)
    model = model_of(parties)
    X, y = pooled(parties)
    p = model.predict_proba(X)[:, 1]
    rounded = (np.ceil(p * bins) - 0.5) / bins  # the middle of the bin
    found = evaluate_privately(model, parties, epsilon=math.inf, bins=bins)
    assert found.n == len(y)
    assert found.accuracy == pytest.approx(accuracy_score(y, model.predict(X)), abs=1e-12)
    assert found.auc == pytest.approx(roc_auc_score(y, rounded), abs=1e-12)
    assert found.log_loss == pytest.approx(log_loss(y, rounded), abs=1e-9)
    assert found.accuracy_error == found.auc_error == found.log_loss_error == 0
    if bins == 400:
        assert found.auc == pytest.approx(roc_auc_score(y, p), abs=2e-3)
        assert found.log_loss == pytest.approx(log_loss(y, p), abs=2e-3)
    assert sum(b.count for b in found.calibration) == pytest.approx(len(y))
    for b in found.calibration:
        inside = (p > b.low) & (p <= b.high)
        assert b.count == pytest.approx(inside.sum())
        assert b.observed_rate == pytest.approx(y[inside].mean())


def test_more_than_two_classes_give_the_accuracy(federation: Make) -> None:
    parties = federation(classes=3, policy=OPEN)
    model = model_of(parties)
    X, y = pooled(parties)
    found = evaluate_privately(model, parties, epsilon=math.inf)
    assert found.accuracy == pytest.approx(accuracy_score(y, model.predict(X)), abs=1e-12)
    assert (found.auc, found.log_loss, found.calibration) == (None, None, ())
    noisy = evaluate_privately(model, parties, epsilon=1.0)
    assert noisy.accuracy_error < 0.03
    assert abs(noisy.accuracy - found.accuracy) < 6 * noisy.accuracy_error


def test_a_private_model_is_measured_as_it_predicts(federation: Make) -> None:
    parties = federation(policy=OPEN)
    model = Averaging(epsilon=2.0).fit(parties)
    X, y = pooled(parties)
    found = evaluate_privately(model, parties, epsilon=math.inf)
    assert found.accuracy == pytest.approx(model.score(X, y))


def test_one_class_alone_gives_no_auc() -> None:
    X, y = np.zeros((50, 1)), np.append(np.zeros(49), 1).astype(int)
    parties = Federation.split(X, y, n_parties=1, norm_bound=1.0)
    assert evaluate_privately(([[1.0]], [0.0]), parties, epsilon=0.1).auc is None


# --- the noise -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("delta", "n_parties"), [(0.0, 3), (0.0, 40), (1e-6, 3), (None, 3)])
def test_the_noise_has_the_size_that_it_claims(delta: float | None, n_parties: int) -> None:
    X, y = make_data(80, 2)
    parties = Federation.split(X, y, n_parties=n_parties, norm_bound=1.0, rng=Rng.seeded(3), policy=OPEN)
    evaluation = PrivateEvaluation(epsilon=0.5, delta=delta, bins=20, colluders=0)
    plan = parties.begin(evaluation).plan
    assert (plan.laplace_scale is None) == (delta != 0 or n_parties == 40)
    coef, intercept = np.ones((1, 2)), np.zeros(1)
    X, y = pooled(parties)
    exact = np.bincount(cells(X @ coef.T + intercept, y, 20), minlength=40)
    noise = []
    for _ in range(30 if n_parties == 3 else 10):
        opened = parties.begin(evaluation).sum(party_histogram, LinearModel(coef=coef, intercept=intercept))
        noise.append(plan.counts(opened) - exact)
    values = np.array(noise).ravel()
    assert np.std(values) == pytest.approx(plan.noise_std, rel=0.15)
    assert abs(np.mean(values)) < 4 * plan.noise_std / math.sqrt(values.size)
    if delta != 0:
        assert plan.noise_std == pytest.approx(math.sqrt(2) / mu_for(0.5, 1e-6), rel=0.01)
        assert_drawn_from(stats.norm(0, plan.noise_std), values)


def test_one_partys_noise_is_discrete_laplace_for_an_l1_distance_of_two() -> None:
    parties = Federation.split(*make_data(80, 2), n_parties=2, norm_bound=1.0)
    plan = parties.begin(PrivateEvaluation(epsilon=0.5, delta=0)).plan
    assert plan.laplace_scale == pytest.approx(2 / 0.5)
    drawn = plan.noised(np.zeros(100, dtype=np.int64), rng=Rng.seeded(1))
    assert np.abs(drawn).mean() == pytest.approx(4.0, rel=0.4)


def test_more_parties_than_spherical_noise_needs_take_the_shares() -> None:
    parties = Federation.split(*make_data(80, 2), n_parties=40, norm_bound=1.0)
    plan = parties.begin(PrivateEvaluation(epsilon=0.5, delta=0, bins=2)).plan
    assert plan.laplace_scale is None
    assert plan.noise_std < 4 * math.sqrt(2 * 40)


@pytest.mark.parametrize("delta", [0, None, 1e-7])
def test_the_event_is_charged_to_every_ledger(federation: Make, delta: float | None) -> None:
    parties = federation()
    found = evaluate_privately(model_of(parties), parties, epsilon=0.7, delta=delta)
    event = PrivateEvaluation(epsilon=0.7, delta=delta).event()
    assert (event == Pure(epsilon=0.7)) == (delta == 0)
    for party in parties.names:
        assert parties.guard(party).ledger.event(party) == Composed(events=(Repeated(event=event, count=1),))
    assert (found.epsilon, found.delta) == (0.7, 1e-6 if delta is None else delta)
    assert found.guarantee == PrivateEvaluation(epsilon=0.7, delta=delta).guarantee


def test_a_budget_and_a_policy_are_asked(federation: Make) -> None:
    parties = federation(policy=Policy(budget=Budget(epsilon_in_all=1.0)))
    evaluate_privately(model_of(parties), parties, epsilon=0.7)
    with pytest.raises(BudgetExceeded, match="over the limit of 1"):
        evaluate_privately(model_of(parties), parties, epsilon=0.7)
    assert isinstance(PrivateEvaluation(epsilon=math.inf).event(), NotPrivate)
    with pytest.raises(PolicyRefusal, match="no epsilon bounds"):
        evaluate_privately(model_of(parties), parties, epsilon=math.inf)


# --- standard errors -------------------------------------------------------------------------------------------------


def test_standard_errors_cover_the_figures_of_the_records() -> None:
    """Noise drawn afresh 600 times on one histogram: the true figure lies within 1.96 errors about 95 % of the time."""
    chance = np.random.default_rng(0)
    n, bins, noise_std = 5000, 20, 6.0
    p = expit(1.5 * chance.normal(size=n))
    y = (chance.random(n) < p).astype(int)
    counts = np.bincount(np.minimum((p * bins).astype(int), bins - 1) + bins * y, minlength=2 * bins).astype(float)

    def figures(x: np.ndarray, std: float) -> dict[str, tuple[float, float]]:
        m = metrics_of(x, n_records=n, noise_std=std, is_binary=True, guarantee=Guarantee(epsilon=1.0))
        middle = m.calibration[len(m.calibration) // 2]
        assert m.auc is not None
        assert m.auc_error is not None
        assert m.log_loss is not None
        assert m.log_loss_error is not None
        return {
            "accuracy": (m.accuracy, m.accuracy_error),
            "auc": (m.auc, m.auc_error),
            "log loss": (m.log_loss, m.log_loss_error),
            "rate": (middle.observed_rate, middle.rate_error),
            "count": (middle.count, middle.count_error),
        }

    true = figures(counts, 0.0)
    hits = dict.fromkeys(true, 0)
    for _ in range(600):
        found = figures(counts + chance.normal(0, noise_std, size=counts.size), noise_std)
        for name, (value, error) in found.items():
            hits[name] += abs(value - true[name][0]) <= 1.96 * error
    for name, hit in hits.items():
        assert 0.92 <= hit / 600 <= 0.98, name


def test_figures_stay_in_their_ranges_when_noise_is_all_there_is() -> None:
    chance = np.random.default_rng(1)
    for _ in range(200):
        counts = chance.normal(0, 100, size=40)
        m = metrics_of(counts, n_records=20, noise_std=100.0, is_binary=True, guarantee=Guarantee(epsilon=0.1))
        assert 0 <= m.accuracy <= 1
        assert m.auc is None or 0 <= m.auc <= 1
        assert m.log_loss is not None
        assert m.log_loss >= 0
        assert all(b.count > 0 and 0 <= b.observed_rate <= 1 for b in m.calibration)


# --- what is checked -------------------------------------------------------------------------------------------------

LIES: list[dict[str, np.ndarray]] = [
    {"coef": np.zeros((1, 3))},
    {"coef": np.zeros((2, 4))},
    {"coef": np.full((1, 4), math.nan)},
    {"intercept": np.zeros(2)},
    {"intercept": np.full(1, math.inf)},
]


@pytest.mark.parametrize("lie", LIES)
def test_a_model_that_does_not_fit_the_study_is_refused(federation: Make, lie: dict[str, np.ndarray]) -> None:
    parties = federation()
    model = LinearModel(**{"coef": np.zeros((1, 4)), "intercept": np.zeros(1)} | lie)
    with pytest.raises(PolicyRefusal, match="does not fit the study's columns and classes"):
        parties.begin(PrivateEvaluation()).sum(party_histogram, model)
    assert parties.guard("party1").ledger.n_releases("party1") == 0


def test_a_run_asks_for_one_histogram_with_the_plan_that_a_party_derives(federation: Make) -> None:
    parties = federation()
    evaluation = PrivateEvaluation(epsilon=0.3, bins=20)
    run = parties.begin(evaluation)
    group = SumGroup.decode(SumGroup.of(parties.sizes, quorum=3).encode())
    derived = replace(evaluation).terms(parties.schema, group)
    assert derived.plan == run.plan
    assert [(ask.step, ask.times) for ask in derived.course] == [(party_histogram, 1)]
    model = LinearModel(coef=np.zeros((1, 4)), intercept=np.zeros(1))
    run.sum(party_histogram, model)
    with pytest.raises(NotAgreed, match="asked 1 times in a run"):
        run.sum(party_histogram, model)
    with pytest.raises(NotAgreed, match="never asks step 'averaging/model'"):
        run.sum(local_model)
    assert parties.guard("party1").ledger.n_releases("party1") == 1


def test_delta_is_told_as_it_was_settled() -> None:
    X, y = make_data(2000, 2)
    parties = Federation.split(X, y, n_parties=2, norm_bound=1.0)
    model = (np.ones((1, 2)), np.zeros(1))
    assert evaluate_privately(model, parties, epsilon=1.0).delta == 1 / 2000**2
    assert evaluate_privately(model, parties, epsilon=1.0, delta=0).delta == 0


BAD_SETTINGS = [
    {"bins": 5},
    {"bins": 0},
    {"bins": 2.0},
    {"bins": True},
    {"epsilon": 0.0},
    {"epsilon": 1e-9},
    {"delta": 2.0},
]


@pytest.mark.parametrize("bad", BAD_SETTINGS)
def test_settings_that_cannot_be_honoured_are_named(bad: dict[str, object]) -> None:
    (name,) = bad
    with pytest.raises(SettingError, match=f"{name} = "):
        PrivateEvaluation(**bad)  # type: ignore[arg-type]


def test_a_model_that_does_not_fit_is_named(federation: Make) -> None:
    with pytest.raises(SettingError, match=r"model has coefficients of shape \(1, 3\)"):
        evaluate_privately((np.zeros((1, 3)), np.zeros(1)), federation(), epsilon=1.0)
    with pytest.raises(SettingError, match="model is a LogisticRegression and no linear model that was fitted"):
        evaluate_privately(LogisticRegression(), federation(), epsilon=1.0)
    with pytest.raises(SettingError, match="colluders = 3 among 3 parties"):
        PrivateEvaluation(colluders=3).run((np.zeros((1, 4)), np.zeros(1)), federation())


def test_a_model_with_huge_coefficients_tells_nothing_by_failing(federation: Make) -> None:
    found = evaluate_privately((np.full((1, 4), 1e308), np.zeros(1)), federation(), epsilon=1.0)
    assert 0 <= found.accuracy <= 1
