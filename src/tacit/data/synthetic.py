"""Made-up records of a study's shape, for rehearsals: no fact about anybody, only what the schema says.

Numbers lie around the middle of their bounds, the first of many categories is the commonest, and the classes follow a
logistic model with random coefficients, made as strong as the asked accuracy of its best possible prediction.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import softmax

from tacit.bisection import bisect
from tacit.data.encoding import Encoded
from tacit.data.feature import Binary, Categorical, Feature
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.rand import Rng

Floats = NDArray[np.float64]

_SPREAD = 1 / 6  # of a number's bounds: the standard deviation
_RARE = 0.3  # of records have the second value of a binary feature
_STRONGEST = 1e4  # factor on the coefficients


def synthetic_table(schema: Schema, n_records: int, *, accuracy: float = 0.8, rng: Rng) -> Table:
    """Records whose classes the best linear model predicts with the given accuracy.

    Raises:
        SettingError: if the accuracy is that of guessing, or 1.
    """
    if not 1 / schema.n_classes < accuracy < 1:
        raise SettingError(
            f"accuracy = {accuracy} must lie between 1/{schema.n_classes}, which guessing reaches, and 1"
        )
    generator = rng.generator()
    V = np.stack([_codes(feature, n_records, generator) for feature in schema.features])
    X, rows_clipped = schema.encode_codes(V)
    scores = (X - X.mean(axis=0)) @ generator.standard_normal((schema.n_columns, schema.n_classes))
    P = softmax(_strength(scores, accuracy) * scores, axis=1)
    y = (P.cumsum(axis=1) < generator.random(n_records)[:, None]).sum(axis=1)
    labels = np.minimum(y, schema.n_classes - 1).astype(np.int64)
    return Table.from_encoded("made-up records", schema, Encoded(X, labels, {}, rows_clipped, 0))


def _codes(feature: Feature, n: int, generator: Generator) -> Floats:
    match feature:
        case Binary():
            return (generator.random(n) < _RARE).astype(np.float64)
        case Categorical():
            weights = 1 / np.arange(1, len(feature.categories) + 1)
            return generator.choice(len(weights), size=n, p=weights / weights.sum()).astype(np.float64)
        case _:
            low, high = feature.bounds or (-1.0, 1.0)
            middle, width = low / 2 + high / 2, high - low
            return np.clip(middle + _SPREAD * width * generator.standard_normal(n), low, high)


def _strength(scores: Floats, accuracy: float) -> float:
    """The factor at which the likeliest class is right so often, which grows with the factor."""

    def is_strong(factor: float) -> bool:
        return bool(softmax(factor * scores, axis=1).max(axis=1).mean() >= accuracy)

    return bisect(is_strong, yes=_STRONGEST, no=0.0, tolerance=1e-12)
