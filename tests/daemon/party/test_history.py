"""What an owner sees of the past is what the ledger holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.daemon.party.history import releases, runs, spent_over_time
from tacit.methods.averaging.statistic import local_model
from tacit.privacy.ledger import Budget
from tacit.studies.study import Study
from tests.attacks.office import Office

from ..conftest import STUDY

TRIAL = Study.parse(STUDY)
BUDGET = Budget(epsilon_in_all=5.0)


def test_every_release_and_every_run_is_told(tmp_path: Path) -> None:
    office = Office(tmp_path, {"north": 40, "south": 30})
    office.opt_in(TRIAL, runs=3)
    group = office.group(TRIAL)
    answers = {}
    for run in ("first", "second"):
        office.begin(TRIAL, run, group)
        answers[run] = office.ask("north", TRIAL, run, office.question(TRIAL, run, group, local_model))
    office.begin(TRIAL, "third", group)
    ledger = office.handlers["north"]._ledger
    left = releases(ledger, "north")
    assert [(one.study, one.run, one.step) for one in left] == [
        ("trial", "second", "averaging/model"),
        ("trial", "first", "averaging/model"),
    ]
    assert left[1].n_bytes == len(answers["first"])
    told = runs(ledger, "north", BUDGET)
    assert [(one.run, one.n_answers) for one in told] == [("first", 1), ("second", 1), ("third", 0)]
    assert told[0].epsilon == pytest.approx(1.0, rel=2e-3)
    points = spent_over_time(ledger, "north", BUDGET)
    assert points[-1][1] == pytest.approx(ledger.epsilon("north", delta=BUDGET.delta))
    assert [epsilon for _, epsilon in points] == sorted(epsilon for _, epsilon in points)
    office.close()
