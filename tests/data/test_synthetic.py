"""Made-up records: of the schema's shape, and as predictable as asked."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tacit.data.feature import Binary, Categorical, Numeric, Target
from tacit.data.schema import Schema
from tacit.data.synthetic import synthetic_table
from tacit.errors import SettingError
from tacit.rand import Rng

FEATURES = (
    Numeric("age", 20, 90),
    Numeric("pressure", 80, 200),
    Binary("smoker"),
    Categorical("pain", ("a", "b", "c", "d")),
)


def schema(n_classes: int) -> Schema:
    return Schema(FEATURES, Target("disease", tuple(f"c{k}" for k in range(n_classes))), norm_bound=1.5)


@pytest.mark.parametrize(("n_classes", "accuracy"), [(2, 0.75), (2, 0.95), (3, 0.7)])
def test_the_best_model_reaches_the_asked_accuracy(n_classes: int, accuracy: float) -> None:
    table = synthetic_table(schema(n_classes), 40_000, accuracy=accuracy, rng=Rng.seeded(1))
    X, y = table.arrays()
    found = LogisticRegression(max_iter=1000).fit(X, y).score(X, y)
    # rows that were clipped blur the model a little
    assert found == pytest.approx(accuracy, abs=0.015)


def test_rows_keep_the_schemas_bounds() -> None:
    table = synthetic_table(schema(2), 5000, rng=Rng.seeded(2))
    X, _ = table.arrays()
    assert np.linalg.norm(X, axis=1).max() <= 1.5 * (1 + 1e-12)
    assert (table.class_counts > 500).all()


@pytest.mark.parametrize("accuracy", [0.5, 1.0, 0.2])
def test_an_accuracy_that_cannot_be_is_refused(accuracy: float) -> None:
    with pytest.raises(SettingError, match=f"accuracy = {accuracy} must lie between 1/2"):
        synthetic_table(schema(2), 10, accuracy=accuracy, rng=Rng.seeded(3))
