"""Made-up patients: data to learn on, with a truth to compare with. They are drawn here and need no file.

No patient is real. The chance of coming back within a month follows a logistic model with the coefficients `TRUTH`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from tacit.data.feature import Binary, Numeric, Target
from tacit.data.schema import Schema
from tacit.datasets.dataset import DataSet, Frames
from tacit.rand import Rng

SIZES = {"north": 3000, "south": 2400, "west": 1800, "east": 1500}
PUBLIC, N_PUBLIC = "public", 200  # a sample that everybody may read, as a registry might publish one

_INTERCEPT, _MEAN_AGE = -2.6, 62.0
TRUTH = {"age": 0.03, "days_in_hospital": 0.06, "earlier_admissions": 0.45, "emergency": 0.8}
"""The log odds that one unit more adds."""

SCHEMA = Schema(
    features=(
        Numeric("age", 18, 100),
        Numeric("days_in_hospital", 0, 30),
        Numeric("earlier_admissions", 0, 8),
        Binary("emergency", ("no", "yes")),
    ),
    target=Target("readmitted", ("no", "yes")),
)


def patients(n: int, seed: int) -> pd.DataFrame:
    """Made-up patients; the same for the same seed."""
    chance = Rng.seeded(seed).generator()
    frame = pd.DataFrame(
        {
            "age": np.clip(chance.normal(_MEAN_AGE, 15, n), 18, 100).round(),
            "days_in_hospital": np.clip(chance.exponential(6, n), 0, 30).round(),
            "earlier_admissions": np.clip(chance.poisson(1.2, n), 0, 8),
            "emergency": (chance.uniform(0, 1, n) < 0.4).astype(int),
        }
    )
    odds = _INTERCEPT - TRUTH["age"] * _MEAN_AGE + sum(weight * frame[name] for name, weight in TRUTH.items())
    frame["readmitted"] = np.where(chance.uniform(0, 1, n) < expit(odds), "yes", "no")
    frame["emergency"] = np.where(frame["emergency"] == 1, "yes", "no")
    return frame


def hospitals() -> Frames:
    """The patients of four hospitals, by name."""
    return {name: patients(n, seed) for seed, (name, n) in enumerate(SIZES.items())}


def _read(_: Mapping[str, Path]) -> Frames:
    return hospitals() | {PUBLIC: patients(N_PUBLIC, len(SIZES))}


DATA_SETS = (
    DataSet(
        name="readmission",
        title="made-up patients of four hospitals, and whether they came back within a month",
        schema=SCHEMA,
        files=(),
        read=_read,
        home="drawn by Tacit itself, the same every time",
        licence="Apache-2.0, as Tacit",
        note="For learning: no patient is real, nothing is downloaded. One table for each hospital, and `public`, a "
        "sample that everybody may read. The true log odds of one unit more: "
        + ", ".join(f"{name} {weight:g}" for name, weight in TRUTH.items()) + ".",
    ),
)  # fmt: skip
