"""Ensemble: what one party can move, the noise that covers it, and what is left when the noise is taken away."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
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
from tacit.data.rows import auxiliary_rows
from tacit.errors import DataError, NotAgreed, PolicyRefusal, SettingError
from tacit.federation.channel import Channel
from tacit.federation.group import SumGroup
from tacit.federation.step import Step
from tacit.methods.cohort import Cohort, Promise
from tacit.methods.ensemble.classifier import party_l2
from tacit.methods.ensemble.label import LabelDesign, fit_statistic, lengthened, simplex
from tacit.methods.ensemble.method import Ensemble
from tacit.methods.ensemble.statistic import (
    Ballot,
    Opening,
    Plan,
    PublicRows,
    many_votes,
    party_model,
    party_votes,
    vote_statistic,
    vote_statistics,
)
from tacit.models.problem import Problem
from tacit.models.solver import fit
from tacit.privacy.event import Composed

from ..conftest import assert_drawn_from, derived, make_data

OPEN = Policy(not_private=["ensemble"])


def crowd(n_parties: int = 5, d: int = 3, classes: int = 2, seed: int = 0, **more: Any) -> Federation:
    X, y = make_data(12 * n_parties, d, classes, seed)
    return Federation.split(X, y, n_parties=n_parties, **{"norm_bound": 1.0, "policy": OPEN} | more)


def public_rows(n: int = 40, d: int = 3, seed: int = 9) -> np.ndarray:
    X = make_data(n, d, 2, seed)[0]
    return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))


def opening_of(X: np.ndarray, classes: int, shaped: bool, n_parties: int = 3) -> Opening:
    schema = Schema.of_arrays(X.shape[1], list(range(classes)))
    group = SumGroup.of({str(i): 5 for i in range(n_parties)}, quorum=n_parties)
    cohort = Cohort.of(schema, group, colluders=None, constant=1.0)
    promise = Promise(method="Ensemble", epsilon=1.0, delta=0.0)
    plan = Plan(cohort=cohort, promise=promise, shaped=shaped, local=("logistic",), l2=1.0)
    return plan.opening(ballot_of(X, plan))


def ballot_of(X: np.ndarray, plan: Plan) -> Ballot:
    Z = lengthened(X, plan.cohort.constant)
    return Ballot(rows=X, basis=LabelDesign(Z=Z, n_classes=plan.cohort.n_classes, shaped=plan.shaped).basis)


def begun(parties: Federation, model: Ensemble) -> tuple[Channel, Ballot, Opening]:
    """A run under way, with what it is about to ask."""
    run = parties.begin(model)
    ballot = ballot_of(auxiliary_rows(model.public, parties.schema), run.plan)
    return run, ballot, run.plan.opening(ballot)


def opened(parties: Federation, model: Ensemble) -> np.ndarray:
    """What the center opens in one run, in data units."""
    run, ballot, opening = begun(parties, model)
    return opening.grid.from_grid(run.sum(vote_statistic, ballot))


# --- sensitivity -----------------------------------------------------------------------------------------------------

small_rows = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 3)), elements=st.floats(-2, 2, width=32))


@given(X=small_rows, classes=st.integers(2, 4), shaped=st.booleans(), data=st.data())
@settings(max_examples=250, deadline=None)
def test_other_votes_move_the_addend_by_no_more_than_the_sensitivity(
    X: np.ndarray, classes: int, shaped: bool, data: st.DataObject
) -> None:
    """Votes are all that a table can change, so these are all replacements of a whole party."""
    opening = opening_of(X, classes, shaped)
    votes = data.draw(arrays(np.uint8, (2, len(X)), elements=st.integers(0, classes - 1)))
    one, other = opening.addends(votes)
    assert np.linalg.norm(one - other) <= opening.sensitivity
    assert np.abs(one).max() <= opening.grid.total.value_bound
    bound = math.sqrt(2) / 3 * np.linalg.norm(opening.D, axis=1).mean()  # the printed form, a mean of norms
    assert opening.sensitivity <= bound * (1 + 1e-5)
    if shaped:
        assert opening.sensitivity <= math.sqrt(2) / 3 * (1 + 1e-5)


@given(X=small_rows, classes=st.integers(2, 4), shaped=st.booleans(), data=st.data())
@settings(max_examples=100, deadline=None)
def test_addends_are_the_votes_statistic(X: np.ndarray, classes: int, shaped: bool, data: st.DataObject) -> None:
    opening = opening_of(X, classes, shaped)
    design = LabelDesign(Z=lengthened(X, 1.0), n_classes=classes, shaped=shaped)
    votes = data.draw(arrays(np.uint8, (3, len(X)), elements=st.integers(0, classes - 1)))
    V = opening.addends(votes).sum(axis=0).reshape(-1, classes - 1)
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
    claimed = begun(parties, model)[2].sensitivity
    assert 0.97 * claimed <= moved <= claimed


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
    l2 = party_l2(table.n_records)
    solution = fit(table.blocks, problem=Problem(n_features=3, n_classes=classes, l2=l2, intercept="feature"))
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
    loud = Ensemble(epsilon=0.7, delta=0, public=X, noise=noise, colluders=0, global_l2=1.0)  # type: ignore[arg-type]
    centre = opened(parties, quiet)
    draws = np.array([opened(parties, loud) - centre for _ in range(80)])
    radii = np.linalg.norm(draws, axis=1)
    scale = begun(parties, loud)[2].sensitivity / 0.7
    assert_drawn_from(stats.gamma(4, scale=scale * 128 / 127), radii)
    assert_drawn_from(stats.beta(1.5, 1.5, loc=-1, scale=2), draws[:, 0] / radii)


def test_gaussian_noise_has_the_claimed_spread() -> None:
    parties, X = crowd(rng=Rng.seeded(5)), public_rows(12)
    centre = opened(parties, Ensemble(epsilon=math.inf, public=X))
    loud = Ensemble(epsilon=0.7, delta=1e-5, public=X, colluders=0, global_l2=1.0)
    draws = np.array([opened(parties, loud) - centre for _ in range(75)])
    assert_drawn_from(stats.norm(0, begun(parties, loud)[2].grid.noise_std), draws)


def test_more_parties_mean_less_noise_and_colluders_more() -> None:
    X = public_rows()
    few, many = (begun(crowd(n), Ensemble(public=X))[2].sensitivity for n in (5, 20))
    assert few == pytest.approx(4 * many, rel=1e-6)
    quiet, loud = (begun(crowd(), Ensemble(public=X, colluders=t))[2].grid.noise_std for t in (0, 4))
    assert loud == pytest.approx(quiet * math.sqrt(5), rel=0.01)
    with pytest.raises(SettingError, match="colluders = 5 among 5 parties"):
        Ensemble(public=X, colluders=5).fit(crowd())


KINDS = [
    {"delta": 0}, {}, {"delta": 1e-7}, {"epsilon": math.inf}, {"release": "minimiser"}, {"calibration": "paper"},
    {"release": "minimiser", "labels": "vote"}, {"release": "minimiser", "labels": "avg", "party_records": 50},
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_event_is_what_the_ledgers_were_charged(kind: dict[str, Any]) -> None:
    parties = crowd()
    model = Ensemble(public=public_rows(), **kind).fit(parties)
    for name in parties.names:
        (given_,) = model_events(parties, name)
        assert given_ == model.event()
    assert model.guarantee_.unit == "party"
    assert model.guarantee_.is_private == (kind in KINDS[:3])


def model_events(parties: Federation, name: str) -> Iterator[object]:
    event = parties.guard(name).ledger.event(name)
    assert isinstance(event, Composed)
    return (repeated.event for repeated in event.events)  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", KINDS[3:])
def test_what_is_not_private_needs_a_policy_that_names_it(kind: dict[str, Any]) -> None:
    with pytest.raises(PolicyRefusal, match="no epsilon bounds"):
        Ensemble(public=public_rows(), **kind).fit(crowd(policy=Policy()))


# --- what a party checks ---------------------------------------------------------------------------------------------

LIES: list[tuple[str, Any, str]] = [
    ("basis", lambda ballot: 2 * ballot.basis, "basis"),
    ("basis", lambda ballot: ballot.basis / 2, "basis"),
    ("basis", lambda ballot: ballot.basis[:-1], "basis"),
    ("basis", lambda ballot: math.nan * ballot.basis, "basis"),
    ("basis", lambda ballot: np.column_stack([ballot.basis, ballot.basis]), "basis"),
    ("rows", lambda ballot: 2 * ballot.rows, "basis"),
    ("rows", lambda ballot: ballot.rows[:0], "do not fit the study's columns"),
    ("rows", lambda ballot: ballot.rows[:, :2], "do not fit the study's columns"),
    ("rows", lambda ballot: ballot.rows[0], "do not fit the study's columns"),
    ("rows", lambda ballot: math.nan * ballot.rows, "not finite"),
    ("rows", lambda ballot: 1e200 * ballot.rows, "of ordinary size"),
]


@pytest.mark.parametrize(("field", "lie", "message"), LIES)
def test_a_ballot_that_does_not_hold_up_is_refused(field: str, lie: Any, message: str) -> None:
    parties = crowd()
    run, ballot, _ = begun(parties, Ensemble(public=public_rows()))
    with pytest.raises(PolicyRefusal, match=message):
        run.sum(vote_statistic, replace(ballot, **{field: lie(ballot)}))
    assert parties.guard("party1").ledger.n_releases("party1") == 0


def test_any_basis_of_the_rows_will_do_and_the_noise_follows_it() -> None:
    """Machines compute other rotations; a party takes the one that it is told, and works out its noise itself."""
    for noise in ("shaped", "isotropic"):
        run, ballot, opening = begun(crowd(), Ensemble(public=public_rows(), noise=noise))  # type: ignore[arg-type]
        turned = replace(ballot, basis=ballot.basis @ stats.ortho_group(4, seed=1).rvs())
        spectral = math.sqrt(2) / 5 * math.sqrt(np.linalg.eigvalsh(opening.D.T @ opening.D / 40)[-1]) * (1 + 2.0**-20)
        assert run.plan.opening(turned).sensitivity <= spectral * (1 + 1e-12)
        assert run.sum(vote_statistic, turned).shape == (4,)


def test_rows_that_no_noise_suits_are_refused() -> None:
    model = Ensemble(public=public_rows(), noise="isotropic", fit_intercept=False)
    run, ballot, _ = begun(crowd(), model)
    with pytest.raises(PolicyRefusal, match="no noise suits the public rows"):
        run.sum(vote_statistic, replace(ballot, rows=np.zeros((4, 3))))


def test_votes_for_an_entity_are_of_rows_that_fit() -> None:
    parties = crowd()
    run = parties.begin(Ensemble(public=public_rows(), release="minimiser"))
    with pytest.raises(PolicyRefusal, match="do not fit the study's columns"):
        run.ask(party_votes, PublicRows(rows=np.zeros((3, 2))))
    assert parties.guard("party1").ledger.n_releases("party1") == 0


COURSES: list[tuple[dict[str, Any], Step]] = [
    ({}, vote_statistic), ({"release": "minimiser"}, party_votes), ({"calibration": "paper"}, party_votes),
    ({"release": "minimiser", "labels": "vote"}, party_votes),
    ({"release": "minimiser", "labels": "avg", "party_records": 50}, party_model),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "asked"), COURSES)
def test_a_run_asks_one_step_once_and_no_other(kind: dict[str, Any], asked: Step) -> None:
    parties = crowd()
    model = Ensemble(public=public_rows(), **kind)
    run, ballot, _ = begun(parties, model)
    assert derived(model, run).plan == run.plan
    assert [(ask.step, ask.times) for ask in derived(model, run).course] == [(asked, 1)]
    values = {vote_statistic: ballot, party_votes: PublicRows(rows=ballot.rows), party_model: None}
    for step, own in values.items():
        if step is not asked:
            with pytest.raises(NotAgreed, match=f"the study's method never asks step '{step.name}'"):
                run.ask(step, own)
    give = run.sum if asked is vote_statistic else run.ask
    give(asked, values[asked])
    with pytest.raises(NotAgreed, match="asked 1 times in a run"):
        give(asked, values[asked])
    assert parties.guard("party1").ledger.n_releases("party1") == 1


def test_a_crowd_is_served_as_each_party_by_itself() -> None:
    for classes in (2, 3):
        parties = crowd(classes=classes)
        model = Ensemble(epsilon=math.inf, public=public_rows(), local=["tree", "logistic"])
        run, ballot, opening = begun(parties, model)
        tables = [parties.guard(name).table for name in parties.names]
        together = vote_statistics(tables, run.plan, ballot, rngs=[Rng.seeded(i) for i in range(5)])
        apart = [vote_statistic(table, run.plan, ballot, rng=Rng.seeded(i)) for i, table in enumerate(tables)]
        step = opening.grid.step
        for many, single in zip(together, apart, strict=True):
            np.testing.assert_allclose(many.addend * step, single.addend * step, atol=1e-12)  # type: ignore[union-attr]
            assert many.event == single.event
        public = PublicRows(rows=ballot.rows)
        disclosed = many_votes(tables, run.plan, public, rngs=[Rng.seeded(i) for i in range(5)])
        for i, table in enumerate(tables):
            one = party_votes(table, run.plan, public, rng=Rng.seeded(i))
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
        model = Ensemble(**{"epsilon": 1.0, "delta": 0, "public": public} | settings_).fit(parties)
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
        np.testing.assert_allclose(auxiliary_rows(form, parties.schema), X, atol=1e-15)
        assert Ensemble(public=form).fit(parties).n_rounds_ == 1
    long = auxiliary_rows(10 * X, parties.schema)  # clipped like every record
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
    {"global_l2": -1.0}, {"global_l2": math.inf}, {"delta": 1.0}, {"local": "oracle"}, {"local": []},
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


def audit(epsilon: float, delta: float, runs: int) -> float:
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
    assert 0.2 < audit(1.0, 0.0, 400) <= 1.0
    assert audit(1.0, 1e-5, 150) <= 1.0
    assert audit(4.0, 0.0, 150) > 1.0  # noise for 4 that claims 1 would be noticed
