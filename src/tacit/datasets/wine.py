"""Wine quality."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from tacit.data.feature import Numeric, Target
from tacit.data.schema import Schema
from tacit.datasets.dataset import DataSet, Frames, PublicFile, read_table

_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/wine-quality/"

# What a laboratory may find in wine: legal limits for sulphur dioxide, and physics for density and pH.
SCHEMA = Schema(
    (
        Numeric("fixed_acidity", 3, 16),
        Numeric("volatile_acidity", 0, 2),
        Numeric("citric_acid", 0, 2),
        Numeric("residual_sugar", 0, 45),
        Numeric("chlorides", 0, 0.5),
        Numeric("free_sulfur_dioxide", 0, 150),
        Numeric("total_sulfur_dioxide", 0, 400),
        Numeric("density", 0.98, 1.02),
        Numeric("pH", 2.5, 4.5),
        Numeric("sulphates", 0, 2),
        Numeric("alcohol", 7, 16),
    ),
    Target("quality", ("below 6", "6 or more")),
)


def _read(paths: Mapping[str, Path]) -> Frames:
    return {colour: _colour(paths[f"winequality-{colour}.csv"]) for colour in ("red", "white")}


def _colour(path: Path) -> pd.DataFrame:
    frame = read_table(path, sep=";").rename(columns=lambda name: name.replace(" ", "_"))
    frame["quality"] = (frame["quality"] >= 6).map({False: "below 6", True: "6 or more"})
    return frame


DATA_SETS = (
    DataSet(
        name="wine_quality",
        title="red and white Portuguese wines and what tasters thought of them",
        schema=SCHEMA,
        files=(
            PublicFile(
                "winequality-red.csv",
                "4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e",
                url=_URL + "winequality-red.csv",
            ),
            PublicFile(
                "winequality-white.csv",
                "76c3f809815c17c07212622f776311faeb31e87610d52c26d87d6e361b169836",
                url=_URL + "winequality-white.csv",
            ),
        ),
        read=_read,
        home="https://archive.ics.uci.edu/dataset/186/wine+quality",
        licence="CC BY 4.0",
        note="The target is a quality of 6 or more out of 10. One table for each colour.",
    ),
)
