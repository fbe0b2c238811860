"""What private Newton's solver knows on its way: the weighted equation near a model, and a model that solves it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.methods.newton.population import Steepness

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Tangent:
    """The weighted equation near a model."""

    steepness: Steepness
    right: Floats
    variance: float  # of the noise, a coordinate
    unasked: float  # how much of S is the normal population's, beside the rounds; at most 1


@dataclass(frozen=True, kw_only=True)
class Solved:
    """A model, and how much likelier it is than its start: twice the log (`shrinkage.SEEN`); None with an l2."""

    model: Floats  # (n_scores, k)
    evidence: float | None = None
    level_variance: float = 0.0  # of q'S at this model: what is not known of it (`shrinkage`, 6)
