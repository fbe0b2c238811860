"""The shape of private Newton's noise: a matrix B made of the opened squares, in which every direction counts alike.

Noise is added to sums over g = B z, alike in all directions, where rows longer than 1 are made shorter (`statistic`).
In terms of z the noise has the covariance B^-2. Rows are far from alike in all directions: on adult, six tenths of
their squared length lie along their mean, and half of all directions have less than a thousandth each. The error of a
coefficient in a direction of mean square l is noise / l; so that l counts and not its square, noise should go with
sqrt(l): B = (A / n)^(-1/2), up to scale. Among all shapes under which a typical record has the length 1, that is the
one with the least mean loss: it is noise' H^-1 noise / 2, H near A, that is tr(A^-1 B^-2) under tr(B^2 A) = 1.

1. Directions that the noise of A drowns are not known. A is denoised (`moments`): its diagonal is kept, and beside it
   mostly noise is taken away. So its small eigenvalues are known about as well as entries of the diagonal are, and all
   are raised by four times their noise, 4 s_A. Rare categories then count nearly as much as common ones. The spectral
   norm of all the noise, s_A sqrt(2 k), would be far too much: for adult at epsilon 1 it is a hundredth of n R^2.
2. Not more directions than can be learned. Where there is so much noise that m of them are all that could be told from
   0, eigenvalues are raised further, by f with sum l / (l + f) = m. m is 0.2 over the noise of an entry of the squares,
   as a share of n R^2: on 40,000 records 31 at epsilon 0.1, and 287 at 1. The constant, which lies along the largest
   eigenvalue, then keeps its part: at 0.01 class counts are all that is left to learn.
3. Scale. The mean square of ||g|| is estimated by tr(B^2 A) / n with A as it was opened, for a floor would add to it;
   B is scaled so that a typical row has the length 1 / b. A large b leaves rows as they are and lets more noise in. At
   usual noise b is 0.8 and most rows are made shorter. With less noise b grows, with its sixth root, up to 3: what is
   left of long rows is a bias that does not shrink with the noise. In fraud, say, they are those that matter.

Any B is private: what a record may do to a sum is bounded after the shaping.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.bisection import bisect, geometric_mean
from tacit.methods.newton.moments import denoised
from tacit.methods.newton.statistic import Plan

Floats = npt.NDArray[np.float64]

_ROOM, _MOST_ROOM = 0.8, 3.0
_RAISED = 4.0  # times the noise of an entry: what eigenvalues are raised by
_LEARNED = 0.2  # over the noise of the squares: how many directions can be learned
_USUAL_NOISE = 0.0055  # on the squares: epsilon of about 0.1 for 40,000 records


@dataclass(frozen=True, kw_only=True)
class Outline:
    """What the squares told: the shape B, the number of records, and the moments to expect in that shape, B A B."""

    B: Floats
    n_records: float
    expected: Floats


def opened_shape(plan: Plan, opened: npt.NDArray[np.int64], n_records: float | None) -> Outline:
    """The outline of squares as they were opened; `n_records` is None if that is not public."""
    A = plan.unpack_squares(opened)
    n = max(1.0, float(A[-1, -1]) / plan.cohort.constant**2) if n_records is None else n_records
    A[-1, -1] = n * plan.cohort.constant**2
    share = plan.squares_noise / (n * plan.reach**2)
    B = shape_of(A, plan.squares_noise, n, room=room_for(share), most=_LEARNED / max(share, 1e-300))
    return Outline(B=B, n_records=n, expected=B @ denoised(A, plan.squares_noise) @ B)


def room_for(noise: float) -> float:
    """b by rule, where the noise on a diagonal entry of the squares is this share of n R^2."""
    room = _ROOM * math.pow(_USUAL_NOISE / noise, 1 / 6)
    return min(max(room, _ROOM), _MOST_ROOM)


def shape_of(A: Floats, noise_std: float, n_records: float, *, room: float, most: float = math.inf) -> Floats:
    """B of squares with such noise on an entry of their diagonal; `room` is b, and `most` is m.

    Guarantees:
        Symmetric and positive definite.
    """
    values, vectors = np.linalg.eigh(denoised(A, noise_std))
    raised = values + _raise(values, _RAISED * noise_std, most)
    stretched = np.sqrt(n_records / raised)
    seen = np.einsum("ij,ij->j", vectors, A @ vectors)
    typical = max(float(np.sum(stretched**2 * seen)), float(stretched[-1] ** 2 * values[-1])) / n_records
    B: Floats = (vectors * (stretched / (room * math.sqrt(typical)))) @ vectors.T
    return (B + B.T) / 2


def _raise(values: Floats, least: float, most: float) -> float:
    """f: what eigenvalues are raised by (1 and 2)."""

    def is_enough(f: float) -> bool:
        return float(np.sum(values / (values + f))) <= max(most, 1.0)

    start = max(least, 1e-12 * float(values[-1]))
    if is_enough(start):
        return least
    return bisect(is_enough, yes=1e20 * float(values[-1]), no=start, tolerance=1e-6, middle=geometric_mean)
