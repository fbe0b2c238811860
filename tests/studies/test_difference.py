"""Two versions of a study, and what is told of their difference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tacit.studies.difference import key_changes, line_changes
from tacit.studies.study import Study

from ..daemon.conftest import STUDY

BEFORE = Study.parse(STUDY)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("epsilon = 1.0", "epsilon = 0.5", "privacy.epsilon was 1.0 and is now 0.5"),
        ("Who recovers?", "Who falls ill?", 'study.purpose was "Who recovers?" and is now "Who falls ill?"'),
        ("high = 90", "high = 120", "feature 'age': high was 90.0 and is now 120.0"),
        ("quorum = 2\n", "", "federation.quorum is gone; it was 2"),
        ("quorum = 2", "quorum = 2\ncolluders = 1", "federation.colluders is new: 1"),
    ],
)
def test_each_key_is_told_in_words(old: str, new: str, words: str) -> None:
    assert old in STUDY
    after = Study.parse(STUDY.replace(old, new))
    assert [change.words for change in key_changes(BEFORE, after)] == [words]
    assert sum(line.startswith(("+", "-")) for line in line_changes(BEFORE, after)) >= 3
    assert key_changes(BEFORE, BEFORE) == ()
    assert line_changes(BEFORE, BEFORE) == []


def test_the_order_of_features_is_a_difference() -> None:
    age, treated = BEFORE.schema.features
    turned = replace(BEFORE, schema=replace(BEFORE.schema, features=(treated, age)))
    assert turned.digest() != BEFORE.digest()
    assert [change.key for change in key_changes(BEFORE, turned)] == ["features"]


def test_goals_are_told_in_words() -> None:
    text = STUDY.replace('"averaging"', '"private-newton"') + "[stop]\nlooks = [9]\n"
    goals = (
        '[[stop.goal]]\ncoefficient = "age"\nhalf_width = {}\n[[stop.goal]]\ncoefficient = "treated"\nhalf_width = 1\n'
    )
    before, after = (Study.parse(text + goals.format(width)) for width in (0.2, 0.25))
    words = "stop.goal was age to 0.2 and treated to 1 and is now age to 0.25 and treated to 1"
    assert [change.words for change in key_changes(before, after)] == [words]
