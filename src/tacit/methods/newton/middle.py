"""The middle of the sandwich: how much records' gradients vary where the model need not be right.

Where a logistic model is right, the gradients (label - prediction) u of records vary as its curvature says. Where it is
wrong they vary otherwise, and intervals that trust the curvature can be too short. What they need is the matrix

    C(w) = sum e e' (x) u u',   e = label - prediction,

the middle of Huber's sandwich (White 1982). Of two classes e is one number, of more it has one for each. C is asked
once, at the last model, if `robust` is set.

How far one record moves C, as a vector of Frobenius' norm:

1. A record adds v v' with v = e (x) u. Its norm is ||v||^2 = ||e||^2 ||u||^2, and ||u|| <= 1.
2. ||e||^2 <= q: q = 1 for two classes. For more, e = e_y - p has sum p_j^2 - 2 p_y + 1 <= 2 = q.
3. Added or removed, a record moves C by at most q.
4. Replaced: ||A - B||^2 = ||A||^2 + ||B||^2 - 2 tr(A B). A and B have no negative eigenvalue, so that tr(A B) >= 0. The
   distance is at most q sqrt 2. It is reached by rows at right angles that are predicted wrongly without a doubt.
5. A unit's m records weigh 1/m each, and `methods.cohort` has the proof that this changes nothing above. The mean of
   their v v' is no smaller than the product of their mean v with itself, which is what a unit's gradient varies by.
6. Rounding errors of rows, predictions and sums are added, as for responses (`statistic`): squares double the relative
   error of e, so twice as much.

The release is one more of mu_k-Gaussian privacy in the chain of `method`: its model is fixed by what was opened before.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from tacit.data.block import WeightedBlock
from tacit.data.table import Table
from tacit.federation.channel import Channel
from tacit.federation.reply import Sealed
from tacit.federation.seat import Seat
from tacit.federation.step import step
from tacit.methods.newton.statistic import Plan, Trial, rows_of, shaped
from tacit.methods.newton.triangle import symmetric, triangle, upper
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]


@step("private-newton/middle", version=1, plan=Plan, values=Trial, seated=True)
def party_middle(table: Table, plan: Plan, trial: Trial, *, rng: Rng, seat: Seat | None = None) -> Sealed:
    """Seal this party's C at a model, with its share of the noise."""
    party = seat.party if seat is not None else None
    plan.check_model(trial.model)
    B = plan.checked_shape(trial.shape)
    grid = plan.middle_grid(B, trial.model)
    total = middle_sum(table, plan, B, trial.model, plan.cohort.share(party))
    return plan.sealed(grid.to_grid(triangle(total), rng=rng), grid, plan.mu_middle, party)


def ask_middle(channel: Channel, plan: Plan, B: Floats, model: Floats) -> Floats:
    """C at a model over g, over all parties, as it was opened."""
    opened = channel.sum(party_middle, Trial(shape=upper(B), model=model))
    return symmetric(plan.middle_grid(B, model).from_grid(opened))


def middle_sum(table: Table, plan: Plan, B: Floats, model: Floats, share: float = 1.0) -> Floats:
    """C(model) of a party's records, of which a unit weighs `share`, over model.ravel()."""
    return plan.rows(table, share).total(partial(_middle, B=B, model=model, constant=plan.cohort.constant))


def _middle(blocks: Iterable[WeightedBlock], *, B: Floats, model: Floats, constant: float) -> Floats:
    total = np.zeros((model.size, model.size))
    for Z, y, own in rows_of(blocks, constant):
        rows = shaped(Z, B)
        scores = rows.g @ model.T
        errors = y[:, None] - expit(scores) if len(model) == 1 else np.eye(len(model))[y] - softmax(scores, axis=1)
        errors *= np.sqrt(own)[:, None]
        gradients = (errors[:, :, None] * rows.u[:, None, :]).reshape(len(y), model.size)
        total += gradients.T @ gradients
    return total
