"""A study through a form and back: nothing is lost, and each error stands beside its field."""

from __future__ import annotations

import re

import pytest

from tacit.studies.form import check_form, form_of, text_of
from tacit.studies.study import Study

from ..daemon.conftest import STUDY

RICH = STUDY.replace('name = "averaging"', 'name = "averaging"\nl2 = 0.5').replace(
    'kind = "binary"',
    'kind = "binary"\nmissing = "indicator"\naliases = { 1 = ["t", "on"] }\n\n'
    '[[feature]]\nname = "site"\nkind = "categorical"\n'
    'categories = ["a", "b, c", "say \\"d\\""]\nunknown = "bucket"',
).replace('"Who recovers?"', '"Who recovers?"\ncoding = "full"\nignore = ["id"]\nnorm_bound = 1.5')  # fmt: skip


LOOKS = (
    STUDY.replace('name = "averaging"', 'name = "private-newton"')
    + """
[stop]
looks = [100, 200]
shares = [0.2, 0.8]
coefficient = "age"
half_width = 0.02

[enrolment]
until = 2127-01-31
"""
)
PERSON = STUDY.replace("epsilon = 1.0", 'epsilon = 1.0\nperson = "patient"')


@pytest.mark.parametrize(
    "text",
    [STUDY, RICH, STUDY.replace("[privacy]\nepsilon = 1.0", ""), PERSON, LOOKS],
    ids=["plain", "rich", "exact", "person", "looks"],
)
def test_a_study_passes_through_the_form_unchanged(text: str) -> None:
    if "[privacy]" not in text:
        text = text.replace('[method]\nname = "averaging"\n', "")
    fields = form_of(text)
    assert fields is not None
    made = text_of(fields)
    assert Study.parse(made) == Study.parse(text)
    assert form_of(made) == fields


def test_keys_that_the_form_does_not_know_are_kept() -> None:
    text = STUDY + "\n[stop]\nlooks = 3\nshares = [0.5, 0.5]\n\n[[later]]\na = 1\n\n[[later]]\na = 2\n"
    fields = form_of(text)
    assert fields is not None
    assert fields["rest"].startswith("[stop]\nlooks = 3\nshares = [0.5, 0.5]")
    assert "looks" not in fields
    made = text_of(fields)
    assert "looks = 3" in made
    assert made.count("[[later]]") == 2


def test_dates_and_times_that_the_form_has_no_field_for_are_kept() -> None:
    more = "[later]\nday = 2027-01-31\nmoment = 2027-01-31T08:30:00+00:00\nhour = 08:30:00"
    fields = form_of(f"{STUDY}\n{more}\n")
    assert fields is not None
    assert fields["rest"] == more
    assert more in text_of(fields)
    _, _, errors = check_form(
        {**(form_of(LOOKS) or {}), "until": "", "rest": "[enrolment]\nuntil = 2127-01-31T08:30:00"}
    )
    assert [*errors] == ["until"], errors
    assert "must be a date without a time" in errors["until"]


def test_the_only_goal_has_fields_however_it_is_written_and_several_stay_as_they_are() -> None:
    fields = form_of(Study.parse(LOOKS).to_toml())  # which writes [[stop.goal]]
    assert fields is not None
    wanted = {"looks": "100, 200", "coefficient": "age", "half_width": "0.02", "until": "2127-01-31"}
    assert {field: fields.get(field) for field in wanted} == wanted
    assert Study.parse(text_of(fields)) == Study.parse(LOOKS)
    goal = '[[stop.goal]]\ncoefficient = "{}"\nhalf_width = 1.0\n\n'
    two = STUDY.replace('"averaging"', '"private-newton"') + "[stop]\nlooks = [9]\n\n" + goal.format("age")
    two += goal.format("treated")
    fields = form_of(two)
    assert fields is not None
    assert "coefficient" not in fields
    assert Study.parse(text_of(fields)) == Study.parse(two)


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"looks": "5,000"}, "looks", "must rise"),
        ({"looks": "many"}, "looks", "must be a list of whole numbers"),
        ({"looks": ""}, "looks", "stop.looks is missing"),
        ({"coefficient": "agee"}, "coefficient", "did you mean 'age'"),
        ({"coefficient": ""}, "coefficient", "stop.coefficient is missing"),
        ({"half_width": "small"}, "half_width", "must be a number"),
        ({"half_width": ""}, "half_width", "stop.half_width is missing"),
        ({"until": "tomorrow"}, "until", "is no date"),
        ({"auc_width": "small"}, "auc_width", "must be a number"),
        ({"auc_width": "1"}, "auc_width", "must be a half-width above 0 and below 0.5"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, dict) else "",
)
def test_each_error_of_looks_stands_beside_its_field(change: dict[str, str], field: str, words: str) -> None:
    fields = {**(form_of(LOOKS.replace("shares = [0.2, 0.8]", "")) or {}), **change}
    _, _, errors = check_form(fields)
    assert [*errors] == [field], errors
    assert re.search(words, errors[field]), errors


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"name": ""}, "name", "study.name is missing"),
        ({"purpose": "x" * 3000}, "purpose", "say it in 2,000"),
        ({"name": "a\x1bb"}, "name", "U\\+001B"),
        ({"target": ""}, "target", "target.name is missing"),
        ({"classes": "yes"}, "classes", "two classes or more"),
        ({"f0-low": ""}, "f0-low", "feature 'age': low is missing"),
        ({"f0-high": "old"}, "f0-high", "high must be a number, but is a text \\('old'\\)"),
        ({"f0-low": "100"}, "f0-low", "must be below"),
        ({"f0-kind": "number"}, "f0-kind", "unknown"),
        ({"f1-kind": "categorical", "f1-labels": ""}, "f1-labels", "categories is missing"),
        ({"f0-name": ""}, "f0-name", "feature number 1"),
        ({"epsilon": "-1"}, "epsilon", "privacy.epsilon"),
        ({"epsilon": "much"}, "epsilon", "privacy.epsilon must be a number"),
        ({"delta": "2"}, "delta", "privacy.delta"),
        ({"unit": "planet"}, "unit", "privacy.unit"),
        ({"method": "averagin"}, "method", "did you mean 'averaging'"),
        ({"settings": "l2 = 1\nbroken"}, "settings", "is not TOML"),
        ({"settings": "l3 = 1"}, "settings", "l3"),
        ({"quorum": "0"}, "quorum", "at least 1"),
        ({"parties": "north, north"}, "parties", "more than once"),
        ({"quorum": "", "dropouts": "1"}, "dropouts", "federation.dropouts"),
        ({"rest": "[unknown]\na = 1"}, "", "unknown"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, dict) else "",
)
def test_each_error_stands_beside_its_field(change: dict[str, str], field: str, words: str) -> None:
    fields = {**(form_of(STUDY) or {}), **change}
    _, _, errors = check_form(fields)
    assert [*errors] == [field], errors
    assert re.search(words, errors[field]), errors


def test_what_no_form_can_hold_stays_a_text() -> None:
    assert form_of("no = toml = at all") is None
    assert form_of("feature = 3") is None
    assert form_of('[[feature]]\nname = "a"\nlow = [1]') is None
    assert form_of("feature = [3]") is None
    assert form_of("method = 3") is None
