"""Anderson's acceleration against the plain steps of PrivLogit: easy and hard designs, good and bad starts.

    python benchmarks/acceleration.py [--out docs]
    python benchmarks/acceleration.py --wide 2000     with blocks of the bound, as above 1,000 columns, to 1e-8

Prints rounds until the coefficients are within 1e-3, 1e-6 and 1e-8 of the optimum; a rejected point counts as a round.
Fails if acceleration needs more rounds than the plain method and the rejected ones together.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from tacit.methods.privlogit.block import spans
from tacit.models.anderson import Ascending, ascend
from tacit.models.loss import Array
from tacit.models.solver import Problem, fit
from tacit.report.plots import BLUE, VERMILION, picture

RECORDS = 20_000
LEVELS = (1e-3, 1e-6, 1e-8)
MOST_ROUNDS = 2000


def gaussian(rng: np.random.Generator, d: int) -> Array:
    return rng.normal(size=(RECORDS, d))


def autoregressive(rng: np.random.Generator, d: int) -> Array:
    """Neighbouring columns are correlated by 0.9."""
    X = rng.normal(size=(RECORDS, d))
    for j in range(1, d):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.81) * X[:, j]
    return X


def one_hot(rng: np.random.Generator, d: int) -> Array:
    """Ten features with a reference and frequencies that fall like k^-1.5: many categories are rare."""
    X = np.zeros((RECORDS, d))
    width = d // 10
    for first in range(0, d, width):
        share = np.arange(1, width + 2) ** -1.5
        chosen = rng.choice(width + 1, size=RECORDS, p=share / share.sum())
        rows = np.flatnonzero(chosen < width)
        X[rows, first + chosen[rows]] = 1.0
    return X


def heavy_tailed(rng: np.random.Generator, d: int) -> Array:
    return rng.standard_t(3, size=(RECORDS, d))


DESIGNS = {  # name: (columns, number of them, length of the true coefficients)
    "Gaussian": (gaussian, 100, 3.58),
    "autoregressive": (autoregressive, 100, 8.0),
    "one-hot": (one_hot, 50, 6.0),
    "heavy-tailed": (heavy_tailed, 100, 2.0),
}


class Plain:
    """The oracle of one table, nothing of it secret."""

    def __init__(self, X: Array, y: Array, l2: float) -> None:
        self.X, self.y, self.l2 = X, y, l2
        self._factor = cho_factor(X.T @ X / 4 + l2 * np.eye(X.shape[1]))
        self._accepted = -np.inf

    def ask(self, point: Array) -> None:
        self._point, margin = point, self.X @ point
        value = self.y * margin - np.logaddexp(0, margin)
        self._value = float(value.sum() - self.l2 / 2 * point @ point)

    def is_better(self) -> bool:
        return self._value >= self._accepted - 1e-14 * len(self.X)

    def accept(self) -> Array:
        self._accepted = self._value
        gradient = self.X.T @ (self.y - expit(self.X @ self._point)) - self.l2 * self._point
        step: Array = cho_solve(self._factor, gradient)
        return step


class Blocks(Plain):
    """The same with so many times the blocks of the bound, as `privlogit.block` has it."""

    def __init__(self, X: Array, y: Array, l2: float) -> None:
        super().__init__(X, y, l2)
        self._spans = spans(X.shape[1])
        self._factors = [cho_factor(X[:, span].T @ X[:, span] / 4 + l2 * np.eye(_width(span))) for span in self._spans]

    def accept(self) -> Array:
        self._accepted = self._value
        gradient = self.X.T @ (self.y - expit(self.X @ self._point)) - self.l2 * self._point
        steps = [cho_solve(factor, gradient[span]) for factor, span in zip(self._factors, self._spans, strict=True)]
        step: Array = np.concatenate(steps) / len(steps)
        return step


def _width(span: slice) -> int:
    return int(span.stop - span.start)


def wide(d: int) -> None:
    """Rounds of a wide fit from 0, and how far it is from the optimum in the end."""
    for name, (columns, usual, length) in DESIGNS.items():
        rng = np.random.default_rng(0)
        X = columns(rng, d)
        beta = rng.normal(size=d)
        longer = length if name != "one-hot" else length * np.sqrt(d / usual)
        y = (rng.random(RECORDS) < expit(X @ beta * longer / np.linalg.norm(beta))).astype(np.int64)
        problem = Problem(n_features=d, l2=1.0, intercept="none", tolerance=1e-12)
        optimum = fit(lambda X=X, y=y: [(X, y)], problem=problem).theta  # type: ignore[misc]
        settings = Ascending(memory=40, tolerance=1e-8, max_rounds=400, is_loose=True)
        ascent = ascend(Blocks(X, y, 1.0), np.zeros(d), settings=settings)
        error = float(np.linalg.norm(ascent.point - optimum) / np.linalg.norm(optimum))
        print(f"{name:15} {d} columns in {len(spans(d))} blocks: {len(ascent.visits)} rounds, {ascent.n_rejected} "
              f"rejected, relative error {error:.0e}", flush=True)  # fmt: skip


def errors(X: Array, y: Array, start: float, memory: int, optimum: Array) -> tuple[list[float], int]:
    """The relative error of the best answer after each round, and how many rounds were rejected."""
    reached: list[float] = []
    settings = Ascending(memory=memory, tolerance=LEVELS[-1] / 10, max_rounds=MOST_ROUNDS, from_zero=not start)
    ascent = ascend(
        Plain(X, y, 1.0),
        np.full(X.shape[1], start),
        settings=settings,
        on_round=lambda a: reached.append(float(np.linalg.norm(a.point - optimum) / np.linalg.norm(optimum))),
    )
    return reached, ascent.n_rejected


def rounds(reached: list[float], level: float) -> int | None:
    return next((k for k, error in enumerate(reached, start=1) if error <= level), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="a folder for acceleration.svg")
    parser.add_argument("--wide", type=int, help="rounds with blocks of so many columns, and nothing else")
    arguments = parser.parse_args()
    if arguments.wide is not None:
        wide(arguments.wide)
        return
    curves: dict[tuple[str, float], dict[str, list[float]]] = {}
    worse = []
    print(f"rounds until the relative error is {', '.join(f'{level:g}' for level in LEVELS)}")
    for name, (columns, d, length) in DESIGNS.items():
        rng = np.random.default_rng(0)
        X = columns(rng, d)
        beta = rng.normal(size=d)
        y = (rng.random(RECORDS) < expit(X @ beta * length / np.linalg.norm(beta))).astype(np.int64)
        problem = Problem(n_features=d, l2=1.0, intercept="none", tolerance=1e-12)
        optimum = fit(lambda X=X, y=y: [(X, y)], problem=problem).theta  # type: ignore[misc]
        for start in (0.0, 2.0):
            plain, _ = errors(X, y, start, 0, optimum)
            fast, rejected = errors(X, y, start, 5, optimum)
            curves[name, start] = {"plain": plain, "accelerated": fast}
            told = ["/".join(str(rounds(one, level) or ">") for level in LEVELS) for one in (plain, fast)]
            print(f"{name:15} from {start:g}: plain {told[0]:15} accelerated {told[1]:12} {rejected} rejected")
            for level in LEVELS:
                a, b = rounds(plain, level), rounds(fast, level)
                if a is not None and (b is None or b > a + rejected):
                    worse.append(f"{name} from {start:g}")
    if arguments.out is not None:
        (arguments.out / "acceleration.svg").write_text(drawn(curves) + "\n", encoding="utf-8")
    if worse:
        sys.exit(f"acceleration cost more than its safeguard: {', '.join(worse)}")


def drawn(curves: dict[tuple[str, float], dict[str, list[float]]]) -> str:
    def draw(figure: Figure) -> None:
        grid = figure.subplots(2, len(DESIGNS), sharey=True, squeeze=False)
        for (name, start), series in curves.items():
            axes = grid[int(start > 0)][list(DESIGNS).index(name)]
            for label, colour in (("plain", VERMILION), ("accelerated", BLUE)):
                axes.loglog(range(1, len(series[label]) + 1), series[label], color=colour, label=label, linewidth=1.6)
            axes.set_title(f"{name}, from {start:g}", fontsize=9)
            axes.set_ylim(1e-9, 1e2)
            for axis in (axes.xaxis, axes.yaxis):  # plain numbers: mathematical text is not read in our pictures
                axis.set_major_formatter(lambda value, _: f"{value:g}")
                axis.set_minor_formatter(NullFormatter())
        for axes in grid[1]:
            axes.set_xlabel("rounds")
        for row in grid:
            row[0].set_ylabel("relative error")
        grid[0][0].legend(frameon=False, fontsize=8, loc="lower left")

    words = "; ".join(
        f"{name} from {start:g}: {rounds(series['plain'], 1e-6) or 'over 2000'} plain, "
        f"{rounds(series['accelerated'], 1e-6)} accelerated"
        for (name, start), series in curves.items()
    )
    return picture(
        draw,
        figure_id="acceleration",
        title="Distance from the optimum after each round",
        description=f"Rounds to a relative error of 1e-6. {words}.",
        height=5.2,
        width=10.0,
    )


if __name__ == "__main__":
    main()
