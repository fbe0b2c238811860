"""The moments of private Newton, asked and opened: where the equation of a fit begins."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.federation.channel import Channel
from tacit.methods.newton.moments import as_curvature, constant_row, steeper, with_constant
from tacit.methods.newton.shape import Outline
from tacit.methods.newton.solver import Equation, answer_directions
from tacit.methods.newton.statistic import COUNTED, Plan, Shape, party_moments, upper

Floats = npt.NDArray[np.float64]

_LEAST_WEIGHT = 0.1  # of a record, on average, whatever the noise says
_USUAL_WEIGHT, _WEIGHTS_APART = 0.85, 0.1  # of a record, on average, in most tables; how far others are from that


def open_moments(
    channel: Channel, plan: Plan, outline: Outline, start: Floats, *, l2: float | None, has_intercept: bool
) -> Equation:
    """The equation of a fit with the moments in it, as they were opened, and nothing else yet."""
    B, n_records = outline.B, outline.n_records
    t, M, weight = plan.unpack(channel.sum(party_moments, Shape(shape=upper(B))), B)
    t_noise, M_noise = plan.moments_noise(B)
    q, c = constant_row(B), plan.cohort.constant
    weight = _weight(weight, t_noise / COUNTED, n_records)
    squared = min(max(float(q @ M @ q) / c**2, weight**2 / n_records), weight)  # the sum of squared weights
    M = with_constant(M, q, squared * c**2)
    curved = as_curvature(M, M_noise, outline.expected, n_records)
    curved = with_constant(curved, q, max(squared * c**2, float(q @ curved @ q)))
    if M_noise > 0:
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
        start=np.linalg.solve(B, start.T).T * (weight / squared),
        l2=l2,
        has_intercept=has_intercept,
    )


def _weight(seen: float, noise_std: float, n_records: float) -> float:
    """The sum of weights, seen with such noise: nearer to what is usual, the more noise there is."""
    sure = 1 / (1 + (noise_std / (_WEIGHTS_APART * n_records)) ** 2)
    told = sure * seen + (1 - sure) * _USUAL_WEIGHT * n_records
    return min(max(told, _LEAST_WEIGHT * n_records), n_records)
