"""Joint tests of a feature's coefficients: the numbers of statsmodels, and never surer than the table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import tacit
from tacit.models.inference import Inference, wald
from tacit.report.identity import column_facts
from tacit.report.joint import HIDDEN, NOT_OPENED, joint_tests

PAIN = ("none", "atypical", "typical", "angina")


def schema(coding: str = "reference") -> tacit.Schema:
    return tacit.Schema(
        (tacit.Numeric("age", 20, 90, per=10), tacit.Categorical("pain", PAIN), tacit.Binary("sex", ("F", "M"))),
        tacit.Target("disease", ("no", "yes")),
        coding=coding,  # type: ignore[arg-type]
    )


def frame(n: int, effect: float, seed: int = 0) -> pd.DataFrame:
    """Records whose outcome depends on age, and on one kind of pain as much as `effect`."""
    rng = np.random.default_rng(seed)
    found = pd.DataFrame({"age": rng.uniform(20, 90, n), "pain": rng.choice(PAIN, n), "sex": rng.choice(["F", "M"], n)})
    score = 0.03 * (found["age"] - 55) + effect * (found["pain"] == "typical")
    return found.assign(disease=np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "yes", "no"))


def parties(records: pd.DataFrame, coding: str = "reference") -> tacit.Federation:
    tables = {
        name: tacit.Table.from_frame(records[k::3], schema(coding), name=name) for k, name in enumerate(("a", "b", "c"))
    }
    return tacit.Federation.from_tables(tables, policy=tacit.Policy.disclosing_everything())


def test_the_test_of_a_factor_is_that_of_statsmodels() -> None:
    records = frame(900, 0.4)
    (test,) = tacit.Pooled().fit(parties(records)).facts_.joint
    X = pd.get_dummies(records["pain"])[list(PAIN[1:])].assign(age=records["age"], sex=records["sex"] == "M")
    fitted = sm.Logit(records["disease"] == "yes", sm.add_constant(X.astype(float))).fit(disp=0)
    peer = fitted.wald_test(np.eye(6)[1:4], scalar=True)
    assert (test.feature, test.degrees) == ("pain", 3)
    assert test.statistic == pytest.approx(float(peer.statistic), rel=1e-6)
    assert test.p == pytest.approx(float(peer.pvalue), rel=1e-6)


def test_exact_secure_sums_have_the_same_tests_and_likelihood_ratio() -> None:
    records = frame(600, 0.4)
    pooled, secure = (m.fit(parties(records)).facts_ for m in (tacit.Pooled(), tacit.PrivLogit(secure="sums")))
    assert pooled.joint[0].statistic == pytest.approx(secure.joint[0].statistic, rel=1e-5)
    X = pd.get_dummies(records["pain"])[list(PAIN[1:])].assign(age=records["age"], sex=records["sex"] == "M")
    peer = sm.Logit(records["disease"] == "yes", sm.add_constant(X.astype(float))).fit(disp=0)
    for facts in (pooled, secure):
        assert facts.fit is not None
        assert facts.fit.ratio_statistic == pytest.approx(peer.llr, rel=1e-6)
        assert facts.fit.ratio_p == pytest.approx(peer.llr_pvalue, rel=1e-5)
        assert facts.fit.mcfadden == pytest.approx(peer.prsquared, rel=1e-6)
        assert facts.fit.degrees == peer.df_model


def test_a_factor_with_a_column_for_each_level_is_tested_for_differences() -> None:
    """Whichever level has no column, and whether each has one: the question is the same."""
    records = frame(3000, 0.5)
    by_reference, full = (tacit.Pooled(l2=1e-3).fit(parties(records, c)).facts_.joint[0] for c in ("reference", "full"))
    assert full.degrees == by_reference.degrees == 3
    assert full.statistic == pytest.approx(by_reference.statistic, rel=0.01)


def test_with_several_classes_every_feature_has_a_test() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 2)), rng.integers(0, 3, 500)
    tests = tacit.Pooled().fit(tacit.Federation.split(X, y, n_parties=2)).facts_.joint
    peer = sm.MNLogit(y, sm.add_constant(X)).fit(disp=0)
    for k, test in enumerate(tests, start=1):
        at = np.zeros((2, 6))
        at[0, k], at[1, 3 + k] = 1, 1  # parameters of class 1, then of class 2
        assert test.degrees == 2
        assert test.statistic == pytest.approx(float(peer.wald_test(at, scalar=True).statistic), rel=1e-5)


def told(estimate: list[float], covariance: np.ndarray) -> Inference:
    return wald(np.array(estimate), covariance, n_parameters=6, log_likelihood=-1.0, n_records=10)


def test_it_is_never_surer_of_a_coefficient_than_the_table() -> None:
    """A table that counts more noise than the covariance at the estimate holds the test back."""
    estimate, C = [0.0, 0.5, 0.6, -0.4, 0.1, 0.2], np.eye(6) * 0.01
    plain = told(estimate, C)
    wider = replace(plain, standard_error=plain.standard_error * [1, 1, 3, 1, 1, 1])
    unsure = replace(plain, z=plain.z * [1, 1, 1, 0.25, 1, 1])
    columns = column_facts(schema())
    (before,), (held,), (shy,) = (joint_tests(one, schema(), columns, 1) for one in (plain, wider, unsure))
    assert before.statistic == pytest.approx((0.25 + 0.36 + 0.16) / 0.01)
    assert held.statistic == pytest.approx((0.25 + 0.36 / 9 + 0.16) / 0.01)
    assert shy.statistic == pytest.approx((0.25 + 0.36 + 0.16 / 16) / 0.01)


def test_where_it_cannot_be_told_it_says_why() -> None:
    plain = told([0.0, 0.5, 0.6, -0.4, 0.1, 0.2], np.eye(6) * 0.01)
    hidden = replace(plain, standard_error=plain.standard_error * [1, 1, np.inf, 1, 1, 1])
    C = np.full((6, 6), np.nan)
    np.fill_diagonal(C, 0.01)
    columns = column_facts(schema())
    for inference, why in ((hidden, HIDDEN), (replace(plain, covariance=C), NOT_OPENED)):
        (test,) = joint_tests(inference, schema(), columns, 1)
        assert (test.statistic, test.p, test.why) == (None, None, why)
    assert joint_tests(None, schema(), columns, 1) == ()


def test_noise_is_counted_so_that_a_factor_without_effect_is_rarely_called_one() -> None:
    """Sixty private fits; at the level of .05 more than nine rejections happen once in 500 times by chance."""
    rejected = 0
    for seed in range(60):
        (test,) = tacit.PrivateNewton(epsilon=1.0).fit(parties(frame(1500, 0.0, seed))).facts_.joint
        rejected += test.p is not None and test.p < 0.05
    assert rejected <= 9


def test_a_real_effect_is_found_under_privacy() -> None:
    (test,) = tacit.PrivateNewton(epsilon=3.0).fit(parties(frame(6000, 1.0))).facts_.joint
    assert test.p is not None
    assert test.p < 0.01
