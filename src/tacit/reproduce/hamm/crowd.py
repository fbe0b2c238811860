"""A crowd of small parties that vote on auxiliary rows: what Hamm, Cao and Belkin compare in figures 2 to 4.

Local fits and votes are made once a trial. The noise is then drawn many times by the very code that a run of `Ensemble`
uses: `EntityRelease` for the printed and the sound noise of a trusted entity, and the label statistic's own grid for
the sound release that trusts nobody. For that sum all parties are taken as honest, so that its noise is drawn at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.methods.cohort import Promise
from tacit.methods.ensemble.entity import EntityRelease
from tacit.methods.ensemble.label import LabelDesign, fit_labels, fit_statistic, lengthened, simplex, vote_sensitivity
from tacit.models.batch import fit_many
from tacit.models.problem import Problem
from tacit.models.solver import fit
from tacit.privacy.noise.grid import VectorSum
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LAMBDA = 1e-4  # section 6: of local and global classifiers
DELTA = 1e-6
_SEVERAL = 256  # parties whose votes are held at once


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """The rows of one trial, all of norm 1: `size` private ones a party, auxiliary ones without labels, test ones."""

    X: Floats
    y: Ints
    size: int
    auxiliary: Floats
    X_test: Floats
    y_test: Ints
    n_classes: int

    @property
    def n_parties(self) -> int:
        """M."""
        return len(self.y) // self.size

    def problem(self, n_records: int) -> Problem:
        """A classifier of so many records, with the document's lambda."""
        return Problem(
            n_features=self.X.shape[1],
            n_classes=self.n_classes,
            l2=LAMBDA * n_records,
            intercept="feature",
            constant=1.0,
        )

    def accuracy(self, models: Floats) -> float:
        """The mean accuracy of models of shape (several, 1 or C, k)."""
        Z = lengthened(self.X_test, 1.0)
        if self.n_classes == 2:
            return float(np.mean((Z @ models.reshape(len(models), -1).T > 0) == (self.y_test == 1)[:, None]))
        return float(np.mean([np.mean((Z @ model.T).argmax(axis=1) == self.y_test) for model in models]))


@dataclass(frozen=True)
class CrowdVotes:
    """What does not depend on the noise: local models, and the share of votes for each class on auxiliary rows."""

    local: Floats
    shares: Floats


def learn(crowd: Crowd) -> CrowdVotes:
    """Fit all parties and let them vote."""
    M, n = crowd.n_parties, crowd.size
    offsets = np.arange(M + 1) * n
    local = fit_many(crowd.X[: M * n], crowd.y[: M * n], offsets, problem=crowd.problem(n)).theta
    Z = lengthened(crowd.auxiliary, 1.0)
    counts = np.zeros((len(Z), crowd.n_classes))
    for start in range(0, M, _SEVERAL):
        some = local[start : start + _SEVERAL]
        if crowd.n_classes == 2:
            ones = (Z @ some.T > 0).sum(axis=1)
            counts += np.stack([len(some) - ones, ones], axis=1)
        else:
            chosen = (Z @ some.reshape(-1, Z.shape[1]).T).reshape(len(Z), len(some), -1).argmax(axis=2)
            counts += np.stack([(chosen == c).sum(axis=1) for c in range(crowd.n_classes)], axis=1)
    return CrowdVotes(local, counts / M)


def without_noise(crowd: Crowd, votes: CrowdVotes) -> dict[str, Floats]:
    """The models of each kind before noise: batch, vote, soft, avg."""
    Z = lengthened(crowd.auxiliary, 1.0)
    n_last = crowd.n_classes - 1
    majority = np.eye(crowd.n_classes)[n_last - np.argmax(votes.shares[:, ::-1], axis=1)]  # a tie: the last class
    n = len(crowd.y)
    return {
        "batch": fit(lambda: [(crowd.X, crowd.y)], problem=crowd.problem(n)).theta,
        "vote": fit_labels(Z, majority.T @ Z / len(Z), LAMBDA).theta,
        "soft": fit_labels(Z, votes.shares.T @ Z / len(Z), LAMBDA).theta,
        "avg": votes.local.mean(axis=0),
    }


def entity(crowd: Crowd, labels: str, promise: Promise) -> EntityRelease:
    """The trusted entity's release, with lambda as printed."""
    Z = lengthened(crowd.auxiliary, 1.0)
    return EntityRelease(
        labels=labels,
        promise=promise,
        l2_mean=LAMBDA,
        n_parties=crowd.n_parties,
        n_classes=crowd.n_classes,
        radius=math.sqrt(2),
        rows=None if labels == "avg" else Z,
        protect_auxiliary=False,
    )


def statistic_models(crowd: Crowd, votes: CrowdVotes, promise: Promise, draws: int, rng: Rng) -> Floats:
    """The global classifiers of so many releases of the label statistic, with its public rule for l2."""
    Z = lengthened(crowd.auxiliary, 1.0)
    design = LabelDesign(Z=Z, n_classes=crowd.n_classes, shaped=True)
    D = Z @ design.basis
    V = D.T @ votes.shares @ simplex(crowd.n_classes) / len(Z)
    sensitivity = vote_sensitivity(D, crowd.n_parties)
    grid = promise.grid(VectorSum(dimension=V.size, sensitivity=sensitivity, value_bound=crowd.n_parties * sensitivity))
    models = []
    for _ in range(draws):
        opened = grid.from_grid(grid.to_grid(V.ravel(), rng=rng)).reshape(V.shape)
        solution, _ = fit_statistic(design, opened, grid.noise_std, None)
        models.append(design.weights(solution.theta))
    return np.array(models)


def trial(
    crowd: Crowd, *, inverse_epsilons: Sequence[float], draws: int, sound_draws: int, seed: int
) -> dict[str, Any]:
    """Accuracies of all methods, without noise and at each 1/epsilon."""
    rng = Rng.seeded(seed)
    votes = learn(crowd)
    models = without_noise(crowd, votes)
    found: dict[str, Any] = {"none": {kind: crowd.accuracy(model[None]) for kind, model in models.items()}}
    found["none"]["indiv"] = crowd.accuracy(votes.local[: min(200, crowd.n_parties)])
    printed = Promise(method="Ensemble", epsilon=1.0, calibration="paper")
    pure, gauss = (Promise(method="Ensemble", epsilon=1.0, delta=delta) for delta in (0, DELTA))
    for kind in ("vote", "soft", "avg"):
        release = entity(crowd, kind, printed)
        found[f"printed {kind}"] = [
            _noised(crowd, release, models[kind], inverse, draws, rng) for inverse in inverse_epsilons
        ]
    found["sound avg"] = [
        _noised(crowd, entity(crowd, "avg", pure), models["avg"], inverse, draws, rng) for inverse in inverse_epsilons
    ]
    for name, promise in (("sound soft", pure), ("sound soft, Gaussian", gauss)):
        found[name] = [
            crowd.accuracy(statistic_models(crowd, votes, replace(promise, epsilon=1 / inverse), sound_draws, rng))
            for inverse in inverse_epsilons
        ]
    return found


def _noised(crowd: Crowd, release: EntityRelease, theta: Floats, inverse: float, draws: int, rng: Rng) -> float:
    at = replace(release, promise=replace(release.promise, epsilon=1 / inverse))
    if release.labels == "avg" and not release.promise.is_paper:
        norm = float(np.linalg.norm(theta))
        theta = theta * min(1.0, at.norm_bound / norm)  # the mean of projected models is no longer than that
    return crowd.accuracy(np.array([at.noised(theta, rng=rng).reshape(theta.shape) for _ in range(draws)]))


def mean_of(trials: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean over trials, number by number."""
    first = trials[0]
    none = {kind: float(np.mean([each["none"][kind] for each in trials])) for kind in first["none"]}
    lines = {name: np.mean([each[name] for each in trials], axis=0).tolist() for name in first if name != "none"}
    return {"none": none, **lines}
