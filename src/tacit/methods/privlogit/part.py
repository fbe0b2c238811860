"""A party's own part of the means that an exact fit is made of, in floats: its curvature, gradient and likelihood."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import numpy.typing as npt

from tacit.data.block import Block
from tacit.data.moment import Moments, moments_of
from tacit.data.stream import RowStream
from tacit.data.table import Table
from tacit.methods.privlogit.block import gram_blocks, on_diagonal
from tacit.methods.privlogit.unit import Plan, Scaling, ceiling
from tacit.models.problem import Problem

Floats = npt.NDArray[np.float64]

LARGEST_DIGITS = 2.0**200
"""Of a likelihood in digits: one that is lower is never accepted."""

_NEAR_CENTRE = 16.0  # units from 0: eight of 53 bits are lost in a square


@np.errstate(over="ignore", invalid="ignore")
def bound_part(table: Table, scaling: Scaling) -> Floats:
    """This party's part of h X'X + penalty, in public units, over n: of shape (k, k), whatever the classes."""
    d, k, n = table.n_columns, len(scaling.penalty), scaling.plan.n_records
    is_near = _is_near(scaling)
    known = table.moments if is_near else moments_of(_scaled(table, scaling), d, table.n_classes)
    gram = np.zeros((k, k))
    gram[:d, :d] = known.square
    if k > d:
        gram[:d, d], gram[d, :d], gram[d, d] = known.total, known.total, table.n_complete
    if is_near:
        gram = scaling.matrix.T @ gram @ scaling.matrix
    curvature: Floats = scaling.plan.ceiling * gram + np.diag(scaling.penalty) * (table.n_records / n)
    return curvature / n


@np.errstate(over="ignore", invalid="ignore")
def block_part(table: Table, scaling: Scaling) -> Floats:
    """The same of a wide fit: its blocks alone (`block`)."""
    h, n = scaling.plan.ceiling, scaling.plan.n_records
    gram = _scaled(table, scaling).total(partial(gram_blocks, d=table.n_columns, width=len(scaling.penalty)))
    share = table.n_records / n
    return (h * gram + share * on_diagonal(scaling.penalty, h * n)) / n


def _is_near(scaling: Scaling) -> bool:
    """Whether rows may be squared as they are, without a copy of the table in public units.

    Such squares lose the digits in which a centre is larger than its unit, twice.
    """
    return bool((np.abs(scaling.centre) <= _NEAR_CENTRE * scaling.unit).all())


@np.errstate(over="ignore", invalid="ignore")
def point_part(table: Table, point: Floats, scaling: Scaling) -> tuple[Floats, Floats]:
    """This party's part of the mean gradient, and of the mean log-likelihood, at a point."""
    loss = scaling.plan.problem.loss
    if point.any():
        sums = loss.sums(table.stream(), scaling.theta(point), curvature=False)
        value, slope = sums.loss, sums.gradient
    else:
        value, slope = _at_zero(table, scaling.plan)
    gradient = _gradient(slope @ scaling.matrix, point, table, scaling)
    return gradient, _likelihood(value, point, table, scaling)


def known_moments(table: Table, plan: Plan) -> Moments:
    """What the table remembers: with products of different columns, if the fit asks for them later."""
    return table.column_moments if plan.is_wide else table.moments


def _at_zero(table: Table, plan: Plan) -> tuple[float, Floats]:
    """The loss and its gradient at 0, where every class is as likely: no further pass, once the moments are known."""
    loss, rows = plan.problem.loss, known_moments(table, plan).by_class
    if loss.constant != 0:
        rows = np.column_stack([rows, loss.constant * table.class_counts])
    slope: Floats = rows.sum(axis=0) / loss.n_classes - rows
    return table.n_complete * math.log(loss.n_classes), slope if loss.n_classes > 2 else slope[1]


@np.errstate(over="ignore", invalid="ignore")
def curvature_part(table: Table, point: Floats, scaling: Scaling) -> tuple[Floats, Floats, Floats]:
    """Curvature, gradient and likelihood, classes first; softmax curvature is raised where it is flat."""
    problem, n = scaling.plan.problem, scaling.plan.n_records
    n_vectors = len(np.atleast_2d(point))
    is_near = _is_near(scaling)
    rows, theta = (table.stream(), scaling.theta(point)) if is_near else (_scaled(table, scaling), point)
    sums = problem.loss.sums(rows, theta)
    assert sums.curvature is not None
    curvature, slope = sums.curvature, sums.gradient
    if is_near:
        T = np.kron(np.eye(n_vectors), scaling.matrix)
        curvature, slope = T.T @ curvature @ T, slope @ scaling.matrix
    raised = np.diag(np.tile(scaling.penalty, n_vectors))
    if problem.n_classes > 2:
        raised = raised + flat_directions(problem) * n
    return (
        (curvature + table.n_records / n * raised) / n,
        _gradient(slope, point, table, scaling).T.reshape(-1),
        _likelihood(sums.loss, point, table, scaling),
    )


def flat_directions(problem: Problem) -> Floats:
    """h on the directions that add the same to every class, which change no probability: the fit never takes them."""
    C, k = problem.loss.shape
    return np.kron(np.full((C, C), ceiling(C) / C), np.eye(k))


def _gradient(gradient: Floats, point: Floats, table: Table, scaling: Scaling) -> Floats:
    """This party's part of the mean objective's slope, uphill: of shape (k,), or (k, C)."""
    n = scaling.plan.n_records
    return -(gradient + scaling.penalty * point * (table.n_records / n)).T / n


def _likelihood(loss: float, point: Floats, table: Table, scaling: Scaling) -> Floats:
    """This party's part of the mean penalised log-likelihood."""
    n = scaling.plan.n_records
    penalty = 0.5 * float((scaling.penalty * point**2).sum()) * table.n_records / n
    return -within(np.array((loss + penalty) / n), LARGEST_DIGITS)


def _scaled(table: Table, scaling: Scaling) -> RowStream:
    """The rows in public units."""
    plain = not scaling.centre.any() and bool((scaling.unit == 1).all())
    rows = table.stream()
    return rows if plain else rows.through(partial(_in_units, centre=scaling.centre, unit=scaling.unit))


def _in_units(block: Block, *, centre: Floats, unit: Floats) -> Block:
    return Block((block.X - centre) / unit, block.y)


def within(values: Floats, largest: float) -> Floats:
    """Values cut off at `largest` in size; what is no number counts as too large."""
    return np.clip(np.nan_to_num(values, nan=largest, posinf=largest, neginf=-largest), -largest, largest)
