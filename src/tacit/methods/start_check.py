"""Does a public start fit the private records? What the noisy gradients of a descent tell, at no further cost.

Were the records drawn from the start's own law, their residuals would have mean 0 given the rows, and so would the mean
g of their gradients at the start. Two estimates of g are looked at: the first noisy gradient, and the way that the
descent took, divided by what a constant gradient of length 1 would have moved it. The latter has less noise, for it
averages all rounds. What curvature does to it makes it shorter, and its noise too (`descent.solver.mean_weights`). So
it misses a start that has been mended on the way, which the first gradient does not. Of each, three statistics, with
the noise's standard deviation s and a bound on the records' own spread, doubled for a start learned from as many:

    scores     w.g, w the start. A record contributes the variance of its scores under their own law: p (1 - p) m^2 <=
               0.44 for a margin of m; for C classes the variance of log p, at most 1 + ln(C - 1)^2 / 4 (Reeb and Wolf
               2015). Too confident or turned about: positive; too timid: negative
    level      the intercept's coordinate, two classes: at most 1/4 a record. Cases are more or less frequent
    direction  ||g||, with n E ||g||^2 = n k s^2 + v, v = G^2 / 4 a record: what the two others do not see

A statistic counts if it exceeds 3.5 standard deviations, and if it matters: 0.05, in units of the loss, of a
probability, and of G. The gradients were opened with their noise, so all this is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.models.loss import Loss

Floats = npt.NDArray[np.float64]

_DEVIATIONS = 3.5
_MATTERS = 0.05
_TOO_COARSE = 0.25  # a test that sees only more than this could miss a start that is turned about
_MARGIN_VARIANCE = 0.4393  # the largest m^2 sigma(m) sigma(-m)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """An estimate of the records' mean gradient at the start.

    Attributes:
        gradient: in the start's shape.
        noise_std: the noise in each coordinate.
        n_records: how many records the mean is over; of a sample, how many are expected.
        level: what makes the intercept's gradient of the coordinates; None if there is no intercept.
    """

    gradient: Floats
    noise_std: float
    n_records: float
    level: Floats | None


def start_notices(start: Floats, evidence: Sequence[Evidence], *, n_classes: int, row_norm: float) -> tuple[str, ...]:
    """What a report should say about the start: that it seems unlike the private data, or that nobody can tell.

    `row_norm` bounds the norm of a row with its constant.
    """
    for one in evidence:
        findings = _findings(start, one, n_classes, row_norm)
        if findings:
            return (
                f"The public start seems unlike the private data: {'; '.join(findings)}. The noisy gradients tell this "
                f"at no further cost. A start that does not fit costs accuracy: consider start=None",
            )
    if evidence and min(_DEVIATIONS * _score_std(start, one, n_classes, row_norm) for one in evidence) > _TOO_COARSE:
        return ("The noise is too large to tell whether the public start fits the private data",)
    return ()


def _findings(start: Floats, one: Evidence, n_classes: int, row_norm: float) -> list[str]:
    findings = []
    g, s = one.gradient, one.noise_std
    score, score_std = float(np.sum(start * g)), _score_std(start, one, n_classes, row_norm)
    if _counts(score, score_std):
        how = "too confident, or point the wrong way" if score > 0 else "too timid"
        findings.append(f"its scores are {how} ({abs(score) / score_std:.1f} standard deviations)")
    if n_classes == 2 and one.level is not None:
        level = float(one.level @ g)
        level_std = math.hypot(math.sqrt(_spread(one) / 4), s * float(np.linalg.norm(one.level)))
        if _counts(level, level_std):
            how = "too often" if level > 0 else "too seldom"
            findings.append(f"it expects the last class {how} ({abs(level) / level_std:.1f} standard deviations)")
    if not findings and _points_elsewhere(one, n_classes, row_norm):
        findings.append("its gradient is longer than chance explains")
    return findings


def _counts(value: float, std: float) -> bool:
    return abs(value) > max(_DEVIATIONS * std, _MATTERS)


def _spread(one: Evidence) -> float:
    """How many times a record's variance counts in a mean over the records."""
    return 2 / one.n_records


def _score_std(start: Floats, one: Evidence, n_classes: int, row_norm: float) -> float:
    length = float(np.linalg.norm(start))
    apart = row_norm * length * (1 if n_classes == 2 else math.sqrt(2))  # a record's scores, at most
    largest = _MARGIN_VARIANCE if n_classes == 2 else 1 + math.log(n_classes - 1) ** 2 / 4
    variance = min(largest, apart**2 / 4)
    return math.sqrt(_spread(one) * variance + (one.noise_std * length) ** 2)


def _points_elsewhere(one: Evidence, n_classes: int, row_norm: float) -> bool:
    g, s = one.gradient, one.noise_std
    longest = Loss(n_features=1, n_classes=n_classes).gradient_norm_bound(row_norm)
    v = _spread(one) * longest**2 / 4
    length = float(np.linalg.norm(g))
    by_chance = math.sqrt(g.size * s**2 + v) + _DEVIATIONS * math.sqrt(s**2 + v)
    beyond_noise = math.sqrt(max(0.0, length**2 - g.size * s**2))
    return length > by_chance and beyond_noise > _MATTERS * longest
