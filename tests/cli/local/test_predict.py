"""`tacit predict`: the same chances as the model gives in Python."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit

from ..conftest import Outcome, frame, parties

Run = Callable[..., Outcome]


@pytest.fixture
def model(run: Run, trial: Path) -> Path:
    done = run("fit", trial / "study.toml", *parties(trial), "--method", "pooled", "--out", trial / "results")
    assert done.status == 0
    frame(7, 5).drop(columns="recovered").assign(patient=[f"p{i}" for i in range(7)]).to_csv(
        trial / "new.csv", index=False
    )
    return trial / "results" / "model.json"


def test_chances_are_those_of_the_model(run: Run, trial: Path, model: Path) -> None:
    done = run("predict", model, trial / "new.csv", "--keep", "patient")
    assert done.status == 0
    told = pd.read_csv(io.StringIO(done.out))
    fitted = tacit.load(model)
    expected = fitted.predict_proba(pd.read_csv(trial / "new.csv"))
    np.testing.assert_allclose(told[["chance of no", "chance of yes"]], expected)
    assert told["predicted"].tolist() == fitted.predict(pd.read_csv(trial / "new.csv")).tolist()
    assert told["patient"].tolist() == [f"p{i}" for i in range(7)]


def test_into_a_file_and_as_json(run: Run, trial: Path, model: Path) -> None:
    assert run("predict", model, trial / "new.csv", "--out", trial / "chances.csv").status == 0
    assert len(pd.read_csv(trial / "chances.csv")) == 7
    lines = run("predict", model, trial / "new.csv", "--json").out.splitlines()
    assert json.loads(lines[0]).keys() == {"predicted", "chance of no", "chance of yes"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age,ward\n30,a\n", r"columns \['treated'\] are missing"),
        ("age,ward,treated\nold,a,1\n", "row 0, column 'age'"),
    ],
)
def test_rows_that_do_not_fit(run: Run, trial: Path, model: Path, text: str, message: str) -> None:
    (trial / "bad.csv").write_text(text)
    done = run("predict", model, trial / "bad.csv")
    assert done.status == 2
    assert pd.Series([done.err]).str.contains(message, regex=True).all()
    missing = run("predict", model, trial / "new.csv", "--keep", "id")
    assert missing.status == 2
    assert "--keep 'id' is no column of new.csv" in missing.err
