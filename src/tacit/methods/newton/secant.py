"""Curvature that the rounds show: what responses changed by from one model to the next.

A normal population says how steep responses are. Rows with long tails, as in fraud, are far from normal, and its
curvature H is then wrong by a factor. Where there is next to no noise the rounds show that, and steps would otherwise
go to and fro. All this is post-processing.

1. *Seen.* From a round's model to the next, d, responses change by y. A normal population's change by p. So the change
   that H should tell along d is H d + (y - p).
2. *More than noise.* y - p counts only if its square is over four times what the noise of both rounds explains. And
   responses must rise along d by more than three standard deviations: curvature is never negative.
3. *Taken up.* H is changed as little as it can be, and stays positive (Broyden, Fletcher, Goldfarb and Shanno 1970):
   H - H d d'H / d'H d + c c' / c'd, with c the change of step 1. One after another, the last one last.

With much noise nothing is seen, and nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_MORE = 4.0  # times what noise explains
_SURE = 3.0  # standard deviations
_LEAST = 1e-3  # of the curvature along a way: how far it may fall at once


@dataclass(frozen=True, kw_only=True)
class Rise:
    """From one model to another: the way, what responses changed by, that of a population, and a noise variance."""

    way: Floats
    seen: Floats
    expected: Floats
    variance: float  # of `seen`, a coordinate


def as_shown(H: Floats, changes: Iterable[Rise]) -> Floats:
    """H with what the changes show.

    Guarantees:
        Symmetric, and positive if H is.
    """
    shown = H
    for one in changes:
        d, beyond = one.way, one.seen - one.expected
        is_hidden = float(beyond @ beyond) < _MORE * len(d) * one.variance
        if is_hidden or float(one.seen @ d) <= _SURE * math.sqrt(one.variance * float(d @ d)):
            continue
        along, change = shown @ d, H @ d + beyond
        rise, before = float(change @ d), float(along @ d)
        if rise > _LEAST * before:
            shown = shown - np.outer(along, along) / before + np.outer(change, change) / rise
    return shown
