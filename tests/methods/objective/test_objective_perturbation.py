"""Objective perturbation: what its proof rests on, the noise it adds, and what the document's own form gives away."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit

from tacit import Federation, Policy, Rng, Schema, Table
from tacit.errors import NotAgreed, SettingError
from tacit.federation.group import SumGroup
from tacit.methods.cohort import Cohort, Promise
from tacit.methods.objective.method import ObjectivePerturbation, default_l2
from tacit.methods.objective.statistic import Plan, perturbed_model
from tacit.models.solver import fit
from tacit.privacy.event import Approximate, Composed, NotPrivate, Pure, Repeated
from tacit.privacy.gaussian import gaussian_delta

from ..conftest import derived, make_data

Make = Callable[..., Federation]
ALLOWED = Policy(not_private=["objective-perturbation"])


def plan(
    *,
    d: int = 2,
    classes: int = 2,
    constant: float = 1.0,
    epsilon: float = 1.0,
    delta: float = 0.0,
    l2: float = 5.0,
    n_parties: int = 1,
) -> Plan:
    schema = Schema.of_arrays(d, list(range(classes)), norm_bound=1.0)
    group = SumGroup.of({f"party{i}": 20 for i in range(n_parties)}, quorum=n_parties)
    return Plan(
        cohort=Cohort.of(schema, group, colluders=None, constant=constant),
        promise=Promise(method="ObjectivePerturbation", epsilon=epsilon, delta=delta),
        l2=l2,
        rounds=1,
    )


def plan_of(model: ObjectivePerturbation, parties: Federation) -> Plan:
    own = parties.begin(model).plan
    assert isinstance(own, Plan)
    return own


def table(X: np.ndarray, y: np.ndarray, classes: int = 2) -> Table:
    return Table.from_arrays(X, y, Schema.of_arrays(X.shape[1], list(range(classes)), norm_bound=1.0))


def theta_of(model: ObjectivePerturbation) -> np.ndarray:
    return np.column_stack([model.coef_, model.intercept_])


def noise_behind(own: Plan, party: Table, theta: np.ndarray) -> np.ndarray:
    """b = -(gradient of the losses + l2 theta): the noise of which `theta` is the minimiser."""
    theta = theta.reshape(own.loss.shape)
    return -(own.loss.sums(party.blocks, theta).gradient + own.l2 * theta)


# --- the terms of the proof -----------------------------------------------------------------------------------------

record = st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.integers(0, 2))
parameters = st.lists(st.floats(-20, 20), min_size=9, max_size=9)


def sums_of(rows: list[tuple[float, float, int]], own: Plan, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    classes = own.cohort.n_classes
    X, y = np.array([row[:2] for row in rows]), np.array([row[2] % classes for row in rows])
    sums = own.loss.sums(table(X, y, classes).blocks, theta)
    assert sums.curvature is not None
    return sums.gradient, sums.curvature


@given(
    records=st.lists(record, min_size=1, max_size=5),
    other=record,
    parameter=parameters,
    l2=st.floats(0.01, 50),
    classes=st.sampled_from([2, 3]),
)
@settings(max_examples=200, deadline=None)
def test_neighbours_differ_by_no_more_than_the_gap_and_the_volume_cost_at_any_model(
    records: list[tuple[float, float, int]],
    other: tuple[float, float, int],
    parameter: list[float],
    l2: float,
    classes: int,
) -> None:
    own = plan(l2=l2, classes=classes)
    theta = np.array(parameter)[: own.dimension].reshape(own.loss.shape)
    (g, H), (g_other, H_other) = (sums_of([first, *records[1:]], own, theta) for first in (records[0], other))
    assert np.linalg.norm(g - g_other) <= own.gradient_gap
    ridge = l2 * np.eye(own.dimension)
    volumes = np.linalg.slogdet(H + ridge)[1] - np.linalg.slogdet(H_other + ridge)[1]
    assert abs(volumes) <= own.volume_cost + 1e-9


@given(
    records=st.lists(record, min_size=1, max_size=4),
    other=record,
    parameter=parameters,
    classes=st.sampled_from([2, 3]),
)
@settings(max_examples=200, deadline=None)
def test_the_density_of_a_pure_release_changes_by_no_more_than_epsilon(
    records: list[tuple[float, float, int]], other: tuple[float, float, int], parameter: list[float], classes: int
) -> None:
    """log p(w)/p'(w) at any w, from its formula: the noise's density at b(w), and the determinant of db/dw."""
    own = plan(epsilon=1.3, l2=4.0, classes=classes)
    theta = np.array(parameter)[: own.dimension].reshape(own.loss.shape)
    logs = []
    for first in (records[0], other):
        g, H = sums_of([first, *records[1:]], own, theta)
        b = np.linalg.norm(g + own.l2 * theta)
        logs.append(-b / own.noise_scale + np.linalg.slogdet(H + own.l2 * np.eye(own.dimension))[1])
    assert abs(logs[0] - logs[1]) <= own.promise.epsilon * 127 / 128 + 1e-9


def test_the_volume_cost_is_nearly_reached() -> None:
    own = plan(l2=0.3)
    H = sums_of([(math.sqrt(0.5), math.sqrt(0.5), 1)], own, np.zeros(3))[1] + 0.3 * np.eye(3)
    assert np.linalg.slogdet(H / 0.3)[1] == pytest.approx(own.volume_cost, rel=1e-9)


@pytest.mark.parametrize("degrees", [0, 45, 90, 135, 160, 180])
def test_the_gaussian_delta_covers_the_worst_dependence_of_the_shift_on_the_noise(degrees: float) -> None:
    """integral of (f(b) - e^e1 min_v f(b + v))_+ over the vertices v, by a fine grid in the plane of u and u'."""
    s, R = 1.7, 1.0
    own = plan(d=1, constant=0.0, epsilon=2.0, delta=1e-3, l2=1.0)
    e1 = own.noise_epsilon
    angle = math.radians(degrees)
    u, other = np.array([R, 0.0]), R * np.array([math.cos(angle), math.sin(angle)])
    axis = np.linspace(-12 * s, 12 * s, 1501)
    B = np.stack(np.meshgrid(axis, axis), axis=-1)

    def density(b: np.ndarray) -> np.ndarray:
        value: np.ndarray = np.exp(-(b**2).sum(axis=-1) / (2 * s**2)) / (2 * math.pi * s**2)
        return value

    least = np.min([density(B + v) for v in (np.zeros(2), -u, other, other - u)], axis=0)
    exact = np.maximum(density(B) - math.exp(e1) * least, 0).sum() * (axis[1] - axis[0]) ** 2
    assert exact <= own.delta_bound(s) * (1 + 1e-6)
    if degrees == 180:
        assert exact >= 0.8 * own.delta_bound(s)  # little is given away


@given(st.integers(0, 2), st.integers(0, 2), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_the_softmax_delta_adds_up_over_all_vertices(y: int, z: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    own = plan(classes=3, constant=0.0, delta=1e-5, l2=20.0)
    x, other = (v / np.linalg.norm(v) for v in chance.normal(size=(2, 2)))
    if seed % 2:
        other = -x
    total = 0.0
    for k in range(3):
        for j in range(3):
            v = np.outer(np.eye(3)[k] - np.eye(3)[y], x) - np.outer(np.eye(3)[j] - np.eye(3)[z], other)
            if (norm := np.linalg.norm(v)) > 0:
                total += gaussian_delta(own.noise_epsilon, float(norm) / own.noise_scale)
    assert total <= own.delta_bound(own.noise_scale) * (1 + 1e-12)
    assert own.delta_bound(own.noise_scale) <= 1e-5


# --- the release ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weights", ["size", "equal"])
def test_without_noise_it_is_the_average_of_the_plain_fits(federation: Make, classes: int, weights: Any) -> None:
    parties = federation(classes=classes, policy=ALLOWED)
    model = ObjectivePerturbation(epsilon=math.inf, l2=3.0, weights=weights).fit(parties)
    sizes = parties.sizes
    expected: Any = 0.0
    for name, size in sizes.items():
        own = plan_of(model, parties)
        problem = replace(own.problem(size, np.zeros(own.loss.shape)), linear=None, tolerance=1e-12)
        share = size / sum(sizes.values()) if weights == "size" else 1 / len(sizes)
        expected = expected + share * np.atleast_2d(fit(parties.guard(name).table.blocks, problem=problem).theta)
    np.testing.assert_allclose(theta_of(model), expected, atol=1e-8)


def drawn_noise(model: ObjectivePerturbation, parties: Federation, runs: int) -> np.ndarray:
    own = plan_of(model, parties)
    party = parties.guard("party1").table
    drawn = []
    for _ in range(runs):
        replies: Any = parties.begin(model).ask(perturbed_model)
        drawn.append(noise_behind(own, party, replies["party1"]["theta"]).ravel())
    return np.array(drawn)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_noise_behind_a_pure_release_is_spherical_laplace(federation: Make, classes: int) -> None:
    parties = federation(n=60, d=3, classes=classes, n_parties=1, weights=None, rng=Rng.seeded(21))
    model = ObjectivePerturbation(epsilon=0.8, delta=0, l2=6.0)
    own = plan_of(model, parties)
    noise = drawn_noise(model, parties, 300)
    radii = np.linalg.norm(noise, axis=1)
    assert own.noise_scale == pytest.approx(own.gradient_gap / (0.8 * 127 / 128 - own.volume_cost))
    assert stats.kstest(radii, stats.gamma(own.dimension, scale=own.noise_scale).cdf).pvalue > 1e-3
    half = (own.dimension - 1) / 2  # a coordinate of a point on the sphere
    assert stats.kstest(noise[:, 0] / radii, stats.beta(half, half, loc=-1, scale=2).cdf).pvalue > 1e-3


def test_the_noise_behind_a_gaussian_release_is_normal(federation: Make) -> None:
    parties = federation(n=60, d=3, n_parties=1, weights=None, rng=Rng.seeded(22))
    model = ObjectivePerturbation(epsilon=0.8, delta=1e-5, l2=6.0)
    own = plan_of(model, parties)
    noise = drawn_noise(model, parties, 250)
    assert stats.kstest(noise.ravel(), stats.norm(0, own.noise_scale).cdf).pvalue > 1e-3
    assert own.delta_bound(own.noise_scale) <= 1e-5 < own.delta_bound(0.999 * own.noise_scale)


def test_the_proved_gaussian_noise_costs_hardly_more_than_a_fixed_shift_would() -> None:
    own = plan(delta=1e-6, l2=50.0)
    assert gaussian_delta(own.noise_epsilon, own.gradient_gap / own.noise_scale) >= 0.999 * 1e-6


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("n", [5, 3000])
def test_what_leaves_is_on_a_grid_and_near_the_minimiser(delta: float, n: int) -> None:
    X, y = make_data(n, 4)
    party = table(X, y)
    own = plan(d=4, delta=delta, l2=20.0)
    b = own.draw(rng=Rng.seeded(5))
    solution = fit(party.blocks, problem=own.problem(n, b))
    theta, tau = solution.theta, own.tolerance(n)
    assert solution.distance_bound <= own.slack(n)
    assert np.linalg.norm(theta - solution.theta) <= tau + solution.distance_bound
    told = np.array([own.on_grid(theta, n, rng=Rng.seeded(i)) for i in range(200)])
    step = 2.0 ** math.floor(math.log2(2 * tau / math.sqrt(own.dimension)))
    np.testing.assert_array_equal(told / step, np.rint(told / step))
    scale = (2 * math.sqrt(5) * tau / step + 5) * 128 * step
    off = (told - theta).ravel()
    assert stats.kstest(off, stats.laplace(0, scale).cdf).pvalue > 1e-3
    steepest = own.l2 + n * own.loss.smoothness_bound(own.cohort.row_norm)
    assert off.std() <= own.noise_std / steepest / 10  # next to nothing beside the noise


def test_a_penalty_with_which_a_fit_could_fail_is_refused_before_a_record_is_read() -> None:
    sizes = SumGroup.of({"a": 400}, quorum=1)
    schema = Schema.of_arrays(4, ["0", "1"], norm_bound=600.0)
    model = ObjectivePerturbation(epsilon=31.0, delta=0, l2=1e-4)
    with pytest.raises(SettingError, match=r"with l2 = 0.0001 a fit of 400 records .* cannot be certified"):
        model.plan(model.cohort(schema, sizes))
    larger = ObjectivePerturbation(epsilon=31.0, delta=0, l2=10.0)
    assert (
        larger.plan(larger.cohort(schema, sizes)).slack(400)
        >= larger.plan(larger.cohort(schema, sizes)).bounds(400).reachable
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_the_fine_gradient_is_within_its_bound_of_the_exact_one(classes: int) -> None:
    X, y = make_data(60, 4, classes)
    party = table(X, y, classes)
    own = plan(d=4, classes=classes)
    theta = 3 * np.random.default_rng(1).normal(size=own.loss.shape)
    rows = np.column_stack([party.arrays()[0], np.ones(60)])
    with mpmath.workdps(50):
        exact = mpmath.matrix(classes, 5)
        W = np.vstack([np.zeros(5), theta]) if classes == 2 else theta
        for x, label in zip(rows, party.arrays()[1], strict=True):
            powers = [mpmath.exp(mpmath.fdot(map(mpmath.mpf, w), map(mpmath.mpf, x))) for w in W]
            for c in range(classes):
                for j in range(5):
                    exact[c, j] += (powers[c] / mpmath.fsum(powers) - (c == label)) * mpmath.mpf(float(x[j]))
        found = np.atleast_2d(own.loss.fine_gradient(party.blocks, theta))
        wanted = exact[1:, :] if classes == 2 else exact
        gaps = [
            mpmath.mpf(np.format_float_scientific(found[c, j], 30)) - wanted[c, j] for c, j in np.ndindex(found.shape)
        ]
        assert mpmath.norm(gaps) <= own.bounds(60).gradient_error
    assert own.bounds(60).gradient_error <= 1e-11


def test_the_noise_is_no_longer_than_its_bound() -> None:
    for own in (plan(), plan(delta=1e-6), plan(d=200)):
        longest = max(float(np.linalg.norm(own.draw(rng=Rng.seeded(i)))) for i in range(100))
        assert 0.05 * own.noise_bound < longest <= own.noise_bound


@pytest.mark.parametrize(
    ("settings_", "event"),
    [
        ({"epsilon": 0.7, "delta": 0}, Pure(epsilon=0.7)),
        ({"epsilon": 0.7, "delta": 1e-7}, Approximate(epsilon=0.7, delta=1e-7)),
        ({"epsilon": 0.7}, Approximate(epsilon=0.7, delta=1e-6)),  # 300 records: 1 / n^2 is more than 1e-6
        ({"calibration": "paper"}, NotPrivate(why="ObjectivePerturbation as the document prints it")),
        ({"epsilon": math.inf}, NotPrivate(why="epsilon is infinite: no noise is added")),
    ],
)
def test_every_party_is_charged_the_event_and_no_more(federation: Make, settings_: dict[str, Any], event: Any) -> None:
    parties = federation(policy=ALLOWED)
    model = ObjectivePerturbation(**settings_).fit(parties)
    assert model.event() == event
    for party in parties.names:
        assert parties.guard(party).ledger.event(party) == Composed(events=(Repeated(event=event, count=1),))
    assert model.guarantee_.epsilon == (math.inf if isinstance(event, NotPrivate) else 0.7)


@pytest.mark.parametrize(("settings_", "times"), [({}, 1), ({"calibration": "paper", "rounds": 3}, 3)])
def test_a_party_tells_as_many_models_as_the_study_has_rounds(
    federation: Make, settings_: dict[str, Any], times: int
) -> None:
    parties = federation(policy=ALLOWED)
    run = parties.begin(ObjectivePerturbation(**settings_))
    for _ in range(times):
        run.ask(perturbed_model)
    with pytest.raises(NotAgreed, match=f"is asked {times} times in a run, each turn once"):
        run.ask(perturbed_model)
    assert parties.guard("party1").ledger.n_releases("party1") == times


@pytest.mark.parametrize(
    "settings_", [{}, {"delta": 0}, {"delta": 1e-5, "l2": 30.0}, {"calibration": "paper", "rounds": 4}]
)
def test_a_party_derives_the_plan_and_the_course_of_the_coordinator(
    federation: Make, settings_: dict[str, Any]
) -> None:
    model = ObjectivePerturbation(**settings_)
    run = federation(n=3000, policy=ALLOWED).begin(model)
    terms = derived(model, run)
    assert terms.plan == run.plan
    assert terms.course == model.course(run.plan)
    assert run.plan.promise.delta == settings_.get("delta", 1 / 3000**2)


def test_weights_are_the_coordinators_own_business(federation: Make) -> None:
    parties = federation()
    by_size, equal = (plan_of(ObjectivePerturbation(weights=weights), parties) for weights in ("size", "equal"))
    assert by_size == equal


# --- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 4])
def test_an_l2_too_small_for_epsilon_is_named_with_both_ways_out(federation: Make, classes: int) -> None:
    parties = federation(n=400, classes=classes)
    with pytest.raises(SettingError, match=r"epsilon = 0\.1 is used up by l2 = 0\.5") as caught:
        ObjectivePerturbation(epsilon=0.1, l2=0.5).fit(parties)
    words = str(caught.value).split()
    epsilon, l2 = (float(words[words.index("above", start) + 1].strip(",")) for start in (0, words.index("above") + 1))
    plan_of(ObjectivePerturbation(epsilon=1.001 * epsilon, l2=0.5), parties)
    plan_of(ObjectivePerturbation(epsilon=0.1, l2=1.001 * l2), parties)
    for settings_ in ({"epsilon": 0.999 * epsilon, "l2": 0.5}, {"epsilon": 0.1, "l2": 0.999 * l2}):
        with pytest.raises(SettingError, match="is used up"):
            plan_of(ObjectivePerturbation(**settings_), parties)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 30.0])
@pytest.mark.parametrize("classes", [2, 5])
def test_the_default_l2_leaves_most_of_epsilon_to_the_noise(epsilon: float, classes: int) -> None:
    own = plan(epsilon=epsilon, classes=classes, n_parties=3)
    own = replace(own, l2=default_l2(own))
    assert own.volume_cost <= 0.1 * epsilon * (1 + 1e-9)


BAD_SETTINGS = [
    {"l2": 0.0}, {"l2": math.nan}, {"weights": "none"}, {"delta": 1.0}, {"calibration": "loud"}, {"rounds": 0},
    {"rounds": 1.5}, {"rounds": 3},
]  # fmt: skip


@pytest.mark.parametrize("settings_", BAD_SETTINGS)
def test_settings_that_cannot_be_honoured_are_named(federation: Make, settings_: dict[str, Any]) -> None:
    (name,) = settings_
    with pytest.raises(SettingError, match=f"{name} = "):
        ObjectivePerturbation(**settings_).fit(federation())


@pytest.mark.parametrize("settings_", [{}, {"l2": 9.0}, {"epsilon": math.inf}, {"calibration": "paper"}])
def test_a_missing_bound_is_an_error(federation: Make, settings_: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="needs a bound on the norm of a row"):
        ObjectivePerturbation(**settings_).fit(federation(norm_bound=None))


def test_a_delta_that_leaves_no_room_for_rounding_is_named() -> None:
    with pytest.raises(SettingError, match="delta = 1e-30 at epsilon = 1 leaves no room"):
        _ = plan(delta=1e-30).noise_scale


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_at_noise_has_that_much_noise(delta: float, factor: float) -> None:
    (pair,) = ObjectivePerturbation.worst_neighbours()
    model = ObjectivePerturbation(**{"epsilon": 1.0, "delta": delta} | dict(pair.settings))
    parties = Federation.from_tables(pair.first)
    expected = factor * plan_of(model, parties).noise_scale
    assert plan_of(model.at_noise(factor), parties).noise_scale == pytest.approx(expected, rel=1e-4)


def test_the_worst_neighbours_come_near_the_claimed_gap() -> None:
    (pair,) = ObjectivePerturbation.worst_neighbours()
    model = ObjectivePerturbation(epsilon=1.0, **pair.settings)  # type: ignore[arg-type]
    parties = Federation.from_tables(pair.first, rng=Rng.seeded(3))
    own = plan_of(model, parties)
    gaps = []
    for _ in range(40):
        parties.witness = []
        model.fit(parties)
        theta: Any = parties.witness[0]["theta"]  # type: ignore[call-overload, index]
        noises = [noise_behind(own, tables["a"], theta) for tables in (pair.first, pair.second)]
        gaps.append(np.linalg.norm(noises[0] - noises[1]))
        assert pair.score is not None
        told = np.linalg.norm(noises[1]) - np.linalg.norm(noises[0])
        assert pair.score(None, parties.witness) == pytest.approx(told, abs=1e-6)
    assert 0.6 * own.gradient_gap < np.median(gaps) <= own.gradient_gap


# --- the document ---------------------------------------------------------------------------------------------------


def test_paper_noise_is_laplace_of_the_printed_scale_and_none_on_the_intercept(federation: Make) -> None:
    parties = federation(n=200, n_parties=1, weights=None, rng=Rng.seeded(31), policy=ALLOWED)
    noise = drawn_noise(ObjectivePerturbation(epsilon=2.0, calibration="paper"), parties, 150)
    assert stats.kstest(noise[:, :-1].ravel(), stats.laplace(0, 4 / 2.0).cdf).pvalue > 1e-3
    np.testing.assert_allclose(noise[:, -1], 0, atol=1e-6)


def read_label(model: ObjectivePerturbation, X: np.ndarray, y: np.ndarray) -> int:
    """The last record's label, from the model and all other records: sum sigma(w.x + a) + l2 a = sum y."""
    scores = X @ model.coef_[0] + model.intercept_[0]
    total = expit(scores).sum() + 0.1 * model.intercept_[0]  # l2 is public
    return round(float(total - y[:-1].sum()))


def test_the_papers_unperturbed_intercept_tells_the_last_label() -> None:
    chance = np.random.default_rng(7)
    right = 0
    for i in range(60):
        X, y = make_data(40, 3, seed=i)
        X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
        y[-1] = chance.integers(2)
        parties = Federation.split(X, y, n_parties=1, norm_bound=1.0, policy=ALLOWED)
        model = ObjectivePerturbation(epsilon=0.1, calibration="paper").fit(parties)
        right += read_label(model, X, y) == y[-1]
    assert right == 60


def test_the_sound_release_does_not_tell_it() -> None:
    right = 0
    for i in range(200):
        X, y = make_data(40, 3, seed=1)
        X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
        y[-1] = i % 2
        parties = Federation.split(X, y, n_parties=1, norm_bound=1.0, rng=Rng.seeded(i))
        right += read_label(ObjectivePerturbation(epsilon=0.1).fit(parties), X, y) == y[-1]
    # At most e^0.1 / (1 + e^0.1) = 0.525 of guesses can be right; 140 of 200 would have a chance below 1e-6.
    assert right < 140


def test_a_later_round_of_the_paper_draws_fresh_noise_for_the_same_objective(federation: Make) -> None:
    """A curious server averages the noise away: more rounds tell more, and learn nothing."""
    parties = federation(n=400, n_parties=1, weights=None, rng=Rng.seeded(32), policy=ALLOWED)
    model = ObjectivePerturbation(epsilon=0.5, calibration="paper", rounds=60)
    parties.witness = []
    model.fit(parties)
    thetas: Any = np.array([seen["theta"] for seen in parties.witness])  # type: ignore[call-overload]
    assert model.n_rounds_ == len(thetas) == 60
    own = plan_of(model, parties)
    noise = np.array([noise_behind(own, parties.guard("party1").table, theta) for theta in thetas])
    assert np.abs(noise.mean(axis=0)[:-1]).max() < 4 * math.sqrt(2) * 8 / math.sqrt(60) < 8
    assert len(np.unique(noise[:, 0])) == 60


def test_softmax_learns(federation: Make) -> None:
    model = ObjectivePerturbation(epsilon=20.0).fit(federation(n=3000, classes=3, rng=Rng.seeded(4)))
    X, y = make_data(3000, classes=3)
    assert model.coef_.shape == (3, 4)
    assert model.score(X, y) > np.bincount(y).max() / len(y) + 0.05
