"""The moments of private Newton, asked and opened: where the equation of a fit begins."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.federation.channel import Channel
from tacit.methods.newton.moments import as_curvature, constant_row, mean_along, steeper, with_constant, with_mean
from tacit.methods.newton.shape import Outline
from tacit.methods.newton.solver import Equation, answer_directions
from tacit.methods.newton.statistic import COUNTED, Plan, Shape, party_moments
from tacit.methods.newton.triangle import upper

Floats = npt.NDArray[np.float64]

_LEAST_WEIGHT = 0.1  # of a record, on average, whatever the noise says
_UNEVEN, _UNEVEN_APART = 0.02, 0.04  # the squared variation of weights in most tables; how far others are from that
_TURNS = 4
_USUAL_WEIGHT, _WEIGHTS_APART = 0.85, 0.1  # of a record, on average, in most tables; how far others are from that


def open_moments(
    channel: Channel, plan: Plan, outline: Outline, start: Floats, *, l2: float | None, has_intercept: bool
) -> Equation:
    """The equation of a fit with the moments in it, as they were opened, and nothing else yet."""
    B, n_records = outline.B, outline.n_records
    t, M, weight = plan.unpack(channel.sum(party_moments, Shape(shape=upper(B))), B)
    t_noise, M_noise = plan.moments_noise(B)
    q, c = constant_row(B), plan.cohort.constant
    weights = told_weights(
        weight / n_records,
        float(q @ M @ q) / (c**2 * n_records),
        noise_std=t_noise / (COUNTED * n_records),
        squared_noise_std=M_noise * float(q @ q) / (c**2 * n_records),
    )
    weight, squared = weights.mean * n_records, weights.squared * n_records
    M = with_constant(M, q, squared * c**2)
    curved = as_curvature(M, M_noise, outline.expected, n_records)
    curved = with_constant(curved, q, max(squared * c**2, float(q @ curved @ q)))
    kept = 1.0
    if M_noise > 0:
        along, kept = mean_along(M, q, M_noise, outline.expected)
        curved = with_mean(curved, q, along)
        curved = steeper(curved, M, answer_directions(t, curved, q if has_intercept else None), M_noise)
    return Equation(
        plan=plan,
        B=B,
        rho=weight / squared,
        n_records=n_records,
        t=t,
        opened=M,
        M=curved,
        t_noise=t_noise,
        M_noise=M_noise,
        mean_kept=kept,
        weight_error=weights.std / weights.mean,
        start=np.linalg.solve(B, start.T).T * (weight / squared),
        l2=l2,
        has_intercept=has_intercept,
    )


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The mean weight of a record, that of its square, and the standard deviation of what is not known of the mean."""

    mean: float
    squared: float
    std: float


def told_weights(mean: float, squared: float, *, noise_std: float, squared_noise_std: float) -> Weights:
    """The weights of records of which both means were opened, with such noise.

    The mean of squares is w^2 (1 + v), w the mean and v small: rows of a shape are much alike in length. So both say
    nearly the same, and the one with less noise decides (Kalman's rule, the square drawn as a line where w then lies).
    What is usual of v was seen in the training records of ten public tables: 0 to 0.04 in nine, 0.16 in kdd99.

    Guarantees:
        Means that rows can have: 0.1 <= w <= 1 and w^2 <= the mean of squares <= w. Without noise, what was opened.
    """
    of_usual = 1 / (1 + (noise_std / _WEIGHTS_APART) ** 2)
    before = of_usual * mean + (1 - of_usual) * _USUAL_WEIGHT
    variance = of_usual * noise_std**2
    w = before
    for _ in range(_TURNS):
        slope = 2 * w * (1 + _UNEVEN)
        apart = (_UNEVEN_APART * w**2) ** 2
        expected = w**2 * (1 + _UNEVEN) + slope * (before - w)
        beyond, seen = squared - expected, slope**2 * variance + apart + squared_noise_std**2
        w = min(max(before + variance * slope / seen * beyond, _LEAST_WEIGHT), 1.0)
    left = variance * (apart + squared_noise_std**2) / seen
    told = expected + (seen - squared_noise_std**2) / seen * beyond
    return Weights(mean=w, squared=min(max(told, w**2), w), std=math.sqrt(left))
