"""What a practice federation works with: made-up patients of four hospitals, and a study that is ready to run.

No patient is real. The chance of coming back within a month follows a logistic model with the coefficients below, so
that a learner can compare what a study finds with the truth.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from tacit.data.feature import Binary, Numeric, Target
from tacit.data.schema import Schema
from tacit.federation.member.approval import Approval, ApproverKey
from tacit.rand import Rng
from tacit.storage import write_whole
from tacit.studies.study import FederationRequest, PrivacyRequest, Study

PARTIES = ("north", "south", "west")
LATER = "east"  # has data and an invitation, and joins when the learner wants it to
NODES = ("node-a", "node-b", "node-c")
STUDY_FILE = "study.toml"
AUTHOR, APPROVER = "ada", "ben"  # who wrote the study, and who signed it
APPROVER_FOLDER = "approver"

_SIZES = {"north": 3000, "south": 2400, "west": 1800, LATER: 1500}
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


def ready_study() -> Study:
    """The study that is offered from the start: few columns, a strong promise, and no party is indispensable."""
    return Study(
        name="readmission",
        purpose="Which patients come back within a month of going home?",
        schema=SCHEMA,
        method="private-newton",
        privacy=PrivacyRequest(epsilon=1.0),
        federation=FederationRequest(quorum=2),
    )


def ready_approval(folder: Path) -> Approval:
    """The approver's signature of the study, with the key that `write_material` made."""
    return ApproverKey.load(folder / APPROVER_FOLDER).approve(ready_study().digest(), author=AUTHOR)


def write_material(folder: Path) -> None:
    """Write each party's records, as NAME.csv, the study, and the key of somebody who approves studies."""
    ApproverKey.make(APPROVER, folder / APPROVER_FOLDER)
    for seed, (name, n) in enumerate(_SIZES.items()):
        write_whole(folder / f"{name}.csv", patients(n, seed).to_csv(index=False))
    write_whole(folder / STUDY_FILE, ready_study().to_toml())
