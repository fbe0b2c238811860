"""`tacit check`: an owner's file against a study."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ..conftest import Outcome

Run = Callable[..., Outcome]


def test_a_file_that_fits(run: Run, trial: Path) -> None:
    done = run("check", trial / "study.toml", "--data", trial / "north.csv")
    assert done.status == 0
    assert "north.csv: fits the study" in done.out


def test_a_file_that_does_not_fit_is_told_line_by_line(run: Run, trial: Path) -> None:
    path = trial / "own.csv"
    path.write_text("age,ward,treated,recovered\n30,a,1,yes\n30,Bb,1,yes\n")
    done = run("check", trial / "study.toml", "--data", path)
    assert done.status == 2
    assert "own.csv, line 3, column 'ward': 'Bb' is not declared; is 'b' meant?" in done.out
    assert "own.csv: does not fit the study" in done.out
    (told,) = run("check", trial / "study.toml", "--data", path, "--json").json
    assert told["misfits"][0]["line"] == 3
    assert not told["fits"]


def test_a_file_that_is_not_there(run: Run, trial: Path) -> None:
    done = run("check", trial / "study.toml", "--data", trial / "none.csv")
    assert done.status == 2
    assert "is not a file" in done.err


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ('name = "averagin"', "averagin"),
        ('name = "averaging"\nronds = 5', "averaging has no setting 'ronds'"),
        ('name = "averaging"\nl2 = -1', "l2 = -1"),
    ],
)
def test_a_study_that_no_run_would_take_does_not_fit(run: Run, trial: Path, wrong: str, told: str) -> None:
    study = trial / "study.toml"
    study.write_text(study.read_text().replace('name = "averaging"', wrong))
    said = run("check", study, "--data", trial / "north.csv")
    assert (said.status, said.out) == (2, "")
    assert told in said.err
