"""Chapter 4: hypothesis transfer on texts. Sources, public rows, a target that is a mixture of the sources, and a test.

A draw of the texts fixes who is who. The sources' exact models and discriminators do not depend on the noise. They are
made once a draw by the plan of `HypothesisTransfer`; noise is drawn by its grids for every epsilon, and the target's
model is made of the noisy replies by the method itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema
from tacit.federation.group import SumGroup
from tacit.methods.cohort import Cohort
from tacit.methods.transfer import target as on_target
from tacit.methods.transfer.method import HypothesisTransfer, SourceAnswers
from tacit.methods.transfer.statistic import Plan, Reference, describe, described_rows, private_model
from tacit.methods.transfer.target import OwnData
from tacit.models.loss import Loss
from tacit.rand import Rng, public_choices
from tacit.reproduce.wang.text import corpus

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

NO_NOISE = 0.0  # stands for an infinite epsilon in settings, which are JSON
EPSILONS = (0.1, 0.5, 1.0, 3.0, 5.0, NO_NOISE)
WEIGHTS_L2 = 0.001  # lambda_IW, for both data sets


@dataclass(frozen=True)
class TransferSizes:
    """How many texts each part has: of a source labelled and not, of the public rows in all, of the target, of a test.

    `l2` is lambda_LR, in the mean form.
    """

    labelled: int
    unlabelled: int
    public: int
    target: int
    test: int
    l2: float

    def smaller(self) -> TransferSizes:
        """A quarter of everything, for a quick run."""
        labelled, unlabelled, public = self.labelled // 4, self.unlabelled // 4, self.public // 4
        return TransferSizes(labelled, unlabelled, public, self.target // 4, self.test // 4, self.l2)


SIZES = {  # the document does not give the newsgroups' target size: what its sources leave over
    "newsgroups20": TransferSizes(800, 1000, 1500, 800, 320, 0.003),
    "amazon_sentiment": TransferSizes(1000, 1000, 2000, 1500, 600, 0.005),
}


def sizes_of(data: str, quick: bool) -> TransferSizes:
    """The document's sizes, or smaller ones."""
    return SIZES[data].smaller() if quick else SIZES[data]


@cache
def split(data: str, draw: int, quick: bool) -> dict[str, dict[str, npt.NDArray[np.int64]]]:
    """For each source the texts that are labelled, unlabelled, public, and left for target and test."""
    sizes, found = sizes_of(data, quick), {}
    chance = public_choices(2018, draw)
    n_public = sizes.public // len(corpus(data).labels)
    for name, labels in corpus(data).labels.items():
        ends = np.cumsum([sizes.labelled, sizes.unlabelled, n_public])
        parts = np.split(chance.permutation(len(labels)), ends)
        found[name] = dict(zip(("labelled", "unlabelled", "public", "rest"), parts, strict=True))
    return found


def dense(data: str, name: str, which: npt.NDArray[np.int64]) -> tuple[Floats, Labels]:
    """Some texts of a source."""
    texts = corpus(data)
    return np.asarray(texts.rows[name][which].toarray()), texts.labels[name][which]


@lru_cache(maxsize=1)
def public_rows(data: str, draw: int, quick: bool) -> Floats:
    """The public rows of a draw: an even mixture of the sources."""
    return np.concatenate([dense(data, name, parts["public"])[0] for name, parts in split(data, draw, quick).items()])


@dataclass(frozen=True)
class TransferTarget:
    """The target of one mixture: its rows in a random order, and test records."""

    X: Floats
    y: Labels
    test: tuple[Floats, Labels]

    def own(self, share: float, public: Floats) -> OwnData:
        """What the target has when this share of its rows is labelled."""
        n = max(2, round(share * len(self.y)))
        return OwnData(X=self.X[:n], y=self.y[:n], unlabelled=self.X[n:], public=public)


def target_of(data: str, draw: int, quick: bool, mixture: Sequence[float]) -> TransferTarget:
    """The target and the test set of a mixture, from what the sources of the draw leave over."""
    sizes, parts = sizes_of(data, quick), split(data, draw, quick)
    chance = public_choices(2019, draw)
    made = []
    for count, skipped in ((sizes.target, 0), (sizes.test, 1)):
        rows, labels = [], []
        for (name, part), share in zip(parts.items(), mixture, strict=True):
            first = round(sizes.target * share) if skipped else 0
            X, y = dense(data, name, part["rest"][first : first + round(count * share)])
            rows.append(X)
            labels.append(y)
        order = chance.permutation(sum(map(len, labels)))
        made.append((np.concatenate(rows)[order], np.concatenate(labels)[order]))
    return TransferTarget(*made[0], test=made[1])


# --- the sources -----------------------------------------------------------------------------------------------------


def method_of(data: str, quick: bool, calibration: str, epsilon: float, **settings: Any) -> HypothesisTransfer:
    """The method in the document's setting: its lambdas as printed, our rules where it is sound."""
    sizes = sizes_of(data, quick)
    fraction = sizes.labelled / (sizes.labelled + sizes.unlabelled)
    given: dict[str, Any] = {"epsilon": epsilon or math.inf, "labelled_fraction": fraction, "fit_intercept": False}
    if calibration == "paper":
        given |= {"calibration": "paper", "l2": sizes.labelled * sizes.l2, "weights_l2": WEIGHTS_L2}
    return HypothesisTransfer(**given | settings)


@cache
def sources_of(data: str, quick: bool) -> Cohort:
    """All sources, as a plan knows them."""
    texts, sizes = corpus(data), sizes_of(data, quick)
    schema = Schema.of_arrays(texts.n_columns, ["0", "1"], norm_bound=1.0)
    group = SumGroup.of(dict.fromkeys(texts.rows, sizes.labelled + sizes.unlabelled), quorum=len(texts.rows))
    return Cohort.of(schema, group, colluders=0)


def plan_of(data: str, quick: bool, method: HypothesisTransfer) -> Plan:
    """The plan of a run with all sources."""
    return method.plan(sources_of(data, quick))


@cache
def exact_model(data: str, draw: int, quick: bool, name: str, calibration: str, epsilon: float) -> Floats:
    """A source's model before noise; the regularisation of a sound one follows from `epsilon`."""
    method = method_of(data, quick, calibration, epsilon)
    rows = dense(data, name, split(data, draw, quick)[name]["labelled"])
    return private_model(plan_of(data, quick, method), lambda: [rows], len(rows[1]))


@cache
def exact_description(data: str, draw: int, quick: bool, name: str, calibration: str) -> Floats:
    """A source's discriminator (as printed) or mean along the public directions (sound), before noise."""
    method = method_of(data, quick, calibration, 1.0)
    rows = dense(data, name, split(data, draw, quick)[name]["unlabelled"])
    return describe(
        plan_of(data, quick, method), lambda: [rows], len(rows[1]), reference_of(data, draw, quick, calibration)
    )


@lru_cache(maxsize=2)
def reference_of(data: str, draw: int, quick: bool, calibration: str) -> Reference:
    """What sources are told of the public rows."""
    method = method_of(data, quick, calibration, 1.0)
    public = public_rows(data, draw, quick)
    nothing = np.zeros((0, public.shape[1]))
    own = OwnData(X=nothing, y=np.zeros(0, dtype=np.int64), unlabelled=None, public=public)
    return method._reference(plan_of(data, quick, method), own)


def replies_of(data: str, draw: int, quick: bool, method: HypothesisTransfer, rng: Rng) -> SourceAnswers:
    """What the sources of a draw answer, with fresh noise."""
    plan, sizes = plan_of(data, quick, method), sizes_of(data, quick)
    reference = reference_of(data, draw, quick, method.calibration)
    n_records = sizes.labelled + sizes.unlabelled
    replies: dict[str, Mapping[str, Any]] = {}
    for name in corpus(data).rows:
        epsilon = 1.0 if method.calibration == "paper" else float(method.epsilon)
        model = exact_model(data, draw, quick, name, method.calibration, epsilon)
        reply = {"model": plan.model_grid(sizes.labelled).to_grid(model.ravel(), rng=rng)}
        if plan.weights != "none":
            described = exact_description(data, draw, quick, name, method.calibration)
            reply["weights"] = plan.weights_grid(n_records, reference).to_grid(described, rng=rng)
        replies[name] = reply
    return SourceAnswers(reference=reference, replies=replies, sizes=dict.fromkeys(replies, n_records))


# --- what is measured ------------------------------------------------------------------------------------------------


def weight_errors(
    *, data: str, draw: int, quick: bool, mixtures: list[list[float]], epsilons: list[float], seed: int
) -> dict[str, Any]:
    """Squared error of the weights, the mean over the sources, by calibration, mixture and epsilon."""
    rng, found = Rng.seeded(seed), {}
    for calibration in ("paper", "sound"):
        errors = [[0.0] * len(epsilons) for _ in mixtures]
        for m, mixture in enumerate(mixtures):
            own = target_of(data, draw, quick, mixture).own(0.05, public_rows(data, draw, quick))
            described = None
            for e, epsilon in enumerate(epsilons):
                method = method_of(data, quick, calibration, epsilon)
                plan = plan_of(data, quick, method)
                answered = replies_of(data, draw, quick, method, rng)
                if described is None:
                    described = described_rows(plan, own.rows(), answered.reference)
                weights = method._likeness(plan, own, answered, described)
                errors[m][e] = float(np.mean((weights - np.array(mixture)) ** 2))
        found[calibration] = errors
    return found


def accuracies(
    *,
    data: str,
    draw: int,
    quick: bool,
    mixtures: list[list[float]],
    epsilons: list[float],
    labelled: list[float],
    seed: int,
) -> dict[str, Any]:
    """Test accuracy of each method, by mixture, share of labels and epsilon; WEAK and TARGET have no epsilon."""
    rng, found = Rng.seeded(seed), {}
    public = public_rows(data, draw, quick)
    lam = sizes_of(data, quick).l2
    for m, mixture in enumerate(mixtures):
        target = target_of(data, draw, quick, mixture)
        loss = Loss(n_features=public.shape[1], constant=0.0)
        everything = on_target.plain_fit(target.X, target.y, lam * len(target.y), loss)
        described: dict[str, Floats] = {}
        for share in labelled:
            own = target.own(share, public)
            weak = on_target.plain_fit(own.X, own.y, lam * len(own.y), loss)
            here: dict[str, Any] = {"WEAK": _right(weak, target.test), "TARGET": _right(everything, target.test)}
            for epsilon in epsilons:
                shown = _noisy(data, draw, quick, (own, target, described), epsilon, rng)
                for name, accuracy in shown.items():
                    here.setdefault(name, []).append(accuracy)
            found[f"{m}-{share:g}"] = here
    return found


def _noisy(
    data: str,
    draw: int,
    quick: bool,
    target: tuple[OwnData, TransferTarget, dict[str, Floats]],
    epsilon: float,
    rng: Rng,
) -> dict[str, float]:
    """The accuracy of every method that asks the sources, at one epsilon, from one set of replies a calibration."""
    own, whole, described = target
    lam = sizes_of(data, quick).l2
    shown = {}
    for calibration in ("paper", "sound"):
        method = method_of(data, quick, calibration, epsilon)
        plan = plan_of(data, quick, method)
        answered = replies_of(data, draw, quick, method, rng)
        if calibration not in described:
            described[calibration] = described_rows(plan, own.rows(), answered.reference)
        strategies = ("transfer", "average", "soft") if calibration == "paper" else ("transfer", "average")
        for strategy in strategies:
            l2 = lam * len(whole.y) if strategy == "soft" or calibration == "paper" else 1.0
            mine = method_of(data, quick, calibration, epsilon, strategy=strategy, target_l2=l2)
            theta, _ = mine.combined(plan, own, answered, described[calibration])
            shown[f"{strategy}, {calibration}"] = _right(theta, whole.test)
            if strategy == "transfer" and calibration == "paper":
                shown["source, paper"] = max(_right(model, whole.test) for model in mine.source_models_.values())
    return shown


def _right(theta: Floats, test: tuple[Floats, Labels]) -> float:
    X, y = test
    return float(np.mean((X @ theta.ravel() > 0) == (y == 1)))
