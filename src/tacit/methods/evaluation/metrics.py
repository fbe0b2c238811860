"""Figures from a noisy histogram of scores, with standard errors that the noise alone accounts for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tacit.privacy.guarantee import Guarantee

Floats = npt.NDArray[np.float64]

_CALIBRATION_BINS = 10
_SEEN = 2.0  # a bin, or a class, is told of if its count exceeds so many standard errors


@dataclass(frozen=True)
class PrivateBin:
    """Records whose predicted probability lies between `low` and `high`: how many, and how often it came true."""

    low: float
    high: float
    count: float
    observed_rate: float
    count_error: float
    rate_error: float


@dataclass(frozen=True, kw_only=True)
class PrivateMetrics:
    """Figures on the parties' records, and the standard error that the noise gives each (`..._error`).

    With two classes, probabilities are those of the last class, rounded to the middle of their bin: `auc` counts two
    records in one bin as half, and `log_loss` is that of the rounded probabilities. `auc` is None where a class is not
    told from noise. `calibration` leaves out bins that are not. With more classes there is the accuracy alone.

    Guarantees:
        Figures lie in their ranges and counts are not negative. Without noise they are those of the records, and the
        accuracy is exact.
    """

    n: int
    accuracy: float
    accuracy_error: float
    auc: float | None = None
    auc_error: float | None = None
    log_loss: float | None = None
    log_loss_error: float | None = None
    calibration: tuple[PrivateBin, ...] = ()
    guarantee: Guarantee
    noise_std: float

    @property
    def epsilon(self) -> float:
        """The epsilon of this release."""
        return self.guarantee.epsilon

    @property
    def delta(self) -> float:
        """The delta of this release."""
        return self.guarantee.delta


def metrics_of(
    counts: Floats, *, n_records: int, noise_std: float, is_binary: bool, guarantee: Guarantee
) -> PrivateMetrics:
    """The figures of a histogram: cells bin + bins * label for two classes, (wrong, right) for more."""
    # The nearest counts that add up to n: the noise that is left has covariance s^2 (1 - 11' / d).
    x = counts + (n_records - counts.sum()) / counts.size
    bins = counts.size // 2
    if not is_binary:
        accuracy, error = _linear(np.array([0.0, 1.0]), x, n_records, noise_std)
        return PrivateMetrics(
            n=n_records,
            accuracy=_clamp(accuracy, 0, 1),
            accuracy_error=error,
            guarantee=guarantee,
            noise_std=noise_std,
        )
    is_upper = np.arange(bins) >= bins // 2
    accuracy, accuracy_error = _linear(
        np.concatenate([~is_upper, is_upper]).astype(np.float64), x, n_records, noise_std
    )
    middles = (np.arange(bins) + 0.5) / bins
    losses = -np.log(np.concatenate([1 - middles, middles]))
    loss, loss_error = _linear(losses, x, n_records, noise_std)
    auc, auc_error = _auc(x[:bins], x[bins:], noise_std)
    return PrivateMetrics(
        n=n_records,
        accuracy=_clamp(accuracy, 0, 1),
        accuracy_error=accuracy_error,
        auc=auc,
        auc_error=auc_error,
        log_loss=_clamp(loss, float(losses.min()), float(losses.max())),
        log_loss_error=loss_error,
        calibration=_calibration(x[:bins], x[bins:], noise_std),
        guarantee=guarantee,
        noise_std=noise_std,
    )


def _linear(weights: Floats, x: Floats, n_records: int, noise_std: float) -> tuple[float, float]:
    """The mean of `weights` over the records, and its standard error."""
    return float(weights @ x) / n_records, _error(weights, noise_std) / n_records


def _error(gradient: Floats, noise_std: float) -> float:
    """The standard deviation of gradient . x; x's noise adds up to 0, so the gradient's mean does not count."""
    return noise_std * float(np.linalg.norm(gradient - gradient.mean()))


def _auc(negatives: Floats, positives: Floats, noise_std: float) -> tuple[float | None, float | None]:
    """P(a positive's score is above a negative's) + P(equal) / 2, and its error to first order."""
    total = negatives.sum() * positives.sum()
    least = _SEEN * _error(np.repeat([0.0, 1.0], len(positives)), noise_std)
    if not (negatives.sum() > least and positives.sum() > least):
        return None, None
    below = np.cumsum(negatives) - negatives / 2  # negatives that a positive in this bin beats
    above = positives.sum() - np.cumsum(positives) + positives / 2  # positives that beat a negative in this bin
    auc = float(below @ positives / total)
    gradient = np.concatenate([above / total - auc / negatives.sum(), below / total - auc / positives.sum()])
    return _clamp(auc, 0, 1), _error(gradient, noise_std)


def _calibration(negatives: Floats, positives: Floats, noise_std: float) -> tuple[PrivateBin, ...]:
    """The bins put together into ten or fewer, without those that cannot be told from noise."""
    edges = np.linspace(0, len(negatives), min(_CALIBRATION_BINS, len(negatives)) + 1).round().astype(int)
    found = []
    for start, end in pairwise(edges):
        inside = np.zeros(2 * len(negatives))
        inside[start:end] = inside[len(negatives) + start : len(negatives) + end] = 1.0
        n0, n1 = float(negatives[start:end].sum()), float(positives[start:end].sum())
        count_error = _error(inside, noise_std)
        if not n0 + n1 > max(0.0, _SEEN * count_error):
            continue
        rate = n1 / (n0 + n1)
        slope = np.where(np.arange(inside.size) < len(negatives), -rate, 1 - rate) * inside / (n0 + n1)
        found.append(
            PrivateBin(
                low=float(start / len(negatives)),
                high=float(end / len(negatives)),
                count=n0 + n1,
                observed_rate=_clamp(rate, 0, 1),
                count_error=count_error,
                rate_error=_error(slope, noise_std),
            )
        )
    return tuple(found)


def _clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
