"""The 569 tumours of the Wisconsin breast cancer study, which come with scikit-learn: nothing has to be downloaded."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from tacit.data.feature import Numeric, Target
from tacit.data.schema import Schema
from tacit.rand import Rng

SCHEMA = Schema(  # bounds from what is known of such images, not from the records
    features=(
        Numeric("radius", 5, 40),  # of the largest nuclei, in pixels
        Numeric("concave_points", 0, 0.3),  # share of the contour that is concave
        Numeric("texture", 10, 50),  # spread of grey values
    ),
    target=Target("tumour", ("benign", "malignant")),
    norm_bound=1.0,
)


def shuffled() -> pd.DataFrame:
    """All records, in an order that is the same every time and has nothing to do with what they say."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer(as_frame=True)
    frame = pd.DataFrame(
        {
            "radius": data.data["worst radius"],
            "concave_points": data.data["worst concave points"],
            "texture": data.data["worst texture"],
            "tumour": data.target.map({0: "malignant", 1: "benign"}),
        }
    )
    return frame.iloc[Rng.seeded(0).permutation(len(frame))]


def split(frame: pd.DataFrame, shares: Mapping[str, float]) -> dict[str, pd.DataFrame]:
    """Parts of a table one after the other, each with about its share of the rows."""
    parts, start, share = {}, 0, 0.0
    for name, part in shares.items():
        share += part
        end = round(share * len(frame))
        parts[name] = frame.iloc[start:end]
        start = end
    return parts
