"""Private evaluation: how good a public model is on the parties' records, from a noisy histogram of its scores.

Parties   K parties with n_j records each; a center of three nodes that adds up; a coordinator that asks
Trust     honest but curious; no two center nodes collude, and at most `colluders` parties pool what they know with
          the coordinator or with each other. The model that is measured is public
Travels   coordinator -> party: the model's coefficients and the plan. Party -> center: how many of its records fall
          into each cell, with its share of the noise, in three sealed envelopes. Center -> coordinator: the sum
Revealed  the noisy histogram of all records, to everybody; the numbers of records n_j, which the replace-one relation
          leaves public
Privacy   Pure(epsilon), or DiscreteGaussian calibrated to (epsilon, delta); one record, replace-one
Assumes   nothing of the rows: a record falls into exactly one cell, whatever it is
Cost      one round; a party sends 3 x 32 bytes a cell, 2 x bins cells for two classes; one pass over its records
Paper     none of its own. The documents print accuracies on private records that nobody accounts for (Hoseinpour et
          al. 2023, table 1), and each of them is a release; this is how to have them

Proof. Replacing a record takes 1 from one cell and adds 1 to another: the histogram moves by at most 2 in L1 and sqrt 2
in L2 norm. Counts are whole numbers, so that nothing is lost by rounding. With delta, the grid adds discrete Gaussian
noise for sqrt 2 (`privacy.grid`). Without, each party adds discrete Laplace noise of scale 2 / epsilon to every cell:
one honest party's suffices, and the others' is independent. Where there are so many parties that all of that is more
than spherical Laplace noise for sqrt 2, made of shares, the latter is taken. Everything else is post-processing.

Figures. n being public, the counts' sum is known: the surplus is spread evenly over the cells (the nearest histogram
that adds up; it stays unbiased). Accuracy and log loss are linear in the counts, and their standard errors exact; that
of the AUC is of first order. Standard errors are those of the noise: they tell how far a figure is from that of these
very records, not how these records stand for others.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from tacit.data.table import Table
from tacit.errors import PolicyRefusal, SettingError
from tacit.federation.federation import Federation
from tacit.federation.reply import Sealed
from tacit.federation.step import step
from tacit.methods.histogram_metrics import PrivateMetrics, metrics_of
from tacit.methods.public_model import linear_model
from tacit.methods.setting import check_colluders, check_privacy
from tacit.privacy.accounting import epsilon_of, rho_for
from tacit.privacy.event import Event, NotPrivate, Pure
from tacit.privacy.grid import NoiseGrid, VectorSum, concentrated_event, exact_grid, gaussian_grid, pure_grid
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import discrete_laplace
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_NAME = "private-evaluation"
_LEAST_EPSILON = 1e-6  # counts with more noise would say nothing of any federation


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public arguments of one evaluation, beside the model."""

    epsilon: float
    delta: float | None
    bins: int
    n_largest: int
    n_parties: int
    colluders: int
    n_features: int
    n_classes: int
    quorum: int | None = None

    @property
    def n_cells(self) -> int:
        """Two classes: bins of the score for each label. More: wrong and right."""
        return 2 * self.bins if self.n_classes == 2 else 2

    @property
    def total(self) -> VectorSum:
        """The public facts about the sum of histograms."""
        return VectorSum(
            dimension=self.n_cells,
            sensitivity=math.sqrt(2),
            value_bound=float(self.n_largest),
            n_parties=self.n_parties,
            colluders=self.colluders,
            quorum=self.quorum,
        )

    @property
    def laplace_scale(self) -> float | None:
        """The scale of every party's own discrete Laplace noise; None where a grid's shares are less."""
        if self.delta is not None or math.isinf(self.epsilon):
            return None
        scale = 2 / self.epsilon * (1 + 2.0**-50)
        own_std = scale * math.sqrt(2 * self.n_parties)
        # 2 (d + 1) / epsilon^2 is the variance of spherical noise; only then a grid is worth looking at.
        if own_std**2 <= 2 * (self.n_cells + 1) / self.epsilon**2 or own_std <= self._grid().noise_std:
            return scale
        return None

    @property
    def noise_std(self) -> float:
        """The standard deviation of each opened cell."""
        scale = self.laplace_scale
        if scale is None:
            return self._grid().noise_std
        a = math.exp(-1 / scale)
        return math.sqrt(2 * a * self.n_parties) / -math.expm1(-1 / scale)  # var = 2 a / (1 - a)^2

    def noised(self, counts: Ints, *, rng: Rng) -> Ints:
        """A party's histogram with its noise inside, on the grid."""
        scale = self.laplace_scale
        if scale is None:
            return self._grid().to_grid(counts.astype(np.float64), rng=rng)
        return counts + discrete_laplace(scale, counts.shape, rng=rng)

    def counts(self, opened: Ints) -> Floats:
        """The opened sum as numbers of records."""
        return opened.astype(np.float64) if self.laplace_scale is not None else self._grid().from_grid(opened)

    def _grid(self) -> NoiseGrid:
        if math.isinf(self.epsilon):
            return exact_grid(self.total)
        if self.delta is None:
            return pure_grid(self.total, epsilon=self.epsilon)
        return gaussian_grid(self.total, epsilon=self.epsilon, delta=self.delta)

    def check(self, table: Table, coef: Floats, intercept: Floats) -> None:
        """Refuse what does not fit this party's table, before a record is read."""
        n_scores = 1 if self.n_classes == 2 else self.n_classes
        facts_hold = (
            self.epsilon > 0
            and self.bins >= 1
            and table.n_records <= self.n_largest
            and (self.n_features, self.n_classes) == (table.n_columns, table.n_classes)
            and coef.shape == (n_scores, self.n_features)
            and intercept.shape == (n_scores,)
            and 0 <= self.colluders < self.n_parties
        )
        if not facts_hold:
            raise PolicyRefusal("the plan's sizes, columns or model do not fit this party's table")


@step("private-evaluation/histogram", version=1)
def party_histogram(table: Table, *, rng: Rng, coef: Floats, intercept: Floats, **arguments: Any) -> Sealed:
    """Seal how many of this party's records fall into each cell, with its share of the noise."""
    plan = Plan(**arguments)
    plan.check(table, coef, intercept)
    counts = np.zeros(plan.n_cells, dtype=np.int64)
    for X, y in table.blocks():
        with np.errstate(over="ignore", invalid="ignore"):  # a huge coefficient is no reason to tell anything
            scores = X @ coef.T + intercept
        counts += np.bincount(cells(scores, y, plan.bins), minlength=plan.n_cells)
    return Sealed(
        addend=plan.noised(counts, rng=rng), event=_event(plan.epsilon, plan.delta), n_parties=plan.total.least
    )


def cells(scores: Floats, y: Ints, bins: int) -> Ints:
    """The cell of each record. Two classes, one score: bin + bins * label; bin k holds k/bins < p <= (k+1)/bins.

    More classes: 1 if the largest score is that of the label, 0 otherwise.
    """
    if scores.shape[1] > 1:
        right: Ints = (np.argmax(scores, axis=1) == y).astype(np.int64)
        return right
    p = np.nan_to_num(expit(scores[:, 0]), nan=0.5)
    # Closed above, so that p = 1/2 lies below it: a tie is predicted as the first class.
    k: Ints = np.clip(np.ceil(p * bins).astype(np.int64) - 1, 0, bins - 1)
    return k + bins * y


@dataclass(frozen=True, kw_only=True)
class PrivateEvaluation:
    """Accuracy, AUC, log loss and calibration of a public model on the parties' records, with differential privacy.

    Attributes:
        epsilon: the promise; infinity adds no noise and promises nothing.
        delta: None for pure epsilon-differential privacy, or a probability (Gaussian noise).
        bins: into how many equal parts probabilities are cut; even, so that one half is a cut. Fewer bins mean less
            noise in every figure, and a coarser AUC and log loss.
        colluders: how many parties may pool what they know; None means 1, or 0 if there is one party.
    """

    name: ClassVar[str] = _NAME

    epsilon: float = 1.0
    delta: float | None = None
    bins: int = 50
    colluders: int | None = None

    def __post_init__(self) -> None:
        """Refuse settings that cannot be honoured."""
        check_privacy(self.epsilon, self.delta)
        if self.epsilon < _LEAST_EPSILON:
            raise SettingError(f"epsilon = {self.epsilon} is too small for any figure; {_LEAST_EPSILON} is the least")
        bad = isinstance(self.bins, bool) or not isinstance(self.bins, int) or not 2 <= self.bins <= 10_000
        if bad or self.bins % 2:
            raise SettingError(f"bins = {self.bins!r} must be an even number from 2 to 10000; 50 is usual")

    def event(self) -> Event:
        """What one evaluation costs each record; needs no data."""
        return _event(self.epsilon, self.delta)

    @property
    def guarantee(self) -> Guarantee:
        """What one evaluation promises; needs no data."""
        delta = self.delta or 0.0
        epsilon = epsilon_of(self.event(), delta)
        if math.isclose(epsilon, self.epsilon, rel_tol=1e-9):
            epsilon = float(self.epsilon)
        return Guarantee(epsilon=epsilon, delta=delta)

    def plan(self, parties: Federation) -> Plan:
        """The public plan of an evaluation by these parties."""
        sizes = list(parties.sizes.values())
        colluders = min(1, len(sizes) - 1) if self.colluders is None else self.colluders
        check_colluders(colluders, parties.quorum)
        return Plan(
            epsilon=float(self.epsilon),
            delta=self.delta,
            bins=self.bins,
            n_largest=max(sizes),
            n_parties=len(sizes),
            colluders=colluders,
            n_features=parties.schema.n_columns,
            n_classes=parties.schema.n_classes,
            quorum=parties.quorum,
        )

    def run(self, model: object, parties: Federation) -> PrivateMetrics:
        """Measure `model`, which is public: anything with coef_ and intercept_, or a pair of the two."""
        public = linear_model(model, parties.schema, "model")
        plan = self.plan(parties)
        run = parties.begin(_NAME)
        opened = run.sum(party_histogram, coef=public.coef_, intercept=public.intercept_, **asdict(plan))
        return metrics_of(
            plan.counts(opened),
            n_records=round(run.coverage * sum(parties.sizes.values())),
            noise_std=plan.noise_std,
            is_binary=plan.n_classes == 2,
            guarantee=self.guarantee,
        )


def evaluate_privately(
    model: object, parties: Federation, *, epsilon: float, delta: float | None = None, bins: int = 50
) -> PrivateMetrics:
    """How good the public `model` is on the parties' records; charged to their ledgers like any release."""
    return PrivateEvaluation(epsilon=epsilon, delta=delta, bins=bins).run(model, parties)


def _event(epsilon: float, delta: float | None) -> Event:
    if math.isinf(epsilon):
        return NotPrivate(why="epsilon is infinite: no noise is added")
    return Pure(epsilon=epsilon) if delta is None else concentrated_event(rho_for(epsilon, delta))
