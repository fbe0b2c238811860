"""Does a feature matter at all? A joint (Wald) test of all its coefficients.

A factor with four levels has three coefficients. Each may be uncertain where the factor as a whole is not, so one test
looks at all of them: W = (L b)' (L C L')^-1 (L b), which is chi-squared with as many degrees of freedom as L has rows
if the feature does nothing. b are the estimates and C their joint covariance. L takes what must be 0 then:

1. With a reference level, its coefficients are differences from that level, and L is the identity.
2. Where each level has a column, what matters are differences between levels: L subtracts the first one.
3. With more than two classes, adding the same to every class changes nothing: L subtracts the last class.

Noise. Of a private fit C counts the noise that was added for privacy. It is taken where the estimate is; the table's
own standard errors and z count that noise grows on the way to 0, and may say less. So only correlations are taken from
C. Each coefficient has the standard error of the table, or |b / z| if that is more: the test is never surer of one
coefficient than the table is. `benchmarks/joint_test.py` measures how often it is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema
from tacit.models.inference import Inference
from tacit.report.identity import LEVELS, ColumnFacts

Floats = npt.NDArray[np.float64]

HIDDEN = "not identified: noise hides a coefficient of it"
NOT_OPENED = "left out: how its coefficients go together was not opened"


@dataclass(frozen=True, kw_only=True)
class JointTest:
    """Whether a feature matters: the statistic, its degrees of freedom and p; or `why` there is none.

    Guarantees:
        Either statistic and p are given, or `why` is.
    """

    feature: str
    degrees: int
    statistic: float | None = None
    p: float | None = None
    why: str = ""


def joint_tests(
    inference: Inference | None, schema: Schema, columns: Sequence[ColumnFacts], n_scores: int
) -> tuple[JointTest, ...]:
    """A test for each feature that has more than one coefficient; none without an inference.

    Args:
        inference: of all parameters, classes first, the intercept last in each.
        schema: the encoded columns.
        columns: its features.
        n_scores: how many rows the coefficients have: 1 for two classes.
    """
    width = schema.n_columns + 1
    if inference is None or len(inference.estimate) != n_scores * width:
        return ()
    place = {name: position for position, name in enumerate(schema.column_names)}
    tests = []
    for column in columns:
        at = [place[term] for term in column.terms]
        if len(at) * n_scores > 1:
            rows = [c * width + position for c in range(n_scores) for position in at]
            tests.append(_test(column, np.array(rows), _contrast(column, n_scores), inference))
    return tuple(test for test in tests if test.degrees > 0)


def _contrast(column: ColumnFacts, n_scores: int) -> Floats:
    """L over the coefficients of one feature, classes first."""
    k = len(column.terms)
    within = np.eye(k)
    if column.kind == LEVELS and column.reference is None:
        within = np.hstack([-np.ones((k - 1, 1)), np.eye(k - 1)])
    across = np.eye(1) if n_scores == 1 else np.hstack([np.eye(n_scores - 1), -np.ones((n_scores - 1, 1))])
    return np.kron(across, within)


def _test(column: ColumnFacts, rows: npt.NDArray[np.int64], L: Floats, inference: Inference) -> JointTest:
    from scipy.stats import chi2  # which takes a while to import

    b, error, z = inference.estimate[rows], inference.standard_error[rows], inference.z[rows]
    if not np.isfinite(error).all():
        return JointTest(feature=column.name, degrees=len(L), why=HIDDEN)
    C = inference.covariance[np.ix_(rows, rows)]
    if not np.isfinite(C).all():
        return JointTest(feature=column.name, degrees=len(L), why=NOT_OPENED)
    C = _as_the_table_says(C, b, error, z)
    try:
        statistic = float(L @ b @ np.linalg.solve(L @ C @ L.T, L @ b))
    except np.linalg.LinAlgError:
        statistic = float("nan")
    if not (np.isfinite(statistic) and statistic >= 0):
        return JointTest(feature=column.name, degrees=len(L), why="left out: its coefficients cannot be told apart")
    return JointTest(feature=column.name, degrees=len(L), statistic=statistic, p=float(chi2.sf(statistic, len(L))))


def _as_the_table_says(C: Floats, b: Floats, error: Floats, z: Floats) -> Floats:
    """The covariance with C's correlations, in which no coefficient is surer than in its own row."""
    own = np.sqrt(np.maximum(np.diag(C), np.finfo(np.float64).tiny))
    by_z = np.divide(np.abs(b), np.abs(z), out=np.zeros_like(b), where=np.abs(z) > 0)
    factor = np.maximum(np.maximum(error, by_z), own) / own
    told: Floats = C * np.outer(factor, factor)
    return told
