"""What the exact methods share: the problem they solve, and the regression table of its solution."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema
from tacit.methods.method import Learned
from tacit.models.inference import infer
from tacit.models.problem import Problem, Solution

PENALISED_ERRORS = "standard errors are those of the penalised fit: they are smaller than those of the unpenalised one"


def exact_problem(schema: Schema, l2: float, fit_intercept: bool) -> Problem:
    """The exact fit of a schema's columns: the intercept is free, that is, not penalised."""
    return Problem(
        n_features=schema.n_columns,
        n_classes=schema.n_classes,
        l2=float(l2),
        intercept="free" if fit_intercept else "none",
        column_names=schema.column_names,
    )


def learned_from(solution: Solution, schema: Schema, class_counts: npt.NDArray[np.int64] | None = None) -> Learned:
    """The solution with its standard errors, in original units; with `class_counts`, held against no features."""
    notices: tuple[str, ...] = ()
    if solution.problem.l2 > 0:
        notices = (PENALISED_ERRORS,)
    units = schema.original_units()
    if solution.problem.intercept == "none":
        units = units[:, :-1]
    n_scores = len(solution.coef)
    return Learned(
        coef=solution.coef,
        intercept=solution.intercept,
        inference=infer(solution, units=np.kron(np.eye(n_scores), units), class_counts=class_counts),
        notices=notices,
    )
