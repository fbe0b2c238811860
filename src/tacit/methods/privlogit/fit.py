"""The coordinator's side of an exact fit by secure sums: public units, and what every kind of it shares.

Of the kinds, `CenterFit` and `LocalFit` let the center compute on what it keeps: of all sums, it opens steps,
comparison bits and variances. `SumFit` opens the sums themselves and computes here. All are oracles of
`models.anderson`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import DataError, NotConverged, RunError, SettingError, SingularCurvature
from tacit.federation.agreement import Ask
from tacit.federation.channel import Channel
from tacit.methods.exact_fit import PENALISED_ERRORS
from tacit.methods.method import Learned
from tacit.methods.privlogit.block import WIDEST
from tacit.methods.privlogit.statistic import LARGEST_MOMENT, MOMENTS_OPENED, Point, Questions
from tacit.methods.privlogit.unit import Plan, Units
from tacit.methods.public_model import linear_model
from tacit.models.inference import Inference, against_null, wald
from tacit.models.parameter import coefficients
from tacit.models.problem import Problem
from tacit.secure.center.program import BLOCK
from tacit.secure.digit import from_digits

Floats = npt.NDArray[np.float64]

MOST_PARAMETERS = 1000
"""Whose curvature at the optimum a center inverts in minutes; standard errors of more are not asked for."""

SAME_LIKELIHOOD = 2.0**-46
"""Of the mean over records: a difference that rounding may make."""

_FLOOR = 2.0**-40  # of a column's variance, relative to its mean square: below it, rounding decides


def moments_asked(questions: Questions, plan: Plan) -> tuple[Ask, ...]:
    """The first stage of a run: moments, if some column has no declared bounds."""
    return (Ask(step=questions.moments, event=MOMENTS_OPENED),) if len(plan.unbounded) else ()


def choose_units(channel: Channel, questions: Questions, plan: Plan) -> Units | None:
    """Units of the columns without declared bounds, from their opened moments; None if there are none."""
    if not len(plan.unbounded):
        return None
    sums = from_digits(channel.sum(questions.moments))
    if not np.abs(sums).max() < LARGEST_MOMENT:
        raise DataError("a column without declared bounds has values too large to be squared; declare its low and high")
    mean, mean_square = sums / plan.n_records
    centre = np.zeros(len(mean))
    if plan.fit_intercept:
        centre = mean
        mean_square = np.maximum(mean_square - mean**2, _FLOOR * mean_square)
    return Units(centre=centre, exponent=plan.exponents(mean_square))


def start_point(start: object | None, fit: SecureFit) -> Floats:
    """A public model as the point to begin at, in public units; None is 0.

    Raises:
        SettingError: if the model does not fit the study's columns, or has an intercept where none is learned.
    """
    if start is None:
        return np.zeros(fit.size)
    model, with_intercept = linear_model(start, fit.channel.schema, "start"), fit.plan.fit_intercept
    if not with_intercept and np.any(model.intercept_ != 0):
        raise SettingError("start has an intercept and fit_intercept = False; allow one, or leave it out")
    theta = np.column_stack([model.coef_, model.intercept_] if with_intercept else [model.coef_])
    # With more than two classes the search stays among parameters that sum to zero over them.
    centred = (theta - theta.mean(axis=0) if len(theta) > 1 else theta).reshape(fit.shape)
    return fit.scaling.phi(centred).ravel()


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

    slack: int = 1  # what a bound made of blocks is multiplied by (`block`)

    def __init__(self, channel: Channel, questions: Questions, plan: Plan, units: Units | None) -> None:
        self.channel, self.questions, self.plan, self.units = channel, questions, plan, units
        self.scaling = plan.scaling(units)
        self.problem: Problem = plan.problem
        self.shape = self.problem.loss.shape
        self.size, self.n = plan.size, plan.n_records
        self.class_counts: npt.NDArray[np.int64] | None = None  # where what is opened anyway tells them

    def at(self, point: Floats) -> Point:
        """A point as parties are asked about it."""
        return Point(point=point.reshape(self.shape), units=self.units)

    def log_likelihood(self, point: Floats) -> float:
        """That of the records alone, opened."""
        return -float(from_digits(self.channel.sum(self.questions.loss, self.at(point)))[0])

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
    schema, plan = fit.channel.schema, fit.plan
    notices = [told]
    if plan.opened:
        named, more = ", ".join(plan.opened[:5]), len(plan.opened) - 5
        columns = f"{named} and {more} more" if more > 0 else named
        notices.append(f"opened exactly, for want of declared bounds: the pooled mean and variance of {columns}")
    if peak is not None and plan.l2 > 0:
        notices.append(PENALISED_ERRORS)
    if fit.slack > 1:
        notices.append(
            f"{fit.shape[-1]:,} columns are more than {WIDEST:,}: the curvature's bound is {fit.slack} times its "
            f"blocks of {BLOCK} columns. The optimum is the same; it takes more rounds, and collinear columns are not "
            f"named"
        )
    if fit.size > MOST_PARAMETERS:
        notices.append(f"no standard errors: there are more than {MOST_PARAMETERS} parameters")
    theta = fit.scaling.theta(phi.reshape(fit.shape))
    coef, intercept = coefficients(theta, schema.n_columns, float(plan.fit_intercept))
    inference = None if peak is None else _inference(fit, phi, peak)
    return Learned(coef=coef, intercept=intercept, inference=inference, notices=tuple(notices))


def _inference(fit: SecureFit, phi: Floats, peak: Peak) -> Inference:
    covariance = peak.covariance
    if covariance is None:  # only its diagonal was opened
        covariance = np.full((len(peak.variances), len(peak.variances)), np.nan)
        np.fill_diagonal(covariance, peak.variances)
    found = wald(
        fit.scaling.contrast @ phi,
        covariance,
        n_parameters=(fit.problem.n_classes - 1) * fit.problem.loss.width,
        log_likelihood=fit.log_likelihood(phi),
        n_records=fit.n,
    )
    return found if fit.class_counts is None else against_null(found, fit.problem, fit.class_counts)
