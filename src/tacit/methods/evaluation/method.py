"""Private evaluation: how good a public model is on the parties' records, from a noisy histogram of its scores.

Parties   K parties with n_j records each; a center of three nodes that adds up; a coordinator that asks
Trust     coordinator, network and at most `colluders` parties may lie, and pool what they know; no two center nodes
          collude. The model that is measured is public
Travels   coordinator -> party: the model's coefficients. Party -> center: how many of its records fall
          into each cell, with its share of the noise, in three sealed envelopes. Center -> coordinator: the sum
Revealed  the noisy histogram of all records, to everybody; the numbers of records n_j, which the replace-one relation
          leaves public
Privacy   Pure(epsilon), or Gaussian calibrated to (epsilon, delta); one record, replace-one
Assumes   nothing of the rows: a record falls into exactly one cell, whatever it is
Cost      one round; a party sends 3 x 32 bytes a cell, 2 x bins cells for two classes; one pass over its records
Paper     none of its own. The documents print accuracies on private records that nobody accounts for (Hoseinpour et
          al. 2023, table 1), and each of them is a release; this is how to have them

Proof. A record's cell follows from that record and the model alone, to the last bit (`statistic.scores_of`). So
replacing a record takes at most 1 from one cell and adds at most 1 to another: the histogram moves by at most 2 in L1
and sqrt 2 in L2 norm. Counts are whole numbers, so that nothing is lost by rounding. With delta, the grid adds discrete
Gaussian noise for sqrt 2 (`privacy.noise.grid`). With delta = 0, each party adds discrete Laplace noise of scale 2 /
epsilon to every cell: one honest party's suffices, and the others' is independent. Where there are so many parties that
all of that is more than spherical Laplace noise for sqrt 2, made of shares, the latter is taken. Everything else is
post-processing.

Figures. n being public, the counts' sum is known: the surplus is spread evenly over the cells (the nearest histogram
that adds up; it stays unbiased). Accuracy and log loss are linear in the counts, and their standard errors exact; that
of the AUC is of first order. Standard errors are those of the noise: they tell how far a figure is from that of these
very records, not how these records stand for others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from tacit.data.schema import Schema
from tacit.errors import SettingError
from tacit.federation.agreement import Ask, Terms
from tacit.federation.federation import Federation
from tacit.federation.group import SizesTold, SumGroup
from tacit.methods.cohort import Cohort, Promise
from tacit.methods.evaluation.metrics import PrivateMetrics, metrics_of
from tacit.methods.evaluation.statistic import LinearModel, Plan, party_histogram
from tacit.methods.public_model import linear_model
from tacit.privacy.accounting import guarantee_of
from tacit.privacy.event import Event
from tacit.privacy.guarantee import Guarantee
from tacit.unit import Unit

_LEAST_EPSILON = 1e-6  # counts with more noise would say nothing of any federation


@dataclass(frozen=True, kw_only=True)
class PrivateEvaluation:
    """Accuracy, AUC, log loss and calibration of a public model on the parties' records, with differential privacy.

    Attributes:
        epsilon: the promise; infinity adds no noise and promises nothing.
        delta: its probability of failing (Gaussian noise); None takes the rule min(1e-6, 1 / n^2), and 0 asks for pure
            epsilon (Laplace noise).
        bins: into how many equal parts probabilities are cut; even, so that one half is a cut. Fewer bins mean less
            noise in every figure, and a coarser AUC and log loss.
        colluders: how many parties may pool what they know; None means 1, or 0 if there is one party.

    Example:
        >>> import tacit
        >>> evaluation = tacit.PrivateEvaluation(epsilon=0.5, delta=1e-6, bins=20)  # what `evaluate_privately` runs
        >>> evaluation.guarantee
        Guarantee(epsilon=0.5, delta=1e-06, unit='record', relation='replace-one')
    """

    name: ClassVar[str] = "private-evaluation"
    sizes_told: ClassVar[SizesTold] = "each"
    needs_everybody: ClassVar[bool] = False
    weighted_unit: ClassVar[Unit] = "record"

    epsilon: float = 1.0
    delta: float | None = None
    bins: int = 50
    colluders: int | None = None

    def __post_init__(self) -> None:
        """Refuse settings that cannot be honoured."""
        self.promise.check()
        if self.epsilon < _LEAST_EPSILON:
            raise SettingError(f"epsilon = {self.epsilon} is too small for any figure; {_LEAST_EPSILON} is the least")
        bad = isinstance(self.bins, bool) or not isinstance(self.bins, int) or not 2 <= self.bins <= 10_000
        if bad or self.bins % 2:
            raise SettingError(f"bins = {self.bins!r} must be an even number from 2 to 10000; 50 is usual")

    @property
    def promise(self) -> Promise:
        """What the settings promise, before any size is known."""
        return Promise(method=type(self).__name__, epsilon=self.epsilon, delta=self.delta)

    def event(self) -> Event:
        """What one evaluation costs each record; needs no data."""
        return self.promise.event()

    @property
    def guarantee(self) -> Guarantee:
        """What one evaluation promises; needs no data."""
        promised = guarantee_of(self.event(), self.promise.settled_delta, "record", "replace-one")
        is_rounded = math.isclose(promised.epsilon, self.epsilon, rel_tol=1e-9)
        return replace(promised, epsilon=float(self.epsilon)) if is_rounded else promised

    def plan(self, cohort: Cohort) -> Plan:
        """The public plan of an evaluation by this cohort."""
        return Plan(cohort=cohort, promise=self.promise.settled(cohort.n_records), bins=self.bins)

    def terms(self, schema: Schema, group: SumGroup) -> Terms:
        """What an evaluation by this group is: the same for the coordinator and for every party."""
        plan = self.plan(Cohort.of(schema, group, colluders=self.colluders))
        course = (Ask(step=party_histogram, event=plan.promise.event()),)
        return Terms(plan=plan, course=course, delta=plan.promise.settled_delta)

    def run(self, model: object, parties: Federation) -> PrivateMetrics:
        """Measure `model`, which is public: anything with coef_ and intercept_, or a pair of the two."""
        public = linear_model(model, parties.schema, "model")
        channel = parties.begin(self)
        plan: Plan = channel.plan
        opened = channel.sum(party_histogram, LinearModel(coef=public.coef_, intercept=public.intercept_))
        promised = self.guarantee
        return metrics_of(
            plan.counts(opened),
            n_records=round(channel.coverage * channel.n_records),
            noise_std=plan.noise_std,
            is_binary=plan.cohort.n_classes == 2,
            guarantee=replace(promised, delta=plan.promise.settled_delta) if promised.delta else promised,
        )


def evaluate_privately(
    model: object, parties: Federation, *, epsilon: float, delta: float | None = None, bins: int = 50
) -> PrivateMetrics:
    """How good the public `model` is on the parties' records; charged to their ledgers like any release.

    Example:
        >>> import tacit
        >>> hospitals = tacit.datasets.load("readmission").tables
        >>> parties = tacit.Federation.from_tables({name: hospitals[name] for name in ("north", "south", "west")})
        >>> model = tacit.PrivateNewton(epsilon=1.0).fit(parties)
        >>> metrics = tacit.evaluate_privately(model, parties, epsilon=1.0)
        >>> metrics.n, bool(0 < metrics.auc < 1)
        (7200, True)
    """
    return PrivateEvaluation(epsilon=epsilon, delta=delta, bins=bins).run(model, parties)
