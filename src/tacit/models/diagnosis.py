"""Why a fit has no optimum, or more than one, and the way out."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg import eigh

from tacit.errors import NotConverged, RunError, SingularCurvature
from tacit.models.loss import Array, Labels, Sums
from tacit.models.problem import Problem

_COLLINEAR = 1e-12  # smallest eigenvalue of a correlation-like matrix that rounding does not make up


class _Sums(Protocol):
    def sums(self, theta: Array) -> Sums: ...


def explain_no_optimum(records: _Sums, problem: Problem) -> RunError:
    """The error to raise when the curvature is singular or the parameters run away.

    At theta = 0 the curvature is a multiple of X'X, so one more pass tells collinear features from separable classes.
    """
    sums = records.sums(np.zeros(problem.loss.shape))
    k = problem.loss.width
    assert sums.curvature is not None
    gram = sums.curvature[:k, :k] + np.diag(np.atleast_2d(problem.penalty)[0])
    names = collinear_columns(gram, problem)
    if len(names) == 1:
        return SingularCurvature(f"the optimum is not unique: column {names[0]} is always 0; drop it, or set l2 > 0")
    if names:
        listed = ", ".join(names)
        return SingularCurvature(
            f"the optimum is not unique: columns {listed} are collinear; drop one of them, or set l2 > 0"
        )
    return explain_separable(problem)


def explain_separable(problem: Problem) -> NotConverged:
    """The error to raise when the parameters run away although the features are not collinear."""
    return NotConverged(
        "some combination of the features separates the classes (or some of their records), so that no finite optimum "
        f"exists at l2 = {problem.l2:g}; set l2 > 0, for example l2=1"
    )


def collinear_columns(gram: Array, problem: Problem) -> list[str]:
    """The columns of a singular X'X that depend on each other; none if it is not singular."""
    diagonal = np.diag(gram)
    empty = np.flatnonzero(diagonal <= 0)
    if len(empty):
        return [problem.column_name(int(empty[0]))]
    s = 1 / np.sqrt(diagonal)
    eigenvalues, vectors = eigh(gram * np.outer(s, s), subset_by_index=[0, 0])
    if eigenvalues[0] > _COLLINEAR:
        return []
    null = np.abs(vectors[:, 0])
    return [problem.column_name(int(j)) for j in np.flatnonzero(null > 1e-4 * null.max())]


def explain_missing_class(class_counts: Labels) -> NotConverged:
    """The error to raise when an unpenalised intercept meets a class without records."""
    missing = ", ".join(str(c) for c in np.flatnonzero(class_counts == 0))
    return NotConverged(
        f"no record has class {missing}, so that its intercept runs away; leave that class out, or penalise the "
        "intercept (intercept='feature' and l2 > 0)"
    )
