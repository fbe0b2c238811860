"""The examples assert their own results; here they are run, and the heart study is held against statsmodels."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
import statsmodels.api as sm

from .daemon.conftest import free_port

ROOT = Path(__file__).parent.parent
HEART = ROOT / "examples" / "heart"
HOSPITALS_EXAMPLE = ROOT / "examples" / "hospitals"
STUDIES = ("privlogit", "private-newton")
A_LONG_WHILE = 1800.0  # seconds: bounds a failure, where half a minute is usual
HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")

needs_data = pytest.mark.skipif(
    not os.environ.get("TACIT_DATA"),
    reason="TACIT_DATA names no folder with heart_disease/processed.*.data in it; they are published at "
    "https://archive.ics.uci.edu/dataset/45/heart+disease, and src/tacit/datasets/health.py has their checksums",
)


def python(*arguments: object) -> str:
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_data
def test_the_heart_example_runs() -> None:
    assert "n_parties=4, n_records=920" in python(HEART / "run.py")


@needs_data
@pytest.mark.slow
@pytest.mark.skipif(find_spec("spu") is None, reason="the engine is not installed; pip install 'tacit[all]'")
def test_the_hospitals_example_runs(tmp_path: Path) -> None:
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PORT": str(free_port()), "TACIT": str(programs / "tacit"), "PYTHON": sys.executable}
    with (tmp_path / "told").open("w") as told:
        run = subprocess.Popen(
            [HOSPITALS_EXAMPLE / "run.sh", tmp_path / "made"],
            env=environment, cwd=tmp_path, stdout=told, stderr=told, start_new_session=True,
        )  # fmt: skip
        try:
            status = run.wait(A_LONG_WHILE)
        finally:
            with contextlib.suppress(ProcessLookupError):  # no daemon outlives a test that fails
                os.killpg(run.pid, signal.SIGKILL)
            run.wait()
    said = (tmp_path / "told").read_text()
    assert status == 0, said
    assert "privlogit: largest difference from the run in one process" in said
    assert "private-newton: at most" in said
    assert [(tmp_path / "made" / f"results-{name}" / "report.html").exists() for name in STUDIES] == [True, True]


def design(folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    """The study's columns in original units, encoded here by hand."""
    records = pd.concat([pd.read_csv(folder / f"{name}.csv") for name in HOSPITALS], ignore_index=True)

    def numeric(name: str, low: float, high: float) -> pd.Series:
        return records[name].fillna((low + high) / 2).clip(low, high)

    def binary(name: str, missing: float = 0.0) -> pd.Series:
        return records[name].map({"no": 0.0, "yes": 1.0, "female": 0.0, "male": 1.0}).fillna(missing)

    columns = {"(intercept)": 1.0, "age": numeric("age", 20, 90), "sex": binary("sex")}
    for pain in ("atypical", "non-anginal", "none"):
        columns[f"chest_pain={pain}"] = (records["chest_pain"] == pain).astype(float)
    columns["resting_bp"] = numeric("resting_bp", 80, 220)
    columns["cholesterol"] = numeric("cholesterol", 100, 600)
    columns["cholesterol=missing"] = records["cholesterol"].isna().astype(float)
    columns["fasting_sugar"] = binary("fasting_sugar")
    columns["fasting_sugar=missing"] = records["fasting_sugar"].isna().astype(float)
    for ecg in ("st-t", "hypertrophy"):
        columns[f"resting_ecg={ecg}"] = (records["resting_ecg"] == ecg).astype(float)
    columns["max_heart_rate"] = numeric("max_heart_rate", 60, 210)
    columns["exercise_angina"] = binary("exercise_angina", missing=0.5)
    columns["oldpeak"] = numeric("oldpeak", -3, 7)
    columns["oldpeak=missing"] = records["oldpeak"].isna().astype(float)
    return pd.DataFrame(columns, index=records.index), (records["disease"] == "yes").astype(float)


@needs_data
def test_four_hospitals_pooled_equal_statsmodels(tmp_path: Path) -> None:
    cli = ("-m", "tacit.cli.main")
    python(*cli, "data", "get", "heart_disease", "--out", tmp_path)
    parties = [f"--party={name}={tmp_path / name}.csv" for name in HOSPITALS]
    told = python(*cli, "fit", HEART / "study.toml", *parties, "--method", "pooled", "--json")
    result = json.loads(told)
    X, y = design(tmp_path)
    plain = sm.Logit(y, X).fit(disp=0, tol=1e-14, maxiter=100)
    assert result["coefficients"].keys() == set(X)
    for name in X:
        assert result["coefficients"][name] == pytest.approx(plain.params[name], abs=1e-6)
        assert result["standard_errors"][name] == pytest.approx(plain.bse[name], abs=1e-6)
    assert result["log_likelihood"] == pytest.approx(plain.llf, abs=1e-6)
    private = json.loads(python(*cli, "fit", HEART / "study.toml", *parties, "--json"))
    assert private["guarantee"]["epsilon"] == 1.0
