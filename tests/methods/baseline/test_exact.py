"""Pooled and Local: the plain fits, to rounding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.linear_model import LogisticRegression

from tacit import Federation, Local, Pooled
from tacit.errors import NotAgreed, NotConverged, PolicyRefusal, SettingError, SingularCurvature
from tacit.methods.baseline.statistic import PooledIterate, own_model, party_extent, party_sums

from ..conftest import EVERYTHING, derived, make_data

Make = Callable[..., Federation]


def test_pooled_equals_statsmodels() -> None:
    X, y = make_data(400, 5)
    model = Pooled().fit(Federation.split(X, y, n_parties=4, policy=EVERYTHING))
    expected = sm.Logit(y, np.column_stack([X, np.ones(len(X))])).fit(disp=0, tol=1e-14, method="newton")
    rows = model.facts_.coefficients  # the intercept first
    order = [5, 0, 1, 2, 3, 4]
    np.testing.assert_allclose([row.estimate for row in rows], expected.params[order], atol=1e-9)
    np.testing.assert_allclose([row.standard_error for row in rows], expected.bse[order], rtol=1e-6)
    np.testing.assert_allclose([row.z for row in rows], expected.tvalues[order], rtol=1e-6)
    np.testing.assert_allclose([row.p for row in rows], expected.pvalues[order], rtol=1e-5, atol=1e-12)
    assert model.facts_.fit is not None
    assert model.facts_.fit.log_likelihood == pytest.approx(expected.llf, rel=1e-10)
    assert model.facts_.fit.aic == pytest.approx(expected.aic, rel=1e-10)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_pooled_equals_scikit_learn_with_l2_as_one_over_c(classes: int, fit_intercept: bool) -> None:
    X, y = make_data(300, 4, classes)
    model = Pooled(l2=0.5, fit_intercept=fit_intercept).fit(Federation.split(X, y, n_parties=3, policy=EVERYTHING))
    plain = LogisticRegression(C=2.0, fit_intercept=fit_intercept, tol=1e-12, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-5)


def test_how_the_records_are_split_does_not_matter() -> None:
    X, y = make_data(200, 3)
    one = Pooled(l2=0.1).fit(Federation.split(X, y, n_parties=1, policy=EVERYTHING))
    many = Pooled(l2=0.1).fit(Federation.split(X, y, n_parties=40, policy=EVERYTHING))
    np.testing.assert_allclose(one.coef_, many.coef_, atol=1e-10)


def test_local_is_the_fit_of_one_party_and_asks_no_other(federation: Make) -> None:
    parties = federation()
    model = Local(l2=0.3, party="party2").fit(parties)
    X, y = parties.guard("party2").table.arrays()
    plain = LogisticRegression(C=1 / 0.3, tol=1e-12, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-5)
    assert [party.releases for party in model.facts_.parties] == [0, 1, 0]
    assert Local().fit(parties).party_ == "party1"  # the largest
    with pytest.raises(SettingError, match="party = 'nobody' is not in the federation; it has party1"):
        Local(party="nobody").fit(parties)


def test_collinear_features_are_named() -> None:
    X, y = make_data(100, 3)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    parties = Federation.split(X, y, n_parties=2, feature_names=["a", "b", "c", "d"], policy=EVERYTHING)
    with pytest.raises(SingularCurvature, match="columns a, b, d are collinear"):
        Pooled().fit(parties)
    Pooled(l2=1e-3).fit(parties)


def test_separable_classes_and_one_class_have_no_exact_fit() -> None:
    X = np.linspace(-1, 1, 40)[:, None]
    y = (X[:, 0] > 0).astype(int)
    parties = Federation.split(X, y, n_parties=2, policy=EVERYTHING)
    with pytest.raises(NotConverged, match=r"separates the classes.*set l2 > 0"):
        Pooled().fit(parties)
    assert Pooled(l2=1.0).fit(parties).score(X, y) == 1.0
    alone = Federation.split(X, y, groups=np.where(y == 1, "ones", "zeros"), policy=EVERYTHING)
    with pytest.raises(NotConverged, match="no record has class 0"):
        Local(party="ones").fit(alone)
    Pooled(l2=1.0).fit(alone)


def test_the_exact_methods_are_refused_unless_the_policy_names_them(federation: Make) -> None:
    from tacit import Policy

    for method in (Pooled(l2=1.0), Local()):
        with pytest.raises(PolicyRefusal, match=rf"Policy\(not_private=\['{method.name}'\]\)"):
            method.fit(federation(policy=Policy()))


# --- what may be asked -----------------------------------------------------------------------------------------------


def test_a_party_derives_the_plan_of_the_coordinator(federation: Make) -> None:
    for method in (Pooled(l2=2.0, fit_intercept=False), Local(l2=0.5, party="party2")):
        channel = federation().begin(method)
        terms = derived(method, channel)
        assert terms.plan == channel.plan
        assert terms.course == method.course(channel.plan)
    assert [ask.times for ask in Pooled().course(Pooled().terms(channel.schema, channel._start.group).plan)] == [1, 101]


def test_a_run_keeps_to_its_course(federation: Make) -> None:
    channel = federation().begin(Pooled(l2=1.0))
    iterate = PooledIterate(theta=np.zeros(5))
    channel.ask(party_extent)
    with pytest.raises(NotAgreed, match="'pooled/extent' is asked 1 times in a run"):
        channel.ask(party_extent)
    channel.ask(party_sums, iterate)
    with pytest.raises(NotAgreed, match="step 'pooled/extent' comes before 'pooled/sums'"):
        channel.ask(party_extent, parties=["party1"])
    channel._turns["pooled/sums"] = 101
    with pytest.raises(NotAgreed, match="'pooled/sums' is asked 101 times in a run"):
        channel.ask(party_sums, iterate)
    with pytest.raises(NotAgreed, match="never asks step 'local/model'"):
        channel.ask(own_model)
    alone = federation().begin(Local())
    alone.ask(own_model, parties=["party1"])
    with pytest.raises(NotAgreed, match="'local/model' is asked 1 times in a run"):
        alone.ask(own_model, parties=["party1"])


@pytest.mark.parametrize("theta", [np.zeros(4), np.zeros((1, 5)), np.full(5, np.nan)])
def test_an_iterate_that_is_no_parameter_is_refused(federation: Make, theta: np.ndarray) -> None:
    channel = federation().begin(Pooled(l2=1.0))
    with pytest.raises(PolicyRefusal, match="is no parameter of the fit, or is not finite"):
        channel.ask(party_sums, PooledIterate(theta=theta))
