"""Ensemble: what one party can move, the noise that covers it, and what is left when the noise is taken away."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from sklearn.linear_model import LogisticRegression

from tacit import Federation, Policy, Rng, Schema, Table
from tacit.errors import CenterError, DataError, PolicyRefusal, SettingError, WireError
from tacit.methods.ballot import Plan, many_votes, packed, party_votes, vote_statistic, vote_statistics
from tacit.methods.ensemble import Ensemble
from tacit.methods.label_statistic import (
    LabelDesign,
    fit_statistic,
    lengthened,
    simplex,
    vote_sensitivity,
)
from tacit.models.problem import Problem
from tacit.models.solver import fit
from tacit.privacy.event import Composed

from .conftest import make_data

OPEN = Policy(not_private=["ensemble"])


def crowd(n_parties: int = 5, d: int = 3, classes: int = 2, seed: int = 0, **more: Any) -> Federation:
    X, y = make_data(12 * n_parties, d, classes, seed)
    return Federation.split(X, y, n_parties=n_parties, **{"norm_bound": 1.0, "policy": OPEN} | more)


def public_rows(n: int = 40, d: int = 3, seed: int = 9) -> np.ndarray:
    X = make_data(n, d, 2, seed)[0]
    return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))


def plan_of(X: np.ndarray, classes: int, shaped: bool, n_parties: int = 3) -> Plan:
    design = LabelDesign(Z=lengthened(X, 1.0), n_classes=classes, shaped=shaped)
    return Plan(
        n_rows=len(X), n_features=X.shape[1], n_classes=classes, rows=packed(X), local=["logistic"], l2=1.0,
        epsilon=1.0, delta=None, n_parties=n_parties, colluders=1, basis=design.basis,
        sensitivity=vote_sensitivity(lengthened(X, 1.0) @ design.basis, n_parties), constant=1.0,
    )  # fmt: skip


def opened(parties: Federation, model: Ensemble) -> np.ndarray:
    """What the center opens in one run, in data units."""
    plan = model.plan(parties)
    return plan.grid.from_grid(parties.begin("ensemble").sum(vote_statistic, **asdict(plan)))


# --- sensitivity -----------------------------------------------------------------------------------------------------

small_rows = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 3)), elements=st.floats(-2, 2, width=32))


@given(X=small_rows, classes=st.integers(2, 4), shaped=st.booleans(), data=st.data())
@settings(max_examples=250, deadline=None)
def test_other_votes_move_the_addend_by_no_more_than_the_sensitivity(
    X: np.ndarray, classes: int, shaped: bool, data: st.DataObject
) -> None:
    """Votes are all that a table can change, so these are all replacements of a whole party."""
    plan = plan_of(X, classes, shaped)
    votes = data.draw(arrays(np.uint8, (2, len(X)), elements=st.integers(0, classes - 1)))
    one, other = plan.addends(votes)
    assert np.linalg.norm(one - other) <= plan.sensitivity
    assert np.abs(one).max() <= plan.grid.total.value_bound
    bound = math.sqrt(2) / 3 * np.linalg.norm(plan.D, axis=1).mean()  # the printed form, a mean of norms
    assert plan.needed <= bound * (1 + 1e-5)
    if shaped:
        assert plan.needed <= math.sqrt(2) / 3 * (1 + 1e-5)


@given(X=small_rows, classes=st.integers(2, 4), shaped=st.booleans(), data=st.data())
@settings(max_examples=100, deadline=None)
def test_addends_are_the_votes_statistic(X: np.ndarray, classes: int, shaped: bool, data: st.DataObject) -> None:
    plan = plan_of(X, classes, shaped)
    design = LabelDesign(Z=lengthened(X, 1.0), n_classes=classes, shaped=shaped)
    votes = data.draw(arrays(np.uint8, (3, len(X)), elements=st.integers(0, classes - 1)))
    V = plan.addends(votes).sum(axis=0).reshape(-1, classes - 1)
    A = np.mean(np.eye(classes)[votes], axis=0)
    np.testing.assert_allclose(design.statistic(V), (A.T @ design.Z / len(X)) @ design.directions, atol=1e-7)


@pytest.mark.parametrize("pair", Ensemble.worst_neighbours(), ids=lambda pair: pair.label)
def test_the_worst_neighbours_reach_the_sensitivity(pair: Any) -> None:
    sums = []
    for tables in (pair.first, pair.second):
        parties = Federation.from_tables(tables, policy=OPEN)
        model = Ensemble(epsilon=math.inf, **pair.settings)
        sums.append(opened(parties, model))
    moved = np.linalg.norm(sums[0] - sums[1])
    assert 0.97 * model.plan(parties).sensitivity <= moved <= model.plan(parties).sensitivity


def test_the_simplex_has_corners_sqrt_two_apart_and_sums_to_nothing() -> None:
    for classes in (2, 3, 7):
        E = simplex(classes)
        np.testing.assert_allclose(E.T @ E, np.eye(classes - 1), atol=1e-14)
        np.testing.assert_allclose(E.sum(axis=0), 0, atol=1e-14)
        distances = np.linalg.norm(E[:, None] - E[None], axis=2)
        np.testing.assert_allclose(distances[~np.eye(classes, dtype=bool)], math.sqrt(2))


# --- without noise ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("noise", ["shaped", "isotropic"])
def test_without_noise_it_is_the_plain_fit_of_all_votes(classes: int, noise: str) -> None:
    parties, X = crowd(classes=classes), public_rows()
    model = Ensemble(epsilon=math.inf, public=X, noise=noise, global_l2=0.5).fit(parties)  # type: ignore[arg-type]
    tables = [parties.guard(name).table for name in parties.names]
    votes = [
        np.argmax(local_scores(table, X, classes), axis=1) for table in tables
    ]  # every public row, once for each party
    y = np.concatenate(votes).astype(np.int64)
    problem = Problem(n_features=3, n_classes=classes, l2=0.5 * len(tables), intercept="feature", tolerance=1e-11)
    plain = fit(lambda: [(np.tile(X, (len(tables), 1)), y)], problem=problem)
    np.testing.assert_allclose(model.coef_, plain.coef, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, plain.intercept, atol=1e-8)
    by_entity = Ensemble(epsilon=math.inf, public=X, release="minimiser", global_l2=0.5).fit(parties)
    np.testing.assert_allclose(by_entity.coef_, plain.coef, atol=1e-8)


def local_scores(table: Table, X: np.ndarray, classes: int) -> np.ndarray:
    solution = fit(table.blocks, problem=Problem(n_features=3, n_classes=classes, l2=1.0, intercept="feature"))
    scores = X @ solution.coef.T + solution.intercept
    return np.column_stack([np.zeros(len(X)), scores]) if classes == 2 else scores


def test_majority_votes_without_noise_are_scikit_learns_fit_of_them() -> None:
    parties, X = crowd(), public_rows()
    model = Ensemble(epsilon=math.inf, public=X, release="minimiser", labels="vote", global_l2=0.5).fit(parties)
    votes = np.array([np.argmax(local_scores(parties.guard(p).table, X, 2), axis=1) for p in parties.names])
    majority = (votes.mean(axis=0) >= 0.5).astype(int)
    plain = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(lengthened(X, 1.0), majority)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), plain.coef_[0], atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_averaging_without_noise_is_the_mean_of_the_local_fits(classes: int) -> None:
    parties = crowd(classes=classes)
    model = Ensemble(epsilon=math.inf, release="minimiser", labels="avg").fit(parties)  # needs no public rows
    problem = Problem(n_features=3, n_classes=classes, l2=1.0, intercept="feature")
    fits = [fit(parties.guard(name).table.blocks, problem=problem) for name in parties.names]
    np.testing.assert_allclose(model.coef_, np.mean([f.coef for f in fits], axis=0), atol=1e-8)


# --- noise -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["shaped", "isotropic"])
def test_pure_noise_is_spherical_laplace_of_the_claimed_scale(noise: str) -> None:
    parties, X = crowd(rng=Rng.seeded(4)), public_rows(12)
    quiet = Ensemble(epsilon=math.inf, public=X, noise=noise)  # type: ignore[arg-type]
    loud = Ensemble(epsilon=0.7, public=X, noise=noise, colluders=0, global_l2=1.0)  # type: ignore[arg-type]
    centre = opened(parties, quiet)
    draws = np.array([opened(parties, loud) - centre for _ in range(150)])
    radii = np.linalg.norm(draws, axis=1)
    scale = loud.plan(parties).sensitivity / 0.7
    assert stats.kstest(radii, stats.gamma(4, scale=scale * 128 / 127).cdf).pvalue > 1e-3
    assert stats.kstest(draws[:, 0] / radii, stats.beta(1.5, 1.5, loc=-1, scale=2).cdf).pvalue > 1e-3


def test_gaussian_noise_has_the_claimed_spread() -> None:
    parties, X = crowd(rng=Rng.seeded(5)), public_rows(12)
    centre = opened(parties, Ensemble(epsilon=math.inf, public=X))
    loud = Ensemble(epsilon=0.7, delta=1e-5, public=X, colluders=0, global_l2=1.0)
    draws = np.array([opened(parties, loud) - centre for _ in range(200)])
    assert stats.kstest(draws.ravel(), stats.norm(0, loud.plan(parties).grid.noise_std).cdf).pvalue > 1e-3


def test_more_parties_mean_less_noise_and_colluders_more() -> None:
    X = public_rows()
    few, many = (Ensemble(public=X).plan(crowd(n)).sensitivity for n in (5, 20))
    assert few == pytest.approx(4 * many, rel=1e-6)
    quiet, loud = (Ensemble(public=X, colluders=t).plan(crowd()).grid.noise_std for t in (0, 4))
    assert loud == pytest.approx(quiet * math.sqrt(5), rel=0.01)
    with pytest.raises(SettingError, match="colluders = 5 among 5 parties"):
        Ensemble(public=X, colluders=5).fit(crowd())


KINDS = [
    {}, {"delta": 1e-6}, {"epsilon": math.inf}, {"release": "minimiser"}, {"calibration": "paper"},
    {"release": "minimiser", "labels": "vote"}, {"release": "minimiser", "labels": "avg"},
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_event_is_what_the_ledgers_were_charged(kind: dict[str, Any]) -> None:
    parties = crowd()
    model = Ensemble(public=public_rows(), **kind).fit(parties)
    for name in parties.names:
        (given_,) = model_events(parties, name)
        assert given_ == model.event()
    assert model.guarantee_.unit == "party"
    assert model.guarantee_.is_private == (kind in KINDS[:2])


def model_events(parties: Federation, name: str) -> Iterator[object]:
    event = parties.guard(name).ledger.event(name)
    assert isinstance(event, Composed)
    return (repeated.event for repeated in event.events)  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", KINDS[2:])
def test_what_is_not_private_needs_a_policy_that_names_it(kind: dict[str, Any]) -> None:
    with pytest.raises(PolicyRefusal, match="no epsilon bounds"):
        Ensemble(public=public_rows(), **kind).fit(crowd(policy=Policy()))


# --- what a party checks ---------------------------------------------------------------------------------------------

LIES = [
    ("sensitivity", lambda plan: plan.sensitivity / 2), ("basis", lambda plan: 2 * plan.basis),
    ("basis", lambda plan: plan.basis[:-1]), ("colluders", lambda plan: 5), ("constant", lambda plan: 3.0),
    ("n_parties", lambda plan: 1), ("n_classes", lambda plan: 3), ("basis", lambda plan: math.nan * plan.basis),
]  # fmt: skip


@pytest.mark.parametrize(("field", "lie"), LIES)
def test_a_plan_that_is_not_true_is_refused(field: str, lie: Any) -> None:
    """A coordinator that understates what a party can move would have the noise sized for less."""
    parties = crowd()
    honest = Ensemble(public=public_rows()).plan(parties)
    with pytest.raises(PolicyRefusal, match=r"does not fit its public rows|do not fit this party's table"):
        parties.begin("ensemble").sum(vote_statistic, **asdict(honest) | {field: lie(honest)})
    assert parties.guard("party1").ledger.n_releases("party1") == 0


def test_a_sum_over_fewer_parties_than_the_plan_states_is_not_opened() -> None:
    parties = crowd()
    honest = Ensemble(public=public_rows()).plan(parties)
    crowded = replace(honest, n_parties=500, quorum=None, sensitivity=honest.sensitivity / 100 * (1 + 1e-9))
    with pytest.raises(CenterError, match="lets a sum over 500 parties be opened; 5 are in it"):
        parties.begin("ensemble").sum(vote_statistic, **asdict(crowded))


@pytest.mark.parametrize(("changes", "message"), [({"n_rows": 7}, "shape"), ({"n_rows": 0}, "cannot be sent")])
def test_rows_that_are_not_what_the_question_says_are_refused(changes: dict[str, Any], message: str) -> None:
    parties = crowd()
    plan = asdict(Ensemble(public=public_rows()).plan(parties))
    with pytest.raises(WireError, match=message):
        parties.begin("ensemble").sum(vote_statistic, **plan | changes)
    endless = {"rows": packed(np.full((1, 3), math.nan)), "n_rows": 1}
    with pytest.raises(WireError, match="not finite"):
        parties.begin("ensemble").sum(vote_statistic, **plan | endless)
    with pytest.raises(WireError, match="shape"):
        parties.begin("ensemble").sum(vote_statistic, **plan | {"rows": b"no rows"})
    with pytest.raises(SettingError, match="local = 'oracle' is no registered classifier"):
        parties.begin("ensemble").sum(vote_statistic, **plan | {"local": ["oracle"]})


def test_a_crowd_is_served_as_each_party_by_itself() -> None:
    for classes in (2, 3):
        parties = crowd(classes=classes)
        plan = Ensemble(epsilon=math.inf, public=public_rows(), local=["tree", "logistic"]).plan(parties)
        tables = [parties.guard(name).table for name in parties.names]
        together = vote_statistics(tables, rngs=[Rng.seeded(i) for i in range(5)], **asdict(plan))
        apart = [vote_statistic(table, rng=Rng.seeded(i), **asdict(plan)) for i, table in enumerate(tables)]
        for many, single in zip(together, apart, strict=True):
            np.testing.assert_allclose(many.addend * plan.grid.step, single.addend * plan.grid.step, atol=1e-12)  # type: ignore[union-attr]
            assert many.event == single.event
        ballot = {key: asdict(plan)[key] for key in ("n_rows", "n_features", "n_classes", "rows", "local", "l2")}
        disclosed = many_votes(tables, rngs=[Rng.seeded(i) for i in range(5)], **ballot)
        for i, table in enumerate(tables):
            one = party_votes(table, rng=Rng.seeded(i), **ballot)
            np.testing.assert_array_equal(one.value["votes"], disclosed[i].value["votes"])  # type: ignore[union-attr, arg-type]


# --- the global classifier -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_the_regularisation_guards_against_noise_of_its_size(classes: int) -> None:
    X = public_rows(200)
    design = LabelDesign(Z=lengthened(X, 1.0), n_classes=classes, shaped=True)
    chance = np.random.default_rng(0)
    A = np.eye(classes)[np.argmax(X @ chance.normal(size=(3, classes)) * 5, axis=1)]
    V = (design.rows / design.scale).T @ A @ simplex(classes) / len(X)
    noise = 0.003 * chance.normal(size=V.shape)
    solution, l2_mean = fit_statistic(design, V + noise, 0.003, None)
    assert 1 / 200 < l2_mean < 0.1 * np.mean(design.rows**2)
    moved = design.statistic(V + noise) - design.statistic(V)  # the noise in T itself
    assert np.linalg.norm(moved) < l2_mean * np.linalg.norm(solution.theta) * (math.sqrt(2) if classes == 2 else 1)
    assert fit_statistic(design, V, 0.0, None)[1] == 1 / 200
    assert fit_statistic(design, V, 1e-9, None)[1] == pytest.approx(1 / 200, rel=0.2)
    assert fit_statistic(design, V + noise, 0.003, 0.25)[1] == 0.25
    assert fit_statistic(design, V + noise, 30.0, None)[1] == pytest.approx(0.1 * np.mean(design.rows**2))


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_a_crowd_learns_nearly_as_well_with_privacy_of_each_party(classes: int) -> None:
    X, y = make_data(12_000, 4, classes, seed=3)
    parties = Federation.split(X[:6000], y[:6000], n_parties=500, norm_bound=1.0, policy=OPEN, rng=Rng.seeded(1))
    public = X[6000:6500]
    score: dict[Any, float] = {}
    for kind in ("shaped", "isotropic", "plain", "printed"):
        settings_: dict[str, Any] = {"noise": kind} if kind in ("shaped", "isotropic") else {}
        settings_ |= {"plain": {"epsilon": math.inf}, "printed": {"calibration": "paper"}}.get(kind, {})
        model = Ensemble(**{"epsilon": 1.0, "public": public} | settings_).fit(parties)
        score[kind] = model.score(X[6500:], y[6500:])
    assert score["shaped"] > score["plain"] - 0.02
    assert score["isotropic"] > score["plain"] - 0.1
    assert score["printed"] < score["shaped"]


# --- public rows -----------------------------------------------------------------------------------------------------


def test_public_rows_come_in_many_forms(tmp_path: Path) -> None:
    parties, X = crowd(), public_rows(8)
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    frame.to_csv(tmp_path / "public.csv", index=False)
    table = Table.from_arrays(X, np.zeros(8, dtype=int), parties.schema)
    forms = [X.tolist(), frame, table, tmp_path / "public.csv", str(tmp_path / "public.csv")]
    for form in forms:
        np.testing.assert_allclose(Ensemble(public=form).plan(parties).X, X, atol=1e-15)
    long = Ensemble(public=10 * X).plan(parties).X  # clipped like every record
    assert np.linalg.norm(long, axis=1).max() <= 1 + 1e-12


BAD_PUBLIC = [
    (None, "public is missing"), (np.zeros((0, 3)), "public has 0 rows"), (np.zeros((4, 2)), "3 encoded columns"),
    (np.full((2, 3), np.nan), "finite values only"), ([["a", "b", "c"]], "no matrix of numbers"),
    ([1.0, 2.0, 3.0], "3 encoded columns"),
]  # fmt: skip


@pytest.mark.parametrize(("public", "message"), BAD_PUBLIC)
def test_public_rows_that_cannot_be_used_are_named(public: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Ensemble(public=public).fit(crowd())


def test_public_files_and_frames_that_do_not_fit_are_named() -> None:
    with pytest.raises(DataError, match=r"nowhere\.csv is not a file"):
        Ensemble(public="nowhere.csv").fit(crowd())
    with pytest.raises(DataError, match="x1"):
        Ensemble(public=pd.DataFrame({"x0": [1.0], "x2": [1.0]})).fit(crowd())
    other = Schema.of_arrays(3, ["0", "1"], feature_names=["a", "b", "c"])
    with pytest.raises(SettingError, match="table of another schema"):
        Ensemble(public=Table.from_arrays(np.ones((1, 3)), np.array([0]), other)).fit(crowd())
    schema = Schema.of_arrays(3, ["0", "1"])
    zeros = {"a": Table.from_arrays(np.zeros((1, 3)), np.array([0]), schema)}
    with pytest.raises(SettingError, match="nothing but zeros"):
        Ensemble(public=np.zeros((2, 3)), fit_intercept=False).fit(Federation.from_tables(zeros))


def test_no_bound_on_private_rows_is_needed_for_votes() -> None:
    model = Ensemble(epsilon=5.0, public=public_rows()).fit(crowd(norm_bound=None))
    assert model.guarantee_.epsilon == 5.0
    with pytest.raises(SettingError, match="needs a bound on the norm of a row"):
        Ensemble(release="minimiser", labels="avg").fit(crowd(norm_bound=None))
    with pytest.raises(SettingError, match="needs a bound on the norm of a row"):
        Ensemble(release="minimiser", public=public_rows(), protect_auxiliary=True).fit(crowd(norm_bound=None))


def test_a_models_file_keeps_paths_and_lists_only(tmp_path: Path) -> None:
    X = public_rows()
    kept = Ensemble(public=X.tolist()).fit(crowd())
    assert kept.facts_.settings["public"] == X.tolist()
    assert Ensemble(public=X).fit(crowd()).facts_.settings["public"] is None
    pd.DataFrame(X, columns=["x0", "x1", "x2"]).to_csv(tmp_path / "public.csv", index=False)
    by_path = Ensemble(public=tmp_path / "public.csv").fit(crowd())
    assert by_path.facts_.settings["public"] == str(tmp_path / "public.csv")


BAD_SETTINGS = [
    {"labels": "hard"}, {"release": "nothing"}, {"noise": "none"}, {"calibration": "loud"}, {"l2": 0.0}, {"l2": "1"},
    {"global_l2": -1.0}, {"global_l2": math.inf}, {"delta": 0.0}, {"local": "oracle"}, {"local": []},
    {"labels": "vote"}, {"labels": "avg"}, {"protect_auxiliary": True}, {"epsilon": 0},
]  # fmt: skip


@pytest.mark.parametrize("setting", BAD_SETTINGS)
def test_settings_that_cannot_be_honoured_are_named(setting: dict[str, Any]) -> None:
    (name,) = setting
    with pytest.raises(SettingError, match=f"{name} = "):
        Ensemble(public=public_rows(), **setting).fit(crowd())
    with pytest.raises(SettingError, match="'avg' uses none"):
        Ensemble(release="minimiser", labels="avg", protect_auxiliary=True).fit(crowd())


# --- audit -----------------------------------------------------------------------------------------------------------


def audit(epsilon: float, delta: float | None, runs: int) -> float:
    """A lower bound, with confidence 99.9 %, on the epsilon between worst neighbours (Clopper-Pearson)."""
    pair = Ensemble.worst_neighbours()[0]
    model = Ensemble(epsilon=epsilon, delta=delta, **dict(pair.settings))  # type: ignore[arg-type]
    outcomes = []
    for seed, tables in enumerate((pair.first, pair.second)):
        parties = Federation.from_tables(tables, rng=Rng.seeded(seed))
        outcomes.append(np.array([opened(parties, model)[0] for _ in range(runs)]))
    low, high = sorted(outcomes, key=np.median)
    half = runs // 2
    threshold = np.median(np.concatenate([low[:half], high[:half]]))  # chosen on one half, tested on the other
    hits, misses = int(np.sum(high[half:] > threshold)), int(np.sum(low[half:] > threshold))
    n = runs - half
    return float(math.log(stats.beta.ppf(0.0005, hits, n - hits + 1) / stats.beta.ppf(0.9995, misses + 1, n - misses)))


@pytest.mark.slow
def test_an_audit_of_the_worst_neighbours_finds_no_more_than_epsilon() -> None:
    assert 0.2 < audit(1.0, None, 1000) <= 1.0
    assert audit(1.0, 1e-5, 300) <= 1.0
    assert audit(4.0, None, 300) > 1.0  # noise for 4 that claims 1 would be noticed
