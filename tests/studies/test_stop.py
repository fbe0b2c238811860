"""[stop] and [enrolment]: what a study file may say, and what follows from it for every look."""

from __future__ import annotations

import math
from datetime import date

import pytest

from tacit.errors import StudyError
from tacit.federation.group import SumGroup
from tacit.privacy.accounting import epsilon_of
from tacit.privacy.event import Composed
from tacit.studies.looks import Look, Reached, look_methods, plan_words, planned_looks, stop_words
from tacit.studies.run import method_of
from tacit.studies.study import Study

from ..daemon.conftest import STUDY

PLAIN = STUDY.replace('"averaging"', '"private-newton"').replace("deadline_seconds = 60\n", "")
STOP = '\n[stop]\nlooks = [100, 200, 400]\ncoefficient = "age"\nhalf_width = 0.02\n'
AUC = "\n[stop]\nlooks = [100, 200]\nauc = 0.01\n"


def test_a_study_without_the_new_tables_keeps_its_digest() -> None:
    study = Study.parse(PLAIN)
    assert study.digest() == "0aa1cf2ea7115588d5a2e0dfd8a1be01ad119372fda24917a196439dfcaf0e88"
    assert "[stop]" not in study.to_toml()


def test_what_is_read_is_written_and_read_back() -> None:
    study = Study.parse(PLAIN + STOP + '[[stop.goal]]\ncoefficient = "treated"\nhalf_width = 1\n[enrolment]\n'
                        "until = 2027-01-31\nrecords = 400\n")  # fmt: skip
    assert study.stop is not None
    assert [(goal.coefficient, goal.half_width) for goal in study.stop.goals] == [("age", 0.02), ("treated", 1.0)]
    assert study.enrolment is not None
    assert study.enrolment.until == date(2027, 1, 31)
    again = Study.parse(study.to_toml())
    assert again == study
    assert again.digest() == study.digest() != Study.parse(PLAIN).digest()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('[stop]\nlooks = [1]\ncoefficient = "agee"\nhalf_width = 1', "'agee' is no coefficient .* did you mean 'age'"),
        ('[stop]\nlooks = [1]\ncoefficient = "sex"\nhalf_width = 1', r"the model has age, treated, \(intercept\)"),
        ('[stop]\nlooks = [1]\ncoefficient = "age"', "stop.half_width is missing"),
        ("[stop]\nlooks = [1]\nhalf_width = 1", "stop.coefficient is missing"),
        ('[stop]\nlooks = [1]\ncoefficient = "age"\nhalf_width = 0', "half_width = 0 must be a number above 0"),
        ('[stop]\nlooks = [1]\ncoefficient = "age"\nhalf_width = inf', "half_width = inf must be"),
        ('[stop]\ncoefficient = "age"\nhalf_width = 1', r"stop.looks is missing; .* \[5000, 10000, 20000\]"),
        ("[stop]\nlooks = [200, 100]", r"looks = \[200, 100\] must rise"),
        ("[stop]\nlooks = [0, 100]", r"looks = \[0, 100\] must rise"),
        ("[stop]\nlooks = [1.5]", "must be a list of whole numbers"),
        ("[stop]\nlooks = [true]", "must be a list of whole numbers"),
        ("[stop]\nlooks = 3", "is 3, a number of looks; give enrolment.records too"),
        ("[stop]\nlooks = 30\n[enrolment]\nrecords = 100", "is 30; plan 1 to 20 looks"),
        ("[stop]\nlooks = [100]\n[enrolment]\nrecords = 200", "ends at 100, and enrolment.records = 200"),
        ("[stop]\nlooks = [1, 2]\nshares = [0.5, 0.6]", "add up to 1.1"),
        ("[stop]\nlooks = [1, 2]\nshares = [1.0]", "must give each of 2 looks a part of 1"),
        ("[stop]\nauc = 0\nlooks = [1]", r"stop.auc = 0 must be a half-width above 0 and below 0.5, such as 0.01"),
        ("[stop]\nauc = 0.5\nlooks = [1]", r"stop.auc = 0.5 must be a half-width"),
        ("[stop]\nauc = nan\nlooks = [1]", r"stop.auc = nan must be a half-width"),
        ('[stop]\nauc = "small"\nlooks = [1]', "stop.auc must be a number"),
        ("[stop]\nauc = true\nlooks = [1]", "stop.auc must be a number"),
        ("[stop]\nlooks = [1]\n[[stop.goal]]\nauc = 0.1", "stop.goal.auc is an unknown key"),
        ("[[stop]]\nlooks = [1]", r"stop is one table; write \[stop\] once"),
        ("[stop]\nlook = [1]", "stop.look is an unknown key; did you mean stop.looks"),
        ("[enrolment]\nuntil = 2027-01-31", "stop.looks is missing"),
        ("[enrolment]\nuntil = 2027-01-31T10:00:00\n[stop]\nlooks = [1]", "must be a date without a time"),
        ('[enrolment]\nuntil = "soon"\n[stop]\nlooks = [1]', "'soon', which is no date"),
    ],
)
def test_what_makes_no_plan_is_refused_in_one_line(table: str, words: str) -> None:
    with pytest.raises(StudyError, match=f"^the study file: .*{words}"):
        Study.parse(PLAIN + table)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"private-newton"', '"averaging"', "averaging gives none under a promise; take private-newton"),
        ("quorum = 2", "", "give federation.quorum, the fewest of a look"),
        ("epsilon = 1.0", 'epsilon = 1.0\nrelation = "add-remove"', "which privacy.relation = 'add-remove' hides"),
        ("epsilon = 1.0", "epsilon = inf", "needs a .privacy. table with a finite epsilon"),
    ],
)
def test_looks_that_no_share_can_keep_are_refused(old: str, new: str, words: str) -> None:
    study = Study.parse(PLAIN.replace(old, new) + STOP)
    for use in (method_of, look_methods):
        with pytest.raises(StudyError, match=words):
            use(study)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('["no", "yes"]', '["no", "yes", "never"]', "is of a model for two classes, and the study has 3; aim"),
        ('"treated"', '"AUC"', "has the name of the column 'AUC'; rename the column"),
    ],
)
def test_an_auc_needs_two_classes_and_its_own_name(old: str, new: str, words: str) -> None:
    with pytest.raises(StudyError, match=f"stop.auc = 0.01 {words}"):
        Study.parse(PLAIN.replace(old, new) + AUC)


@pytest.mark.parametrize("privacy", ['unit = "party"', 'person = "id"'])
def test_an_auc_needs_a_promise_for_records(privacy: str) -> None:
    study = Study.parse(PLAIN.replace("epsilon = 1.0", f"epsilon = 1.0\n{privacy}") + AUC)
    unit = "party" if "unit" in privacy else "person"
    why = "hides" if unit == "party" else f"a {unit}'s records could be in both parts; aim at a coefficient"
    with pytest.raises(StudyError, match=why):
        look_methods(study)


def test_an_auc_is_read_written_and_told() -> None:
    study = Study.parse(PLAIN + AUC + '[[stop.goal]]\ncoefficient = "age"\nhalf_width = 0.02\n')
    assert study.stop is not None
    assert [(goal.coefficient, goal.half_width) for goal in study.stop.wanted] == [("age", 0.02), ("AUC", 0.01)]
    assert Study.parse(study.to_toml()) == study
    assert study.digest() != Study.parse(PLAIN + AUC.replace("0.01", "0.02")).digest()
    words = plan_words(study)
    assert "stops as soon as age is known to 0.02 and AUC is known to 0.01, or after the last look" in words
    assert "about one record in 3 is kept out of the fit" in words


def test_a_look_that_measures_costs_what_it_costs_without() -> None:
    text = PLAIN + STOP
    plain, measured = (look_methods(Study.parse(one)).methods for one in (text, text + "auc = 0.01\n"))
    group = SumGroup.of({"a": 300, "b": 200}, quorum=2, look=1)
    schema = Study.parse(text).schema
    for before, after in zip(plain, measured, strict=True):
        assert after.event() == before.event()
        terms, own = after.terms(schema, group), before.terms(schema, group)
        assert terms.course[-1].step.name == "private-newton/measuring"
        assert terms.course[-1].times == 1
        assert terms.plan.mu_measuring**2 == pytest.approx(after.promise.mu**2 / 3, rel=1e-9)
        costs = [epsilon_of(one.reservation("a").event, one.delta) for one in (terms, own)]
        assert costs[0] == pytest.approx(costs[1], rel=1e-9)
        assert terms.digest != own.digest


def test_a_number_of_looks_is_spread_over_the_enrolment() -> None:
    study = Study.parse(PLAIN + "[stop]\nlooks = 3\n[enrolment]\nrecords = 1000\n")
    assert [look.n_records for look in planned_looks(study)] == [334, 667, 1000]
    alone = Study.parse(PLAIN + "[enrolment]\nrecords = 1000\n")
    assert [(look.n_records, look.share) for look in planned_looks(alone)] == [(1000, 1.0)]
    assert planned_looks(Study.parse(PLAIN)) == ()


@pytest.mark.parametrize("shares", ["", "shares = [0.2, 0.3, 0.5]\n"])
@pytest.mark.parametrize("delta", ["", "delta = 1e-5\n"])
def test_all_looks_together_cost_what_the_study_promises(shares: str, delta: str) -> None:
    text = PLAIN.replace("epsilon = 1.0\n", f"epsilon = 1.0\n{delta}") + STOP + shares
    looks, methods = planned_looks(Study.parse(text)), look_methods(Study.parse(text)).methods
    assert all(look.delta == (1e-5 if delta else 1e-6) for look in looks)
    together = Composed(events=tuple(method.event() for method in methods))
    assert epsilon_of(together, looks[0].delta) == pytest.approx(1.0, rel=1e-9)
    assert sum(method.error_share for method in methods) == pytest.approx(1.0)
    mus = [method.promise.mu**2 for method in methods]
    assert mus == pytest.approx([look.share * sum(mus) for look in looks])


def test_delta_follows_from_the_study_alone() -> None:
    text = PLAIN + STOP.replace("400", "20000")
    assert {look.delta for look in planned_looks(Study.parse(text))} == {1 / 20000**2}


def test_a_study_stops_for_a_reason() -> None:
    look = Look(number=1, n_looks=2, n_records=100, share=0.5, epsilon=1.0, delta=1e-6)
    last = Look(number=2, n_looks=2, n_records=200, share=0.5, epsilon=1.0, delta=1e-6)
    near, far, none = (
        Reached(coefficient="age", wanted=0.1, half_width=w) for w in (0.1, math.nextafter(0.1, 1), None)
    )
    assert stop_words(look, [near]).startswith("It stopped at look 1 of 2: what was wanted is known (age to 0.1")
    assert [stop_words(look, found) for found in ([far], [near, far], [none], [])] == [""] * 4
    assert "which is the last. What was wanted is not known: age not identified" in stop_words(last, [near, none])
    assert "since enrolment is over" in stop_words(look, [far], is_over=True)
