"""Audits: what a mechanism gives away at least, measured from its outcomes on two neighbouring inputs.

If a mechanism is (epsilon, delta)-differentially private, then P_1(S) <= exp(epsilon) P_0(S) + delta for every set S of
outcomes. So whoever finds a set with P_1(S) >= p and P_0(S) <= q has shown that epsilon >= log((p - delta) / q). Here
the outcomes are summed up in a score, S is {score above or below a threshold}, and p and q are bounds by Clopper and
Pearson.

The score and the threshold are chosen on one half of the runs and tested on the other, so that choosing among many does
not spoil the confidence. A mechanism that keeps its promise is found to exceed it with probability at most
1 - confidence; one that breaks it is found with a probability that grows with the number of runs and with how well the
neighbours bring it out (`power` says how well).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from tacit.errors import SettingError

Floats = NDArray[np.float64]

_CANDIDATES = 200  # thresholds tried on the first half


@dataclass(frozen=True, kw_only=True)
class AuditFinding:
    """What an audit of one pair of neighbours found."""

    epsilon: float  # a lower bound, with the stated confidence; 0 if nothing was shown
    confidence: float
    n_runs: int  # of each of the two neighbours


@dataclass(frozen=True, kw_only=True)
class _Test:
    """A set of outcomes, scores above a threshold or below it; and whether the first neighbour makes it likelier."""

    threshold: float
    above: bool
    first_likelier: bool


def audit_outcomes(first: Floats, second: Floats, *, delta: float = 0.0, confidence: float = 0.999) -> AuditFinding:
    """A lower bound on epsilon from outcomes (runs x numbers) on two neighbouring inputs.

    Guarantees:
        If the mechanism is (epsilon, delta)-differentially private and the runs are independent, the bound exceeds
        epsilon with probability at most 1 - confidence.
    """
    first, second = (np.asarray(x, dtype=np.float64).reshape(len(x), -1) for x in (first, second))
    if min(len(first), len(second)) < 20 or first.shape[1] != second.shape[1]:
        raise SettingError(f"outcomes of shapes {first.shape} and {second.shape}: give 20 runs or more of each, alike")
    if not 0 < confidence < 1:
        raise SettingError(f"confidence = {confidence} must lie between 0 and 1, for example 0.999")
    halves = [(x[: len(x) // 2], x[len(x) // 2 :]) for x in (first, second)]
    direction = _direction(halves[0][0], halves[1][0])
    chosen_on, tested_on = ([x[half] @ direction for x in halves] for half in (0, 1))
    test = _best_test(chosen_on[0], chosen_on[1], delta, confidence)
    bound = float(_bounds(tested_on[0], tested_on[1], np.array([test.threshold]), test, delta, confidence)[0])
    return AuditFinding(epsilon=max(0.0, bound), confidence=confidence, n_runs=min(len(first), len(second)))


def _direction(first: Floats, second: Floats) -> Floats:
    """Where the two differ most against their spread (linear discriminant, shrunk a little towards the diagonal)."""
    scale = np.concatenate([first, second]).std(axis=0)
    scale[scale == 0] = 1.0
    a, b = first / scale, second / scale
    spread = (np.cov(a, rowvar=False) + np.cov(b, rowvar=False)).reshape(a.shape[1], a.shape[1]) / 2
    # Enough for a singular spread, little enough to see what hides in correlated numbers.
    shrink = 1e-6 * len(spread) / len(a)
    shrunk = spread + shrink * (np.trace(spread) / len(spread) + 1e-12) * np.eye(len(spread))
    towards: Floats = np.linalg.solve(shrunk, b.mean(axis=0) - a.mean(axis=0)) / scale
    return towards


def _best_test(first: Floats, second: Floats, delta: float, confidence: float) -> _Test:
    levels = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0, 1, _CANDIDATES)))
    best, found = _Test(threshold=0.0, above=True, first_likelier=False), -math.inf
    for above in (True, False):
        for first_likelier in (True, False):
            test = _Test(threshold=0.0, above=above, first_likelier=first_likelier)
            bounds = _bounds(first, second, levels, test, delta, confidence)
            if bounds.max() > found:
                best, found = replace(test, threshold=float(levels[bounds.argmax()])), float(bounds.max())
    return best


def _bounds(first: Floats, second: Floats, thresholds: Floats, test: _Test, delta: float, confidence: float) -> Floats:
    """log((p - delta) / q) with p below and q above the true probabilities, each with half of the error allowed."""
    likely, other = (first, second) if test.first_likelier else (second, first)
    hits, misses = (_beyond(scores, thresholds, test.above) for scores in (likely, other))
    tail = (1 - confidence) / 2
    p = np.where(hits > 0, beta.ppf(tail, np.maximum(hits, 1), len(likely) - hits + 1), 0.0)
    q = np.where(misses < len(other), beta.ppf(1 - tail, misses + 1, np.maximum(len(other) - misses, 1)), 1.0)
    log_ratio: Floats = np.log(np.maximum(p - delta, 1e-300) / q)
    return np.where(p > delta, log_ratio, -np.inf)


def _beyond(scores: Floats, thresholds: Floats, above: bool) -> Floats:
    ordered = np.sort(scores)
    if above:
        return np.asarray(len(scores) - np.searchsorted(ordered, thresholds, side="right"), dtype=np.float64)
    return np.asarray(np.searchsorted(ordered, thresholds, side="left"), dtype=np.float64)
