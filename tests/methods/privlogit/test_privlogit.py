"""PrivLogit and SecureNewton: the pooled fit, from sums of which nothing but what is declared is opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from tacit import Federation, Policy, Pooled, Rng, Schema, Table
from tacit import datasets as public
from tacit.data.schema import Binary, Categorical, Numeric, Target
from tacit.data.stream import RowStream
from tacit.errors import (
    CenterError,
    DataError,
    NotAgreed,
    NotConverged,
    PolicyRefusal,
    RunError,
    SettingError,
    SingularCurvature,
)
from tacit.federation.engine import InProcess
from tacit.federation.message import Answer
from tacit.methods.method import Method
from tacit.methods.privlogit import part
from tacit.methods.privlogit.fit import choose_units
from tacit.methods.privlogit.method import QUESTIONS, PrivLogit
from tacit.methods.privlogit.secure_newton import QUESTIONS as NEWTON
from tacit.methods.privlogit.secure_newton import SecureNewton
from tacit.methods.privlogit.statistic import Measure, Multiplied, Point, Questions
from tacit.methods.privlogit.unit import Plan, Units, column_bounds
from tacit.privacy.event import NotPrivate
from tacit.secure.center.embedded import EmbeddedCenter
from tacit.secure.center.product import EncryptedInverse, ProductTerms
from tacit.secure.center.program import WHOLE
from tacit.secure.digit import from_digits, to_digits

from ..conftest import derived, make_data

pytestmark = pytest.mark.xdist_group("center")  # one center of three processes is enough

ALLOWED = Policy(not_private=["pooled", "privlogit", "secure-newton"])
needs_data = pytest.mark.skipif(
    not os.environ.get("TACIT_DATA"), reason="set TACIT_DATA to the folder of the public data sets"
)
KINDS: list[Callable[..., Method]] = [
    lambda **given: PrivLogit(secure="sums", **given),
    lambda **given: PrivLogit(**given),
    lambda **given: PrivLogit(protocol="local", **given),
    lambda **given: SecureNewton(**given),
]
NAMES = ["sums", "hessian", "local", "newton"]
every_kind = pytest.mark.parametrize("make", KINDS, ids=NAMES)


def relative_error(model: Method, plain: Method) -> float:
    one, other = (np.append(m.coef_.ravel(), m.intercept_) for m in (model, plain))
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


def assert_same_table(model: Method, plain: Method, rtol: float) -> None:
    for row, expected in zip(model.facts_.coefficients, plain.facts_.coefficients, strict=True):
        assert row.name == expected.name
        for what in ("standard_error", "z", "p", "odds_low", "odds_high"):
            value, other = (np.array(getattr(one, what), dtype=float) for one in (row, expected))  # None is NaN
            np.testing.assert_allclose(value, other, rtol=rtol, atol=1e-9)
    assert model.facts_.fit is not None
    assert plain.facts_.fit is not None
    assert model.facts_.fit.log_likelihood == pytest.approx(plain.facts_.fit.log_likelihood, rel=1e-9)
    assert model.facts_.fit.aic == pytest.approx(plain.facts_.fit.aic, rel=1e-9)


# --- it is the pooled fit --------------------------------------------------------------------------------------------


@every_kind
def test_it_equals_statsmodels(make: Callable[..., Method]) -> None:
    X, y = make_data(400, 3)
    model = make().fit(Federation.split(X, y, n_parties=4, policy=ALLOWED))
    expected = sm.Logit(y, np.column_stack([X, np.ones(len(X))])).fit(disp=0, tol=1e-14, method="newton")
    order = [3, 0, 1, 2]  # the intercept first
    rows = model.facts_.coefficients
    np.testing.assert_allclose([row.estimate for row in rows], expected.params[order], rtol=1e-8)
    np.testing.assert_allclose([row.standard_error for row in rows], expected.bse[order], rtol=1e-4)
    np.testing.assert_allclose([row.z for row in rows], expected.tvalues[order], rtol=1e-4)
    assert model.facts_.fit is not None
    assert model.facts_.fit.log_likelihood == pytest.approx(expected.llf, rel=1e-10)
    assert model.facts_.fit.aic == pytest.approx(expected.aic, rel=1e-10)


@every_kind
@pytest.mark.parametrize(("classes", "l2", "fit_intercept", "norm_bound"), [(3, 0.0, True, 1.0), (2, 1.0, False, None)])
def test_it_equals_the_pooled_fit(
    make: Callable[..., Method], classes: int, l2: float, fit_intercept: bool, norm_bound: float | None
) -> None:
    X, y = make_data(400, 3, classes)
    parties = Federation.split(X, y, n_parties=3, norm_bound=norm_bound, policy=ALLOWED)
    plain = Pooled(l2=l2, fit_intercept=fit_intercept).fit(parties)
    model = make(l2=l2, fit_intercept=fit_intercept).fit(parties)
    assert relative_error(model, plain) <= 1e-8
    assert_same_table(model, plain, rtol=1e-4)


def test_a_fit_whose_curvature_the_center_halves_is_the_pooled_fit() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, WHOLE + 2))
    y = (rng.random(3000) < expit(X[:, :5].sum(axis=1))).astype(np.int64)
    parties = Federation.split(X, y, n_parties=3, policy=ALLOWED)
    plain, model = Pooled(l2=1.0).fit(parties), PrivLogit(l2=1.0).fit(parties)
    assert relative_error(model, plain) <= 1e-8
    assert_same_table(model, plain, rtol=1e-4)


@pytest.mark.parametrize("make", KINDS[:2], ids=NAMES[:2])
def test_columns_of_any_size_and_place_are_fitted_in_public_units(make: Callable[..., Method]) -> None:
    X, y = make_data(600, 3)
    X = X * [1e-7, 1e6, 10.0] + [0.0, -5e6, 2020.0]
    parties = Federation.split(X, y, n_parties=3, policy=ALLOWED)
    model = make().fit(parties)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = sm.Logit(y, sm.add_constant(standard)).fit(disp=0, tol=1e-14, method="newton")
    np.testing.assert_allclose(model.coef_[0], expected.params[1:] / X.std(axis=0), rtol=1e-6)
    errors = [row.standard_error for row in model.facts_.coefficients[1:]]
    np.testing.assert_allclose(errors, expected.bse[1:] / X.std(axis=0), rtol=1e-4)


def test_strong_and_weak_penalties_keep_their_digits() -> None:
    X, y = make_data(300, 3)
    parties = Federation.split(X, y, n_parties=3, norm_bound=1.0, policy=ALLOWED)
    for l2 in (1e-6, 1e3, 1e6):
        assert relative_error(PrivLogit(l2=l2).fit(parties), Pooled(l2=l2).fit(parties)) <= 1e-8


def test_the_last_newton_step_may_be_left_out() -> None:
    X, y = make_data(300, 3)
    parties = Federation.split(X, y, n_parties=3, norm_bound=1.0, policy=ALLOWED)
    plain = Pooled().fit(parties)
    for secure in ("sums", "center"):
        model = PrivLogit(secure=secure, standard_errors=False, tol=1e-7).fit(parties)
        assert relative_error(model, plain) <= 1e-6
        assert model.facts_.fit is None
        assert not model.facts_.has_standard_errors


def test_a_public_start_is_used_if_it_is_better_than_nothing() -> None:
    X, y = make_data(500, 4)
    parties = Federation.split(X, y, n_parties=3, norm_bound=1.0, policy=ALLOWED)
    plain = Pooled(l2=1.0).fit(parties)
    good = np.append(plain.coef_, plain.intercept_)
    near = PrivLogit(l2=1.0, secure="sums", start=(1.001 * plain.coef_, 1.001 * plain.intercept_)).fit(parties)
    bad = PrivLogit(l2=1.0, secure="sums", start=(-10 * plain.coef_, -10 * plain.intercept_)).fit(parties)
    assert relative_error(near, plain) <= 1e-8
    assert relative_error(bad, plain) <= 1e-8
    np.testing.assert_allclose(near.iterates_[0], good * 1.001)
    np.testing.assert_array_equal(bad.iterates_[0], 0.0)
    assert len(near.iterates_) < len(bad.iterates_)
    assert any("DROPPED" in notice for notice in bad.report.facts.notices)
    assert not any("DROPPED" in notice for notice in near.report.facts.notices)
    assert relative_error(PrivLogit(l2=1.0, secure="sums", start=plain).fit(parties), plain) <= 1e-8
    with pytest.raises(SettingError, match="start has an intercept and fit_intercept = False"):
        PrivLogit(start=plain, fit_intercept=False).fit(parties)
    with pytest.raises(SettingError, match="start"):
        PrivLogit(start=(np.zeros((1, 2)), np.zeros(1))).fit(parties)


def test_a_worse_start_may_be_kept() -> None:
    X, y = make_data(500, 4)
    parties = Federation.split(X, y, n_parties=3, norm_bound=1.0, policy=ALLOWED)
    plain = Pooled(l2=1.0).fit(parties)
    start = (-10 * plain.coef_, -10 * plain.intercept_)
    model = PrivLogit(l2=1.0, secure="sums", start=start, worse_start="keep").fit(parties)
    np.testing.assert_allclose(model.iterates_[0], np.append(*start))
    assert relative_error(model, plain) <= 1e-8
    assert not any("DROPPED" in notice for notice in model.report.facts.notices)
    with pytest.raises(SettingError, match="worse_start"):
        PrivLogit(worse_start="hide").fit(parties)


def test_newton_without_damping_runs_away_from_a_bad_start() -> None:
    X, y = make_data(500, 4)
    parties = Federation.split(X, y, n_parties=3, norm_bound=1.0, policy=ALLOWED)
    bad = (np.full((1, 4), -30.0), np.full(1, 30.0))
    damped = SecureNewton(l2=1.0, start=bad).fit(parties)
    assert relative_error(damped, Pooled(l2=1.0).fit(parties)) <= 1e-8
    np.testing.assert_allclose(damped.iterates_[0], np.append(*bad))
    undamped = SecureNewton(l2=1.0, start=bad, damping=None, max_rounds=8)
    with pytest.raises(RunError, match=r"l2|Newton steps"):
        undamped.fit(parties)
    distances = np.linalg.norm(undamped.iterates_ - np.append(damped.coef_, damped.intercept_), axis=1)
    assert distances[-1] > 2 * distances[0]


def test_without_acceleration_the_iterates_are_the_documents() -> None:
    X, y = make_data(400, 3)
    l2 = 2.0
    parties = Federation.split(X, y, n_parties=2, norm_bound=2.0, policy=ALLOWED)
    rows = np.concatenate([parties.guard(name).table.arrays()[0] for name in parties.names])
    labels = np.concatenate([parties.guard(name).table.arrays()[1] for name in parties.names])
    Z = np.column_stack([rows, np.ones(len(rows))])
    penalty = np.array([l2, l2, l2, 0.0])
    model = PrivLogit(l2=l2, acceleration=None).fit(parties)
    beta = np.zeros(4)
    for iterate in model.iterates_:
        np.testing.assert_allclose(iterate, beta, atol=1e-9)
        gradient = Z.T @ (labels - expit(Z @ beta)) - penalty * beta  # Wang, equation 5.4
        beta = beta + np.linalg.solve(Z.T @ Z / 4 + np.diag(penalty), gradient)
    assert len(PrivLogit(l2=l2).fit(parties).iterates_) < len(model.iterates_)


# --- what travels, and what is opened --------------------------------------------------------------------------------


def witnessed(model: Method, parties: Federation) -> list[Any]:
    parties.witness = []
    model.fit(parties)
    return parties.witness


def pooled_rows(parties: Federation) -> tuple[np.ndarray, np.ndarray]:
    tables = [parties.guard(name).table.arrays() for name in parties.names]
    X = np.concatenate([X for X, _ in tables])
    return np.column_stack([X, np.ones(len(X))]), np.concatenate([y for _, y in tables])


@pytest.mark.parametrize("protocol", ["hessian", "local"])
def test_what_is_opened_is_what_is_declared(protocol: Any) -> None:
    X, y = make_data(400, 3)
    parties = Federation.split(X, y, n_parties=3, norm_bound=1.0, policy=ALLOWED)
    model = PrivLogit(l2=1.0, protocol=protocol)
    opened = witnessed(model, parties)
    *programs, loss = [entry for entry in opened if len(entry)]  # "accept" opens nothing
    assert all(len(entry) == 1 for entry in programs)
    names = [name for entry in programs for name in entry]
    n_points, n_accepted = len(model.iterates_), len(model.iterates_) - model.n_rejected_
    assert names.count("step") == n_accepted + 1  # and the Newton step
    assert names.count("better") == model.n_compared_ <= n_points - 1  # the start is compared with nothing
    assert names.count("diagonal") == 1
    assert set(names) == {"residual_ok", "step", "better", "diagonal"}
    assert from_digits(loss.reshape(1, -1))[0] == pytest.approx(-model.facts_.fit.log_likelihood)  # type: ignore[union-attr]
    # The steps are B^-1 g at the accepted points, in public units that scale every step of the ascent alike.
    Z, labels = pooled_rows(parties)
    penalty = np.array([1.0, 1.0, 1.0, 0.0])
    B = Z.T @ Z / 4 + np.diag(penalty)
    first = np.linalg.solve(B, Z.T @ (labels - 0.5))
    np.testing.assert_allclose(model.iterates_[1], first, atol=1e-9)
    assert (
        f"{n_accepted} steps, so that every iterate is known, {n_points - 1} comparison bits"
        in (model.facts_.notices[0])
    )


def test_opened_sums_are_the_pooled_sums() -> None:
    X, y = make_data(300, 3)
    parties = Federation.split(X, y, n_parties=3, norm_bound=1.0, policy=ALLOWED)
    model = PrivLogit(secure="sums")
    bound, *points, curvature, _ = witnessed(model, parties)
    Z, labels = pooled_rows(parties)
    unit = 4.0 * bound.ravel()[-1]  # the last entry is that of the constant, 1/4
    assert np.log2(unit) % 1 == 0
    assert unit >= 2.0**45
    np.testing.assert_allclose(bound.reshape(4, 4) / unit, Z.T @ Z / 4 / len(Z), atol=1e-13)
    assert len(points) == len(model.iterates_)
    for opened, beta in zip(points, model.iterates_, strict=True):
        gradient = Z.T @ (labels - expit(Z @ beta)) / len(Z)
        np.testing.assert_allclose(opened[:4] / 2.0**60, gradient, atol=1e-15)
    assert curvature.shape == (16 + 4 + 13,)  # and the likelihood, in digits
    assert "pooled gradients and likelihoods" in model.facts_.notices[0]


@every_kind
def test_only_declared_messages_travel(make: Callable[..., Method]) -> None:
    X, y = make_data(300, 3)
    parties = Federation.split(X, y, n_parties=2, policy=ALLOWED)
    model = make(l2=1.0).fit(parties)
    for name in parties.names:
        began, *released = [line.decision for line in parties.guard(name).log.lines()]
        assert began["decision"] == "began"
        assert {entry["decision"] for entry in released} == {"released"}
        steps = {str(entry["step"]).removeprefix(f"{model.name}/"): entry["kind"] for entry in released}
        kinds = {
            "sums": {"open-bound": "sealed", "open-point": "sealed", "open-curvature": "sealed"},
            "hessian": {"bound": "kept", "point": "kept", "curvature": "kept"},
            "local": {"bound": "kept", "product": "encrypted", "curvature": "kept"},
            "newton": {"curvature": "kept"},
        }[NAMES[KINDS.index(make)]]
        assert steps == kinds | {"moments": "sealed", "loss": "sealed"}
    assert any("pooled mean and variance of x0, x1, x2" in notice for notice in model.facts_.notices)


def test_declared_bounds_open_no_moments() -> None:
    schema = Schema(
        (Numeric("age", 0, 100), Binary("ill"), Categorical("place", ("a", "b", "c")), Numeric("open")),
        Target("y", ("no", "yes")),
    )
    np.testing.assert_array_equal(column_bounds(schema), [1, 1, 1, 1, np.inf])
    rng = np.random.default_rng(0)
    n = 300
    columns = np.column_stack([rng.integers(0, 100, n), rng.integers(0, 2, n), rng.choice(list("abc"), n)])
    columns = np.column_stack([columns, rng.normal(50, 10, n)]).astype(object)
    y = np.where(rng.random(n) < 0.5, "yes", "no")
    tables = {f"p{i}": Table.from_arrays(columns[i::3], y[i::3], schema) for i in range(3)}
    parties = Federation.from_tables(tables, policy=ALLOWED)
    run = parties.begin(PrivLogit())
    units = choose_units(run, QUESTIONS, run.plan)
    assert units is not None
    assert units.centre.shape == units.exponent.shape == (1,)
    assert run.plan.opened == ("open",)
    scaling = run.plan.scaling(units)
    np.testing.assert_array_equal(scaling.centre[:4], 0)
    np.testing.assert_array_equal(scaling.unit[:4], 1)
    values = columns[:, 3].astype(float)
    assert scaling.centre[4] == pytest.approx(values.mean(), rel=1e-12)
    assert 0.5 <= scaling.unit[4] ** 2 / values.var() <= 2
    assert relative_error(PrivLogit().fit(parties), Pooled().fit(parties)) <= 1e-8


# --- who refuses what ------------------------------------------------------------------------------------------------


@every_kind
def test_it_is_refused_unless_the_policy_names_it(make: Callable[..., Method]) -> None:
    X, y = make_data(300, 3)
    model = make(l2=1.0)
    with pytest.raises(PolicyRefusal, match=rf"opened exactly.*Policy\(not_private=\['{model.name}'\]\)"):
        model.fit(Federation.split(X, y, n_parties=2, norm_bound=1.0, policy=Policy()))
    assert isinstance(model.event(), NotPrivate)
    assert not model.guarantee.is_private


@every_kind
def test_a_party_with_few_records_gives_no_exact_statistics(make: Callable[..., Method]) -> None:
    X, y = make_data(59, 2)
    parties = Federation.split(X, y, weights=[20, 20, 19], norm_bound=1.0, policy=ALLOWED)
    with pytest.raises(PolicyRefusal, match=r"'party3' gives exact statistics of 20 records or more, and has fewer"):
        make(l2=1.0).fit(parties)
    assert all(parties.guard(name).ledger.n_releases(name) == 0 for name in parties.names)
    lower = Policy(not_private=["privlogit", "secure-newton"], min_records_exact=19)
    make(l2=1.0).fit(Federation.split(X, y, weights=[20, 20, 19], norm_bound=1.0, policy=lower))
    with pytest.raises(SettingError, match="min_records_exact = 0 must be at least 1"):
        Policy(min_records_exact=0)


@every_kind
def test_one_party_alone_is_refused(make: Callable[..., Method]) -> None:
    X, y = make_data(100, 2)
    parties = Federation.split(X, y, n_parties=1, policy=ALLOWED)
    with pytest.raises(SettingError, match=r"1 party: an exact sum over one party is that party's own"):
        make().fit(parties)
    assert parties.guard("party1").ledger.n_releases("party1") == 0


def test_two_parties_of_one_name_are_refused() -> None:
    X, y = make_data(100, 2)
    guard = Federation.split(X, y, n_parties=2, policy=ALLOWED).guard("party1")
    with pytest.raises(SettingError, match="two parties have the same name"):
        InProcess([guard, guard])


# --- what a party reads ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_at_zero_the_moments_tell_what_a_pass_would(classes: int, fit_intercept: bool) -> None:
    X, y = make_data(300, 4, classes)
    parties = Federation.split(X * 3 + 5, y, n_parties=2, policy=ALLOWED)
    plan = parties.begin(PrivLogit(l2=0.5, fit_intercept=fit_intercept)).plan
    table = parties.guard("party1").table
    units = Units(centre=np.full(4, 5.0 if fit_intercept else 0.0), exponent=np.array([1, 2, 1, 2]))
    scaling, shape = plan.scaling(units), plan.problem.loss.shape
    gradient, likelihood = part.point_part(table, np.zeros(shape), scaling)
    nearly = np.full(shape, 1e-300)  # no score is changed by it, and it is no 0
    expected, mean = part.point_part(table, nearly, scaling)
    np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-15)
    assert likelihood == pytest.approx(mean, rel=1e-13)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_curvature_is_the_same_from_rows_as_they_are_and_in_public_units(
    classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = make_data(300, 3, classes)
    parties = Federation.split(X * [1.0, 4.0, 0.1] + [0.0, 9.0, -1.0], y, n_parties=2, policy=ALLOWED)
    plan = parties.begin(PrivLogit(l2=0.5)).plan
    table = parties.guard("party1").table
    scaling = plan.scaling(Units(centre=np.array([0.0, 9.0, -1.0]), exponent=np.array([0, 2, -3])))
    point = np.random.default_rng(1).normal(size=plan.problem.loss.shape)
    assert part._is_near(scaling)
    plain = [*part.curvature_part(table, point, scaling), part.bound_part(table, scaling)]
    monkeypatch.setattr(part, "_NEAR_CENTRE", 0.0)
    assert not part._is_near(scaling)
    scaled = [*part.curvature_part(table, point, scaling), part.bound_part(table, scaling)]
    for one, other in zip(plain, scaled, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("secure", ["center", "sums"])
def test_moments_bound_and_first_gradient_take_one_pass(secure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[str] = []
    total = RowStream.total

    def counted(self: RowStream, *given: Any) -> Any:
        passes.append(self.name)
        return total(self, *given)

    monkeypatch.setattr(RowStream, "total", counted)
    X, y = make_data(300, 3)
    model = PrivLogit(secure=secure).fit(Federation.split(X, y, n_parties=2, policy=ALLOWED))
    n_points = len(model.iterates_)
    assert model.n_rounds_ == n_points + 4  # and the moments, the bound, the curvature and the likelihood
    assert len(passes) == 2 * (n_points + 2)  # of both parties: the moments, curvature and likelihood, all points but 0


# --- what may be asked -----------------------------------------------------------------------------------------------


def questions_of(model: Method) -> Questions:
    return NEWTON if isinstance(model, SecureNewton) else QUESTIONS


@every_kind
@pytest.mark.parametrize("norm_bound", [1.0, None])
def test_a_party_derives_the_plan_and_course_of_the_coordinator(
    make: Callable[..., Method], norm_bound: float | None
) -> None:
    X, y = make_data(100, 2)
    parties = Federation.split(X, y, n_parties=2, norm_bound=norm_bound, policy=ALLOWED)
    model = make(l2=1.0)
    channel = parties.begin(model)
    terms = derived(model, channel)
    assert terms.plan == channel.plan
    assert terms.course == model.course(channel.plan)
    course = {ask.step.name.split("/")[1]: ask.times for ask in terms.course}
    assert (
        course
        == ({} if norm_bound else {"moments": 1})
        | {
            "sums": {"open-bound": 1, "open-point": 200, "open-curvature": 4, "loss": 1},
            "hessian": {"bound": 1, "point": 200, "curvature": 4, "loss": 1},
            "local": {"bound": 1, "product": 200, "curvature": 4, "loss": 1},
            "newton": {"curvature": 50, "loss": 1},
        }[NAMES[KINDS.index(make)]]
    )


def test_a_start_allows_two_points_more_and_no_errors_no_curvature() -> None:
    X, y = make_data(100, 2)
    parties = Federation.split(X, y, n_parties=2, norm_bound=1.0, policy=ALLOWED)
    model = PrivLogit(start=(np.zeros((1, 2)), np.zeros(1)), max_rounds=7, standard_errors=False)
    course = model.course(parties.begin(model).plan)
    assert [(ask.step.name, ask.times) for ask in course] == [("privlogit/bound", 1), ("privlogit/point", 9)]


def test_a_run_keeps_to_its_course() -> None:
    X, y = make_data(100, 2)
    parties = Federation.split(X, y, n_parties=2, norm_bound=1.0, policy=ALLOWED)
    at = Point(point=np.zeros(3), units=None)
    channel = parties.begin(PrivLogit(secure="sums", max_rounds=2))
    channel.sum(QUESTIONS.open_bound, Measure(units=None))
    with pytest.raises(NotAgreed, match="'privlogit/open-bound' is asked 1 times in a run"):
        channel.sum(QUESTIONS.open_bound, Measure(units=None))
    for _ in range(2):
        channel.sum(QUESTIONS.open_point, at)
    with pytest.raises(NotAgreed, match="'privlogit/open-point' is asked 2 times in a run"):
        channel.sum(QUESTIONS.open_point, at)
    channel.sum(QUESTIONS.loss, at)
    with pytest.raises(NotAgreed, match="'privlogit/open-curvature' comes before 'privlogit/loss'"):
        channel.sum(QUESTIONS.open_curvature, at)
    for asked in (QUESTIONS.bound, QUESTIONS.moments, NEWTON.curvature):
        with pytest.raises(NotAgreed, match=f"never asks step '{asked.name}'"):
            channel._ask(
                asked, Measure(units=None) if asked is QUESTIONS.bound else None if asked.values is None else at
            )


@pytest.mark.parametrize("model", [PrivLogit(), PrivLogit(protocol="local"), SecureNewton()])
def test_a_study_of_steps_alone_opens_no_sums(model: Method) -> None:
    X, y = make_data(100, 2)
    parties = Federation.split(X, y, n_parties=2, norm_bound=1.0, policy=ALLOWED)
    channel, asked = parties.begin(model), questions_of(model)
    for step, values in [
        (asked.open_bound, Measure(units=None)),
        (asked.open_point, Point(point=np.zeros(3), units=None)),
        (asked.open_curvature, Point(point=np.zeros(3), units=None)),
    ]:
        with pytest.raises(NotAgreed, match=f"never asks step '{step.name}'"):
            channel.sum(step, values)


def planned(norm_bound: float | None = None, **settings: Any) -> tuple[Table, Plan]:
    X, y = make_data(50, 2)
    model = PrivLogit(**settings)
    parties = Federation.split(X, y, n_parties=2, norm_bound=norm_bound, policy=ALLOWED)
    return parties.guard("party1").table, parties.begin(model).plan


def told(*, centre: Any = (0.0, 0.0), exponent: Any = (0, 0)) -> Units:
    return Units(centre=np.array(centre, dtype=np.float64), exponent=np.array(exponent, dtype=np.int64))


@pytest.mark.parametrize(
    ("units", "message"),
    [
        (None, "units of 0 columns were told; 2 columns have no declared bounds"),
        (told(centre=[0.0], exponent=[0]), "units of 1 columns were told; 2 columns have no declared bounds"),
        (told(exponent=[0]), "units that were told are not finite"),
        (told(exponent=[0, 1000]), "units that were told are not finite"),
        (told(centre=[np.nan, 0.0]), "units that were told are not finite"),
    ],
)
def test_units_that_are_none_are_refused(units: Units | None, message: str) -> None:
    table, plan = planned()
    with pytest.raises(PolicyRefusal, match=message):
        QUESTIONS.bound(table, plan, Measure(units=units), rng=Rng.system())


def test_units_of_columns_with_bounds_are_refused_and_so_are_moved_rows_without_an_intercept() -> None:
    table, plan = planned(norm_bound=1.0)
    with pytest.raises(PolicyRefusal, match="units of 2 columns were told; 0 columns have no declared bounds"):
        QUESTIONS.bound(table, plan, Measure(units=told()), rng=Rng.system())
    table, plan = planned(fit_intercept=False)
    QUESTIONS.bound(table, plan, Measure(units=told()), rng=Rng.system())
    with pytest.raises(PolicyRefusal, match="or move rows of a fit without intercept"):
        QUESTIONS.bound(table, plan, Measure(units=told(centre=[1.0, 0.0])), rng=Rng.system())


def test_a_run_keeps_to_the_units_that_it_was_told_first() -> None:
    X, y = make_data(100, 2)
    parties = Federation.split(X, y, n_parties=2, policy=ALLOWED)
    channel = parties.begin(PrivLogit(secure="sums"))
    channel.sum(QUESTIONS.moments)
    channel.sum(QUESTIONS.open_bound, Measure(units=told()))
    channel.sum(QUESTIONS.open_point, Point(point=np.zeros(3), units=told()))
    for step in (QUESTIONS.open_point, QUESTIONS.open_curvature):
        with pytest.raises(NotAgreed, match="told other units before; begin a new run"):
            channel.sum(step, Point(point=np.zeros(3), units=told(exponent=[0, 1])))
    other = parties.begin(PrivLogit(secure="sums"))
    other.sum(QUESTIONS.open_bound, Measure(units=told(exponent=[0, 1])))  # another run has units of its own


@pytest.mark.parametrize("point", [np.zeros(2), np.zeros((1, 3)), np.array([0.0, np.inf, 0.0])])
def test_a_point_that_is_no_parameter_is_refused(point: np.ndarray) -> None:
    table, plan = planned(norm_bound=1.0)
    for asked in (QUESTIONS.point, QUESTIONS.curvature, QUESTIONS.loss):
        with pytest.raises(PolicyRefusal, match="is no parameter of the fit, or is not finite"):
            asked(table, plan, Point(point=point, units=None), rng=Rng.system())


def test_an_inverse_of_another_fit_is_refused() -> None:
    table, plan = planned(norm_bound=1.0)
    terms = ProductTerms(n_features=4, n_parties=2)
    at = Multiplied(point=np.zeros(3), units=None, inverse=EncryptedInverse(key=b"key", matrix=b"matrix", terms=terms))
    with pytest.raises(PolicyRefusal, match="the encrypted inverse is not of this fit's columns and parties"):
        QUESTIONS.product(table, plan, at, rng=Rng.system(), seat=SimpleNamespace(bond=None))


def test_what_does_not_fit_is_cut_off_and_never_refused() -> None:
    """A refusal would tell of records: units that are far too small, and entries that cannot be squared."""
    X = np.array([[1e3, 1.0], [-2.0, 0.5]] * 20)
    huge = np.array([[1e200, 1.0], [-1e308, 0.5]] * 20)
    y = np.array([0, 1] * 20)
    for rows in (X, huge):
        parties = Federation.split(rows, y, n_parties=2, policy=ALLOWED)
        channel = parties.begin(PrivLogit(secure="sums"))
        table = parties.guard("party1").table
        small = told(exponent=[-200, 0])
        reply: Any = QUESTIONS.open_bound(table, channel.plan, Measure(units=small), rng=Rng.system())
        assert reply.addend[0, 0] == 2**62
        at = Point(point=np.array([1e3, 1.0, 1.0]), units=small)
        for asked in (QUESTIONS.point, QUESTIONS.curvature):
            kept: Any = asked(table, channel.plan, at, rng=Rng.system())
            assert all(np.abs(part).max() <= 2**62 for part in kept.addends.values())
        for asked in (QUESTIONS.moments, QUESTIONS.loss):
            values = () if asked.values is None else (at,)
            sealed: Any = asked(table, channel.plan, *values, rng=Rng.system())
            assert np.isfinite(from_digits(sealed.addend)).all()
    with pytest.raises(DataError, match="values too large to be squared; declare its low and high"):
        PrivLogit(secure="sums").fit(Federation.split(huge, y, n_parties=2, policy=ALLOWED))


@pytest.mark.parametrize("secure", ["sums", "center"])
def test_garbage_in_an_envelope_is_noticed(secure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_data(100, 2)
    parties = Federation.split(X, y, n_parties=2, norm_bound=1.0, policy=ALLOWED)
    parties.center = EmbeddedCenter()  # parties seal to nodes
    ask = InProcess.ask

    def garbled(self: InProcess, *given: Any) -> dict[str, Answer]:
        answers = ask(self, *given)
        answer = answers["party2"]
        value: Any = answer.value if answer.kind == "sealed" else answer.value["curvature"]
        value["envelopes"][1] = bytes(len(value["envelopes"][1]))
        return answers

    monkeypatch.setattr(InProcess, "ask", garbled)
    with pytest.raises(CenterError, match="an envelope does not open"):
        PrivLogit(l2=1.0, secure=secure).fit(parties)


def test_settings_that_cannot_be_honoured_are_named(federation: Callable[..., Federation]) -> None:
    for settings_, message in [
        ({"l2": -1.0}, "l2 = -1.0"),
        ({"protocol": "remote"}, "protocol = 'remote' is unknown"),
        ({"secure": "no"}, "secure = 'no' is unknown"),
        ({"acceleration": "fast"}, "acceleration = 'fast' is unknown"),
        ({"memory": 0}, "memory = 0 must be a whole number"),
        ({"max_rounds": 2.5}, "max_rounds = 2.5 must be a whole number"),
        ({"tol": 1.0}, r"tol = 1.0 must lie between 1e-12 and 1e-3"),
        ({"secure": "sums", "protocol": "local"}, 'with secure = "sums" there is none'),
    ]:
        with pytest.raises(SettingError, match=message):
            PrivLogit(**settings_).fit(federation())  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="max_rounds = 0"):
        SecureNewton(max_rounds=0).fit(federation())


# --- fits that have no optimum ---------------------------------------------------------------------------------------


@every_kind
def test_collinear_columns_are_named(make: Callable[..., Method]) -> None:
    X, y = make_data(200, 3)
    names = ["a", "b", "c", "d"]
    both = np.column_stack([X, X[:, 0] + X[:, 1]])
    with pytest.raises(SingularCurvature, match="columns a, b, d are collinear, or nearly; drop one, or set l2 > 0"):
        make().fit(Federation.split(both, y, n_parties=2, feature_names=names, policy=ALLOWED))
    constant = np.column_stack([X, np.full(len(X), 7.0)])
    with pytest.raises(SingularCurvature, match="column d never changes, or hardly"):
        make().fit(Federation.split(constant, y, n_parties=2, feature_names=names, policy=ALLOWED))
    make(l2=1.0).fit(Federation.split(both, y, n_parties=2, feature_names=names, policy=ALLOWED))


@every_kind
def test_separable_classes_are_told(make: Callable[..., Method]) -> None:
    X = np.linspace(-1, 1, 60)[:, None]
    y = (X[:, 0] > 0).astype(int)
    parties = Federation.split(X, y, n_parties=2, norm_bound=1.0, policy=ALLOWED)
    with pytest.raises(NotConverged, match=r"separates the classes.*l2 > 0"):
        make().fit(parties)
    assert make(l2=1.0).fit(parties).score(X, y) == 1.0


def test_rounds_that_run_out_are_told() -> None:
    X, y = make_data(300, 3)
    parties = Federation.split(X, y, n_parties=2, norm_bound=1.0, policy=ALLOWED)
    with pytest.raises(NotConverged, match="after 3 rounds; allow more by max_rounds, or set a larger l2"):
        PrivLogit(l2=1.0, secure="sums", max_rounds=3).fit(parties)
    with pytest.raises(NotConverged, match="still long after 2 rounds"):
        SecureNewton(l2=1.0, max_rounds=2).fit(parties)


class _Cliff:
    """A fit along one line whose full Newton step overshoots: the likelihood is that of a narrow ridge."""

    def __init__(self) -> None:
        self.size, self.accepted = 1, -np.inf
        self.asked: list[float] = []

    def ask_with_curvature(self, point: np.ndarray) -> None:
        self.asked.append(float(point[0]))

    def is_better(self) -> bool:
        return -np.log(np.cosh(self.asked[-1] - 2)) >= self.accepted

    def accept_newton(self) -> np.ndarray:
        x = self.asked[-1] - 2
        self.accepted = -np.log(np.cosh(x))
        return np.array([-np.tanh(x) * np.cosh(x) ** 2])


def test_a_newton_step_that_overshoots_is_halved() -> None:
    cliff: Any = _Cliff()
    points: list[np.ndarray] = []
    SecureNewton()._climb(cliff, points)
    assert points[-1][0] == pytest.approx(2.0, abs=1e-4)
    assert cliff.asked[1] == pytest.approx(np.tanh(2) * np.cosh(2) ** 2)  # undamped, from 0: beyond, and lower
    assert cliff.asked[2] == pytest.approx(cliff.asked[1] / 2)


# --- digits ----------------------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(st.lists(st.lists(st.floats(-1e70, 1e70), min_size=2, max_size=2), min_size=1, max_size=5))
def test_digits_add_up_exactly(rows: list[list[float]]) -> None:
    from fractions import Fraction

    digits = [to_digits(np.array(row)) for row in rows]
    for row, own in zip(rows, digits, strict=True):
        np.testing.assert_allclose(from_digits(own), row, rtol=1e-15, atol=2.0**-256)
    total = from_digits(np.sum(digits, axis=0))
    for j in range(2):
        exact = sum(Fraction(row[j]) for row in rows)
        assert abs(Fraction(float(total[j])) - exact) <= abs(exact) * Fraction(1, 2**52) + Fraction(len(rows), 2**255)


# --- public data -----------------------------------------------------------------------------------------------------


def in_parties(name: str, n_parties: int = 5) -> Federation:
    tables = dict(public.load(name).tables)
    if len(tables) == 1:
        ((_, table),) = tables.items()
        tables = {
            f"part{i}": table.take(np.arange(i, table.n_records, n_parties), f"part{i}") for i in range(n_parties)
        }
    return Federation.from_tables(tables, policy=ALLOWED)


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "l2", "kinds"),
    [
        ("wine_quality", 0.0, KINDS[:2]),
        ("online_news", 0.0, KINDS[:1]),
        ("coil2000", 1.0, KINDS[:1]),
        ("lending_club", 1.0, KINDS[:2]),
    ],
)
def test_public_data(name: str, l2: float, kinds: list[Callable[..., Method]]) -> None:
    parties = in_parties(name)
    plain = Pooled(l2=l2).fit(parties)
    for make in kinds:
        model = make(l2=l2).fit(parties)
        assert relative_error(model, plain) <= 1e-8
        assert_same_table(model, plain, rtol=1e-4)


@needs_data
@pytest.mark.slow
def test_four_hospitals_get_the_pooled_fit_and_the_standard_errors_of_statsmodels() -> None:
    parties = in_parties("heart_disease")
    plain = Pooled().fit(parties)
    Z, y = pooled_rows(parties)
    expected = sm.Logit(y, Z).fit(disp=0, tol=1e-14, method="newton")
    J = parties.schema.original_units()
    errors = np.sqrt(np.diag(J @ expected.cov_params() @ J.T))
    for make in KINDS:
        model = make().fit(parties)
        assert relative_error(model, plain) <= 1e-8
        assert_same_table(model, plain, rtol=1e-4)
        rows = model.facts_.coefficients
        told = [row.standard_error for row in (*rows[1:], rows[0])]
        np.testing.assert_allclose(told, errors, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d"), [(50_000, 10), (60_000, 12), (40_000, 50)])
def test_the_documents_simulated_data(n: int, d: int) -> None:
    """SimuX10, and SimuX12 and SimuX50 with far fewer records."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    beta = rng.normal(size=d) / np.sqrt(d) * 2.5
    y = (rng.random(n) < expit(X @ beta)).astype(int)
    parties = Federation.split(X, y, n_parties=5, policy=ALLOWED)
    plain = Pooled(l2=1.0).fit(parties)
    for make in KINDS[:1] if d == 12 else KINDS[:2]:  # all kinds learn from the hospitals
        model = make(l2=1.0).fit(parties)
        assert relative_error(model, plain) <= 1e-8
        assert_same_table(model, plain, rtol=1e-4)
