"""A study's looks in one process: when it stops, and who pays for what."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tacit import wire
from tacit.data.table import Table
from tacit.errors import NotAgreed, SettingError, StudyError
from tacit.federation.agreement import Agreement
from tacit.federation.federation import Federation
from tacit.federation.group import SumGroup
from tacit.privacy.gaussian import gaussian_epsilon
from tacit.privacy.ledger import Ledger
from tacit.rand import Rng
from tacit.studies.look_forecast import forecast_looks
from tacit.studies.looking import LookOutcome, fit_in_looks
from tacit.studies.looks import look_methods, looks_agreed, planned_looks
from tacit.studies.rehearsal import Rehearsal
from tacit.studies.study import Study

from .test_stop import PLAIN

EPSILON = 20.0


def tables_of(study: Study, n_parties: int, n_records: int = 300, rarer: float = 2.0) -> dict[str, Table]:
    chance = np.random.default_rng(5)
    made = {}
    for k in range(n_parties):
        X = np.column_stack([chance.uniform(20, 90, n_records), chance.integers(0, 2, n_records)])
        y = (chance.uniform(size=n_records) < 1 / (1 + np.exp(rarer - X @ [-0.04, 1.5]))).astype(np.int64)
        made[f"party {k}"] = Table.from_arrays(X, y, study.schema)
    return made


def study_of(goal: str = 'coefficient = "treated"\nhalf_width = 0.01') -> Study:
    text = PLAIN.replace("epsilon = 1.0", f"epsilon = {EPSILON}")
    return Study.parse(text + f"[stop]\nlooks = [500, 900, 1400]\n{goal}\n")


def test_each_party_pays_for_the_looks_that_it_was_in() -> None:
    study, ledger = study_of(), Ledger()
    result = fit_in_looks(study, tables_of(study, 6), ledger=ledger, rng=Rng.seeded(1))
    assert [list(outcome.sizes.values()) for outcome in result.outcomes] == [[300] * 2, [300] * 3, [300] * 5]
    looks, methods = planned_looks(study), look_methods(study).methods
    for name, n_looks in {"party 0": 3, "party 1": 3, "party 2": 2, "party 3": 1, "party 4": 1, "party 5": 0}.items():
        runs = ledger.database.execute("SELECT COUNT(*) FROM run WHERE party = ?", (name,)).fetchone()[0]
        assert runs == n_looks
        mu = np.sqrt(sum(method.promise.mu**2 for method in methods[3 - n_looks :])) if n_looks else 0.0
        expected = gaussian_epsilon(looks[0].delta, float(mu)) if n_looks else 0.0
        assert ledger.epsilon(name, delta=looks[0].delta, study="trial") == pytest.approx(expected, rel=2e-3)
    told = {party.name: party.epsilon for party in result.model.facts_.parties}
    assert told["party 0"] == pytest.approx(EPSILON, rel=2e-3)
    assert told["party 4"] == pytest.approx(looks[2].epsilon, rel=2e-3)
    assert result.model.guarantee_.epsilon == pytest.approx(EPSILON, rel=2e-3)
    assert result.why.startswith("It stopped at look 3 of 3, which is the last.")


def test_it_stops_at_the_first_look_that_suffices() -> None:
    study = study_of('coefficient = "treated"\nhalf_width = 3.0')
    ledger = Ledger()
    result = fit_in_looks(study, tables_of(study, 6), ledger=ledger, rng=Rng.seeded(1))
    assert [outcome.look.number for outcome in result.outcomes] == [1]
    assert result.outcomes[0].reached[0].is_enough
    assert ledger.epsilon("party 0", delta=1e-6, study="trial") < EPSILON
    assert any("what was wanted is known (treated to" in notice for notice in result.model.facts_.notices)
    assert any(
        "Up to 3 looks were planned. Each interval has confidence 98.33%" in n for n in result.model.facts_.notices
    )


def test_intervals_of_a_look_are_wider_than_those_of_a_run_with_the_same_noise() -> None:
    study = study_of()
    tables = tables_of(study, 2)
    look = look_methods(study).methods[0]
    alone = type(look)(**look.get_params())
    found = [model.fit(Federation.from_tables(tables, rng=Rng.seeded(3))).facts_ for model in (look, alone)]
    for wide, narrow in zip(*(facts.coefficients for facts in found), strict=True):
        assert wide.estimate == narrow.estimate
        assert (wide.half_width or 0) > 1.1 * (narrow.half_width or 0)
        assert wide.p is not None
        assert narrow.p is not None
        assert (wide.p < 0.05) == (wide.low is not None and wide.high is not None and not wide.low <= 0 <= wide.high)


def test_too_few_records_for_a_look_that_is_due_are_refused() -> None:
    study = study_of()
    with pytest.raises(
        SettingError, match=r"look 3 of 3 has 1,400 records or more of 2 parties, and 4 tables have 1,2"
    ):
        fit_in_looks(study, tables_of(study, 4), rng=Rng.seeded(1))
    with pytest.raises(StudyError, match="plans no looks"):
        fit_in_looks(Study.parse(PLAIN), tables_of(study, 2))


@pytest.mark.parametrize(
    ("look", "n_parties", "words"),
    [
        (0, 3, "plans 3 looks, and the run is of look 0"),
        (4, 6, "plans 3 looks, and the run is of look 4"),
        (2, 2, "look 2 of the study has 900 records or more, and the run has 600"),
    ],
)
def test_a_guard_refuses_looks_beyond_the_plan(look: int, n_parties: int, words: str) -> None:
    study = study_of()
    parties = Federation.from_tables(tables_of(study, n_parties), rng=Rng.seeded(1))
    parties.look, parties.looks = look, looks_agreed(study)
    with pytest.raises(NotAgreed, match=words):
        look_methods(study).methods[0].fit(parties)


def test_a_guard_counts_the_runs_of_each_look_and_gives_all_back_to_an_owner_who_leaves() -> None:
    study = study_of()
    parties = Federation.from_tables(tables_of(study, 3), rng=Rng.seeded(1))
    guard, methods = parties.guard("party 0"), look_methods(study)
    agreement = Agreement(study="trial", method=methods, digest="d" * 64, runs=1, looks=looks_agreed(study))

    def begin(run: str, look: int) -> None:
        parties.look = look
        guard.begin(run, agreement, parties.group(methods))

    begin("a", 1)
    with pytest.raises(NotAgreed, match="agreed to 1 run of look 1 of study 'trial', and as many have begun"):
        begin("b", 1)
    begin("c", 2)
    cost = guard.ledger.epsilon(guard.account, delta=1e-6)
    guard.ledger.abandon_all(guard.account, "d" * 64)
    assert guard.ledger.epsilon(guard.account, delta=1e-6) == 0 < cost


def test_a_look_is_never_followed_by_an_earlier_one() -> None:
    study = study_of()
    parties = Federation.from_tables(tables_of(study, 3), rng=Rng.seeded(1))
    guard, methods = parties.guard("party 0"), look_methods(study)
    agreement = Agreement(study="trial", method=methods, digest="d" * 64, runs=2, looks=looks_agreed(study))
    parties.look = 2
    guard.begin("a", agreement, parties.group(methods))
    parties.look = 1
    with pytest.raises(NotAgreed, match="look 1 of study 'trial' comes before one that this party was in already"):
        guard.begin("b", agreement, parties.group(methods))


def test_an_agreement_without_looks_refuses_one() -> None:
    study = study_of()
    parties = Federation.from_tables(tables_of(study, 3), rng=Rng.seeded(1))
    parties.look = 1
    with pytest.raises(NotAgreed, match="plans no looks, and the run is of look 1"):
        look_methods(study).methods[0].fit(parties)


def test_a_forecast_says_how_likely_each_look_is_to_end_the_study() -> None:
    study = study_of('coefficient = "treated"\nhalf_width = 0.75')
    plan = Rehearsal(study=study, sizes={"a": 100, "b": 200}, repeats=6)
    found = forecast_looks(plan)
    assert found == forecast_looks(plan)  # one study has one forecast
    assert sum(one.ends for one in found.looks) == pytest.approx(1.0)
    widths = [one.half_widths["treated"] for one in found.looks]
    assert widths == sorted(widths, reverse=True)
    never, at_once = (
        forecast_looks(replace(plan, study=study_of(f'coefficient = "treated"\nhalf_width = {width}')))
        for width in (1e-6, 1e6)
    )
    assert ([one.ends for one in never.looks], never.reached) == ([0.0, 0.0, 1.0], 0.0)
    assert ([one.ends for one in at_once.looks], at_once.reached) == ([1.0, 0.0, 0.0], 1.0)
    with pytest.raises(StudyError, match="has no goal to reach"):
        forecast_looks(replace(plan, study=study_of("")))


def test_a_group_without_a_look_travels_as_it_always_did() -> None:
    plain, look = (SumGroup.of({"a": 3, "b": 4}, quorum=2, look=number) for number in (0, 2))
    older = {"names": ["a", "b"], "n_records": 7, "quorum": 2, "sizes": [3, 4], "signatures": {}}
    assert plain.encode() == wire.encode(older)
    assert plain.digest == wire.digest(older)
    assert [SumGroup.decode(group.encode()) for group in (plain, look)] == [plain, look]
    assert look.digest != plain.digest


def test_it_stops_when_the_auc_is_known_and_each_look_costs_no_more() -> None:
    study, ledger = study_of("auc = 0.2"), Ledger()
    result = fit_in_looks(study, tables_of(study, 6, rarer=-2.0), ledger=ledger, rng=Rng.seeded(1))
    assert [outcome.look.number for outcome in result.outcomes] == [1]
    (found,) = result.outcomes[0].reached
    assert (found.coefficient, found.wanted, found.is_enough) == ("AUC", 0.2, True)
    assert found.low is not None
    assert found.high is not None
    assert found.half_width == pytest.approx((found.high - found.low) / 2)
    assert 0.5 < found.low < found.high < 1
    notices = " ".join(result.model.facts_.notices)
    assert "what was wanted is known (AUC to" in notices
    assert f"between {found.low:.3f} and {found.high:.3f}: measured on about one record in 3" in notices
    look = planned_looks(study)[0]
    assert ledger.epsilon("party 0", delta=look.delta, study="trial") == pytest.approx(look.epsilon, rel=2e-3)
    assert LookOutcome.from_dict(json.loads(json.dumps(result.outcomes[0].as_dict()))) == result.outcomes[0]


def test_it_goes_on_until_all_that_is_wanted_is_known() -> None:
    study = study_of('auc = 0.2\ncoefficient = "treated"\nhalf_width = 0.01')
    result = fit_in_looks(study, tables_of(study, 6, rarer=-2.0), rng=Rng.seeded(1))
    assert [outcome.look.number for outcome in result.outcomes] == [1, 2, 3]
    assert "What was wanted is not known: treated" in result.why
    assert "AUC" not in result.why
    assert [one.coefficient for one in result.outcomes[-1].reached] == ["treated", "AUC"]


def test_the_plan_says_how_likely_each_look_is_to_know_the_auc() -> None:
    plan = Rehearsal(study=study_of("auc = 0.4"), sizes={"a": 300, "b": 300}, repeats=3)
    found = forecast_looks(plan)
    assert 0 < found.looks[-1].half_widths["AUC"] < found.looks[0].half_widths["AUC"]
    assert found.reached == 1.0
