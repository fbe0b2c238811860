"""Sufficient statistics from marginals: after Ferrando and Sheldon (TMLR 08/2025; arXiv 2405.15002), simplified by us.

What is theirs. The logistic loss is replaced by its Chebyshev polynomial of degree 2 on [-6, 6], so that the sums of
y x and of x x' suffice. These follow from tables of counts of two features, or of a feature and the label. AIM (McKenna
et al. 2022, Algorithm 2) chooses which tables to open: each feature's with the label first, then again and again the
pair of features that the model so far gets most wrong, with noise that halves whenever an answer taught nothing.

What is simpler here. AIM fits one graphical model to all answers. Here a pair that was never opened counts as
independent given the label. One that was opened is the weighted mean of its own answers, drawn to that guess as far as
noise explains the difference, then brought to its margins and to counts that are not negative. The matrix of all pairs
is made positive. The tables with the label have a fixed share of the budget.

Privacy. A table of counts moves by 1 in L2 norm under add-remove, by the root of 2 under replace-one. A choice is an
exponential mechanism of epsilon s over L1 errors, which move by `steps`; it counts as mu of `mu_of_pure(s)`. All mu**2
add up to that of the promise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Polynomial, chebyshev
from scipy.special import log_ndtr

from peers.attribute import Attributes
from peers.task import Task

Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]

REACH = 6.0  # the polynomial is for scores from -6 to 6
# Chosen on adult_dpml and a9a, from a third, a half and 0.7; 1, 4 and AIM's 16; 1, 3 and 10.
LABELS = 0.5  # of the budget, for the tables with the label
ROUNDS = 4  # for each feature, if no answer is better than noise
FLOOR = 10.0  # the least eigenvalue of the sum of x x', over the noise of a count
MEASURING = 0.9  # AIM's share of a round that measures
ABSOLUTE = math.sqrt(2 / math.pi)  # the mean of |Z|


@dataclass(frozen=True)
class Counts:
    """The true tables, made once for a set of records: they do not depend on epsilon."""

    label: list[Floats]  # (levels, 2) for each feature
    pairs: dict[Pair, Floats]

    @classmethod
    def of(cls, data: Attributes, y: npt.NDArray[np.int64]) -> Counts:
        codes = data.train.astype(np.int64)
        sizes = [len(level) for level in data.levels]
        features = range(len(sizes))
        label = [_table(codes[:, a], y, sizes[a], 2) for a in features]
        pairs = {
            (a, b): _table(codes[:, a], codes[:, b], sizes[a], sizes[b]) for a in features for b in features if a < b
        }
        return cls(label, pairs)


@dataclass
class Opened:
    """What is known of a pair: the sum of answers and of their weights 1 / std**2, and the table in use."""

    table: Floats
    answers: Floats | float = 0.0
    weight: float = 0.0


@dataclass
class Selection:
    """AIM's loop over pairs of features."""

    task: Task
    counts: Counts
    label: list[Floats]  # as opened
    opened: dict[Pair, Opened] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Every pair is independent given the label until it is opened."""
        self.pairs = list(self.counts.pairs)
        self.cells = np.array([table.size for table in self.counts.pairs.values()])
        self.errors = np.array([np.abs(self.counts.pairs[pair] - self.guess(pair)).sum() for pair in self.pairs])

    def guess(self, pair: Pair) -> Floats:
        """A pair that is independent given the label."""
        first, second = (self.label[a] for a in pair)
        found: Floats = sum(np.outer(first[:, c], second[:, c]) / max(second[:, c].sum(), 1.0) for c in (0, 1))
        return found

    def run(self, squared: float, measure: float) -> None:
        """Spend so much mu**2, beginning with mu = `measure` for an answer."""
        choose = measure * math.sqrt((1 - MEASURING) / MEASURING)
        while squared > 0:
            if squared < 2 * (measure**2 + choose**2):
                measure, choose = (math.sqrt(share * squared) for share in (MEASURING, 1 - MEASURING))
                squared = 0.0
            else:
                squared -= measure**2 + choose**2
            if self.answer(measure, choose):
                measure, choose = 2 * measure, 2 * choose

    def answer(self, measure: float, choose: float) -> bool:
        """Open the pair that looks worst; whether that taught no more than noise would."""
        task, std = self.task, sensitivity(self.task) / measure
        epsilon = float(log_ndtr(choose / 2) - log_ndtr(-choose / 2))  # mu_of_pure(epsilon) = choose
        scores = self.errors - ABSOLUTE * std * self.cells
        noisy = scores + task.rng.gumbel(scale=2 * task.steps / epsilon, size=len(scores))
        k = int(np.argmax(noisy))
        pair, true = self.pairs[k], self.counts.pairs[self.pairs[k]]
        known = self.opened.setdefault(pair, Opened(self.guess(pair)))
        known.answers = known.answers + (true + task.rng.normal(scale=std, size=true.shape)) / std**2
        known.weight += std**-2
        before = known.table
        answer = shrunken(known.answers / known.weight, self.guess(pair), known.weight**-0.5)
        known.table = on_margins(answer, *(self.label[a].sum(axis=1) for a in pair))
        self.errors[k] = np.abs(true - known.table).sum()
        return bool(np.abs(known.table - before).sum() <= ABSOLUTE * std * true.size)


def marginal_scores(task: Task) -> Floats:
    """Log odds on the test records."""
    data = task.attributes
    if data is None:
        raise ValueError("marginal_scores needs the records as codes: give Task its attributes")
    counts = _counts(data, task.y)
    if math.isinf(task.epsilon):
        return data.scores(solve(data, counts.label, counts.pairs, floor=0.0))
    squared, k = task.mu**2, len(data.levels)
    std = sensitivity(task) / math.sqrt(LABELS * squared / k)
    label = [on_simplex(table + task.rng.normal(scale=std, size=table.shape), len(task.y)) for table in counts.label]
    selection = Selection(task, counts, label)
    left = (1 - LABELS) * squared
    selection.run(left, math.sqrt(MEASURING * left / (ROUNDS * k)))
    tables = {pair: known.table for pair, known in selection.opened.items()}
    return data.scores(solve(data, label, tables, floor=FLOOR * std))


def sensitivity(task: Task) -> float:
    """How far a table of counts moves, in L2 norm."""
    return math.sqrt(task.steps)


def solve(data: Attributes, label: list[Floats], pairs: dict[Pair, Floats], *, floor: float) -> Floats:
    """The minimiser of the polynomial loss; eigenvalues of the sum of x x' are at least `floor` + 1e-6."""
    columns = [*data.columns(), slice(-1, None)]
    levels = [*data.levels, np.ones((1, 1))]
    margins = [*label, np.mean([table.sum(axis=0) for table in label], axis=0)[None]]
    sums = np.vstack([level.T @ table for level, table in zip(levels, margins, strict=True)])  # of x, by class
    S: Floats = sum(np.outer(sums[:, c], sums[:, c]) / max(margins[-1][0, c], 1.0) for c in (0, 1))
    for a, level in enumerate(levels):
        S[columns[a], columns[a]] = (level * margins[a].sum(axis=1)[:, None]).T @ level
    for (a, b), table in pairs.items():
        S[columns[a], columns[b]] = levels[a].T @ table @ levels[b]
        S[columns[b], columns[a]] = S[columns[a], columns[b]].T
    values, vectors = np.linalg.eigh(S)
    _, slope, curvature = polynomial()
    xy = sums[:, 1] - sums[:, 0]
    found: Floats = vectors @ ((vectors.T @ xy) / np.maximum(values, floor + 1e-6)) * (-slope / (2 * curvature))
    return found


def polynomial() -> tuple[float, float, float]:
    """log(1 + exp(-s)) as a + b s + c s**2 for |s| <= 6."""
    fitted = chebyshev.chebinterpolate(lambda t: np.logaddexp(0.0, -REACH * t), 2)
    a, b, c = Polynomial(chebyshev.cheb2poly(fitted)).coef
    return float(a), float(b / REACH), float(c / REACH**2)


def shrunken(answer: Floats, guess: Floats, std: float) -> Floats:
    """An answer drawn to the guess as far as noise explains how they differ (James and Stein)."""
    apart = answer - guess
    found: Floats = guess + max(0.0, 1 - answer.size * std**2 / max(float((apart**2).sum()), 1e-300)) * apart
    return found


def on_margins(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """A noisy table with margins that are better known, then with no negative counts."""
    table = table + ((rows - table.sum(axis=1)) / table.shape[1])[:, None]
    table = table + (columns - table.sum(axis=0)) / table.shape[0]
    return on_simplex(table, float(rows.sum()))


def on_simplex(table: Floats, total: float) -> Floats:
    """The nearest table of counts that are not negative and have this sum."""
    falling = np.sort(table, axis=None)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, table.size + 1)
    last = int(np.nonzero(falling > excess)[0][-1])
    return np.maximum(table - excess[last], 0.0)


def _table(first: npt.NDArray[np.int64], second: npt.NDArray[np.int64], rows: int, columns: int) -> Floats:
    found = np.bincount(first * columns + second, minlength=rows * columns)
    return found.reshape(rows, columns).astype(np.float64)


_known: list[tuple[Attributes, Counts]] = []


def _counts(data: Attributes, y: npt.NDArray[np.int64]) -> Counts:
    if not _known or _known[0][0] is not data:
        _known[:] = [(data, Counts.of(data, y))]
    return _known[0][1]
