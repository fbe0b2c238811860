"""Heart disease in four hospitals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from tacit.data.feature import Binary, Categorical, Numeric, Target
from tacit.data.schema import Schema
from tacit.datasets.dataset import DataSet, Frames, PublicFile, read_table

_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/heart-disease/"
_HOSPITALS = {
    "cleveland": "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
    "hungarian": "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796",
    "switzerland": "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314",
    "va": "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f",
}
_RAW = (
    *("age", "sex", "chest_pain", "resting_bp", "cholesterol", "fasting_sugar", "resting_ecg", "max_heart_rate"),
    *("exercise_angina", "oldpeak", "slope", "ca", "thal", "disease"),
)
_CHEST_PAIN = ("typical", "atypical", "non-anginal", "none")  # codes 1 to 4
_ECG = ("normal", "st-t", "hypertrophy")  # codes 0 to 2
_NO_YES = ("no", "yes")

# Pressure, heart rate, angina and oldpeak are missing for the same patients (those without an exercise test), so one
# indicator, that of oldpeak, speaks for the four; four of them would be all but collinear.
SCHEMA = Schema(
    (
        Numeric("age", 20, 90),
        Binary("sex", ("female", "male")),
        Categorical("chest_pain", _CHEST_PAIN),
        Numeric("resting_bp", 80, 220, missing="middle"),
        Numeric("cholesterol", 100, 600, missing="indicator"),
        Binary("fasting_sugar", _NO_YES, missing="indicator"),
        Categorical("resting_ecg", _ECG, missing="middle"),
        Numeric("max_heart_rate", 60, 210, missing="middle"),
        Binary("exercise_angina", _NO_YES, missing="middle"),
        Numeric("oldpeak", -3, 7, missing="indicator"),
    ),
    Target("disease", _NO_YES),
)


def _read(paths: Mapping[str, Path]) -> Frames:
    return {hospital: _hospital(paths[f"processed.{hospital}.data"]) for hospital in _HOSPITALS}


def _hospital(path: Path) -> pd.DataFrame:
    raw = read_table(path, header=None, names=_RAW, na_values="?")
    frame = raw[list(SCHEMA.feature_names)].copy()
    frame["sex"] = raw["sex"].map({0: "female", 1: "male"})
    frame["chest_pain"] = raw["chest_pain"].map(dict(enumerate(_CHEST_PAIN, start=1)))
    frame["resting_ecg"] = raw["resting_ecg"].map(dict(enumerate(_ECG)))
    for column in ("fasting_sugar", "exercise_angina"):
        frame[column] = raw[column].map(dict(enumerate(_NO_YES)))
    for column in ("resting_bp", "cholesterol"):  # nobody has a pressure or a cholesterol of 0: not measured
        frame[column] = raw[column].where(raw[column] != 0)
    frame["disease"] = (raw["disease"] > 0).map({False: "no", True: "yes"})
    return frame


DATA_SETS = (
    DataSet(
        name="heart_disease",
        title="heart disease in four hospitals (Cleveland, Budapest, Zurich and Basel, Long Beach)",
        schema=SCHEMA,
        files=tuple(
            PublicFile(f"processed.{h}.data", sha, url=f"{_URL}processed.{h}.data") for h, sha in _HOSPITALS.items()
        ),
        read=_read,
        home="https://archive.ics.uci.edu/dataset/45/heart+disease",
        licence="CC BY 4.0",
        note=(
            "Disease is any narrowing above one half (num > 0). slope, ca and thal are left out: three hospitals "
            "hardly have them. A cholesterol or blood pressure of 0 means not measured (in Switzerland, always)."
        ),
    ),
)
