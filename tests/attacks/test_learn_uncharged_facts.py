"""The attacker wants to learn facts that nobody is charged for: is a record complete, is an unlisted category there?

It compares what two parties announce and answer that differ in one record of their files.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tacit.data.table import Table
from tacit.federation.group import SumGroup, size_statement
from tacit.methods.averaging.method import Averaging
from tacit.models.sensitivity import minimiser_sensitivity
from tacit.studies.study import Study

from .learned_of_a_party import Daemon

STUDY = Study.parse("""
[study]
name = "trial"
purpose = "Who recovers?"

[target]
name = "recovered"
classes = ["no", "yes"]

[[feature]]
name = "age"
kind = "numeric"
low = 20
high = 90
missing = "drop"

[[feature]]
name = "ward"
kind = "categorical"
categories = ["a", "b"]

[method]
name = "averaging"
fit_intercept = false

[privacy]
epsilon = 1.0

[federation]
quorum = 1
parties = ["a"]
""")

RECORDS = pd.DataFrame(
    {
        "age": [str(age) for age in range(30, 60)],
        "ward": ["a", "b", "b"] * 10,
        "recovered": ["no", "yes"] * 15,
    }
)
LAST: dict[str, dict[str, str]] = {
    "an age is missing": {"age": ""},
    "an age is no number": {"age": "zebra"},
    "an unlisted category": {"ward": "psychiatry"},
    "a missing category": {"ward": ""},
    "an unlisted label": {"recovered": "died"},
}


def changed(last: dict[str, str]) -> pd.DataFrame:
    records = RECORDS.copy()
    for column, text in last.items():
        records.loc[len(records) - 1, column] = text
    return records


@pytest.mark.parametrize("what", list(LAST))
def test_a_record_that_does_not_fit_changes_nothing_that_is_told(what: str, tmp_path: Path) -> None:
    first = Daemon(tmp_path / "first", STUDY, RECORDS)
    second = Daemon(tmp_path / "second", STUDY, changed(LAST[what]))
    assert first.card() == second.card()
    assert first.card()["n_records"] == 30
    told = []
    for daemon in (first, second):
        signature = daemon.identity.sign(size_statement(STUDY.digest(), "a", 30))
        told.append(daemon.answer(SumGroup.of({"a": 30}, quorum=1, signatures={"a": signature})))
    assert told == ["answered", "answered"]
    assert "records-add-nothing" in second.journal.getvalue()
    assert "records-add-nothing" not in first.journal.getvalue()


def test_a_record_that_adds_nothing_moves_a_fit_by_no_more_than_its_sensitivity(tmp_path: Path) -> None:
    """It counts as a record, so that the penalty and the noise stay as they are."""
    models = []
    for name, records in (("first", RECORDS), ("second", changed({"age": ""}))):
        records.to_csv(tmp_path / f"{name}.csv", index=False)
        table = Table.from_file(tmp_path / f"{name}.csv", STUDY.schema, unfit="skip")
        method = Averaging(l2=0.01, fit_intercept=False)
        plan = method.plan(method.cohort(STUDY.schema, SumGroup.of({"a": table.n_records}, quorum=1)))
        models.append(plan.local_fit(table))
    moved = float(np.linalg.norm(models[0] - models[1]))
    assert STUDY.schema.radius is not None
    assert 0 < moved <= minimiser_sensitivity(30, plan.l2_mean, STUDY.schema.radius)


def test_a_file_of_nothing_but_incomplete_records_answers_like_any_other(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path / "party", STUDY, RECORDS.assign(age=""))
    signature = daemon.identity.sign(size_statement(STUDY.digest(), "a", 30))
    assert daemon.card()["n_records"] == 30
    assert daemon.answer(SumGroup.of({"a": 30}, quorum=1, signatures={"a": signature})) == "answered"
