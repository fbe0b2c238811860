"""Averaging through a curator: the noise that is claimed, made by all, sized by the smallest, and paid for first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

pytest.importorskip("phe")
pytest.importorskip("gmpy2")

from tacit import Averaging, Federation, Policy, Rng, Schema, Table
from tacit.errors import NotAgreed, PolicyRefusal, SettingError
from tacit.federation.group import SumGroup
from tacit.methods.cohort import Cohort, Promise
from tacit.methods.curator.lattice import (
    PrintedLattice,
    QuietLattice,
    ScaledLattice,
    event_for,
    for_smallest,
    lattice_for,
)
from tacit.methods.curator.method import CuratorAveraging
from tacit.methods.curator.statistic import _MEMBERS, Plan, SessionLetters, join, letters
from tacit.models.solver import fit
from tacit.privacy.accounting import epsilon_of
from tacit.privacy.event import Composed, NotPrivate, Pure
from tacit.report.facts import HEADINGS
from tacit.report.heading import parse_headings
from tacit.secure import curator as protocol
from tacit.secure.paillier import key as paillier
from tacit.studies.audit import audit

from ..conftest import assert_drawn_from, derived, make_data

ALLOWED = Policy(not_private=["averaging", "curator-averaging"])
SMALL = {"key_bits": 512}


@pytest.fixture(autouse=True, scope="module")
def short_keys_are_allowed() -> Iterator[None]:
    """What most tests here look at is the noise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paillier, "LEAST_BITS", 512)
        yield


def make(n: int = 300, d: int = 4, classes: int = 2, **settings: Any) -> Federation:
    X, y = make_data(n, d, classes)
    return Federation.split(X, y, **({"weights": [3, 2, 1], "norm_bound": 1.0, "policy": ALLOWED} | settings))


def planned(parties: Federation, model: CuratorAveraging) -> Plan:
    group = SumGroup.of(parties.sizes, quorum=parties.n_parties, told="total")
    plan: Plan = model.terms(parties.schema, group).plan  # type: ignore[assignment]
    return plan


def average(parties: Federation, model: CuratorAveraging) -> np.ndarray:
    plan = planned(parties, model)
    fits = [
        fit(parties.guard(name).table.blocks, problem=plan.problem(size)).theta for name, size in parties.sizes.items()
    ]
    return np.mean(fits, axis=0)


def noise_of(parties: Federation, model: CuratorAveraging, runs: int) -> np.ndarray:
    centre = average(parties, model)
    noise = []
    for _ in range(runs):
        model.fit(parties)
        noise.append(np.append(model.coef_, model.intercept_) - centre)
    return np.array(noise)


# --- the result and its noise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("n_parties", [2, 3, 5, 10])
def test_without_noise_it_is_the_average_of_the_plain_fits(n_parties: int, classes: int) -> None:
    parties = make(n=1500, classes=classes, weights=list(range(1, n_parties + 1)))
    model = CuratorAveraging(epsilon=math.inf, l2=3.0, **SMALL).fit(parties)
    expected = np.atleast_2d(average(parties, model))
    np.testing.assert_allclose(np.column_stack([model.coef_, model.intercept_]), expected, atol=1e-8)
    plain = Averaging(epsilon=math.inf, l2=3.0, weights="equal").fit(parties)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-8)


@pytest.mark.parametrize("n_parties", [2, 3, 5, pytest.param(10, marks=pytest.mark.slow)])
def test_pure_noise_is_spherical_laplace_for_the_smallest_party(n_parties: int) -> None:
    """With nobody colluding, the radius is Gamma(d, S/epsilon_1), S the sensitivity for the true smallest size."""
    parties = make(n=200, d=2, weights=list(range(2, n_parties + 2)), rng=Rng.seeded(11))
    model = CuratorAveraging(epsilon=0.8, delta=0, l2=5.0, colluders=0, **SMALL)
    smallest = min(parties.sizes.values())
    scale = for_smallest(planned(parties, model), smallest).sensitivity / 0.8 * 128 / 127
    noise = noise_of(parties, model, 40 if n_parties < 5 else 20)
    radii = np.linalg.norm(noise, axis=1)
    assert_drawn_from(stats.gamma(3, scale=scale), radii)
    assert_drawn_from(stats.uniform(-1, 2), noise[:, 0] / radii)


def test_gaussian_noise_has_the_claimed_spread() -> None:
    parties = make(d=5, rng=Rng.seeded(12))
    model = CuratorAveraging(epsilon=0.8, delta=1e-5, l2=5.0, colluders=0, **SMALL)
    event = model.event()
    assert isinstance(event, Composed)
    multiplier = event.events[0].noise_multiplier  # type: ignore[union-attr]
    sensitivity = for_smallest(planned(parties, model), min(parties.sizes.values())).sensitivity
    noise = noise_of(parties, model, 25)
    assert_drawn_from(stats.norm(0, multiplier * sensitivity), noise)


def test_paper_noise_is_iid_laplace_of_the_printed_scale() -> None:
    parties = make(d=5, rng=Rng.seeded(13))
    n, smallest = sum(parties.sizes.values()), min(parties.sizes.values())
    model = CuratorAveraging(epsilon=0.5, l2=6.0, calibration="paper", **SMALL)
    noise = noise_of(parties, model, 25)
    scale = 2 / (smallest * 0.5 * (6.0 / n / 2))  # 2 / (n_min epsilon lambda), lambda = l2 / (2 n)
    assert_drawn_from(stats.laplace(0, scale), noise)


@pytest.mark.parametrize("order", [[1, 5, 9], [9, 5, 1], [5, 1, 9]])
def test_the_noise_follows_the_smallest_party_wherever_it_stands(order: list[int]) -> None:
    parties = make(weights=order, rng=Rng.seeded(5))
    model = CuratorAveraging(epsilon=1.0, delta=0, l2=5.0, colluders=0, **SMALL)
    lattice = planned(parties, model).lattice
    assert isinstance(lattice, ScaledLattice)
    noise = noise_of(parties, model, 16)
    found = math.sqrt(float(np.mean(noise**2)))
    assert found == pytest.approx(lattice.noise_std(20), rel=0.35)
    assert lattice.noise_std(20) > 3 * lattice.noise_std(100)


def test_colluders_raise_the_noise_so_that_the_rest_suffices() -> None:
    parties = make()
    quiet, loud = (
        planned(parties, CuratorAveraging(l2=5.0, delta=0, colluders=t)).lattice.noise_std(50)  # type: ignore[attr-defined]
        for t in (0, 2)
    )
    assert loud == pytest.approx(quiet * math.sqrt(3), rel=0.01)
    assert planned(parties, CuratorAveraging()).cohort.colluders == 1
    with pytest.raises(SettingError, match="colluders = 3 among 3 parties leaves nobody honest"):
        CuratorAveraging(colluders=3, **SMALL).fit(parties)


def test_in_paper_mode_the_smallest_party_knows_the_noise_and_in_sound_mode_nobody_does() -> None:
    """The leak that the document overlooks: what one party drew is all of the noise, or only a share of it."""
    drawn: dict[int, list[int]] = {}
    for calibration in ("paper", "sound"):
        parties = make(rng=Rng.seeded(21))
        model = CuratorAveraging(epsilon=1.0, l2=5.0, calibration=calibration, **SMALL)  # type: ignore[arg-type]
        lattice = planned(parties, model).lattice
        really = type(lattice).noise
        with pytest.MonkeyPatch.context() as patch:

            def spy(self: Any, n_records: int, *, rng: Rng, really: Any = really) -> list[int]:
                drawn[n_records] = really(self, n_records, rng=rng)
                return drawn[n_records]

            patch.setattr(type(lattice), "noise", spy)
            model.fit(parties)
        known = np.array(drawn[50], dtype=float) * lattice.step * lattice.factor(50)
        left = np.append(model.coef_, model.intercept_) - known - average(parties, model)
        if calibration == "paper":
            assert np.max(np.abs(left)) < 1e-6
        else:
            assert np.linalg.norm(left) > 0.05 * np.linalg.norm(known)


# --- the lattice -----------------------------------------------------------------------------------------------------


def plan(*, n_records: int = 6000, least: int = 2, l2_mean: float = 0.05, **promised: Any) -> Plan:
    group = SumGroup(names=("a", "b", "c"), n_records=n_records, quorum=3)
    schema = Schema.of_arrays(2, [0, 1], norm_bound=1.0)
    cohort = Cohort.of(schema, group, colluders=1, constant=1.0)
    promise = Promise(method="CuratorAveraging", **{"epsilon": 1.0, "delta": 0} | promised)
    cohort = replace(cohort, least_records=least)
    return Plan(cohort=cohort, promise=promise, l2_mean=l2_mean, weights="equal", key_bits=2048)


@given(
    epsilon=st.floats(0.01, 10),
    delta=st.sampled_from([0.0, 1e-6]),
    l2_mean=st.floats(1e-3, 2),
    size=st.integers(2, 6000),
)
@settings(max_examples=60, deadline=None)
def test_factors_give_every_size_the_noise_it_needs_and_hardly_more(
    epsilon: float, delta: float, l2_mean: float, size: int
) -> None:
    own = plan(epsilon=epsilon, delta=delta, l2_mean=l2_mean)
    lattice = lattice_for(own)
    assert isinstance(lattice, ScaledLattice)
    event: Any = event_for(own.promise)
    multiplier = 128 / 127 / epsilon if delta == 0 else event.events[0].noise_multiplier
    needed = for_smallest(own, size).sensitivity * multiplier
    assert needed <= lattice.noise_scale(size) <= needed * (1 + 2.0**-18)
    assert lattice.factor(size) <= lattice.factor_bound
    assert lattice.noise_std(2000) <= 1.2 * lattice._share_std(2000)


record = st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.integers(0, 1))


@given(records=st.lists(record, min_size=2, max_size=8), other=record, l2_mean=st.floats(1e-3, 2.0))
@settings(max_examples=100, deadline=None)
def test_replacing_a_record_moves_a_partys_addend_by_no_more_than_its_own_sensitivity(
    records: list[tuple[float, float, int]], other: tuple[float, float, int], l2_mean: float
) -> None:
    n = len(records)
    own = plan(l2_mean=l2_mean, least=n, n_records=n + 20)
    schema = Schema.of_arrays(2, [0, 1], norm_bound=1.0)
    addends = []
    for first in (records[0], other):
        rows = [first, *records[1:]]
        table = Table.from_arrays(np.array([r[:2] for r in rows]), np.array([r[2] for r in rows]), schema)
        addends.append(own.weight(n) * fit(table.blocks, problem=own.problem(n)).theta)
    assert np.linalg.norm(addends[0] - addends[1]) <= own.sensitivity


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_lattice_is_as_near_to_the_ideal_as_its_proof_says(delta: float | None) -> None:
    """What a party brings, less its dither and noise, is its vector rounded; rounding errors are what b counts."""
    own = plan(delta=delta)
    lattice = lattice_for(own)
    assert isinstance(lattice, ScaledLattice)
    theta = np.array([0.3, -0.7, 0.123456789])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScaledLattice, "dither", lambda self, *, rng: [0] * 3)
        brought = lattice.contribution(theta, 50, rng=Rng.seeded(1))
    exact = theta / 3 / lattice.step
    assert max(abs(float(a) - e) for a, e in zip(brought.addend, exact, strict=True)) <= 0.5 + 1e-9 * max(abs(exact))
    dithered = lattice.contribution(theta, 50, rng=Rng.seeded(1)).addend
    assert min(abs(a - b) for a, b in zip(dithered, brought.addend, strict=True)) > lattice.factor_bound
    assert brought.factor == lattice.factor(50)
    assert brought.size == 50
    # b covers, for each party, half a step of the model and at least half a unit of every noise number.
    assert lattice._distance >= 3 * (0.5 + lattice.factor_bound / 2)


def test_the_dither_hides_where_a_vector_lies_between_multiples() -> None:
    """(T + U) mod q is uniform whatever T is; the quotient has the discrete Laplace's scale."""
    lattice = lattice_for(plan())
    assert isinstance(lattice, ScaledLattice)
    rng = Rng.seeded(3)
    drawn = [x for _ in range(700) for x in lattice.dither(rng=rng)]
    q = 1 << lattice._coarse_bits
    for offset in (0, q // 3):
        low = np.array([(x + offset) % q for x in drawn], dtype=float) / q
        assert stats.kstest(low, "uniform").pvalue > 1e-4
    spread = float(np.mean([abs(x) for x in drawn])) / q
    assert spread == pytest.approx(lattice._dither_scale, rel=0.1)
    needed = 3 * (2 * lattice._distance / q + 1) / (1 / 128)  # d (2 b / q + 1) / epsilon_3
    assert lattice._dither_scale >= needed


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_noise_stays_within_its_bounds_and_the_terms_hold_it(delta: float | None) -> None:
    lattice = lattice_for(plan(delta=delta))
    terms = lattice.terms("run", 2048)
    brought = lattice.contribution(np.array([9.0, math.inf, -9.0]), 2, rng=Rng.seeded(2))
    brought.check(terms)
    largest = 3 * (math.ceil(lattice.value_bound / lattice.step) + terms.product_bound + lattice.dither_bound)
    assert 2 * largest < 1 << terms.share_bits


def test_the_kind_of_lattice_follows_the_plan() -> None:
    assert isinstance(lattice_for(plan(epsilon=math.inf)), QuietLattice)
    assert isinstance(lattice_for(plan(epsilon=math.inf, calibration="paper")), QuietLattice)
    assert isinstance(lattice_for(plan(calibration="paper")), PrintedLattice)
    with pytest.raises(SettingError, match="no lattice is fine enough for epsilon = 1e-06"):
        lattice_for(plan(epsilon=1e-6, n_records=3 * 10**9, least=1, l2_mean=2.0))


# --- what it costs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings_",
    [
        {"delta": 0},
        {},
        {"delta": 1e-6},
        {"calibration": "paper"},
        {"epsilon": math.inf},
        {"epsilon": 0.1, "delta": 0.01},
    ],
)
def test_the_event_is_what_the_ledgers_were_charged(settings_: dict[str, Any]) -> None:
    parties = make()
    model = CuratorAveraging(**SMALL, **settings_).fit(parties)
    for name in parties.names:
        charged = parties.guard(name).ledger.epsilon(name, delta=1e-6)
        assert charged == pytest.approx(epsilon_of(model.event(), 1e-6), rel=1e-9)
    assert model.guarantee_ == model.guarantee


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (1.0, None), (1.0, 1e-6), (0.1, 1e-9), (8.0, 1e-3)])
def test_the_promise_is_what_was_asked_for(epsilon: float, delta: float | None) -> None:
    guarantee = CuratorAveraging(epsilon=epsilon, delta=delta).guarantee
    assert guarantee.epsilon == epsilon
    assert guarantee.delta == (1e-6 if delta is None else delta)


def test_the_run_is_paid_for_before_anything_else_leaves() -> None:
    """The first answer carries the whole cost; a run that breaks off has been paid for."""
    parties = make()
    model = CuratorAveraging(delta=0, **SMALL)
    channel = parties.begin(model)
    channel.ask_each(join, dict.fromkeys(parties.names))
    for name in parties.names:
        assert channel.traffic.given[name].events == [Pure(epsilon=1.0)]
    model.fit(parties)
    assert parties.guard("party1").ledger.epsilon("party1", delta=1e-6) == pytest.approx(2.0)


def test_later_answers_cost_nothing_more_and_the_party_forgets_the_run() -> None:
    parties = make()
    model = CuratorAveraging(**SMALL)
    kept = []
    really = type(_MEMBERS).close

    def spy(self: Any, table: Table, session: str) -> None:
        kept.append(session)
        really(self, table, session)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(_MEMBERS), "close", spy)
        model.fit(parties)
    assert len(kept) == 3
    assert len(set(kept)) == 1
    with pytest.raises(NotAgreed, match="the party was restarted, or the run is over; start anew"):
        parties.begin(model).ask(letters, SessionLetters(message=b""), parties=["party1"])
    assert model.n_rounds_ == 13
    assert all(facts.epsilon == 1.0 for facts in model.facts_.parties)


def test_what_is_not_private_is_refused_by_the_default_policy() -> None:
    for settings_ in ({"calibration": "paper"}, {"epsilon": math.inf}):
        parties = make(policy=Policy())
        with pytest.raises(PolicyRefusal, match="no epsilon bounds"):
            CuratorAveraging(**SMALL, **settings_).fit(parties)  # type: ignore[arg-type]
        assert all(parties.guard(name).ledger.n_releases(name) == 0 for name in parties.names)
    assert CuratorAveraging(**SMALL).fit(make()).facts_.is_private


def test_a_promise_that_counts_on_the_curators_word_is_refused_by_the_default_policy() -> None:
    parties = make(policy=Policy())
    with pytest.raises(PolicyRefusal, match=r"if the curator, whose part the coordinator plays, lies"):
        CuratorAveraging(**SMALL).fit(parties)
    assert all(parties.guard(name).ledger.n_releases(name) == 0 for name in parties.names)


def test_a_printed_event_says_why() -> None:
    assert CuratorAveraging(calibration="paper").event() == NotPrivate(why="CuratorAveraging as the document prints it")
    assert isinstance(CuratorAveraging(epsilon=math.inf).event(), NotPrivate)
    assert CuratorAveraging(epsilon=2.0, delta=0).event() == Pure(epsilon=2.0)
    assert isinstance(CuratorAveraging(epsilon=2.0).event(), Composed)


@pytest.mark.parametrize("delta", [0.0, None, 1e-5])
def test_half_the_noise_is_half_the_noise(delta: float | None) -> None:
    parties = make()
    model = CuratorAveraging(epsilon=1.0, delta=delta, l2=5.0)
    whole, half = (planned(parties, m).lattice.noise_scale(50) for m in (model, model.at_noise(0.5)))  # type: ignore[attr-defined]
    assert half == pytest.approx(whole / 2, rel=1e-4)


# --- lies and bad input ----------------------------------------------------------------------------------------------


def test_a_party_derives_the_plan_of_the_coordinator() -> None:
    for settings_ in ({}, {"delta": 0, "l2": 2.0}, {"calibration": "paper"}):
        model = CuratorAveraging(**SMALL, **settings_)  # type: ignore[arg-type]
        channel = make().begin(model)
        terms = derived(model, channel)
        assert terms.plan == channel.plan
        assert terms.course == model.course(channel.plan)
        assert channel._start.group.sizes == ()


def test_a_run_keeps_to_its_course() -> None:
    model = CuratorAveraging(**SMALL)
    assert not model.resumes
    channel = make().begin(model)
    channel.ask(join, parties=["party1"])
    with pytest.raises(NotAgreed, match="'curator-averaging/join' is asked 1 times in a run"):
        channel.ask(join, parties=["party1"])
    channel._turns["curator-averaging/letters"] = 12  # 8 + 2 ceil(log2 3)
    with pytest.raises(NotAgreed, match="'curator-averaging/letters' is asked 12 times in a run"):
        channel.ask(letters, SessionLetters(message=b""), parties=["party1"])


def test_after_letters_nobody_joins() -> None:
    parties = make()
    model = CuratorAveraging(**SMALL).fit(parties)
    run = parties.guard("party1").ledger.database.execute("SELECT run FROM run").fetchone()[0]
    parties._run = run
    channel = parties.begin(model)
    channel._turns[join.name] = 1  # another question than the one that was answered
    with pytest.raises(NotAgreed, match="'curator-averaging/join' comes before 'curator-averaging/letters'"):
        channel.ask(join, parties=["party1"])


def test_two_runs_of_one_party_have_sessions_of_their_own() -> None:
    """A session has the run's name, and the party's place is that of its name: nothing of it is the coordinator's."""
    parties = make()
    model = CuratorAveraging(**SMALL)
    runs = [parties.begin(model) for _ in range(2)]
    for channel in runs:
        channel.ask(join, parties=["party1"])
    table = parties.guard("party1").table
    members = [_MEMBERS.get(table, channel.run) for channel in runs]
    assert [member.terms.session for member in members] == [channel.run for channel in runs]
    place = f"party{parties.names.index('party1')}"
    assert [member.name for member in members] == [place, place]


def test_a_party_much_smaller_than_the_others_is_refused() -> None:
    X, y = make_data(3000, 2)
    groups = np.array(["tiny"] + ["large"] * 2999)
    parties = Federation.split(
        np.tile(X, (3, 1)), np.tile(y, 3), groups=np.append(groups, ["large"] * 6000), norm_bound=1.0
    )
    assert planned(parties, CuratorAveraging()).cohort.least_records == 4
    with pytest.raises(PolicyRefusal, match="do not fit this party's table"):
        CuratorAveraging(**SMALL).fit(parties)


def test_one_party_is_not_enough() -> None:
    with pytest.raises(SettingError, match="needs two parties or more"):
        CuratorAveraging(**SMALL).fit(make(weights=[1]))


def test_a_missing_bound_is_an_error_and_never_read_from_the_data() -> None:
    with pytest.raises(SettingError, match="CuratorAveraging needs a bound on the norm of a row"):
        CuratorAveraging(**SMALL).fit(make(norm_bound=None))


BAD_SETTINGS = [
    {"l2": 0.0}, {"l2": -1.0}, {"delta": -0.1}, {"delta": 1.0}, {"calibration": "loud"}, {"key_bits": 1000},
    {"key_bits": 256},
    {"key_bits": "2048"}, {"epsilon": 0.0},
]  # fmt: skip


@pytest.mark.parametrize("settings_", BAD_SETTINGS)
def test_settings_that_cannot_be_honoured_are_named(settings_: dict[str, Any]) -> None:
    (name,) = settings_
    with pytest.raises(SettingError, match=f"{name} = "):
        CuratorAveraging(**settings_).fit(make())


# --- the rest of the contract ----------------------------------------------------------------------------------------


def test_the_plan_tells_of_the_sizes_their_sum_alone() -> None:
    one, two = (planned(make(weights=w), CuratorAveraging(epsilon=1.0)) for w in ([1, 1, 1], [5, 3, 1]))
    assert one == two


def test_a_seeded_run_repeats_itself() -> None:
    one, two = (CuratorAveraging(**SMALL).fit(make(rng=Rng.seeded(3))) for _ in range(2))
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-9)


def test_keys_of_full_length() -> None:
    parties = make(weights=[2, 1])
    model = CuratorAveraging(epsilon=math.inf, l2=3.0).fit(parties)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), average(parties, model), atol=1e-8)


def test_the_method_and_the_protocol_open_with_the_eight_headings() -> None:
    assert tuple(CuratorAveraging.headings()) == HEADINGS
    assert tuple(parse_headings(protocol.__doc__ or "")) == HEADINGS


@pytest.mark.slow
def test_an_audit_would_notice_too_little_noise() -> None:
    """The noise for epsilon = 6 that claims epsilon = 1; `tests/studies` has the audit of the true noise."""
    result = audit(CuratorAveraging(epsilon=6.0, delta=0, **SMALL), runs=100, power=False, processes=0)
    assert result.epsilon > 1.0
