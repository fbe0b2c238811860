"""Hypothesis transfer: sources lend private models to a target that has few labels; it weighs them by likeness.

Parties   K sources, the federation's parties; a target, who is the analyst, with few labelled records, with unlabelled
          ones if it has any, and with rows that are public
Trust     nobody: a source makes its own noise. Sources may pool what they know. The target's own data are not protected
Travels   coordinator -> source: public directions ("tilt"), or the public rows ("discriminator"). Source ->
          coordinator: one reply with a noised model and a noised description of its rows, whole numbers on a grid
Revealed  each source's noised model and description, to everybody; the numbers of records, which the replace-one
          relation leaves public. The final model also tells of the target's records, without any noise for them
Privacy   sound: Pure(epsilon), or Gaussian calibrated to (epsilon, delta); one record of a source, replace-one.
          "weak" and "target" ask no source and cost nothing. paper: NotPrivate
Assumes   rows of norm at most the schema's radius, enforced where a table is encoded; the intercept is one more feature
          of fixed value. If no public entry is negative, a source counts its own negative entries as 0
Cost      one round; a source sends 8 bytes a coefficient and a direction; one or two local fits, or one and a mean
Paper     Wang, dissertation, chapter 4: algorithm 4 (DPHTL) and, as weights="discriminator", algorithm 5 (DPIW). Sound
          departs from it so: noise for the norm bound that the schema declares (DPIW's sqrt d holds for rows in
          [0, 1]^d, its hypotheses for rows of norm 1); another description, the mean along public directions, whose
          noise has no 1/lambda ("tilt", the default); a floor under the prior's spread ((4.2) is 0/0 for one source
          and 0 for weights on one), raised by the known noise; the plain penalty of WEAK stays in the prior, so that
          noisier sources count for less; no vocabulary, idf or regularisation learned from private data. SOURCE is
          the best on the target's labelled records, where the document looks at its test set. `calibration="paper"`
          has the printed scales, 2 / (n lambda) and sqrt d / (n lambda), DPIW and (4.2), with the floor alone

Proof (sound). A source draws a uniformly random set A of n_l of its n records, and tells nobody. From A it makes theta,
the minimiser of mean loss + (Lam/2) ||theta||^2, which a record of A moves by at most D / (n_l Lam) (T1,
`models.sensitivity`); the computed one is within tau of it, certified by the solver, so that S = D / (n_l Lam) + 2 tau.
From the others it makes v: the mean of B x, or the discriminator, which a record moves by at most kappa / n_u or
min(kappa, D) / (n_u Lam') (`importance`), and again twice the error of computing it. Each is released with noise for
its S and all of epsilon (`privacy.noise.grid`).

Let tables differ in record i alone. For a given A that does not hold i, theta's release is the same on both, and v's
is epsilon-private and independent of it; if A holds i it is the other way round. So for every A and every outcome
P(outcome | A) differs by at most e^epsilon: epsilon is not halved (Wang, theorem 4.3.1). The average over A, which has
the same law on both, keeps that. With Gaussian noise the same holds of delta at every epsilon, which is convex in the
pair of laws, so the average keeps mu, too. A fixed split by position would keep it only for tables whose order does not
depend on the records: replacing one in a sorted table moves others from half to half. A random one pairs equal records
wherever they stand.

All else is post-processing of these releases, of public rows, and of the target's own.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from sklearn.base import BaseEstimator

from tacit.data.schema import Schema
from tacit.errors import SettingError, WireError
from tacit.federation.agreement import Ask
from tacit.federation.channel import Channel
from tacit.methods.cohort import Cohort
from tacit.methods.method import Floats, Learned, Method
from tacit.methods.neighbour import Neighbours
from tacit.methods.setting import check_choice, check_l2
from tacit.methods.transfer import importance
from tacit.methods.transfer import target as transfer_target
from tacit.methods.transfer.neighbour import printed_pair, worst_pairs
from tacit.methods.transfer.statistic import Plan, Reference, balanced_l2, described_rows, known_rows, release
from tacit.methods.transfer.target import Labelled, OwnData, Rows, shapes_text
from tacit.models.parameter import coefficients
from tacit.privacy.accounting import guarantee_of
from tacit.privacy.event import Event, Free
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise.grid import NoiseGrid
from tacit.report.facts import RunFacts
from tacit.wire import Value

Strategy = Literal["transfer", "source", "average", "soft", "weak", "target"]
Weights = Literal["tilt", "discriminator"]
Replies = Mapping[str, Mapping[str, Value]]

_ALONE = ("weak", "target")  # strategies that ask no source
_DATA = ("target", "unlabelled", "public")  # settings that hold rows
_PAPER_L2 = 0.005  # lambda_LR and lambda_IW that the dissertation settled on for its reviews, in the mean form
_PAPER_WEIGHTS_L2 = 0.001
_LEAST_RIDGE = 1e-12


@dataclass(frozen=True, kw_only=True)
class SourceAnswers:
    """What the sources were told of the public rows, what they answered, and how many records they have."""

    reference: Reference
    replies: Replies
    sizes: Mapping[str, int]


class HypothesisTransfer(Method):
    """A model for a target with few labels, from private models of sources that are more or less like it.

    Args:
        epsilon: the promise to every record of a source; infinity adds no noise and promises nothing.
        delta: its probability of failing (Gaussian noise); None takes the rule min(1e-6, 1 / n^2), and 0 asks for pure
            epsilon (spherical Laplace noise).
        target: the target's labelled records: a Table, a data frame, a file's path, or a pair (X, y) with X in encoded
            columns. They are the analyst's own and are NOT protected. None: none are labelled.
        unlabelled: more rows of the target, as `target`, or without labels; only strategy "target" reads the labels.
        public: rows that are public, as `target` but without labels; needed for "transfer".
        strategy: "transfer" weighs the sources by likeness to the target, then fits the target's records with the prior
            that they make. "average" does the same with equal weights. "source" takes the one source's model that does
            best on the target's labelled records. "soft" fits the target's records, and its unlabelled rows (or the
            public ones) with the sources' votes as soft labels. "weak" fits the target's labelled records alone.
            "target" fits all of the target's records, those in `unlabelled` with their true labels: a yardstick.
        weights: how likeness is measured: "tilt" by means along public directions, "discriminator" by DPIW.
        labelled_fraction: the share of a source's records that its model is made of; the others describe its rows. May
            be 1 for a strategy that weighs nothing.
        l2: regularisation of the sum over a source's labelled records; None takes a public rule of sizes and epsilon.
        weights_l2: regularisation of the discriminator, in the mean form (the dissertation's lambda_IW); None as `l2`.
        n_directions: how many principal directions of the public rows "tilt" uses.
        target_l2: regularisation of the sum over the target's records.
        prior_floor: the least standard deviation of a coefficient in the prior, before noise is added to it.
        fit_intercept: whether to learn an intercept, as a penalised feature.
        calibration: "sound", or "paper" for the document's noise and prior, which are NOT PRIVATE; it uses DPIW.

    Learned besides: `source_models_`, by party; `source_weights_`, by party, for "transfer" and "average".

    Example:
        >>> import tacit
        >>> data = tacit.datasets.load("readmission")
        >>> sources = tacit.Federation.from_tables({name: data.tables[name] for name in ("north", "south", "west")})
        >>> few = data.frames["east"].head(60)  # the target's own records, with labels
        >>> model = tacit.HypothesisTransfer(epsilon=1.0, target=few, public=data.frames["public"]).fit(sources)
        >>> model.classes_.tolist()
        ['no', 'yes']
    """

    name = "hypothesis-transfer"

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        target: Labelled | None = None,
        unlabelled: Rows | Labelled | None = None,
        public: Rows | None = None,
        strategy: Strategy = "transfer",
        weights: Weights = "tilt",
        labelled_fraction: float = 0.5,
        l2: float | None = None,
        weights_l2: float | None = None,
        n_directions: int = 20,
        target_l2: float = 1.0,
        prior_floor: float = 0.25,
        fit_intercept: bool = True,
        calibration: Literal["sound", "paper"] = "sound",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target = target
        self.unlabelled = unlabelled
        self.public = public
        self.strategy = strategy
        self.weights = weights
        self.labelled_fraction = labelled_fraction
        self.l2 = l2
        self.weights_l2 = weights_l2
        self.n_directions = n_directions
        self.target_l2 = target_l2
        self.prior_floor = prior_floor
        self.fit_intercept = fit_intercept
        self.calibration = calibration

    def event(self) -> Event:
        """What one run costs each record of a source; needs no data."""
        if self.strategy in _ALONE:
            return Free()
        return self.promise.event()

    @property
    def guarantee(self) -> Guarantee:
        """What one run promises to a record of a source; a strategy that asks no source tells nothing about it."""
        if self.strategy in _ALONE:
            self._check_settings()
            return guarantee_of(Free(), 0.0, self.unit, self.relation)
        return super().guarantee

    @classmethod
    def worst_neighbours(cls) -> list[Neighbours]:
        """Records that move a source's model, or its description, most."""
        return worst_pairs()

    @classmethod
    def printed_neighbours(cls) -> list[Neighbours]:
        """A text that meets the discriminator's bound on rows and not the model's."""
        return [printed_pair()]

    def plan(self, cohort: Cohort) -> Plan:
        """The public plan of a run with these sources."""
        promise = self.promise.settled(cohort.n_records)
        weighing: str = "discriminator" if promise.is_paper else self.weights
        plan = Plan(
            cohort=cohort,
            promise=promise,
            l2_mean=_PAPER_L2,
            weights=weighing if self.strategy == "transfer" else "none",
            weights_l2=_PAPER_WEIGHTS_L2,
            labelled_fraction=float(self.labelled_fraction),
        )
        if plan.weights != "none":
            _check_two_halves(cohort)
        # One regularisation for all sources, so that their models and weights compare: that of the smallest.
        n_labelled, n_rows = (max(1, size) for size in plan.halves(cohort.least_records))
        if self.l2 is not None:
            plan = replace(plan, l2_mean=self.l2 / n_labelled)
        elif not promise.is_paper:
            size = math.prod(plan.loss.shape)
            plan = replace(plan, l2_mean=balanced_l2(promise, n_labelled, cohort.row_norm, size))
        if self.weights_l2 is not None:
            plan = replace(plan, weights_l2=float(self.weights_l2))
        elif not promise.is_paper:
            plan = replace(plan, weights_l2=balanced_l2(promise, n_rows, cohort.radius, cohort.n_features))
        if self.strategy not in _ALONE:
            plan.check()
        return plan

    def course(self, plan: Plan) -> tuple[Ask, ...]:
        """One release of each source, if the strategy asks them."""
        return () if self.strategy in _ALONE else (Ask(step=release, event=plan.promise.event()),)

    def _check_settings(self) -> None:
        self.promise.check()
        check_choice("strategy", self.strategy, ("transfer", "source", "average", "soft", "weak", "target"))
        check_choice("weights", self.weights, ("tilt", "discriminator"))
        check_l2(self.l2, zero=False)
        for name in ("weights_l2", "target_l2", "prior_floor"):
            value = getattr(self, name)
            if not (value is None and name == "weights_l2") and not _is_positive(value):
                raise SettingError(f"{name} = {value!r} must be a finite number above 0")
        most = "below 1, or 1 for a strategy that weighs nothing"
        fraction, whole = self.labelled_fraction, self.strategy != "transfer"
        if not _is_positive(fraction) or not (fraction < 1 or (whole and fraction == 1)):
            raise SettingError(f"labelled_fraction = {fraction!r} must be a number above 0 and {most}")
        if not _is_positive(self.n_directions) or not isinstance(self.n_directions, int):
            raise SettingError(f"n_directions = {self.n_directions!r} must be a whole number, 1 or above")

    # --- learning ------------------------------------------------------------------------------------------------

    def _learn(self, channel: Channel, plan: Plan) -> Learned:
        own = self._own_data(channel.schema)
        told: tuple[str, ...] = ()
        if self.strategy in _ALONE:
            theta = transfer_target.plain_fit(own.X, own.y, float(self.target_l2), plan.loss)
        else:
            theta, told = self._from_sources(plan, own, channel)
        coef, intercept = coefficients(theta, plan.cohort.n_features, plan.cohort.constant)
        return Learned(coef=coef, intercept=intercept, notices=(*told, *own.notices()))

    def _from_sources(self, plan: Plan, own: OwnData, channel: Channel) -> tuple[Floats, tuple[str, ...]]:
        reference = self._reference(plan, own)
        replies = channel.ask(release, reference)
        channel.read(replies, lambda name, reply: _check_reply(plan, reference, reply, channel.sizes[name]))
        return self.combined(plan, own, SourceAnswers(reference=reference, replies=replies, sizes=channel.sizes))

    def combined(
        self, plan: Plan, own: OwnData, answered: SourceAnswers, described: Floats | None = None
    ) -> tuple[Floats, tuple[str, ...]]:
        """The target's model from what the sources answered, and what the report tells: post-processing alone.

        `described` is the description of the target's own rows (`describe`), where it is known already.
        """
        replies = answered.replies
        models, noise_std = self._models(plan, replies, answered.sizes)
        self.source_models_: dict[str, Floats] = dict(zip(replies, models, strict=True))
        loss = plan.loss
        match self.strategy:
            case "source":
                best = transfer_target.best_model(models, own.X, own.y, loss)
                return models[best], (f"the model is that of source {list(replies)[best]}",)
            case "soft":
                rows = own.unlabelled if own.unlabelled is not None else own.public
                assert rows is not None
                shares = transfer_target.soft_shares(models, rows, loss)
                return transfer_target.soft_label_fit((own.X, own.y), rows, shares, self.target_l2, loss), ()
            case "average":
                weights = np.full(len(models), 1 / len(models))
            case _:
                weights = self._likeness(plan, own, answered, described)
        self.source_weights_: dict[str, float] = dict(zip(replies, weights.tolist(), strict=True))
        as_printed = plan.promise.is_paper
        prior = transfer_target.informative_prior(
            models, weights, None if as_printed else noise_std, float(self.prior_floor)
        )
        prior = prior if as_printed else prior.with_ridge(float(self.target_l2))
        told = ", ".join(f"{name} {weight:.2f}" for name, weight in self.source_weights_.items())
        return transfer_target.posterior_mode(own.X, own.y, prior, loss), (f"weights of the sources: {told}",)

    def _own_data(self, schema: Schema) -> OwnData:
        """What the analyst brought, encoded and checked before any source is asked."""
        own = OwnData.read(schema, target=self.target, unlabelled=self.unlabelled, public=self.public)
        match self.strategy:
            case "transfer" if own.public is None:
                raise SettingError("public = None: strategy 'transfer' needs public rows; give some, or take 'average'")
            case "soft" if own.public is None and own.unlabelled is None:
                raise SettingError("unlabelled = None: strategy 'soft' needs unlabelled or public rows to label")
            case "source" | "weak" if self.target is None:
                raise SettingError(f"target = None: strategy {self.strategy!r} needs the target's labelled records")
            case "target":
                if self.target is None or self.unlabelled is None:
                    raise SettingError("strategy 'target' needs target, and unlabelled with its true labels")
                return own.with_true_labels(self.unlabelled, schema)
        return own

    def _reference(self, plan: Plan, own: OwnData) -> Reference:
        """What a source needs to know of the public rows."""
        if plan.weights == "none":
            return Reference()
        assert own.public is not None
        nonnegative = not plan.promise.is_paper and bool((own.public >= 0).all())
        if plan.weights == "tilt":
            directions = importance.principal_directions(own.public, self.n_directions)
            return Reference(rows=directions, nonnegative=nonnegative)
        return Reference(rows=own.public, nonnegative=nonnegative)

    def _models(self, plan: Plan, replies: Replies, sizes: Mapping[str, int]) -> tuple[Floats, Floats]:
        """The sources' models, of shape (K, ...), and the standard deviation of each one's noise."""
        models, noise_std = [], []
        for name, value in replies.items():
            grid = plan.model_grid(plan.halves(sizes[name])[0])
            models.append(_opened(grid, value.get("model")).reshape(plan.loss.shape))
            noise_std.append(grid.noise_std)
        return np.array(models), np.array(noise_std)

    def _likeness(self, plan: Plan, own: OwnData, answered: SourceAnswers, described: Floats | None) -> Floats:
        """w_H (Wang, algorithm 4, steps 3 and 4): the target as a mixture of the sources."""
        assert own.public is not None
        reference, replies, sizes = answered.reference, answered.replies, answered.sizes
        grids = {name: plan.weights_grid(sizes[name], reference) for name in replies}
        descriptions = [_opened(grid, replies[name].get("weights")) for name, grid in grids.items()]
        counts = [plan.halves(sizes[name])[1] for name in replies]
        rows = own.rows() if len(own.rows()) else own.public  # nothing better is known than that it is like the public
        descriptions.append(described_rows(plan, rows, reference) if described is None else described)
        if plan.weights == "discriminator":
            logs = [importance.log_weights(own.public, beta) for beta in descriptions]
        else:
            directions = known_rows(reference)
            projected = own.public @ directions.T
            noise = max(grid.noise_std for grid in grids.values())
            # As much as the squared error to be expected of the worst mean, from noise and from sampling. One for all:
            # to first order, a mixture of means then has the mixture of weights.
            ridge = len(directions) * noise**2 + projected.var(axis=0).sum() / min(*counts, len(rows))
            logs = [importance.tilt(projected, mean, max(ridge, _LEAST_RIDGE)) for mean in descriptions]
        return importance.mixture_weights(logs[-1], np.array(logs[:-1]))

    # --- what is told --------------------------------------------------------------------------------------------

    def _facts(self, run: Channel, learned: Learned, sizes: Mapping[str, int | None], seconds: float) -> RunFacts:
        """The facts without the rows: a report or a model's file must not hold the target's records."""
        facts = super()._facts(run, learned, sizes, seconds)
        kept = {name: value for name, value in facts.settings.items() if name not in _DATA or isinstance(value, str)}
        return replace(facts, settings=dict.fromkeys(_DATA) | kept)

    def _without_rows(self) -> HypothesisTransfer:
        shown = {name: getattr(self, name) for name in _DATA}
        told = {name: v if v is None or isinstance(v, str) else shapes_text(v) for name, v in shown.items()}
        return type(self)(**self.get_params() | told)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The settings; of data their kind and size alone."""
        return str(BaseEstimator.__repr__(self._without_rows(), N_CHAR_MAX))

    def _html_repr(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def _check_two_halves(cohort: Cohort) -> None:
    small = [name for name, size in zip(cohort.group.names, cohort.group.sizes, strict=True) if size < 2]
    if small:
        raise SettingError(
            f"party {small[0]!r} has one record, and strategy 'transfer' needs two to split; leave it out"
        )


def _check_reply(plan: Plan, reference: Reference, reply: Mapping[str, Value], n_records: int) -> None:
    """Refuse a reply that no honest source sends: of another form, or longer than records and noise can make it."""
    _opened(plan.model_grid(plan.halves(n_records)[0]), reply.get("model"))
    if plan.weights != "none":
        _opened(plan.weights_grid(n_records, reference), reply.get("weights"))


def _opened(grid: NoiseGrid, value: Value) -> Floats:
    if not isinstance(value, np.ndarray) or value.dtype != np.int64 or value.shape != (grid.total.dimension,):
        raise WireError(f"it did not send {grid.total.dimension} whole numbers")
    if not float(np.linalg.norm(value.astype(np.float64))) <= grid.norm_bound * (1 + 1e-9):
        raise WireError("it sent numbers that no records and noise could make")
    return grid.from_grid(value)


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
