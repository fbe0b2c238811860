"""The coordinator's side of an exact fit by secure sums: public units, and what every kind of it shares.

Of the kinds, `CenterFit` and `LocalFit` let the center compute on what it keeps: of all sums, it opens steps,
comparison bits and variances. `SumFit` opens the sums themselves and computes here. All are oracles of
`models.anderson`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import NotConverged, RunError, SettingError, SingularCurvature
from tacit.federation.federation import Federation
from tacit.methods.digit import from_digits
from tacit.methods.exact import PENALISED_ERRORS, exact_problem
from tacit.methods.method import Learned
from tacit.methods.secure_statistic import Plan, Questions, ceiling, column_bounds
from tacit.models.inference import Inference, wald
from tacit.models.problem import Problem

Floats = npt.NDArray[np.float64]

MOST_PARAMETERS = 1000
"""Whose curvature at the optimum a center inverts in minutes; standard errors of more are not asked for."""

SAME_LIKELIHOOD = 2.0**-46
"""Of the mean over records: a difference that rounding may make."""

_FLOOR = 2.0**-40  # of a column's variance, relative to its mean square: below it, rounding decides


@dataclass(frozen=True, kw_only=True)
class Units:
    """The plan of a fit, the public bound on its curvature, and the columns whose moments were opened for it."""

    plan: Plan
    trace_bits: int  # the mean curvature's trace, hence its largest eigenvalue 1/c, is at most 2**trace_bits
    opened: tuple[str, ...]


def choose_units(parties: Federation, questions: Questions, *, l2: float, fit_intercept: bool) -> Units:
    """Units from the schema's bounds, and from opened moments for the columns that have none."""
    schema = parties.schema
    if parties.n_parties < 2:
        raise SettingError(
            f"{parties.n_parties} party: an exact sum over one party is that party's own; at least two must take part"
        )
    n, h = sum(parties.sizes.values()), ceiling(schema.n_classes)
    bounds = column_bounds(schema)
    centre, square = np.zeros(schema.n_columns), np.where(np.isfinite(bounds), bounds, 0.0) ** 2
    unbounded = np.flatnonzero(np.isinf(bounds))
    if len(unbounded):
        digits = parties.sum(questions.moments, columns=unbounded.astype(np.int64), n_parties=parties.n_parties)
        mean, mean_square = from_digits(digits) / n
        if fit_intercept:
            centre[unbounded] = mean
            mean_square = np.maximum(mean_square - mean**2, _FLOOR * mean_square)
        square[unbounded] = mean_square
    room = square + l2 / (h * n)
    unit = np.exp2(np.rint(np.log2(np.where(room > 0, room, 1.0)) / 2))
    plan = Plan(l2=l2, fit_intercept=fit_intercept, n_total=n, n_parties=parties.n_parties, centre=centre, unit=unit)
    spread = float((square / unit**2).sum())
    if schema.radius is not None:
        spread = min(spread, schema.radius**2 / float(unit.min()) ** 2)
    trace = h * (spread + fit_intercept) + float(plan.penalty.sum()) / n
    trace = max(trace, h if schema.n_classes > 2 else 2.0**-20)  # h: in the directions that change no probability
    return Units(
        plan=plan,
        trace_bits=math.ceil(math.log2(trace)),
        opened=tuple(schema.column_names[j] for j in unbounded),
    )


@dataclass(frozen=True, kw_only=True)
class Peak:
    """What the true curvature at a point tells: the Newton step there, and variances of coefficients in original units.

    `covariance` is that of all coefficients, where it is known.
    """

    step: Floats
    variances: Floats
    covariance: Floats | None = None


class SecureFit(ABC):
    """One fit. Parameters are in public units, flat, classes first."""

    @abstractmethod
    def invert_bound(self) -> None:
        """Get ready to tell steps: the curvature's bound is added up and inverted, once a fit."""

    @abstractmethod
    def ask(self, point: Floats) -> None:
        """Ask about a point: its likelihood and gradient."""

    @abstractmethod
    def is_better(self) -> bool:
        """Whether the likelihood at the point asked about last is at least the accepted one's, up to rounding."""

    @abstractmethod
    def accept(self) -> Floats:
        """Accept the point asked about last, and tell its step."""

    @abstractmethod
    def peak(self, point: Floats, shortfall: float) -> Peak:
        """Ask for the true curvature at a point near the optimum; the Newton step and variances there.

        By how much the curvature falls short of its bound, at most, is known from the ascent.
        """

    def __init__(self, parties: Federation, questions: Questions, units: Units) -> None:
        plan = units.plan
        self.parties, self.questions, self.units = parties, questions, units
        self.problem: Problem = exact_problem(parties.schema, plan.l2, plan.fit_intercept)
        self.shape = self.problem.loss.shape
        self.n = plan.n_total
        self._arguments = plan.arguments()

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return math.prod(self.shape)

    def log_likelihood(self, point: Floats) -> float:
        """That of the records alone, opened."""
        digits = self.parties.sum(self.questions.loss, point=point.reshape(self.shape), **self._arguments)
        return -float(from_digits(digits)[0])

    def contrast(self) -> Floats:
        """The matrix that turns parameters into coefficients in original units, class by class."""
        original = self.parties.schema.original_units()
        if not self.units.plan.fit_intercept:
            original = original[:, :-1]
        one = original @ self.units.plan.units()
        if len(self.shape) == 1:
            return one
        C = self.shape[0]
        # Only differences between classes are determined: the table tells the parameters that sum to zero over them.
        return np.kron(np.eye(C) - 1 / C, one)

    def close(self) -> None:  # noqa: B027 - there may be nothing to let go of
        """Let go of what is kept for this fit."""

    def explain_singular(self, names: list[str]) -> RunError:
        """The error to raise when the bound has no inverse, given the columns that depend on each other."""
        way_out = "or set l2 > 0" if self.problem.l2 == 0 else "or set a larger l2"
        match names:
            case []:
                return NotConverged(
                    f"the curvature is too near to singular to be inverted; drop a feature that follows from others, "
                    f"{way_out}"
                )
            case [name]:
                return SingularCurvature(
                    f"the optimum is not unique: column {name} never changes, or hardly; drop it, {way_out}"
                )
        return SingularCurvature(
            f"the optimum is not unique: columns {', '.join(names)} are collinear, or nearly; drop one, {way_out}"
        )

    def _flat(self, step: Floats) -> Floats:
        """A step of shape (k,) or (k, C) as a flat one, classes first."""
        return np.asarray(step, dtype=np.float64).reshape(self.shape[-1], -1).T.ravel()


def learned_from_peak(fit: SecureFit, phi: Floats, peak: Peak | None, told: str) -> Learned:
    """The model with its regression table, and what the report tells about how it was come by."""
    schema, plan = fit.parties.schema, fit.units.plan
    notices = [told]
    if fit.units.opened:
        named, more = ", ".join(fit.units.opened[:5]), len(fit.units.opened) - 5
        columns = f"{named} and {more} more" if more > 0 else named
        notices.append(f"opened exactly, for want of declared bounds: the pooled mean and variance of {columns}")
    if peak is not None and plan.l2 > 0:
        notices.append(PENALISED_ERRORS)
    if fit.size > MOST_PARAMETERS:
        notices.append(f"no standard errors: there are more than {MOST_PARAMETERS} parameters")
    theta = np.atleast_2d(plan.theta(phi.reshape(fit.shape)))
    inference = None if peak is None else _inference(fit, phi, peak)
    return Learned(
        coef=theta[:, : schema.n_columns].copy(),
        intercept=theta[:, -1].copy() if plan.fit_intercept else np.zeros(len(theta)),
        inference=inference,
        notices=tuple(notices),
    )


def _inference(fit: SecureFit, phi: Floats, peak: Peak) -> Inference:
    covariance = peak.covariance
    if covariance is None:  # only its diagonal was opened
        covariance = np.full((len(peak.variances), len(peak.variances)), np.nan)
        np.fill_diagonal(covariance, peak.variances)
    return wald(
        fit.contrast() @ phi,
        covariance,
        problem=fit.problem,
        log_likelihood=fit.log_likelihood(phi),
        n_records=fit.n,
    )
