"""How well the model ranks records that it was not fitted to: a noisy histogram of their scores, for the AUC.

A study that wants an AUC to some precision asks for this at each look (`studies.looks`). About one complete record in
three is then kept out of every other sum (`data.part`), and all are asked at the end in which cell each of these falls.

Privacy. Replacing one record takes at most one record out of each part and puts at most one into each (`data.part`).
1. So every other sum moves by no more than where one record of it is replaced, is added or is removed. `statistic`'s
   sensitivities for a replaced record are no smaller than those for one that is added.
2. The histogram loses at most 1 in one cell and gains at most 1 in another: sqrt 2. A record's cell follows from that
   record and the model that was sent, to the last bit (`evaluation.statistic.scores_of`).
3. The histogram is one more release of mu_k-Gaussian privacy in the chain of `method`, with the share `SHARE` of mu^2.
   A record is in one part only, and pays for both: the ledger need not know in which.

What the interval is for. The model is made of the other records and of noise. Given the model, the measured records
are drawn as if after it. So there is no optimism to take off: the interval is for the AUC of this very model on the
population that the records come from. Its two parts, sampling and noise, are in `evaluation.auc`.

Cells. The AUC asks for the order of scores alone. So the model is moved and stretched before it is sent, until
its scores would fill all cells alike if they were normal; their mean and spread follow from the squares.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import numpy.typing as npt

from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.federation.channel import Channel
from tacit.federation.reply import Sealed
from tacit.federation.step import step
from tacit.methods.cohort import Cohort
from tacit.methods.evaluation.auc import AucInterval, auc_interval
from tacit.methods.evaluation.statistic import LinearModel, check_model, histogram
from tacit.methods.newton.moments import constant_row
from tacit.methods.newton.shape import Outline
from tacit.methods.newton.statistic import Plan
from tacit.privacy.guarantee import Relation
from tacit.privacy.noise.grid import NoiseGrid, mu_grid
from tacit.rand import Rng
from tacit.unit import Unit

Floats = npt.NDArray[np.float64]

SHARE = 1 / 3
"""Of mu^2, for the histogram."""
BINS = 20
_STEEP = 1.702  # expit(1.702 z) is within 0.01 of the normal distribution's function
_LEAST_SPREAD, _MOST_SPREAD = 0.02, 20.0  # of scores, whatever the noise says


def measuring_grid(plan: Plan) -> NoiseGrid:
    """Where counts are rounded to, and what noise each party adds to them."""
    largest = float(plan.cohort.n_largest)
    total = plan.cohort.total(dimension=2 * BINS, sensitivity=math.sqrt(2), value_bound=largest, norm_bound=largest)
    return mu_grid(total, mu=plan.mu_measuring)


@step("private-newton/measuring", version=1, plan=Plan, values=LinearModel)
def party_measuring(table: Table, plan: Plan, model: LinearModel, *, rng: Rng) -> Sealed:
    """Seal how many of the records that are measured on fall into each cell, with this party's share of the noise."""
    check_model(plan.cohort, model)
    measured = table.stream().chosen(table.measured)
    counts = measured.total(partial(histogram, model=model, bins=BINS, n_cells=2 * BINS))
    grid = measuring_grid(plan)
    return plan.sealed(grid.to_grid(counts.astype(np.float64), rng=rng), grid, plan.mu_measuring, None)


def ask_measuring(
    channel: Channel, plan: Plan, outline: Outline, theta: Floats, confidence: float
) -> AucInterval | None:
    """The AUC of the model `theta` over z, of shape (1, k), with its interval; None if a class drowns in noise."""
    opened = channel.sum(party_measuring, _spread(plan, outline, theta))
    grid = measuring_grid(plan)
    return auc_interval(grid.from_grid(opened), noise_std=grid.noise_std, confidence=confidence)


def check_measuring(cohort: Cohort, unit: Unit, relation: Relation, *, is_private: bool) -> None:
    """Refuse what has no AUC, or no part to measure it on."""
    if relation != "replace-one" or not is_private:
        raise SettingError("an AUC is measured where a finite epsilon is promised under replace-one; choose those")
    if cohort.n_classes != 2:
        raise SettingError(f"an AUC is of two classes, and the study has {cohort.n_classes}; aim at a coefficient")
    if cohort.shares:
        raise SettingError("an AUC is measured where all offer what is asked; let them, or aim at a coefficient")
    if unit != "record":
        raise SettingError(
            f"an AUC is measured on records that the model was not fitted to, and a {unit}'s records could be in both "
            f"parts; aim at a coefficient, or let the promise be for records"
        )


def _spread(plan: Plan, outline: Outline, theta: Floats) -> LinearModel:
    """A model with the same order of scores, which fill the cells about alike."""
    over_g = np.linalg.solve(outline.B, theta[0])  # B is symmetric: theta z = over_g B z
    mean_row = outline.expected @ constant_row(outline.B) / (plan.cohort.constant * outline.n_records)
    mean = float(over_g @ mean_row)
    variance = float(over_g @ outline.expected @ over_g) / outline.n_records - mean**2
    steepness = _STEEP / min(max(math.sqrt(max(variance, 0.0)), _LEAST_SPREAD), _MOST_SPREAD)
    coef, intercept = theta[:, :-1], theta[:, -1] * plan.cohort.constant
    return LinearModel(coef=steepness * coef, intercept=steepness * (intercept - mean))
