"""What a party of private Newton is asked: its moments, once, and its responses to a model, a few times.

    moments     t = sum (label - 1/2) (x, c) and A = sum (x, c)(x, c)'   (softmax: label = e_y, 1/C in place of 1/2)
    responses   S(theta) = sum (prediction - 1/2) (x, c), without a look at the labels; the loss has the gradient S - t

Each is summed over all parties and opened with Gaussian noise; c is the value of the intercept's feature, R^2 = r^2 +
c^2 bounds ||(x, c)||^2. How far one record moves them:

    replaced  (t, A sqrt(q/2) / R) as one vector: 3/2 sqrt(q) R, q = 1/2 for two classes, 2 (1 - 1/C) for more (proof in
              `quadratic_sum`: a record cannot move both most at once). S: the diameter in `models.response`
    added     t by sqrt(q/2) R, as ||e_y - 1/C||^2 = 1 - 1/C, and A sqrt(q/2) / R by as much, so both by sqrt(q) R.
              S: the norm there

Rounding errors are part of each: a computed sum of n terms of norm g is within e n g of the true one, e the relative
error of a sum over chunks (`noisy_gradient` has the same); 2 e n g is added. Where records are added or removed, n is
not public and a bound that no party exceeds takes its place.

Exact Gaussian accounting. The noise is a sum of discrete Gaussians, one of each party. By the claim in `noisy_gradient`
what is opened has, up to a factor of exp(+-1e-60), the law of a random function of the same sum with *continuous*
Gaussian noise of variance S^2 - 16 grid steps squared, S^2 that of the honest parties. Given all that was opened
before, each release is therefore mu_k-Gaussian private with mu_k = sensitivity / sqrt(S^2 - 16), and all together
mu-Gaussian private, mu^2 = sum mu_k^2 (Dong, Roth and Su 2022, Corollary 3.3: adaptive). We ask for S^2 >= 2^18 and add
a relative 2^-14 to the noise, which is more than the 16 and the factor take away. Concentrated privacy would ask for 6
to 9 % more noise at the same (epsilon, delta).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from tacit.data.table import BLOCK_ROWS, Table
from tacit.errors import PolicyRefusal, SettingError
from tacit.federation.reply import Sealed
from tacit.federation.step import step
from tacit.methods.quadratic_sum import statistics
from tacit.models.loss import CHUNK_ROWS, Loss
from tacit.models.response import response_diameter, response_norm
from tacit.privacy.event import Event, Gaussian, NotPrivate
from tacit.privacy.grid import NoiseGrid, VectorSum, concentrated_grid, exact_grid
from tacit.privacy.guarantee import RELATIONS
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]

MOST_RECORDS = 2**24
"""Of one party, where the number is not public."""
_U = 2.0**-53
_UP = 1 + 2.0**-40
_MOST_REACH = 1e6  # of R ||theta||: beyond it predictions are 0 or 1, and rounding errors begin to count
_MORE_NOISE = 1 + 2.0**-14
_FINE_VARIANCE = 2.0**18  # in steps squared
_WHY = "epsilon is infinite: no noise is added"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public arguments of a run: all that a party needs, and enough to check what its answers will cost.

    `mu_moments` and `mu_response` are those of the one release and of each of the others: sensitivity over noise;
    infinite for no noise. `rounds` is how many
    of the latter there will be. `n_largest` bounds the records of a party, `radius` the norm of x, `constant` is c.
    """

    mu_moments: float
    mu_response: float
    rounds: int
    relation: str
    n_largest: int
    n_parties: int
    colluders: int
    n_features: int
    n_classes: int
    radius: float
    constant: float

    @property
    def loss(self) -> Loss:
        """The loss of one record, without a penalty."""
        return Loss(n_features=self.n_features, n_classes=self.n_classes, constant=self.constant)

    @property
    def reach(self) -> float:
        """R: the largest norm of a row with its constant."""
        return math.hypot(self.radius, self.constant) * _UP

    @property
    def width(self) -> int:
        """k, the features with the constant."""
        return self.n_features + 1

    @property
    def n_scores(self) -> int:
        """How many rows t and S have."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def spread(self) -> float:
        """q."""
        return 0.5 if self.n_classes == 2 else 2 * (1 - 1 / self.n_classes)

    @property
    def square_unit(self) -> float:
        """What A is divided by before its noise is drawn."""
        return self.reach * math.sqrt(2 / self.spread)

    # --- moments -----------------------------------------------------------------------------------------------------

    @property
    def moments_sensitivity(self) -> float:
        """How far one record moves (t, A / square_unit), as computed."""
        moved = (1.5 if self.relation == "replace-one" else 1.0) * math.sqrt(self.spread) * self.reach
        summing = BLOCK_ROWS + self.n_largest / BLOCK_ROWS + 16
        return (moved + 4 * _U * summing * self.n_largest * math.sqrt(self.spread) * self.reach) * _UP

    @property
    def moments_grid(self) -> NoiseGrid:
        """Where the moments are rounded to, and what noise each party adds to them."""
        dimension = self.n_scores * self.width + self.width * (self.width + 1) // 2
        return self._grid(dimension, self.moments_sensitivity, 1.01 * self.reach * self.n_largest, self.mu_moments)

    def pack(self, t: Floats, A: Floats) -> Floats:
        """t, and the upper triangle of A in its unit, off the diagonal times sqrt 2: its norm is Frobenius' norm."""
        rows, columns = np.triu_indices(self.width)
        off = np.where(rows == columns, 1.0, math.sqrt(2))
        return np.concatenate([t.ravel(), A[rows, columns] * off / self.square_unit])

    def unpack(self, opened: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
        """t of shape (n_scores, k) and A: the inverse of `pack` and rounding."""
        flat = self.moments_grid.from_grid(opened)
        rows, columns = np.triu_indices(self.width)
        A = np.zeros((self.width, self.width))
        off = np.where(rows == columns, 1.0, math.sqrt(0.5))
        A[rows, columns] = flat[self.n_scores * self.width :] * off * self.square_unit
        return flat[: self.n_scores * self.width].reshape(self.n_scores, self.width), np.triu(A) + np.triu(A, 1).T

    @property
    def moments_noise(self) -> tuple[float, float]:
        """The standard deviation of the noise on an entry of t, and on one on the diagonal of A."""
        noise = self.moments_grid.noise_std
        return noise, noise * self.square_unit

    # --- responses ---------------------------------------------------------------------------------------------------

    def response_sensitivity(self, theta: Floats) -> float:
        """How far one record moves the computed S at `theta`."""
        facts = theta, self.radius, self.constant, self.n_classes
        longest = response_norm(*facts)
        moved = response_diameter(*facts) if self.relation == "replace-one" else longest
        summing = CHUNK_ROWS + self.n_largest / CHUNK_ROWS + 8
        errors = summing + 8 * (self.n_features + 4) * (1 + self.reach * float(np.linalg.norm(theta)))
        # A prediction errs by u, not by u times its distance from 1/2: hence the bound R in place of `longest`.
        return (moved + 4 * _U * errors * self.n_largest * self.reach) * _UP + 2.0**-40 * self.reach

    def response_grid(self, theta: Floats) -> NoiseGrid:
        """Where the responses are rounded to, and what noise each party adds to them."""
        bound = 1.01 * self.reach * self.n_largest
        return self._grid(self.n_scores * self.width, self.response_sensitivity(theta), bound, self.mu_response)

    def _grid(self, dimension: int, sensitivity: float, value_bound: float, mu: float) -> NoiseGrid:
        total = VectorSum(
            dimension=dimension,
            sensitivity=sensitivity,
            value_bound=value_bound,
            n_parties=self.n_parties,
            colluders=self.colluders,
        )
        if math.isinf(mu):
            return exact_grid(total)
        grid = concentrated_grid(total, rho=mu**2 / 2 / _MORE_NOISE**2)
        if total.honest * grid.share_parameter**2 < _FINE_VARIANCE:
            raise SettingError(f"mu = {mu:.3g} leaves too little noise for a fine grid; choose a smaller epsilon")
        return grid

    # --- what a party checks -----------------------------------------------------------------------------------------

    def check(self, table: Table) -> None:
        """Refuse a plan that is not true of this party's table: the noise would be sized for another one."""
        radius = table.schema.radius
        facts_hold = (
            radius is not None
            and radius <= self.radius * (1 + 1e-12)
            and 0 < self.constant < math.inf
            and table.n_records <= self.n_largest
            and (self.n_features, self.n_classes) == (table.n_columns, table.n_classes)
            and 0 <= self.colluders < self.n_parties
            and self.mu_moments > 0
            and self.mu_response > 0
            and self.relation in RELATIONS
        )
        if not facts_hold:
            raise PolicyRefusal("the plan's sizes, columns or bounds do not fit this party's table")

    def check_theta(self, theta: Floats) -> None:
        """Refuse a model that is none, or too long to compute with."""
        if theta.shape != self.loss.shape or not float(np.linalg.norm(theta)) * self.reach <= _MOST_REACH:
            raise PolicyRefusal("the model that was sent does not fit this party's table, or is too long")


def release_event(mu: float) -> Event:
    """What a release with so little noise costs."""
    if math.isinf(mu):
        return NotPrivate(why=_WHY)
    return Gaussian(noise_multiplier=1 / mu)


@step("private-newton/moments", version=1)
def party_moments(table: Table, *, rng: Rng, **arguments: Any) -> Sealed:
    """Seal this party's t and A, with its share of the noise."""
    plan = Plan(**arguments)
    plan.check(table)
    vector = plan.pack(*statistics(table, plan.constant))
    addend = plan.moments_grid.to_grid(vector, rng=rng)
    return Sealed(addend=addend, event=release_event(plan.mu_moments), n_parties=plan.n_parties)


@step("private-newton/responses", version=1)
def party_responses(table: Table, *, rng: Rng, theta: Floats, turn: int, **arguments: Any) -> Sealed:
    """Seal the sum of this party's responses, with its share of the noise; `turn` makes each round a new question."""
    plan = Plan(**arguments)
    plan.check(table)
    plan.check_theta(theta)
    total = response_sum(table, theta, plan.loss)
    addend = plan.response_grid(theta).to_grid(total.ravel(), rng=rng)
    return Sealed(addend=addend, event=release_event(plan.mu_response), n_parties=plan.n_parties)


def response_sum(table: Table, theta: Floats, loss: Loss) -> Floats:
    """S(theta) of a party's records, of shape (n_scores, k)."""
    total = np.zeros((1 if loss.n_classes == 2 else loss.n_classes, loss.width))
    for X, _ in table.blocks():
        for start in range(0, len(X), CHUNK_ROWS):
            rows = X[start : start + CHUNK_ROWS]
            scores = loss.scores(rows, theta)
            if loss.n_classes == 2:
                above = (expit(scores) - 0.5)[:, None]
            else:
                above = softmax(scores, axis=1) - 1 / loss.n_classes
            total[:, : loss.n_features] += above.T @ rows
            total[:, -1] += loss.constant * above.sum(axis=0)
    return total
