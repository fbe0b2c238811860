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


PERSON = STUDY.replace("epsilon = 1.0", 'epsilon = 1.0\nperson = "patient"')


@pytest.mark.parametrize(
    "text",
    [STUDY, RICH, STUDY.replace("[privacy]\nepsilon = 1.0", ""), PERSON],
    ids=["plain", "rich", "exact", "person"],
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
    text = STUDY + '\n[stop]\ncoefficient = "age"\nhalf_width = 0.02\n\n[[later]]\na = 1\n\n[[later]]\na = 2\n'
    fields = form_of(text)
    assert fields is not None
    assert 'coefficient = "age"' in fields["rest"]
    made = text_of(fields)
    assert "half_width = 0.02" in made
    assert made.count("[[later]]") == 2


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
