"""The populations that records are drawn from, with the coefficients that an interval should cover.

A column's effect is normal with the standard deviation 1.2 / sqrt(d) per standard deviation of the column, d the number
of columns. So scores spread alike in every law, on average over the draws. Everything is in original units, as a table
of coefficients is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit

from tacit.data.encoding import clip_rows
from tacit.data.feature import Binary, Feature, Numeric, Target
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.models.problem import Problem
from tacit.models.solver import fit

Floats = npt.NDArray[np.float64]

LAWS = ("uniform", "one-hot", "narrow-1", "narrow-3", "correlated", "heavy", "heavy-wrong", "rare", "bent")
WRONG = ("heavy-wrong", "bent")  # laws that no model is right for: also tried with the sandwich
AXES = ("one-hot", "narrow-1", "narrow-3")  # laws that are also tried with fewer records, more columns, other epsilons

EFFECT = 1.2  # the standard deviation of scores, on average
INTERCEPT = -0.7  # the log odds of the mean row
RARE = 0.02  # the share of positives, where they are rare
NORM_BOUND = 1.0  # of heavy-tailed rows
N_PSEUDO = 1_000_000  # records of the fit that stands for the truth of a wrong model
N_CALIBRATION = 100_000  # rows over which a share or a standard deviation is taken
_HIGH = 100.0  # the upper bound of the columns beside a narrow one, and of that one
_DEVIATION = 0.3  # of correlated columns; the factor on heavy-tailed ones
_DEGREES = 3  # of freedom of Student's t


@dataclass(frozen=True)
class Cell:
    """One line of the table: a law, the sizes, and the promise."""

    law: str
    n_records: int
    n_features: int
    epsilon: float
    robust: bool = False  # with the sandwich

    @property
    def name(self) -> str:
        """As `--cells` and the file of results have it."""
        end = "/robust" if self.robust else ""
        return f"{self.law}/{self.n_records}/{self.n_features}/{self.epsilon:g}{end}"


@dataclass(frozen=True)
class Drawn:
    """Records in original units, and the truth: one coefficient for each column, then the intercept."""

    X: Floats
    y: npt.NDArray[np.int64]
    truth: Floats
    schema: Schema


def cells() -> list[Cell]:
    """Every cell: the two sizes and two epsilons of each law, then what lies along each axis from there."""
    found = []
    for law in LAWS:
        sizes = (20_000, 200_000) if law == "rare" else (3_000, 20_000)
        found += [Cell(law, n, 6, epsilon) for n in sizes for epsilon in (0.3, 1.0)]
        if law in WRONG:
            found += [Cell(law, n, 6, epsilon, robust=True) for n in sizes for epsilon in (0.3, 1.0)]
        if law in AXES:
            found += [Cell(law, 500, 6, epsilon) for epsilon in (0.3, 1.0)]
            found += [Cell(law, n, 30, epsilon) for n in sizes for epsilon in (0.3, 1.0)]
            found += [Cell(law, n, 6, epsilon) for n in sizes for epsilon in (0.1, 3.0)]
    return found


def draw(cell: Cell, seed: int) -> Drawn:
    """The records of one run; the same for every epsilon."""
    law, n, d = cell.law, cell.n_records, cell.n_features
    chance = np.random.default_rng([seed, n, d, LAWS.index(law)])
    if law in WRONG:
        X, y = _wrong_records(law, n, d, chance)
        return Drawn(X, y, pseudo_truth(law, d), schema_of(law, d))
    truth = _coefficients(law, d, chance)
    X = rows(law, n, d, chance)
    seen = clip_rows(X, NORM_BOUND)[0] if law == "heavy" else X
    return Drawn(X, _labels(seen, truth, chance), truth, schema_of(law, d))


def schema_of(law: str, d: int) -> Schema:
    """The public facts: bounds of the columns where the law has bounds, a norm bound where it has none."""
    heavy = law.startswith("heavy")
    return Schema(
        tuple(_feature(law, f"x{j}") for j in range(d)), Target("y", ("0", "1")), NORM_BOUND if heavy else None
    )


def _feature(law: str, name: str) -> Feature:
    match law:
        case "one-hot":
            return Binary(name)
        case "narrow-1" | "narrow-3":
            return Numeric(name, 0, _HIGH)
        case "heavy" | "heavy-wrong":
            return Numeric(name)
        case _:
            return Numeric(name, -1, 1)


def rows(law: str, n: int, d: int, chance: np.random.Generator) -> Floats:
    """Rows in original units; long ones are clipped by the schema, at the party."""
    match law:
        case "uniform" | "rare" | "bent":
            return chance.uniform(-1, 1, size=(n, d))
        case "one-hot":
            return (chance.random((n, d)) < _chances(d)).astype(np.float64)
        case "narrow-1" | "narrow-3":
            X = chance.uniform(0, _HIGH, size=(n, d))
            X[:, 0] = np.minimum(chance.exponential(_narrow_mean(law), size=n), _HIGH)
            return X
        case "correlated":
            C = np.full((d, d), 0.9) + 0.1 * np.eye(d)
            X = _DEVIATION * chance.normal(size=(n, d)) @ np.linalg.cholesky(C).T
            return np.clip(X, -1, 1)
        case "heavy" | "heavy-wrong":
            return _DEVIATION * chance.standard_t(_DEGREES, size=(n, d))
    raise ValueError(f"law = {law!r} is none of {LAWS}")


def _coefficients(law: str, d: int, chance: np.random.Generator) -> Floats:
    """Effects per standard deviation of a column, then the intercept that gives the mean row its log odds."""
    mean, deviation = _moments(law, d)
    b = chance.normal(size=d) * EFFECT / math.sqrt(d) / deviation
    if law != "rare":
        return np.append(b, INTERCEPT - mean @ b)
    scores = _calibration_rows(law, d) @ b
    return np.append(b, brentq(lambda a: float(np.mean(expit(a + scores))) - RARE, -40, 40))


def _labels(X: Floats, truth: Floats, chance: np.random.Generator) -> npt.NDArray[np.int64]:
    y: npt.NDArray[np.int64] = (chance.random(len(X)) < expit(X @ truth[:-1] + truth[-1])).astype(np.int64)
    return y


@lru_cache(maxsize=8)
def pseudo_truth(law: str, d: int) -> Floats:
    """What a fit tends to where no model is right: that of a million records."""
    X, y = _wrong_records(law, N_PSEUDO, d, np.random.default_rng([N_PSEUDO, d]))
    table = Table.from_arrays(X, y, schema_of(law, d))
    found = fit(table.blocks, problem=Problem(n_features=d))
    return np.append(found.coef[0], found.intercept)


def _wrong_records(law: str, n: int, d: int, chance: np.random.Generator) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Labels from rows as they were before clipping, or from a power; the same law in every run."""
    X = rows(law, n, d, chance)
    if law == "bent":
        return X, (chance.random(n) < 0.01 + 0.6 * X[:, 0] ** 4).astype(np.int64)
    truth = _coefficients("heavy-wrong", d, np.random.default_rng(d))
    truth[:-1] *= EFFECT / np.linalg.norm(truth[:-1] * _moments("heavy-wrong", d)[1])  # one draw, of the usual strength
    return X, _labels(X, truth, chance)


@lru_cache(maxsize=32)
def _moments(law: str, d: int) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each column, as a method sees it."""
    match law:
        case "uniform" | "rare" | "bent":
            return np.zeros(d), np.full(d, 1 / math.sqrt(3))
        case "one-hot":
            p = _chances(d)
            return p, np.sqrt(p * (1 - p))
        case "narrow-1" | "narrow-3":
            mean, deviation = np.full(d, _HIGH / 2), np.full(d, _HIGH / math.sqrt(12))
            mean[0] = deviation[0] = _narrow_mean(law)  # of an exponential law they are the same
            return mean, deviation
        case "correlated":
            return np.zeros(d), np.full(d, _DEVIATION)
    clipped = clip_rows(_calibration_rows(law, d), NORM_BOUND)[0]
    return np.zeros(d), np.full(d, clipped.std())


@lru_cache(maxsize=8)
def _calibration_rows(law: str, d: int) -> Floats:
    return rows(law, N_CALIBRATION, d, np.random.default_rng([N_CALIBRATION, d]))


def _narrow_mean(law: str) -> float:
    return float(law.removeprefix("narrow-"))


def _chances(d: int) -> Floats:
    """How often each one-hot column is 1."""
    return np.linspace(0.05, 0.5, d)
