"""Hypothesis transfer on reviews of books, DVDs, electronics and kitchenware: how much do private sources help?

python benchmarks/transfer.py [--draws 4] [--noises 3] [--labelled 40] [--columns 30]

Accuracy: each kind of goods is the target in turn, the other three are the sources. The target has a few labelled
reviews, some 450 without a label, and a test set; 400 reviews of each kind are public. Weights: the target is a mixture
of the four kinds in known shares, and what counts is the mean squared error of the shares that are found (Wang, figure
4.3). The hashed columns are reduced to a few by principal components of the public reviews, which costs nothing and
without which the noise drowns every model. Each figure is a mean with its standard error; settings are the defaults, of
which prior_floor (of three values) and n_directions (of four) were chosen by looking at these very reviews.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import Federation, Policy, Schema, Table
from tacit.datasets import load
from tacit.methods.transfer.method import HypothesisTransfer

Floats = npt.NDArray[np.float64]
Reviews = dict[str, tuple[Floats, npt.NDArray[np.int64]]]

EPSILONS = (0.1, 1.0, 10.0, math.inf)
N_PUBLIC, N_TARGET = 400, 500
MIXTURES = ((0.75, 0.0, 0.25, 0.0), (0.1, 0.2, 0.4, 0.3), (0.0, 0.5, 0.5, 0.0), (0.0, 0.2, 0.4, 0.4))
ENTRANTS: dict[str, dict[str, Any]] = {
    "transfer, tilt": {},
    "transfer, discriminator": {"weights": "discriminator"},
    "transfer, as printed": {"calibration": "paper"},
    "average": {"strategy": "average"},
    "average, all records": {"strategy": "average", "labelled_fraction": 1.0},
    "source": {"strategy": "source"},
    "soft": {"strategy": "soft"},
}
ALONE = ("weak", "target")  # the target by itself: the same whatever epsilon is


@dataclass(frozen=True)
class Case:
    sources: dict[str, Table]
    own: dict[str, Any]  # what the analyst brings
    test: tuple[Floats, npt.NDArray[np.int64]] | None = None
    shares: tuple[float, ...] | None = None

    def fit(self, settings: dict[str, Any], epsilon: float) -> HypothesisTransfer:
        parties = Federation.from_tables(self.sources, policy=Policy(not_private=["hypothesis-transfer"]))
        return HypothesisTransfer(epsilon=epsilon, **self.own | settings).fit(parties)


def reduced(public: Floats, columns: int) -> Callable[[Floats], Floats]:
    """A map learned on public rows: principal components, then norm 1."""
    middle = public.mean(axis=0)
    V = np.linalg.eigh((public - middle).T @ (public - middle))[1][:, ::-1][:, :columns]
    return lambda X: unit((X - middle) @ V)


def unit(X: Floats) -> Floats:
    length: Floats = np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    return X / length * (1 - 1e-12)


def accuracy_cases(reviews: Reviews, columns: int, labelled: int, chance: np.random.Generator) -> list[Case]:
    order = {kind: chance.permutation(len(y)) for kind, (_, y) in reviews.items()}
    public = np.concatenate([X[order[kind][:N_PUBLIC]] for kind, (X, _) in reviews.items()])
    reduce = reduced(public, columns)
    schema = Schema.of_arrays(columns, ["0", "1"], norm_bound=1.0)
    rest = {kind: (reduce(X)[order[kind][N_PUBLIC:]], y[order[kind][N_PUBLIC:]]) for kind, (X, y) in reviews.items()}
    cases = []
    for target, (X, y) in rest.items():
        parts = [(X[a:b], y[a:b]) for a, b in ((0, labelled), (labelled, N_TARGET), (N_TARGET, None))]
        own = {"target": parts[0], "unlabelled": parts[1], "public": reduce(public)}
        sources = {kind: Table.from_arrays(*rows, schema) for kind, rows in rest.items() if kind != target}
        cases.append(Case(sources, own, test=parts[2]))
    return cases


def mixture_cases(reviews: Reviews, columns: int, labelled: int, chance: np.random.Generator) -> list[Case]:
    order = {kind: chance.permutation(len(y)) for kind, (_, y) in reviews.items()}
    public = np.concatenate([X[order[kind][:N_PUBLIC]] for kind, (X, _) in reviews.items()])
    reduce = reduced(public, columns)
    schema = Schema.of_arrays(columns, ["0", "1"], norm_bound=1.0)
    rest = {kind: (reduce(X)[order[kind][N_PUBLIC:]], y[order[kind][N_PUBLIC:]]) for kind, (X, y) in reviews.items()}
    sources = {kind: Table.from_arrays(X[N_TARGET:], y[N_TARGET:], schema) for kind, (X, y) in rest.items()}
    cases = []
    for shares in MIXTURES:
        counts = [round(N_TARGET * share) for share in shares]
        X = np.concatenate([X[:n] for (X, _), n in zip(rest.values(), counts, strict=True)])
        y = np.concatenate([y[:n] for (_, y), n in zip(rest.values(), counts, strict=True)])
        mixed = chance.permutation(len(y))
        X, y = X[mixed], y[mixed]
        own = {"target": (X[:labelled], y[:labelled]), "unlabelled": X[labelled:], "public": reduce(public)}
        cases.append(Case(sources, own, shares=shares))
    return cases


def accuracy(model: HypothesisTransfer, case: Case) -> float:
    assert case.test is not None
    return model.score(*case.test)


def share_error(model: HypothesisTransfer, case: Case) -> float:
    found = np.array([model.source_weights_[kind] for kind in case.sources])
    return float(np.mean((found - np.array(case.shares)) ** 2))


def measured(
    cases: list[Case],
    settings: dict[str, Any],
    epsilon: float,
    noises: int,
    measure: Callable[[HypothesisTransfer, Case], float],
) -> str:
    """The mean over cases; its standard error is over cases too, for noise draws of one case share its data."""
    means = [np.mean([measure(case.fit(settings, epsilon), case) for _ in range(noises)]) for case in cases]
    return f"{np.mean(means):.4f} ({np.std(means, ddof=1) / math.sqrt(len(means)):.4f})"


def show(title: str, rows: dict[str, list[str]]) -> None:
    print(f"\n{title}")
    print(f"{'epsilon':26}" + "".join(f"{epsilon:>18g}" for epsilon in EPSILONS))
    for name, cells in rows.items():
        print(f"{name:26}" + "".join(f"{cell:>18}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=4, help="of who is public, source, target and test")
    parser.add_argument("--noises", type=int, default=3, help="runs with fresh noise of each draw")
    parser.add_argument("--labelled", type=int, default=40)
    parser.add_argument("--columns", type=int, default=30)
    asked = parser.parse_args()
    started = time.perf_counter()
    # Square roots of counts, a public map: they tame the commonest words.
    tables = load("amazon_sentiment").tables
    reviews = {kind: (unit(np.sqrt(table.arrays()[0])), table.arrays()[1]) for kind, table in tables.items()}

    cases = [
        case
        for draw in range(asked.draws)
        for case in accuracy_cases(reviews, asked.columns, asked.labelled, np.random.default_rng(draw))
    ]
    rows = {name: [measured(cases, {"strategy": name}, 1.0, 1, accuracy)] * len(EPSILONS) for name in ALONE}
    for name, settings in ENTRANTS.items():
        rows[name] = [measured(cases, settings, epsilon, asked.noises, accuracy) for epsilon in EPSILONS]
    show(f"accuracy, {len(cases)} cases x {asked.noises} noises, {asked.labelled} labelled records", rows)

    cases = [
        case
        for draw in range(max(1, asked.draws // 2))
        for case in mixture_cases(reviews, asked.columns, asked.labelled, np.random.default_rng(100 + draw))
    ]
    even = np.mean([np.mean((np.array(shares) - 0.25) ** 2) for shares in MIXTURES])
    rows = {
        name: [measured(cases, settings, epsilon, asked.noises, share_error) for epsilon in EPSILONS]
        for name, settings in ENTRANTS.items()
        if name.startswith("transfer")
    }
    show(f"mean squared error of the shares, {len(cases)} cases; even shares have {even:.4f}", rows)
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
