"""The attacker wants one record to count for several: it has a model measured that puts rows between two cells.

A product of matrices rounds the last rows of a block in another way than the rest. At a score of exactly zero the last
bit decides about the cell. So whether a record is complete would move the records after it, too, and the noise is made
for one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tacit.data.feature import Numeric, Target
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.group import SumGroup
from tacit.methods.evaluation.method import PrivateEvaluation
from tacit.methods.evaluation.statistic import LinearModel, party_histogram, scores_of
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]

COLUMNS = 8
SCHEMA = Schema(
    tuple(Numeric(f"x{j}", missing="drop") for j in range(COLUMNS)), Target("y", ("no", "yes")), norm_bound=1.0
)


def between_cells() -> tuple[Floats, LinearModel]:
    """A row whose terms cancel, and a model at which a product of matrices gives it two scores, by its place."""
    chance = np.random.default_rng(1)
    for _ in range(100_000):
        row, coef = chance.uniform(-0.3, 0.3, COLUMNS), chance.normal(size=COLUMNS) * 1e12
        row[-1], coef[-1] = 0.25, -(row[:-1] @ coef[:-1]) / 0.25
        scores = np.tile(row, (11, 1)) @ coef
        if scores[0] <= 0 < scores[-1]:
            break
    return row, LinearModel(coef=coef[None], intercept=np.zeros(1))


def histogram(rows: Floats, model: LinearModel) -> npt.NDArray[np.int64]:
    """What a party counts, without noise."""
    table = Table.from_arrays(rows, np.array(["no", "yes"] * len(rows))[: len(rows)], SCHEMA)
    group = SumGroup.of({"a": len(rows)}, quorum=1)
    plan = PrivateEvaluation(epsilon=np.inf).terms(SCHEMA, group).plan
    reply = party_histogram(table, plan, model, rng=Rng.seeded(0))
    return np.rint(plan.counts(reply.addend)).astype(np.int64)  # type: ignore[union-attr]


@pytest.mark.parametrize("n", [397, 398, 399, 400])
def test_a_record_that_is_incomplete_moves_no_other(n: int) -> None:
    row, model = between_cells()
    rows = np.tile(row, (n, 1))
    other = rows.copy()
    other[0, 0] = np.nan
    assert np.abs(histogram(rows, model) - histogram(other, model)).sum() <= 2


@pytest.mark.parametrize("n_scores", [1, 3])
@pytest.mark.parametrize("n_columns", [3, 8, 13, 50])
def test_a_rows_score_is_the_same_wherever_it_stands(n_columns: int, n_scores: int) -> None:
    chance = np.random.default_rng(n_columns)
    X = chance.normal(size=(103, n_columns))
    model = LinearModel(coef=chance.normal(size=(n_scores, n_columns)), intercept=chance.normal(size=n_scores))
    scores = scores_of(X, model)
    np.testing.assert_allclose(scores, X @ model.coef.T + model.intercept, atol=1e-12)
    for start in range(1, 9):
        np.testing.assert_array_equal(scores_of(X[start:], model), scores[start:])
