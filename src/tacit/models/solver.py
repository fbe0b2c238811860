"""One exact fit over a stream of row blocks, or over anything that can add up: damped Newton, stopped by a certificate.

The objective is F(theta) = sum_i loss_i(theta) + (l2 / 2) ||theta||^2 + linear.theta, where an intercept of kind "free"
is not penalised. Without a linear term the softmax optimum sums to zero over the classes (adding the same to every
class changes no probability and can only raise the penalty), so the search stays among such parameters. Steps:

1. Of a stream, read the first rows. If they are all there is, keep them; otherwise fit them roughly, and approach
   the optimum of all rows with steps that use the curvature of the first.
   Of few rows with many columns, try a guess from the rows' products (`wide`); its gradient may certify it.
2. Evaluate value, gradient and curvature in one pass. Drop a start worse than theta = 0 (F = n ln C).
3. Take the Newton step, shortened until F falls or its slope along the step halves.
4. Stop when the certificate is within the tolerance, or when rounding hides any further progress.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from tacit.errors import DataError, NotConverged
from tacit.models.approach import approach, rough_fit
from tacit.models.certificate import Certificate, FitPoint, certify, certify_by_gradient
from tacit.models.diagnosis import explain_missing_class, explain_no_optimum
from tacit.models.loss import Array, Blocks, FineArray, Labels, Rows, Sums, total
from tacit.models.problem import Intercept, Problem, Solution
from tacit.models.wide import is_wide, wide_guess

__all__ = ["BlockRecords", "Extent", "Intercept", "Problem", "Records", "Solution", "fit", "minimise", "settled"]

Kind = TypeVar("Kind")

_START_ROWS = 65_536
_START_VALUES = 2**23
_LARGE = 256  # parameters whose curvature is better not multiplied by itself
_SINGULAR = 1e-13  # of a curvature with unit diagonal: below it, rounding decides


def fit(blocks: Blocks, *, problem: Problem, on_pass: Callable[[int, float], None] | None = None) -> Solution:
    """The optimum of `problem` on the records of `blocks`; `on_pass(passes, gradient_norm)` is told of each full pass.

    Guarantees:
        What is returned carries a finite `distance_bound`; it is within the tolerance, or rounding hides what is left.
        Data with no optimum, or with no unique one, raise `NotConverged` or `SingularCurvature`.
    """
    head, complete = _read_head(blocks, problem)
    records = BlockRecords((lambda: head) if complete else blocks, problem)
    if complete and is_wide(sum(len(block[1]) for block in head), problem):
        records.extent()  # looks at every block before anything is computed from it
        solution = settled(records, wide_guess(head, problem), problem=problem)
        if solution is not None:
            return solution
    if problem.start is not None or complete:
        return minimise(records, problem=problem, on_pass=on_pass)
    start, passes = approach(records, problem, *rough_fit(head, problem))
    solution = minimise(records, problem=replace(problem, start=start), on_pass=on_pass)
    return replace(solution, problem=problem, passes=solution.passes + passes)


def minimise(records: Records, *, problem: Problem, on_pass: Callable[[int, float], None] | None = None) -> Solution:
    """The optimum of `problem` on whatever answers for the records: blocks of rows here, or parties elsewhere.

    Guarantees: as `fit`.
    """
    search = _Search(records, problem, on_pass)
    start = np.zeros(problem.loss.shape) if problem.start is None else problem.start
    here = search.evaluate(start)
    search.check_classes()
    if not here.objective <= here.sums.n_records * math.log(problem.n_classes):  # F(0)
        here = search.evaluate(np.zeros(problem.loss.shape))
    best = math.inf
    while True:
        step = search.newton_step(here)
        certificate = search.certificate(here, step)
        if certificate is not None:
            stalled = certificate.computed > 0.5 * best and 2 * certificate.computed <= certificate.distance_bound
            if search.is_within(here, certificate) or (math.isfinite(certificate.distance_bound) and stalled):
                return search.solution(here, certificate)
            best = min(best, certificate.computed)
        search.check_optimum_exists(here, step, certificate)
        here = search.descend(here, step)


def settled(records: Records, theta: Array, *, problem: Problem) -> Solution | None:
    """The solution at `theta`, if its gradient alone certifies it: no curvature is computed. None if it does not.

    Guarantees: as `fit`.
    """
    search = _Search(records, problem, None)
    here = search.evaluate(theta, curvature=False)
    certificate = search.gradient_certificate(here)
    return search.solution(here, certificate) if search.is_within(here, certificate) else None


@dataclass(frozen=True, kw_only=True)
class Extent:
    """Private: column bounds (for the rounding bound) and class counts (to detect an empty class)."""

    column_bound: Array  # (d,): the largest entry of each column, in size
    class_counts: Labels  # (C,): the number of records of each class


class Records(Protocol):
    """Whatever can add up the statistics of all records at a parameter."""

    def sums(self, theta: Array, *, curvature: bool = True) -> Sums:
        """Value and gradient at `theta`, and the curvature if it is asked for."""
        ...

    def extent(self) -> Extent:
        """The size of the columns' entries and of the classes."""
        ...


@dataclass(frozen=True, kw_only=True)
class _Iterate:
    theta: Array
    objective: float
    gradient: Array
    curvature: Array  # positive definite: see _definite; empty where it was not asked for
    sums: Sums


class _Search:
    """The state of one fit."""

    def __init__(self, records: Records, problem: Problem, on_pass: Callable[[int, float], None] | None) -> None:
        self.records, self.problem, self.on_pass = records, problem, on_pass
        self.loss, self.penalty = problem.loss, problem.penalty
        self.linear = np.zeros(self.loss.shape) if problem.linear is None else problem.linear
        self.centred = problem.n_classes > 2 and problem.linear is None
        self.passes = 0
        self.uncertain = 0  # iterates that hardly move any more and still have no certificate

    def evaluate(self, theta: Array, *, curvature: bool = True) -> _Iterate:
        if self.centred:
            theta = theta - theta.mean(axis=0)
        sums = self.records.sums(theta, curvature=curvature)
        if sums.n_records == 0:
            raise DataError("the table has no records; a fit needs at least one")
        self.passes += 1
        gradient = sums.gradient + self.penalty * theta + self.linear
        if self.centred:
            gradient -= gradient.mean(axis=0)  # zero but for rounding
        objective = sums.loss + 0.5 * float((self.penalty * theta**2).sum()) + float((self.linear * theta).sum())
        H = np.zeros((0, 0)) if sums.curvature is None else sums.curvature + np.diag(self.penalty.ravel())
        if self.on_pass is not None:
            self.on_pass(self.passes, float(np.linalg.norm(gradient)))
        definite = self._definite(H) if curvature else H
        return _Iterate(theta=theta, objective=objective, gradient=gradient, curvature=definite, sums=sums)

    def _definite(self, H: Array) -> Array:
        """H, raised in the directions that add the same to every class: the search never takes them."""
        if self.centred:
            C, k = self.loss.shape
            for j in range(k):
                rows = slice(j, C * k, k)
                H[rows, rows] += np.diag(H)[rows].max() / C
        return H

    def newton_step(self, here: _Iterate) -> Array:
        diagonal = np.diag(here.curvature)
        if not diagonal.min() > 0:
            raise explain_no_optimum(self.records, self.problem)
        s = 1 / np.sqrt(diagonal)
        try:
            factor = cho_factor(here.curvature * np.outer(s, s), lower=True)
        except LinAlgError:
            raise explain_no_optimum(self.records, self.problem) from None
        if np.diag(factor[0]).min() ** 2 < _SINGULAR:
            raise explain_no_optimum(self.records, self.problem)
        step: Array = -s * cho_solve(factor, s * here.gradient.ravel())
        return step.reshape(self.loss.shape)

    def certificate(self, here: _Iterate, step: Array) -> Certificate | None:
        """The certificate, once the Newton step says that it may be within the tolerance; None before."""
        decrement = -float((here.gradient * step).sum())
        near = float(np.linalg.norm(step)) <= self.problem.tolerance * max(1.0, float(np.linalg.norm(here.theta)))
        if not (near or decrement <= 1e-12):
            return None
        # The whole certificate takes several products of matrices as large as the curvature.
        if here.theta.size >= _LARGE and self.is_within(here, by_gradient := self.gradient_certificate(here)):
            return by_gradient
        return certify(self._point(here), self.loss)

    def gradient_certificate(self, here: _Iterate) -> Certificate:
        """What the gradient and the penalty certify without a curvature; infinite if not all is penalised."""
        return certify_by_gradient(self._point(here), self.loss)

    def is_within(self, here: _Iterate, certificate: Certificate) -> bool:
        """Whether the computed distance is within the tolerance, and a distance is certified at all."""
        within = certificate.computed <= self.problem.tolerance * max(1.0, float(np.linalg.norm(here.theta)))
        return within and math.isfinite(certificate.distance_bound)

    def _point(self, here: _Iterate) -> FitPoint:
        return FitPoint(
            theta=here.theta,
            gradient=here.gradient,
            curvature=here.curvature,
            sums=here.sums,
            column_bound=self._column_bound(),
            l2_floor=self.problem.l2 if self.problem.strongly_convex else 0.0,
        )

    def check_classes(self) -> None:
        """An unpenalised intercept of a class without records runs to minus infinity."""
        counts = self.records.extent().class_counts
        if self.problem.intercept == "free" and not counts.all():
            raise explain_missing_class(counts)

    def _column_bound(self) -> Array:
        """The largest entry of each column in size, that of the intercept's included."""
        bound = self.records.extent().column_bound
        return bound if self.problem.intercept == "none" else np.append(bound, self.problem.constant)

    def check_optimum_exists(self, here: _Iterate, step: Array, certificate: Certificate | None) -> None:
        if self.passes >= self.problem.max_passes:
            norm = float(np.linalg.norm(here.gradient))
            raise NotConverged(
                f"the gradient norm is still {norm:.3g} after {self.passes} passes (max_passes = "
                f"{self.problem.max_passes}); allow more passes, set a larger l2, or scale the features alike"
            )
        if certificate is not None and math.isfinite(certificate.distance_bound):
            return
        decrement = -float((here.gradient * step).sum())
        # A loss below ln 2 puts every record on its own side: the classes are separable, and F has no minimum. A
        # decrement that vanishes while no certificate holds is the mark of a direction that separates some records.
        separable = here.sums.loss < math.log(2) or decrement < 1e-13
        if self.problem.l2 == 0 and separable:
            raise explain_no_optimum(self.records, self.problem)
        self.uncertain += decrement < 1e-13
        if self.uncertain > 3:
            raise NotConverged(
                "the features are so nearly collinear that rounding hides the optimum, and no distance from it can be "
                f"certified at l2 = {self.problem.l2:g}; drop a feature that follows from others, or set a larger l2"
            )

    def descend(self, here: _Iterate, step: Array) -> _Iterate:
        slope = float((here.gradient * step).sum())
        length = 1.0
        while True:
            there = self.evaluate(here.theta + length * step)
            falls = there.objective <= here.objective + 1e-4 * length * slope
            # Near the optimum rounding drowns the fall of F, but not that of its slope.
            levels = abs(float((there.gradient * step).sum())) <= 0.5 * abs(slope)
            if (falls and math.isfinite(there.objective)) or levels or self.passes >= self.problem.max_passes:
                return there
            length *= 0.5 if length > 1e-3 else 0.1
            if length < 1e-12:
                return here  # rounding hides any descent; the certificate decides

    def solution(self, here: _Iterate, certificate: Certificate) -> Solution:
        return Solution(
            problem=self.problem,
            theta=here.theta,
            gradient_norm=float(np.linalg.norm(here.gradient)),
            distance_bound=certificate.distance_bound,
            objective=here.objective,
            log_likelihood=here.sums.log_likelihood,
            measure=lambda: self._curvature(here),
            n_records=here.sums.n_records,
            passes=self.passes,
        )

    def _curvature(self, here: _Iterate) -> Array:
        sums = here.sums if here.sums.curvature is not None else self.records.sums(here.theta)
        assert sums.curvature is not None
        return sums.curvature + np.diag(self.penalty.ravel())


class BlockRecords:
    """Records as row blocks: checked and measured on the first pass over them."""

    def __init__(self, blocks: Blocks, problem: Problem) -> None:
        self._blocks, self._problem = blocks, problem
        self._extent: Extent | None = None

    def sums(self, theta: Array, *, curvature: bool = True) -> Sums:
        """Value, gradient and curvature at `theta`, in one pass."""
        loss = self._problem.loss
        if self._extent is not None:
            return loss.sums(self._blocks, theta, curvature=curvature)
        fold = partial(loss.fold, theta=theta, curvature=curvature)
        sums, self._extent = total(self._blocks, partial(_measured, problem=self._problem, fold=fold), _both)
        return sums

    def fine_gradient(self, theta: Array) -> FineArray:
        """The gradient at `theta` in the finest floats."""
        return self._problem.loss.fine_gradient(self._blocks, theta)

    def extent(self) -> Extent:
        """What the first pass saw."""
        if self._extent is None:
            _, self._extent = total(self._blocks, partial(_measured, problem=self._problem, fold=_nothing), _extents)
        return self._extent


Measured = tuple[Kind, Extent]


def _measured(blocks: Iterable[Rows], *, problem: Problem, fold: Callable[[Iterable[Rows]], Kind]) -> Measured[Kind]:
    """What `fold` makes of the blocks, which are checked and measured in the same pass."""
    bound = np.zeros(problem.n_features)
    counts = np.zeros(problem.n_classes, dtype=np.int64)

    def checked() -> Iterator[Rows]:
        for block in blocks:
            X, y = block[:2]
            _check_block(X, y, problem)
            if len(X):
                np.maximum(bound, np.maximum(X.max(axis=0), -X.min(axis=0)), out=bound)
                np.add(counts, np.bincount(y, minlength=problem.n_classes), out=counts)
            if not np.isfinite(bound).all():
                columns = ", ".join(problem.column_name(int(j)) for j in np.flatnonzero(~np.isfinite(bound)))
                raise DataError(f"missing or infinite values in column {columns}; drop or impute them first")
            yield block

    return fold(checked()), Extent(column_bound=bound, class_counts=counts)


def _nothing(blocks: Iterable[Rows]) -> None:
    for _ in blocks:
        pass


def _extents(one: Measured[Kind], other: Measured[Kind]) -> Measured[Kind]:
    """The extent of both, and what was folded first."""
    bound = np.maximum(one[1].column_bound, other[1].column_bound)
    return one[0], Extent(column_bound=bound, class_counts=one[1].class_counts + other[1].class_counts)


def _both(one: Measured[Sums], other: Measured[Sums]) -> Measured[Sums]:
    """The sums and the extent of both."""
    return one[0] + other[0], _extents(one, other)[1]


def _check_block(X: Array, y: Labels, problem: Problem) -> None:
    if X.ndim != 2 or X.shape[1] != problem.n_features or X.dtype != np.float64:
        raise DataError(
            f"a block has shape {X.shape} and type {X.dtype}; want (rows, {problem.n_features}) and float64"
        )
    if y.shape != X.shape[:1] or y.dtype != np.int64:
        raise DataError(f"labels have shape {y.shape} and type {y.dtype}; want ({len(X)},) and int64")
    if len(y) and not (y.min() >= 0 and y.max() < problem.n_classes):
        raise DataError(f"labels must be class indices from 0 to {problem.n_classes - 1}; some lie outside")


def _read_head(blocks: Blocks, problem: Problem) -> tuple[list[Rows], bool]:
    """The first blocks, up to some tens of megabytes, and whether they are the whole table."""
    head: list[Rows] = []
    rows, most = 0, min(_START_ROWS, _START_VALUES // max(1, problem.n_features))
    for block in blocks():
        if rows >= most:
            return head, False
        _check_block(*block[:2], problem)
        head.append(block)
        rows += len(block[0])
    return head, True
